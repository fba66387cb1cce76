/*
 * Servers inside a session over the native API: which there are, and requests below
 * …/ports/{port}/.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/ports/port_host.h"
#include "api/ports/port_proxy.h"
#include "base/text.h"
#include "session/ports/port_link.h"
#include "json/json_write.h"

static bool needs_key(const struct call *c, const struct session_info *i)
{
	return c->api->guard.tokens[0] || i->private_ports;
}

/* With "{port}" for the number when port is 0. */
static void put_url(
	struct call *c, struct json_writer *w, const struct session_info *i, unsigned port)
{
	char domain[PORT_DOMAIN_BYTES], number[8] = "{port}", key[SHA256_HEX + 1], url[512];
	if (port)
		snprintf(number, sizeof(number), "%u", port);
	if (!*port_domain(c, domain)) {
		json_field_null(w, "url");
		return;
	}
	port_key(c->api, i->id, key);
	bool with_key = needs_key(c, i);
	snprintf(url, sizeof(url), "http://%s-%s.%s/%s%s", number, i->id + 2, domain,
		with_key ? "?" PORT_KEY_PARAMETER "=" : "", with_key ? key : "");
	json_field_cstr(w, "url", url);
}

static void put_port(
	struct call *c, struct json_writer *w, const struct session_info *i, unsigned port)
{
	char path[96];
	snprintf(path, sizeof(path), "/v1/sessions/%s/ports/%u/", i->id, port);
	json_open_object(w);
	json_field_uint(w, "port", port);
	put_url(c, w, i, port);
	json_field_cstr(w, "path", path);
	json_close(w);
}

void handle_port_list(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct session *s;
	struct session_info i;
	struct json_writer w;
	uint16_t ports[LIMIT_PORTS_LISTED];

	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}

	session_info(s, &i);
	size_t n = session_ports(s, ports, LIMIT_PORTS_LISTED);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "ports");
	json_open_array(&w);
	for (size_t k = 0; k < n; k++)
		put_port(c, &w, &i, ports[k]);
	json_close(&w);
	put_url(c, &w, &i, 0);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/* ---- below …/ports/{port}/ ---------------------------------------------------------- */

static enum http_body_mode no_port(struct call *c)
{
	call_problem(c, 404, "invalid_port", "the address names no port",
		"Use /v1/sessions/{id}/ports/8000/, with a number from 1 to 65535.");
	return HTTP_BODY_ANSWERED;
}

/* Links of the page are relative to the directory. */
static enum http_body_mode add_slash(struct call *c, const char *target, size_t len)
{
	char moved[LIMIT_TARGET_BYTES + 2];
	snprintf(moved, sizeof(moved), "%.*s/%s", (int)len, target, target + len);
	http_add_header(c->x, "Location", moved);
	call_respond_as(c, 307, NULL, NULL);
	return HTTP_BODY_ANSWERED;
}

enum http_body_mode begin_port(struct call *c)
{
	static const char mark[] = "/ports/";
	struct error e = { 0 };
	struct session *s;
	struct port_request q = { .form = PORT_BY_PATH, .hide_credentials = true };
	char digits[8], prefix[96];
	uint64_t port;
	size_t n = strspn(c->path, "0123456789");
	const char *target = http_target(c->x), *at = strstr(target, mark);
	snprintf(digits, sizeof(digits), "%.*s", (int)(n < 6 ? n : 6), c->path);
	if (!at || (c->path[n] && c->path[n] != '/') ||
		text_parse_u64(digits, 1, 65535, &port) < 0 ||
		strspn(at + sizeof(mark) - 1, "0123456789") != n)
		return no_port(c);
	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return HTTP_BODY_ANSWERED;
	}

	at += sizeof(mark) - 1 + n;
	if (*at != '/')
		return add_slash(c, target, (size_t)(at - target));
	snprintf(prefix, sizeof(prefix), "%.*s", (int)(at - target), target);
	q.port = (unsigned)port;
	q.target = at;
	q.prefix = prefix;
	return port_proxy_begin(c, s, &q);
}
