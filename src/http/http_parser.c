#include "http/http_parser.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* All chunk extensions of one message together; nobody uses them but attackers. */
enum { CHUNK_EXTENSION_BYTES = 256 };
/* The texts of the refusals name these. */
_Static_assert(LIMIT_TARGET_BYTES == 8 * 1024 && LIMIT_HEADER_BYTES == 32 * 1024 &&
		       LIMIT_HEADER_COUNT == 100,
	"the limits in the texts are the limits");
/* One large head does not stay in memory for the life of the connection. */
enum { HEAD_KEPT_BYTES = 4096 };

static const struct http_refusal out_of_memory = { 503, "out_of_memory", "out of memory",
	"try again later" };

static int refuse(llhttp_t *engine, struct http_refusal why)
{
	struct http_parser *p = engine->data;
	if (!p->bad.status)
		p->bad = why;
	return HPE_USER;
}

static int refuse_400(llhttp_t *engine, const char *detail)
{
	return refuse(engine, (struct http_refusal){ 400, "bad_request", detail, "" });
}

/* Stops llhttp here, so that http_parser_next() returns the event. */
static int stop_with(struct http_parser *p, enum http_event event)
{
	p->pending = event;
	return HPE_PAUSED;
}

/* ---- collecting the head ---------------------------------------------- */

static int on_message_begin(llhttp_t *engine)
{
	struct http_parser *p = engine->data;
	p->started = true;
	p->head_done = false;
	p->header_bytes = p->extension_bytes = 0;
	p->head.n_headers = 0;
	p->head.bytes.len = 0;
	if (p->head.bytes.cap > HEAD_KEPT_BYTES)
		buffer_finish(&p->head.bytes);
	return 0;
}

static int on_url(llhttp_t *engine, const char *at, size_t len)
{
	struct http_parser *p = engine->data;
	if (memchr(at, '\0', len))
		return refuse_400(
			engine, "the request target has a character that must be percent-encoded");
	if (p->head.bytes.len + len > LIMIT_TARGET_BYTES)
		return refuse(engine,
			(struct http_refusal){ 414, "target_too_long",
				"the request target is longer than 8 KiB", "shorten the URL" });
	return buffer_append(&p->head.bytes, at, len) < 0 ? refuse(engine, out_of_memory) : 0;
}

static int end_text(llhttp_t *engine)
{
	struct http_parser *p = engine->data;
	return buffer_append_char(&p->head.bytes, '\0') < 0 ? refuse(engine, out_of_memory) : 0;
}

static int append_header_text(llhttp_t *engine, const char *at, size_t len)
{
	struct http_parser *p = engine->data;
	p->header_bytes += len;
	if (p->header_bytes > LIMIT_HEADER_BYTES)
		return refuse(engine, (struct http_refusal){ 431, "headers_too_large",
					      "the headers are larger than 32 KiB in all",
					      "send fewer or shorter headers" });
	if (p->head_done)
		return 0; /* trailers count, but nobody reads them */
	return buffer_append(&p->head.bytes, at, len) < 0 ? refuse(engine, out_of_memory) : 0;
}

static int on_header_field(llhttp_t *engine, const char *at, size_t len)
{
	struct http_parser *p = engine->data;
	struct http_head *h = &p->head;
	if (!p->head_done && h->n_headers == LIMIT_HEADER_COUNT)
		return refuse(
			engine, (struct http_refusal){ 431, "too_many_headers",
					"there are more than 100 headers", "send fewer headers" });
	return append_header_text(engine, at, len);
}

/* Where the text being collected starts: behind the last NUL. */
static uint32_t text_start(const struct buffer *bytes)
{
	size_t at = bytes->len;
	while (at > 0 && bytes->data[at - 1])
		at--;
	return (uint32_t)at;
}

static bool is_token(const char *s)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";
	if (!*s)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr(marks, *s))
			return false;
	return true;
}

