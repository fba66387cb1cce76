#include "api/ports/port_host.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "api/ports/port_proxy.h"
#include "base/text.h"

enum { LABEL_ID = SESSION_ID_LEN - 2, PORT_DIGITS = 5 };

/* ---- names -------------------------------------------------------------------------- */

/* "8000-abc….localhost:8000". Any name behind the first dot: the id says enough. */
static bool parse_host(const char *host, unsigned *ret_port, char ret_id[SESSION_ID_LEN + 1])
{
	uint64_t port;
	char digits[PORT_DIGITS + 1];
	size_t n = host ? strspn(host, "0123456789") : 0, id = 0;

	if (!n || n > PORT_DIGITS || host[n] != '-')
		return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)n, host);
	host += n + 1;
	while (isalnum((unsigned char)host[id]))
		id++;
	if (id != LABEL_ID || host[id] != '.' || text_parse_u64(digits, 1, 65535, &port) < 0)
		return false;
	snprintf(ret_id, SESSION_ID_LEN + 1, "s_%.*s", LABEL_ID, host);
	for (char *c = ret_id; *c; c++)
		*c = (char)tolower((unsigned char)*c); /* browsers write names so */
	*ret_port = (unsigned)port;
	return true;
}

static bool is_address(const char *host, size_t len, bool *ret_loopback)
{
	char name[64];
	struct in_addr v4;
	*ret_loopback = !strncmp(host, "[::1]", 5);
	if (*host == '[')
		return true;
	snprintf(name, sizeof(name), "%.*s", (int)len, host);
	if (inet_pton(AF_INET, name, &v4) != 1)
		return false;
	*ret_loopback = ntohl(v4.s_addr) >> 24 == 127;
	return true;
}

const char *port_domain(const struct call *c, char ret[PORT_DOMAIN_BYTES])
{
	const char *host = http_header(c->x, "Host"), *port;
	bool loopback = false;

	*ret = '\0';
	if (!host)
		return ret;
	port = strrchr(host, ':');
	if (port && strchr(port, ']'))
		port = NULL;
	size_t len = port ? (size_t)(port - host) : strlen(host);
	if (!is_address(host, len, &loopback))
		snprintf(ret, PORT_DOMAIN_BYTES, "%s", host);
	else if (loopback)
		snprintf(ret, PORT_DOMAIN_BYTES, "localhost%s", port ? port : "");
	return ret;
}

/* ---- keys --------------------------------------------------------------------------- */

int port_keys_init(struct api *a, struct error *e)
{
	if (getrandom(a->port_secret, sizeof(a->port_secret), 0) == (ssize_t)sizeof(a->port_secret))
		return 0;
	return error_set(e, -EIO, "the kernel's random number generator is not available");
}

void port_key(const struct api *a, const char *session_id, char ret[SHA256_HEX + 1])
{
	static const char purpose[] = "ports of a session";
	struct sha256 s;
	sha256_init(&s);
	sha256_add(&s, a->port_secret, sizeof(a->port_secret));
	sha256_add(&s, purpose, sizeof(purpose));
	sha256_add(&s, session_id, strlen(session_id));
	sha256_add(&s, a->port_secret, sizeof(a->port_secret));
	sha256_end(&s, ret);
}

bool port_key_fits(const struct api *a, const char *session_id, const char *given)
{
	char key[SHA256_HEX + 1];
	port_key(a, session_id, key);
	return given && text_eq_secret(given, strlen(given), key, SHA256_HEX);
}

static bool cookie_fits(const struct call *c, const char *session_id)
{
	static const char name[] = PORT_KEY_COOKIE "=";
	char value[SHA256_HEX + 1];
	const char *at = http_header(c->x, "Cookie");
	for (; at && *at; at += strcspn(at, ";")) {
		at += strspn(at, "; ");
		if (strncmp(at, name, sizeof(name) - 1))
			continue;
		snprintf(value, sizeof(value), "%.*s", SHA256_HEX, at + sizeof(name) - 1);
		return port_key_fits(c->api, session_id, value);
	}
	return false;
}

