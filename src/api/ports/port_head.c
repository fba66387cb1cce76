/* What passes of the heads of requests to servers inside sessions, and of their answers. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/login.h"
#include "api/metrics.h"
#include "api/ports/port_proxy.h"
#include "base/text.h"
#include "http/http_parser.h"
#include "http/http_reply.h"

/* Of one connection; and those by which its messages are framed, which are written anew. */
static const char *const hop_by_hop[] = { "Connection", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
	"Content-Length", NULL };

/* Meant for us, or said anew. */
static const char *const request_own[] = { "Host", "Expect", "E2b-Sandbox-Id", "E2b-Sandbox-Port",
	"E2B-Traffic-Access-Token", "X-Access-Token", "X-Forwarded-For", "X-Forwarded-Host",
	"X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded", NULL };

/* They would change how the browser treats the whole host. */
static const char *const answer_dropped[] = { "Strict-Transport-Security", "Alt-Svc",
	"Public-Key-Pins", "Report-To", "NEL", NULL };

/* These headers would also affect the API and the console. */
static const char *const shared_dropped[] = { "Set-Cookie", "Clear-Site-Data",
	"Service-Worker-Allowed", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
	"Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
	"Access-Control-Expose-Headers", "Access-Control-Max-Age", NULL };

/*
 * Scripts run without the origin: they cannot call the API as the user, nor read what the console
 * stores.
 */
#define SANDBOX "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"

static bool is_among(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcasecmp(name, *list))
			return true;
	return false;
}

/* ---- the request ---------------------------------------------------------------------------- */

bool port_head_token(const struct call *c, const char *name, const char *value, uint64_t *ret_owner)
{
	struct error e = { 0 };
	char bearer[LIMIT_TOKEN_BYTES + 8];
	if (!strcasecmp(name, "X-API-Key")) {
		if (strlen(value) > LIMIT_TOKEN_BYTES)
			return false;
		snprintf(bearer, sizeof(bearer), "Bearer %s", value);
		value = bearer;
	}

	*ret_owner = 0;
	bool known = (c->api->guard.tokens[0] &&
			     guard_token(&c->api->guard, value, &e, ret_owner) == 0) ||
		     metrics_is_operator(c->api->metrics, value);
	explicit_bzero(bearer, sizeof(bearer));
	return known;
}

/* The cookies but our own; those of the API's origin are none of the server's business. */
static int put_cookies(const char *cookies, struct buffer *out)
{
	static const char own[] = PORT_KEY_COOKIE "=";
	bool any = false;
	int r = 0;
	while (*cookies) {
		cookies += strspn(cookies, "; \t");
		size_t n = strcspn(cookies, ";");
		if (n && strncmp(cookies, own, sizeof(own) - 1) && !login_owns_cookie(cookies, n)) {
			r |= buffer_printf(out, "%s%.*s", any ? "; " : "Cookie: ", (int)n, cookies);
			any = true;
		}
		cookies += n;
	}
	return any ? r | buffer_append_str(out, "\r\n") : r;
}

static int put_request_header(const struct call *c, const struct port_request *q, const char *name,
	const char *value, struct buffer *out)
{
	uint64_t owner;
	if (!strcasecmp(name, "Cookie"))
		return q->form == PORT_BY_HOST ? put_cookies(value, out) : 0;
	if ((!strcasecmp(name, "Authorization") || !strcasecmp(name, "X-API-Key")) &&
		(q->hide_credentials || port_head_token(c, name, value, &owner)))
		return 0;
	return buffer_printf(out, "%s: %s\r\n", name, value);
}

static int put_request_headers(struct call *c, const struct port_request *q, struct buffer *out)
{
	const char *name, *value, *listed = http_header(c->x, "Connection");
	int r = 0;
	for (unsigned i = 0; http_header_at(c->x, i, &name, &value); i++) {
		if (is_among(name, hop_by_hop) || is_among(name, request_own) ||
			http_list_has(listed, name))
			continue;
		r |= put_request_header(c, q, name, value, out);
	}
	return r;
}