/* llhttp checks both already; a hole in one of the two is not a hole in the server. */
static bool is_field_value(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static int on_header_field_complete(llhttp_t *engine)
{
	struct http_parser *p = engine->data;
	struct http_head *h = &p->head;
	if (p->head_done)
		return 0;
	uint32_t name = text_start(&h->bytes);
	int r = end_text(engine);
	if (r)
		return r;
	if (!is_token(h->bytes.data + name) ||
		name + strlen(h->bytes.data + name) + 1 != h->bytes.len)
		return refuse_400(engine, "a header name has a character that is not allowed");
	h->header[h->n_headers].name = name;
	h->header[h->n_headers].value = (uint32_t)h->bytes.len;
	return 0;
}

static int on_header_value_complete(llhttp_t *engine)
{
	struct http_parser *p = engine->data;
	struct http_head *h = &p->head;
	if (p->head_done)
		return 0;
	uint32_t value = h->header[h->n_headers].value;
	if (!is_field_value(h->bytes.data + value, h->bytes.len - value))
		return refuse_400(engine, "a header value has a control character");
	while (h->bytes.len > value &&
		(h->bytes.data[h->bytes.len - 1] == ' ' || h->bytes.data[h->bytes.len - 1] == '\t'))
		h->bytes.len--;
	h->n_headers++;
	return end_text(engine);
}

/* ---- judging the head ------------------------------------------------- */

static int map_method(unsigned engine_method)
{
	switch (engine_method) {
	case HTTP_GET:
		return HTTP_METHOD_GET;
	case HTTP_HEAD:
		return HTTP_METHOD_HEAD;
	case HTTP_POST:
		return HTTP_METHOD_POST;
	case HTTP_PUT:
		return HTTP_METHOD_PUT;
	case HTTP_PATCH:
		return HTTP_METHOD_PATCH;
	case HTTP_DELETE:
		return HTTP_METHOD_DELETE;
	case HTTP_OPTIONS:
		return HTTP_METHOD_OPTIONS;
	default:
		return -1;
	}
}

static const char *check_target(struct http_head *h)
{
	const char *target = http_head_target(h);
	if (target[0] != '/' && !(h->method == HTTP_METHOD_OPTIONS && text_eq(target, "*")))
		return "the request target must start with '/'";
	for (const char *c = target; *c; c++)
		if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f || *c == '#')
			return "the request target has a character that must be percent-encoded";
	const char *query = strchr(target, '?');
	h->path_len = query ? (size_t)(query - target) : strlen(target);
	return NULL;
}

/* Headers that two readers could understand differently when they come twice. */
static const char *check_singles(const struct http_head *h)
{
	static const char *const single[] = { "host", "content-length", "transfer-encoding",
		"content-type", "content-encoding", "authorization", "origin", "expect", "upgrade",
		"sec-websocket-key", "sec-websocket-version", "x-request-id" };
	unsigned seen = 0;
	for (unsigned i = 0; i < h->n_headers; i++) {
		for (size_t k = 0; k < ARRAY_LEN(single); k++) {
			if (strcasecmp(h->bytes.data + h->header[i].name, single[k]))
				continue;
			if (seen & 1u << k)
				return "a header that may occur only once occurs twice";
			seen |= 1u << k;
		}
	}
	return NULL;
}

static const char *check_host(const struct http_head *h)
{
	const char *host = http_head_find(h, "host");
	if (!host)
		return h->minor == 0 ? NULL : "the Host header is missing";
	if (!*host || strlen(host) > 255)
		return "the Host header is not a host";
	for (; *host; host++)
		if (!isalnum((unsigned char)*host) && !strchr(".-_:[]", *host))
			return "the Host header is not a host";
	return NULL;
}

static const struct http_refusal *check_framing(const struct http_head *h)
{
	static const struct http_refusal
		te10 = { 400, "bad_request", "HTTP/1.0 has no Transfer-Encoding", "" },
		both = { 400, "bad_request",
			"Content-Length and Transfer-Encoding exclude each other", "" },
		coding = { 501, "unknown_transfer_coding",
			"the only supported transfer coding is chunked", "send the body as it is" },
		expect = { 417, "expectation_failed",
			"the only supported expectation is 100-continue", "" };
	const char *te = http_head_find(h, "transfer-encoding"), *ex = http_head_find(h, "expect");
	if (te && h->minor == 0)
		return &te10;
	if (te && http_head_find(h, "content-length"))
		return &both;
	if (te && strcasecmp(te, "chunked"))
		return &coding;
	if (ex && strcasecmp(ex, "100-continue"))
		return &expect;
	return NULL;
}

