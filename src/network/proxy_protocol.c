#include "network/proxy_protocol.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"

enum { SOCKS_VERSION = 5, SOCKS_CONNECT = 1, SOCKS_V4 = 1, SOCKS_NAME = 3, SOCKS_V6 = 4 };
enum {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_UNREACHABLE = 4,
	SOCKS_NO_COMMAND = 7,
	SOCKS_NO_ADDRESS = 8
};

const char *network_verdict_name(enum network_verdict v)
{
	static const char *const names[NETWORK_VERDICT_COUNT] = { "allowed", "not_allowed",
		"not_public", "unknown_host", "unreachable", "bad_request" };
	return names[v];
}

void proxy_protocol_init(struct proxy_protocol *d)
{
	*d = (struct proxy_protocol){ 0 };
	buffer_init(&d->in, LIMIT_PROXY_HEAD_BYTES + LIMIT_PROXY_READ_BYTES);
}

void proxy_protocol_finish(struct proxy_protocol *d)
{
	buffer_finish(&d->in);
}

/* ---- SOCKS 5 ------------------------------------------------------------------ */

static void socks_reply(struct buffer *reply, int code)
{
	const char bytes[10] = { SOCKS_VERSION, (char)code, 0, SOCKS_V4 };
	buffer_append(reply, bytes, sizeof(bytes));
}

static enum proxy_protocol_event socks_refuse(
	struct proxy_protocol *d, int code, struct buffer *reply)
{
	socks_reply(reply, code);
	d->state = DIALOGUE_OVER;
	return DIALOGUE_REFUSE;
}

/* version, count, methods */
static enum proxy_protocol_event socks_methods(struct proxy_protocol *d, struct buffer *reply)
{
	const unsigned char *p = (const unsigned char *)d->in.data;
	if (d->in.len < 2 || d->in.len < 2U + p[1])
		return DIALOGUE_MORE;
	if (!memchr(p + 2, 0, p[1])) {
		buffer_append(reply, "\x05\xff", 2);
		d->state = DIALOGUE_OVER;
		return DIALOGUE_REFUSE;
	}
	buffer_consume(&d->in, 2U + p[1]);
	buffer_append(reply, "\x05\x00", 2);
	d->state = DIALOGUE_SOCKS;
	return DIALOGUE_MORE;
}

/*
 * Where the address begins and how long it is; 0 when more bytes must come, -EINVAL for a kind that
 * does not exist.
 */
static int socks_address(const unsigned char *p, size_t len, size_t *ret_at, size_t *ret_len)
{
	if (len < 5)
		return 0;
	*ret_at = p[3] == SOCKS_NAME ? 5 : 4;
	*ret_len = p[3] == SOCKS_V4 ? 4 : p[3] == SOCKS_V6 ? 16 : p[4];
	if (p[3] != SOCKS_V4 && p[3] != SOCKS_V6 && p[3] != SOCKS_NAME)
		return -EINVAL;
	return len >= *ret_at + *ret_len + 2;
}

/* version, command, 0, kind of address, address, port */
static enum proxy_protocol_event socks_request(struct proxy_protocol *d, struct buffer *reply)
{
	const unsigned char *p = (const unsigned char *)d->in.data;
	struct network_target t = { .is_address = true };
	size_t at, len;
	int r = socks_address(p, d->in.len, &at, &len);

	if (r == 0)
		return DIALOGUE_MORE;
	if (r < 0 || p[0] != SOCKS_VERSION || p[2] != 0)
		return socks_refuse(d, SOCKS_NO_ADDRESS, reply);
	if (p[1] != SOCKS_CONNECT)
		return socks_refuse(d, SOCKS_NO_COMMAND, reply);
	t.port = (uint16_t)(p[at + len] << 8 | p[at + len + 1]);
	if (p[3] == SOCKS_V4)
		t.address = network_address_v4(
			(uint32_t)p[4] << 24 | (uint32_t)p[5] << 16 | (uint32_t)p[6] << 8 | p[7]);
	else if (p[3] == SOCKS_V6)
		memcpy(&t.address, p + 4, 16);
	else if (network_target_parse((const char *)p + at, len, t.port, &t) < 0)
		return socks_refuse(d, SOCKS_NO_ADDRESS, reply);
	if (!t.port)
		return socks_refuse(d, SOCKS_NO_ADDRESS, reply);
	buffer_consume(&d->in, at + len + 2);
	d->kind = DIALOGUE_SOCKS5;
	d->target = t;
	d->state = DIALOGUE_ASKED;
	return DIALOGUE_ASK;
}

/* ---- HTTP --------------------------------------------------------------------- */

/*
 * The reason is also in the status line, because urllib and curl show only the status line of a
 * refused CONNECT.
 */