static int put_framing(const struct call *c, struct buffer *out)
{
	int64_t length = http_content_length(c->x);
	enum http_method m = http_method(c->x);
	int r = 0;
	if (length < 0)
		r |= buffer_append_str(out, "Transfer-Encoding: chunked\r\n");
	else if (length || m == HTTP_METHOD_POST || m == HTTP_METHOD_PUT || m == HTTP_METHOD_PATCH)
		r |= buffer_printf(out, "Content-Length: %lld\r\n", (long long)length);
	r |= buffer_append_str(out, http_wants_websocket(c->x)
					    ? "Connection: Upgrade\r\nUpgrade: websocket\r\n"
					    : "Connection: close\r\n");
	return r;
}

int port_head_request(struct call *c, const struct port_request *q, struct buffer *out)
{
	const char *host = http_header(c->x, "Host");
	char own[32], remote[64];

	snprintf(own, sizeof(own), "localhost:%u", q->port);
	snprintf(remote, sizeof(remote), "%s", http_remote(c->x));
	char *colon = strrchr(remote, ':');
	if (colon)
		*colon = '\0';
	int r = buffer_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n",
		http_method_name(http_method(c->x)), q->target,
		q->form == PORT_BY_HOST && host ? host : own);
	r |= put_request_headers(c, q, out);
	r |= buffer_printf(out,
		"X-Forwarded-For: %s\r\nX-Forwarded-Host: %s\r\nX-Forwarded-Proto: http\r\n",
		remote, host ? host : own);
	if (q->prefix)
		r |= buffer_printf(out, "X-Forwarded-Prefix: %s\r\n", q->prefix);
	r |= put_framing(c, out);
	return r | buffer_append_str(out, "\r\n");
}

/* ---- the answer --------------------------------------------------------------------- */

/* A cookie for a wider domain would reach the API; ours is nobody else's to set. */
static bool cookie_passes(const char *value)
{
	static const char own[] = PORT_KEY_COOKIE;
	size_t n = strlen(own);
	value += strspn(value, " \t");
	if (!strncmp(value, own, n) && (value[n] == '=' || value[n] == ' '))
		return false;
	for (const char *at = strchr(value, ';'); at; at = strchr(at, ';')) {
		at += 1 + strspn(at + 1, " \t");
		if (!strncasecmp(at, "domain", 6))
			return false;
	}
	return true;
}

static void put_answer_header(struct http_exchange *x, enum port_form form, const char *prefix,
	const char *name, const char *value)
{
	char moved[LIMIT_TARGET_BYTES];
	if (form == PORT_BY_PATH && !strcasecmp(name, "Location") && value[0] == '/' &&
		value[1] != '/') {
		snprintf(moved, sizeof(moved), "%s%s", prefix, value);
		value = moved;
	}
	if (form == PORT_BY_HOST && !strcasecmp(name, "Set-Cookie") && !cookie_passes(value))
		return;
	http_add_header(x, name, value);
}

static const char *find(const struct http_reply *reply, const char *wanted)
{
	const char *name, *value;
	for (unsigned i = 0; http_reply_header(reply, i, &name, &value); i++)
		if (!strcasecmp(name, wanted))
			return value;
	return NULL;
}

void port_head_answer(struct http_exchange *x, const struct http_reply *reply, enum port_form form,
	const char *prefix)
{
	const char *name, *value, *listed = find(reply, "Connection");
	for (unsigned i = 0; http_reply_header(reply, i, &name, &value); i++) {
		if (is_among(name, hop_by_hop) || is_among(name, answer_dropped) ||
			http_list_has(listed, name) ||
			(form == PORT_BY_PATH && is_among(name, shared_dropped)))
			continue;
		put_answer_header(x, form, prefix, name, value);
	}

	if (reply->status == 101) {
		http_add_header(x, "Upgrade", "websocket");
		http_add_header(x, "Connection", "Upgrade");
	}

	if (form == PORT_BY_PATH)
		http_add_header(x, "Content-Security-Policy", SANDBOX);
}