static int check_head(llhttp_t *engine, struct http_head *h)
{
	int method = map_method(engine->method);
	if (engine->http_major != 1 || engine->http_minor > 1)
		return refuse(
			engine, (struct http_refusal){ 505, "http_version",
					"this server supports only HTTP/1.1 and HTTP/1.0", "" });
	if (method < 0)
		return refuse(engine, (struct http_refusal){
					      501, "method_unknown", "the method is unknown", "" });
	h->method = (enum http_method)method;
	h->minor = engine->http_minor;
	const char *wrong = check_target(h);
	if (!wrong)
		wrong = check_singles(h);
	if (!wrong)
		wrong = check_host(h);
	if (wrong)
		return refuse_400(engine, wrong);
	const struct http_refusal *why = check_framing(h);
	return why ? refuse(engine, *why) : 0;
}

/* The path as a text of its own, behind the headers. */
static int copy_path(llhttp_t *engine, struct http_head *h)
{
	h->path_at = h->bytes.len;
	if (buffer_reserve(&h->bytes, h->path_len + 1) < 0)
		return refuse(engine, out_of_memory);
	buffer_append(&h->bytes, http_head_target(h), h->path_len);
	return end_text(engine);
}

static int on_headers_complete(llhttp_t *engine)
{
	struct http_parser *p = engine->data;
	struct http_head *h = &p->head;
	int r = check_head(engine, h);
	if (!r)
		r = copy_path(engine, h);
	if (r)
		return r;
	p->head_done = true;
	p->header_bytes = 0;
	h->keep_alive = llhttp_should_keep_alive(engine);
	h->chunked = engine->flags & F_CHUNKED;
	h->content_length = h->chunked                         ? -1
			    : engine->flags & F_CONTENT_LENGTH ? (int64_t)engine->content_length
							       : 0;
	if (h->content_length < 0 && !h->chunked)
		h->content_length = INT64_MAX; /* beyond any limit in any case */
	h->expects_continue = h->minor > 0 && http_head_find(h, "expect");
	h->connection_upgrade = engine->flags & F_CONNECTION_UPGRADE;
	h->websocket = http_list_has(http_head_find(h, "upgrade"), "websocket");
	/* Whether to change protocols is decided above; to llhttp this is a message like any other. */
	engine->upgrade = 0;
	return stop_with(p, HTTP_EVENT_HEAD);
}

/* ---- the body --------------------------------------------------------- */

static int on_body(llhttp_t *engine, const char *at, size_t len)
{
	struct http_parser *p = engine->data;
	if (!len)
		return 0;
	p->body = at;
	p->body_len = len;
	return stop_with(p, HTTP_EVENT_BODY);
}

static int on_chunk_extension(llhttp_t *engine, const char *at, size_t len)
{
	struct http_parser *p = engine->data;
	p->extension_bytes += len;
	return p->extension_bytes > CHUNK_EXTENSION_BYTES
		       ? refuse_400(engine, "chunk extensions are too long")
		       : 0;
}

static int on_message_complete(llhttp_t *engine)
{
	struct http_parser *p = engine->data;
	p->started = false;
	p->first_len = 0;
	p->in_lines = false;
	return stop_with(p, HTTP_EVENT_DONE);
}

static const llhttp_settings_t callbacks = {
	.on_message_begin = on_message_begin,
	.on_url = on_url,
	.on_url_complete = end_text,
	.on_header_field = on_header_field,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value = append_header_text,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_chunk_extension_name = on_chunk_extension,
	.on_chunk_extension_value = on_chunk_extension,
	.on_message_complete = on_message_complete,
};

/* ---- the parser ------------------------------------------------------- */

void http_parser_init(struct http_parser *p)
{
	memset(p, 0, sizeof(*p));
	llhttp_init(&p->engine, HTTP_REQUEST, &callbacks);
	p->engine.data = p;
	buffer_init(&p->head.bytes,
		2 * (LIMIT_TARGET_BYTES + 1) + LIMIT_HEADER_BYTES + 2 * LIMIT_HEADER_COUNT);
}

void http_parser_finish(struct http_parser *p)
{
	buffer_finish(&p->head.bytes);
}

static void remember_first(struct http_parser *p, const struct http_input *in)
{
	for (size_t i = 0; i < in->len && p->first_len < sizeof(p->first); i++)
		if (p->first_len || (in->data[i] != '\r' && in->data[i] != '\n'))
			p->first[p->first_len++] = in->data[i];
}