static void http_reply(struct buffer *reply, int status, const char *text)
{
	buffer_printf(reply,
		"HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s\n",
		status, text, strlen(text) + 1, text);
}

static enum proxy_protocol_event http_refuse(
	struct proxy_protocol *d, const char *text, struct buffer *reply)
{
	http_reply(reply, 400, text);
	d->state = DIALOGUE_OVER;
	return DIALOGUE_REFUSE;
}

static bool is_token(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("!#$%&'*+-.^_`|~", s[i]))
			return false;
	return len > 0;
}

/* "host:port", "[v6]:port"; a missing port is `port`, or an error when that is 0. */
static int parse_authority(const char *s, size_t len, uint16_t port, struct network_target *ret)
{
	const char *colon = memrchr(s, ':', len);
	if (colon && memchr(colon, ']', (size_t)(s + len - colon)))
		colon = NULL; /* it was the address's own */
	size_t host_len = colon ? (size_t)(colon - s) : len,
	       digits = colon ? len - host_len - 1 : 0;
	if (colon) {
		char number[6];
		uint64_t n;
		if (!digits || digits >= sizeof(number))
			return -EINVAL;
		memcpy(number, colon + 1, digits);
		number[digits] = '\0';
		if (text_parse_u64(number, 1, 65535, &n) < 0)
			return -EINVAL;
		port = (uint16_t)n;
	}

	if (host_len && s[0] != '[' && memchr(s, ':', host_len))
		return -EINVAL;
	return network_target_parse(s, host_len, port, ret);
}

/* Headers that are between a client and its proxy, or that we write ourselves. */
static bool stays_here(const char *name, size_t len)
{
	static const char *const names[] = { "host", "connection", "proxy-connection", "keep-alive",
		"proxy-authorization", "proxy-authenticate", "te", "trailer", "upgrade",
		"http2-settings" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && !strncasecmp(names[i], name, len))
			return true;
	return false;
}

/*
 * Every line a name, a colon and a value without control characters; those to pass on are appended.
 */
static bool copy_headers(const char *s, const char *end, struct buffer *out)
{
	while (s < end) {
		const char *line_end = memmem(s, (size_t)(end - s), "\r\n", 2);
		const char *colon = line_end ? memchr(s, ':', (size_t)(line_end - s)) : NULL;
		if (!colon || !is_token(s, (size_t)(colon - s)))
			return false;
		for (const char *c = colon; c < line_end; c++)
			if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
				return false;
		if (!stays_here(s, (size_t)(colon - s)) &&
			buffer_append(out, s, (size_t)(line_end + 2 - s)) < 0)
			return false;
		s = line_end + 2;
	}

	return true;
}

struct request_line {
	const char *method, *target, *version;
	size_t method_len, target_len;
};

/* Two single spaces, nothing but visible ASCII between them. */
static bool split_line(const char *s, size_t len, struct request_line *ret)
{
	const char *first = memchr(s, ' ', len), *last = memrchr(s, ' ', len);
	if (!first || first == last)
		return false;
	*ret = (struct request_line){ .method = s,
		.method_len = (size_t)(first - s),
		.target = first + 1,
		.target_len = (size_t)(last - first - 1),
		.version = last + 1 };
	for (size_t i = 0; i < ret->target_len; i++)
		if (ret->target[i] <= ' ' || ret->target[i] > '~')
			return false;
	size_t version_len = (size_t)(s + len - ret->version);
	return is_token(s, ret->method_len) && ret->target_len && version_len == 8 &&
	       !memcmp(ret->version, "HTTP/1.", 7) &&
	       (ret->version[7] == '0' || ret->version[7] == '1');
}

/* "http://authority/path" → the request as its server wants it. */
static enum proxy_protocol_event http_plain(struct proxy_protocol *d, const struct request_line *l,
	const char *headers, const char *end, struct buffer *reply)
{
	static const char scheme[] = "http://";
	size_t skip = sizeof(scheme) - 1;

	if (l->target_len <= skip || strncasecmp(l->target, scheme, skip))
		return http_refuse(d,
			"This is a proxy: it takes CONNECT host:port, or a request whose URL begins with http://",
			reply);
	const char *authority = l->target + skip, *stop = l->target + l->target_len;
	size_t len = 0;
	while (authority + len < stop && !strchr("/?#", authority[len]))
		len++;
	if (parse_authority(authority, len, 80, &d->target) < 0)
		return http_refuse(d, "The URL has no host name or address", reply);
	_cleanup_buffer_ struct buffer out = BUFFER_INIT(
		2 * LIMIT_PROXY_HEAD_BYTES + LIMIT_PROXY_READ_BYTES);
	const char *path = authority + len;
	buffer_printf(&out, "%.*s %s%.*s HTTP/1.%c\r\nHost: %.*s\r\n", (int)l->method_len,
		l->method, path < stop && *path == '/' ? "" : "/", (int)(stop - path), path,
		l->version[7], (int)len, authority);
	if (!copy_headers(headers, end, &out) ||
		buffer_append_str(&out, "Connection: close\r\n\r\n") < 0 ||
		buffer_append(&out, end + 2, (size_t)(d->in.data + d->in.len - end - 2)) < 0)
		return http_refuse(d, "The headers of the request are malformed", reply);
	buffer_finish(&d->in);
	d->in = out;
	out = (struct buffer){ 0 };
	d->kind = DIALOGUE_PLAIN;
	d->state = DIALOGUE_ASKED;
	return DIALOGUE_ASK;
}