/* A token of the session's owner, in either of the two headers. */
static bool token_fits(const struct call *c, const struct session_info *i)
{
	static const char *const names[] = { "Authorization", "X-API-Key" };
	for (size_t k = 0; k < ARRAY_LEN(names); k++) {
		const char *value = http_header(c->x, names[k]);
		uint64_t owner = 0;
		if (value && port_head_token(c, names[k], value, &owner) && owner &&
			owner == i->owner)
			return true;
	}
	return false;
}

/* ---- requests ----------------------------------------------------------------------- */

/* The query without the key, which must not stay in the address: pages tell it to others. */
static void target_without_key(const struct call *c, char ret[LIMIT_TARGET_BYTES + 1])
{
	static const char name[] = PORT_KEY_PARAMETER "=";
	const char *q = http_query(c->x);
	size_t n = (size_t)snprintf(ret, LIMIT_TARGET_BYTES + 1, "%s", http_path(c->x));
	char before = '?';
	while (*q && n < LIMIT_TARGET_BYTES) {
		size_t len = strcspn(q, "&");
		if (len && strncmp(q, name, sizeof(name) - 1)) {
			n += (size_t)snprintf(
				ret + n, LIMIT_TARGET_BYTES + 1 - n, "%c%.*s", before, (int)len, q);
			before = '&';
		}
		q += len + (q[len] == '&');
	}
}

static enum http_body_mode give_cookie(struct call *c, const char *key)
{
	char cookie[SHA256_HEX + 96], target[LIMIT_TARGET_BYTES + 1];
	snprintf(
		cookie, sizeof(cookie), PORT_KEY_COOKIE "=%s; Path=/; HttpOnly; SameSite=Lax", key);
	target_without_key(c, target);
	http_add_header(c->x, "Set-Cookie", cookie);
	/* "//host" would lead away */
	http_add_header(
		c->x, "Location", target + (target[1] == '/' ? strspn(target, "/") - 1 : 0));
	http_add_header(c->x, "Referrer-Policy", "no-referrer");
	call_respond_as(c, 303, NULL, NULL);
	return HTTP_BODY_ANSWERED;
}

static enum http_body_mode begin_host(struct call *c)
{
	struct port_request q = { .form = PORT_BY_HOST, .target = http_target(c->x) };
	struct session *s;
	struct session_info i;
	char key[SHA256_HEX + 1] = "";

	parse_host(http_header(c->x, "Host"), &q.port, c->id);
	if (session_find(c->api->sessions, c->id, NULL, &s) < 0) {
		call_problem(c, 502, "session_gone",
			"the session was not found: it has ended, or there never was one",
			"Make a new session.");
		return HTTP_BODY_ANSWERED;
	}

	session_info(s, &i);
	bool asked = http_query_param(c->x, PORT_KEY_PARAMETER, key, sizeof(key)) == 1;
	if (asked && port_key_fits(c->api, c->id, key) && http_method(c->x) == HTTP_METHOD_GET &&
		!http_wants_websocket(c->x))
		return give_cookie(c, key);
	bool open = !c->api->guard.tokens[0] && !i.private_ports;
	if (!open && !token_fits(c, &i) && !cookie_fits(c, c->id) &&
		!port_key_fits(c->api, c->id, http_header(c->x, "E2B-Traffic-Access-Token")) &&
		!(asked && port_key_fits(c->api, c->id, key))) {
		call_problem(c, 401, "unauthorized",
			"a key is needed for the ports of this session",
			"Open the address that GET /v1/sessions/{id}/ports gives, or send a token of the server.");
		return HTTP_BODY_ANSWERED;
	}

	c->owner = i.owner;
	for (size_t k = 0; i.state == SESSION_PAUSED && k < DIALECTS_MAX && c->api->dialects[k];
		k++)
		if (c->api->dialects[k]->resume && c->api->dialects[k]->resume(s))
			break;
	return port_proxy_begin(c, s, &q);
}

const struct route *port_host_claim(const struct http_exchange *x)
{
	static const struct route route = { .method = HTTP_METHOD_GET,
		.pattern = "/",
		.flags = ROUTE_PUBLIC | ROUTE_RAW_BODY | ROUTE_ANY_QUERY | ROUTE_FOREIGN,
		.begin = begin_host,
		.handle = port_proxy_body_end,
		.operation = "portHost",
		.summary = "A server inside a session" };
	char id[SESSION_ID_LEN + 1];
	unsigned port;
	return parse_host(http_header(x, "Host"), &port, id) ? &route : NULL;
}