/* A word in capitals, followed by a space, is an unknown method; any other text is not HTTP. */
static bool starts_with_method(const struct http_parser *p)
{
	unsigned n = 0;
	while (n < p->first_len && (isupper((unsigned char)p->first[n]) || p->first[n] == '-'))
		n++;
	return n >= 1 && (n == p->first_len || p->first[n] == ' ');
}

/* Newer versions of llhttp (9.2) also call a line that does not end as it must after the version an invalid version. */
static bool version_known(const struct http_parser *p)
{
	return p->engine.http_major == 1 && p->engine.http_minor <= 1;
}

static enum http_event fail(struct http_parser *p, llhttp_errno_t err)
{
	static const struct http_refusal not_http = { 400, "bad_request",
		"this is not an HTTP request", "" },
					 method = { 501, "method_unknown", "the method is unknown",
						 "" },
					 version = { 505, "http_version",
						 "this server supports only HTTP/1.1 and HTTP/1.0",
						 "" };
	if (!p->bad.status) {
		if (err == HPE_INVALID_METHOD)
			p->bad = starts_with_method(p) ? method : not_http;
		else if (err == HPE_PAUSED_H2_UPGRADE ||
			 (err == HPE_INVALID_VERSION && !version_known(p)))
			p->bad = version;
		else if (err == HPE_INVALID_CONSTANT)
			p->bad = not_http;
		else
			p->bad = (struct http_refusal){ 400, "bad_request",
				llhttp_get_error_reason(&p->engine), "" };
	}
	if (!p->bad.detail)
		p->bad.detail = not_http.detail;
	return HTTP_EVENT_BAD;
}

/*
 * Looks at the line ends of a head: llhttp takes a folded line for the rest of a value and a bare LF for the
 * end of the head, and others in front of us may read either differently. False when there is one.
 */
static bool lines_are_sound(struct http_parser *p, const char *data, size_t len)
{
	const char *at = data, *end = data + len;
	if (len && p->last == '\n' && p->in_lines && (*data == ' ' || *data == '\t'))
		return false;
	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		char before = at > data ? at[-1] : p->last;
		if (before != '\r' || (at + 1 < end && (at[1] == ' ' || at[1] == '\t')))
			return false;
		at++;
	}
	if (len) {
		p->last = data[len - 1];
		p->in_lines = true;
	}
	return true;
}

enum http_event http_parser_next(struct http_parser *p, struct http_input *in)
{
	if (p->bad.status)
		return HTTP_EVENT_BAD;
	const char *data = in->data ? in->data : "";
	if (p->first_len < sizeof(p->first))
		remember_first(p, in);
	bool in_head = !p->head_done || !p->started;
	llhttp_errno_t err = llhttp_execute(&p->engine, data, in->len);
	if (err != HPE_OK && err != HPE_PAUSED)
		return fail(p, err);
	size_t used = err == HPE_OK ? in->len : (size_t)(llhttp_get_error_pos(&p->engine) - data);
	if (in_head && !lines_are_sound(p, data, used)) {
		p->bad = (struct http_refusal){ 400, "bad_request",
			"a line of the head is folded or ends without CR", "" };
		return HTTP_EVENT_BAD;
	}
	in->data = data + used;
	in->len -= used;
	if (err == HPE_OK)
		return HTTP_EVENT_MORE;
	llhttp_resume(&p->engine);
	return p->pending;
}

const char *http_head_target(const struct http_head *h)
{
	return h->bytes.len ? h->bytes.data : "";
}

const char *http_head_path(const struct http_head *h)
{
	return h->bytes.data + h->path_at;
}

const char *http_head_find(const struct http_head *h, const char *name)
{
	for (unsigned i = 0; i < h->n_headers; i++)
		if (!strcasecmp(h->bytes.data + h->header[i].name, name))
			return h->bytes.data + h->header[i].value;
	return NULL;
}

bool http_list_has(const char *value, const char *token)
{
	size_t n = strlen(token);
	while (value && *value) {
		value += strspn(value, " \t,");
		size_t len = strcspn(value, " \t,;");
		if (len == n && !strncasecmp(value, token, n))
			return true;
		value += strcspn(value, ",");
	}
	return false;
}