static enum proxy_protocol_event http_connect(struct proxy_protocol *d,
	const struct request_line *l, const char *headers, const char *end, struct buffer *reply)
{
	_cleanup_buffer_ struct buffer unused = BUFFER_INIT(0);
	if (parse_authority(l->target, l->target_len, 0, &d->target) < 0)
		return http_refuse(d, "CONNECT takes host:port", reply);
	if (!copy_headers(headers, end, &unused))
		return http_refuse(d, "The headers of the request are malformed", reply);
	buffer_consume(&d->in, (size_t)(end + 2 - d->in.data));
	d->kind = DIALOGUE_CONNECT;
	d->state = DIALOGUE_ASKED;
	return DIALOGUE_ASK;
}

static enum proxy_protocol_event http_head(struct proxy_protocol *d, struct buffer *reply)
{
	struct request_line l;
	const char *blank = memmem(d->in.data, d->in.len, "\r\n\r\n", 4);

	if (!blank || blank - d->in.data > LIMIT_PROXY_HEAD_BYTES)
		return d->in.len > LIMIT_PROXY_HEAD_BYTES
			       ? http_refuse(d, "The head of the request is too large", reply)
			       : DIALOGUE_MORE;
	const char *line_end = memmem(d->in.data, d->in.len, "\r\n", 2);
	if (!split_line(d->in.data, (size_t)(line_end - d->in.data), &l))
		return http_refuse(d, "The first line of the request is malformed", reply);
	/* [headers, end): whole lines with their ends; the blank line's own end follows. */
	const char *headers = line_end + 2, *end = blank + 2;
	if (l.method_len == 7 && !memcmp(l.method, "CONNECT", 7))
		return http_connect(d, &l, headers, end, reply);
	return http_plain(d, &l, headers, end, reply);
}

/* ---- both --------------------------------------------------------------------- */

static enum proxy_protocol_event step(struct proxy_protocol *d, struct buffer *reply)
{
	switch (d->state) {
	case DIALOGUE_FIRST:
		if (!d->in.len)
			return DIALOGUE_MORE;
		d->state = d->in.data[0] == SOCKS_VERSION ? DIALOGUE_METHODS : DIALOGUE_HTTP;
		d->kind = d->state == DIALOGUE_HTTP ? DIALOGUE_CONNECT : DIALOGUE_SOCKS5;
		return step(d, reply);
	case DIALOGUE_METHODS: {
		enum proxy_protocol_event event = socks_methods(d, reply);
		return d->state == DIALOGUE_SOCKS ? step(d, reply) : event;
	}

	case DIALOGUE_SOCKS:
		return socks_request(d, reply);
	case DIALOGUE_HTTP:
		if (!isupper((unsigned char)d->in.data[0]))
			return http_refuse(d, "This is neither SOCKS 5 nor HTTP", reply);
		return http_head(d, reply);
	default:
		return DIALOGUE_REFUSE;
	}
}

enum proxy_protocol_event proxy_protocol_feed(
	struct proxy_protocol *d, const void *data, size_t len, struct buffer *reply)
{
	if (buffer_append(&d->in, data, len) < 0)
		return DIALOGUE_REFUSE;
	return step(d, reply);
}

void proxy_protocol_answer(
	struct proxy_protocol *d, enum network_verdict v, const char *text, struct buffer *reply)
{
	static const int socks[NETWORK_VERDICT_COUNT] = { SOCKS_OK, SOCKS_NOT_ALLOWED,
		SOCKS_NOT_ALLOWED, SOCKS_UNREACHABLE, SOCKS_UNREACHABLE, SOCKS_FAILED };
	static const int http[NETWORK_VERDICT_COUNT] = { 200, 403, 403, 502, 502, 400 };
	d->state = DIALOGUE_OVER;
	if (d->kind == DIALOGUE_SOCKS5)
		socks_reply(reply, socks[v]);
	else if (v != NETWORK_ALLOWED)
		http_reply(reply, http[v], text);
	else if (d->kind == DIALOGUE_CONNECT)
		buffer_append_str(reply, "HTTP/1.1 200 Connection established\r\n\r\n");
}
