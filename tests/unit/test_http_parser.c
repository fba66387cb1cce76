/* Everything of src/http that does no I/O: the request parser, WebSocket frames, events, encodings,
 * addresses. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory_account.h"
#include "base/text.h"
#include "http/http_address.h"
#include "http/http_client.h"
#include "http/http_parser.h"
#include "http/http_reply.h"
#include "http/sha1.h"
#include "http/sse.h"
#include "http/ws.h"
#include "tap.h"
#include "json/json_read.h"

/* ---- the parser ------------------------------------------------------- */

struct tracer {
	struct http_parser p;
	struct buffer text;
	bool in_body, bad;
};

static void trace_event(struct tracer *t, enum http_event event)
{
	struct http_head *h = &t->p.head;
	if (t->in_body && event != HTTP_EVENT_BODY) {
		buffer_append_str(&t->text, ">");
		t->in_body = false;
	}
	if (event == HTTP_EVENT_HEAD) {
		buffer_printf(&t->text, "[%s %s path=%s 1.%u len=%lld%s%s%s",
			http_method_name(h->method), http_head_target(h), http_head_path(h),
			h->minor, (long long)h->content_length, h->keep_alive ? "" : " close",
			h->expects_continue ? " 100" : "", h->websocket ? " ws" : "");
		for (unsigned i = 0; i < h->n_headers; i++)
			buffer_printf(&t->text, " %s=%s;", h->bytes.data + h->header[i].name,
				h->bytes.data + h->header[i].value);
		buffer_append_str(&t->text, "]");
	} else if (event == HTTP_EVENT_BODY) {
		if (!t->in_body)
			buffer_append_str(&t->text, "<");
		t->in_body = true;
		buffer_append(&t->text, t->p.body, t->p.body_len);
	} else if (event == HTTP_EVENT_DONE) {
		buffer_append_str(&t->text, ".");
	} else if (event == HTTP_EVENT_BAD && !t->bad) {
		buffer_printf(&t->text, "!%d", t->p.bad.status);
		t->bad = true;
	}
}

/* Feeds a piece from memory of exactly its size, so that ASan sees a read beyond it. */
static void feed(struct tracer *t, const char *data, size_t len)
{
	char *copy = malloc(len ? len : 1);
	enum http_event event;
	memcpy(copy, data, len);
	struct http_input in = { copy, len };
	while ((event = http_parser_next(&t->p, &in)) != HTTP_EVENT_MORE) {
		trace_event(t, event);
		if (event == HTTP_EVENT_BAD)
			break;
	}
	free(copy);
}

/* The trace of data in three pieces; the caller frees it. */
static char *trace(const char *data, size_t len, size_t a, size_t b)
{
	struct tracer t = { 0 };
	http_parser_init(&t.p);
	feed(&t, data, a);
	feed(&t, data + a, b - a);
	feed(&t, data + b, len - b);
	http_parser_finish(&t.p);
	buffer_append_char(&t.text, '\0');
	return buffer_take(&t.text, NULL);
}

static char *trace_bytewise(const char *data, size_t len)
{
	struct tracer t = { 0 };
	http_parser_init(&t.p);
	for (size_t i = 0; i < len; i++)
		feed(&t, data + i, 1);
	http_parser_finish(&t.p);
	buffer_append_char(&t.text, '\0');
	return buffer_take(&t.text, NULL);
}

static void same_for_every_split(const char *data, size_t len, const char *want)
{
	char *whole = trace(data, len, len, len), *bytes = trace_bytewise(data, len);
	OK_STR(whole, want);
	OK_STR(bytes, want);
	bool same = true;
	for (size_t i = 0; i <= len; i++) {
		for (size_t step = 0; step < 3; step++) {
			size_t j = i + step * 7 < len ? i + step * 7 : len;
			char *split = trace(data, len, i, j);
			if (strcmp(split, whole)) {
				printf("# split at %zu, %zu: %s\n", i, j, split);
				same = false;
			}
			free(split);
		}
	}
	OK(same);
	free(whole);
	free(bytes);
}

static void parses_requests(void)
{
	static const struct {
		const char *in, *out;
	} good[] = {
		{ "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "[GET / path=/ 1.1 len=0 Host=a;]." },
		{ "\r\nGET /x?y=1&z HTTP/1.1\r\nhost:  a:80 \r\nX-Empty:\r\nX: \t v w\t \r\n\r\n",
			"[GET /x?y=1&z path=/x 1.1 len=0 host=a:80; X-Empty=; X=v w;]." },
		{ "POST /v1 HTTP/1.1\r\nHost: [::1]:8000\r\nContent-Length: 5\r\nExpect: "
		  "100-Continue\r\n\r\nhello",
			"[POST /v1 path=/v1 1.1 len=5 100 Host=[::1]:8000; Content-Length=5; "
			"Expect=100-Continue;]<hello>." },
		{ "PUT /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
		  "Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: "
		  "t\r\n\r\n",
			"[PUT /f path=/f 1.1 len=-1 Host=a; Transfer-Encoding=Chunked;]<abc0123456789>." },
		{ "DELETE /s HTTP/1.0\r\n\r\n", "[DELETE /s path=/s 1.0 len=0 close]." },
		{ "HEAD /s HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
			"[HEAD /s path=/s 1.0 len=0 Connection=keep-alive;]." },
		{ "PATCH /s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
			"[PATCH /s path=/s 1.1 len=0 close Host=a; Connection=close; Content-Length=0;]." },
		{ "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
			"[OPTIONS * path=* 1.1 len=0 Host=a;]." },
		/* three in one go */
		{ "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: "
		  "2\r\n\r\nokGET /3 "
		  "HTTP/1.1\r\nHost: a\r\n\r\n",
			"[GET /1 path=/1 1.1 len=0 Host=a;].[POST /2 path=/2 1.1 len=2 Host=a; "
			"Content-Length=2;]<ok>."
			"[GET /3 path=/3 1.1 len=0 Host=a;]." },
		/* an offer to change protocols that nobody takes up changes nothing */
		{ "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: "
		  "h2c\r\n\r\nGET /n HTTP/1.1\r\nHost: "
		  "a\r\n\r\n",
			"[GET / path=/ 1.1 len=0 Host=a; Connection=Upgrade, HTTP2-Settings; Upgrade=h2c;]."
			"[GET /n path=/n 1.1 len=0 Host=a;]." },
		{ "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: "
		  "WebSocket\r\n\r\n",
			"[GET /ws path=/ws 1.1 len=0 ws Host=a; Connection=keep-alive, Upgrade; "
			"Upgrade=WebSocket;]." },
	};
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		same_for_every_split(good[i].in, strlen(good[i].in), good[i].out);
}

#define HEAD "POST /v1/x HTTP/1.1\r\nHost: a\r\n"
#define INNER "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

struct refused {
	const char *in;
	size_t len;
	int status;
};
#define REFUSED(text, status)                  \
	{                                      \
		text, sizeof(text) - 1, status \
	}

static void refuses_smuggling(void)
{
	static const struct refused bad[] = {
		REFUSED(HEAD
			"Content-Length: 42\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" INNER,
			400),
		REFUSED(HEAD "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n25\r\n" INNER
			     "\r\n0\r\n\r\n",
			400),
		REFUSED(HEAD "Transfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n{}" INNER,
			400),
		REFUSED(HEAD "Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n\r\n{}" INNER,
			400),
		REFUSED(HEAD "Transfer-Encoding: xchunked\r\n\r\n{}" INNER, 501),
		REFUSED(HEAD "Transfer-Encoding: identity\r\n\r\n{}" INNER, 501),
		REFUSED(HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" INNER, 501),
		REFUSED(HEAD "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" INNER, 400),
		REFUSED(HEAD
			"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" INNER,
			400),
		REFUSED(HEAD "Transfer-Encoding: \x0b"
			     "chunked\r\n\r\n0\r\n\r\n" INNER,
			400),
		REFUSED(HEAD "Content-Length: 2\r\nContent-Length: 39\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length: +2\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length: 2, 2\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length: 0x2\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length: -1\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length: 2 2\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length: 18446744073709551618\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length:\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "Content Length: 2\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD " Content-Length: 2\r\n\r\n{}" INNER, 400),
		REFUSED("POST /v1/x HTTP/1.1\r\n Content-Length: 2\r\nHost: a\r\n\r\n{}" INNER,
			400),
		REFUSED(HEAD "X: a\r\n Content-Length: 100\r\nContent-Length: 2\r\n\r\n{}" INNER,
			400),
		REFUSED(HEAD "X: y\nContent-Length: 2\n\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length: 2\r\n\n{}" INNER, 400),
		REFUSED(HEAD "Content-Length: 2\rX: y\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "X\rTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}" INNER,
			400),
		REFUSED(HEAD "X: a\0b\r\nContent-Length: 2\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD "X\0: a\r\nContent-Length: 2\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD ": a\r\nContent-Length: 2\r\n\r\n{}" INNER, 400),
		REFUSED(HEAD
			"Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n" INNER,
			400),
		REFUSED(HEAD "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n" INNER, 400),
		REFUSED(HEAD "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n" INNER, 400),
		REFUSED(HEAD "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n" INNER, 400),
		REFUSED(HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}X0\r\n\r\n" INNER, 400),
		REFUSED("POST /v1/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" INNER,
			400),
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char want[8];
		char *got = trace(bad[i].in, bad[i].len, bad[i].len, bad[i].len),
		     *bytes = trace_bytewise(bad[i].in, bad[i].len);
		snprintf(want, sizeof(want), "!%d", bad[i].status);
		OK(strstr(got, want) && !strstr(got, "smuggled HTTP") && !strstr(got, "[GET"));
		if (!strstr(got, want) || strstr(got, "[GET"))
			printf("# case %zu: %s\n", i, got);
		OK(strstr(bytes, want) && !strstr(bytes, "[GET"));
		free(got);
		free(bytes);
	}
}

static void refuses_odd_requests(void)
{
	static const struct refused bad[] = {
		REFUSED("\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03", 400),
		REFUSED("\0\0\0\0\0\0\0\0", 400),
		REFUSED("hello\r\n\r\n", 400),
		REFUSED("get / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
		REFUSED("BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", 501),
		REFUSED("XYZZYXYZZYXYZZYXYZZYXYZZYXYZZY / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
		REFUSED("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
		REFUSED("PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
		REFUSED("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
		REFUSED("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
		REFUSED("GET / HTTP/9.9\r\nHost: a\r\n\r\n", 505),
		REFUSED("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
		REFUSED("GET / HTTP/1.1\r\n\r\n", 400), /* no Host */
		REFUSED("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
		REFUSED("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
		REFUSED("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
		REFUSED("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
		REFUSED("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400),
		REFUSED("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
		REFUSED("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
		REFUSED("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
		REFUSED("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
		REFUSED("GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
		REFUSED("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
		REFUSED("GET / HTTP/1.1\nHost: a\n\n", 400),
		REFUSED("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nauthorization: y\r\n\r\n",
			400),
		REFUSED("GET / HTTP/1.1\r\nHost: a\r\nOrigin: x\r\nOrigin: y\r\n\r\n", 400),
		REFUSED("POST / HTTP/1.1\r\nHost: a\r\nExpect: something\r\nContent-Length: 1\r\n\r\nx",
			417),
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char want[8];
		char *got = trace(bad[i].in, bad[i].len, bad[i].len, bad[i].len),
		     *bytes = trace_bytewise(bad[i].in, bad[i].len);
		snprintf(want, sizeof(want), "!%d", bad[i].status);
		OK_STR(got, want);
		if (strcmp(got, want))
			printf("# case %zu\n", i);
		OK_STR(bytes, want);
		free(got);
		free(bytes);
	}
}

static int status_of(const struct buffer *b)
{
	struct tracer t = { 0 };
	http_parser_init(&t.p);
	feed(&t, b->data, b->len);
	int status = t.p.bad.status;
	OK(status == 0 || (t.p.bad.code && *t.p.bad.code && t.p.bad.detail && *t.p.bad.detail));
	http_parser_finish(&t.p);
	buffer_finish(&t.text);
	return status;
}

static void fill(struct buffer *b, char c, size_t n)
{
	while (n--)
		buffer_append_char(b, c);
}

static void bounds_the_head(void)
{
	struct buffer b = BUFFER_INIT(0);
	for (size_t over = 0; over < 2; over++) {
		b.len = 0;
		buffer_append_str(&b, "GET /");
		fill(&b, 'a', LIMIT_TARGET_BYTES - 1 + over);
		buffer_append_str(&b, " HTTP/1.1\r\nHost: a\r\n\r\n");
		OK(status_of(&b) == (over ? 414 : 0));
		b.len = 0;
		buffer_append_str(&b, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
		fill(&b, 'v', LIMIT_HEADER_BYTES - 6 + over); /* "Host", "a", "X" */
		buffer_append_str(&b, "\r\n\r\n");
		OK(status_of(&b) == (over ? 431 : 0));
		b.len = 0;
		buffer_append_str(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
		for (size_t i = 0; i < LIMIT_HEADER_COUNT - 1 + over; i++)
			buffer_append_str(&b, "X: y\r\n");
		buffer_append_str(&b, "\r\n");
		OK(status_of(&b) == (over ? 431 : 0));
	}
	b.len = 0;
	buffer_append_str(&b, HEAD "Transfer-Encoding: chunked\r\n\r\n2;");
	fill(&b, 'e', 100000);
	buffer_append_str(&b, "\r\n{}\r\n0\r\n\r\n");
	OK(status_of(&b) == 400);
	b.len = 0;
	buffer_append_str(&b, HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nTrailer: ");
	fill(&b, 't', LIMIT_HEADER_BYTES);
	buffer_append_str(&b, "\r\n\r\n");
	OK(status_of(&b) == 431);
	buffer_finish(&b);
}

static void stays_bad(void)
{
	struct http_parser p;
	struct http_input in = { "nonsense\r\n", 10 };
	http_parser_init(&p);
	OK(http_parser_next(&p, &in) == HTTP_EVENT_BAD);
	in = (struct http_input){ "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27 };
	OK(http_parser_next(&p, &in) == HTTP_EVENT_BAD && in.len == 27);
	http_parser_finish(&p);
}

/* Whoever waits keeps the rest of the input: nothing is read ahead. */
static void can_stop_anywhere(void)
{
	static const char text[] =
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /next HTTP/1.1\r\n";
	struct http_input in = { text, sizeof(text) - 1 };
	struct http_parser p;
	http_parser_init(&p);
	OK(!p.started && http_parser_next(&p, &in) == HTTP_EVENT_HEAD && p.started);
	OK(in.len >= strlen("abcGET /next HTTP/1.1\r\n"));
	OK_STR(http_head_find(&p.head, "HOST"), "a");
	OK(http_head_find(&p.head, "hos") == NULL);
	OK(http_parser_next(&p, &in) == HTTP_EVENT_BODY && p.body_len == 3 &&
		!memcmp(p.body, "abc", 3));
	OK(http_parser_next(&p, &in) == HTTP_EVENT_DONE && !p.started);
	OK(!strncmp(in.data, "GET /next", 9));
	OK(http_parser_next(&p, &in) == HTTP_EVENT_MORE && p.started && in.len == 0);
	http_parser_finish(&p);
	OK(http_list_has("keep-alive, Upgrade", "upgrade") &&
		!http_list_has("upgraded", "upgrade") && !http_list_has(NULL, "x"));
	OK(http_list_has(" a ;q=1,b", "a") && http_list_has("a,b", "b") && !http_list_has("", "a"));
}

/* ---- WebSocket -------------------------------------------------------- */

static void hex(const uint8_t *d, char *out)
{
	for (size_t i = 0; i < SHA1_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", d[i]);
}

static void hashes(void)
{
	uint8_t d[SHA1_BYTES];
	char text[2 * SHA1_BYTES + 1], long_text[1000];
	sha1("", 0, d);
	hex(d, text);
	OK_STR(text, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	sha1("abc", 3, d);
	hex(d, text);
	OK_STR(text, "a9993e364706816aba3e25717850c26c9cd0d89d");
	sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, d);
	hex(d, text);
	OK_STR(text, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	memset(long_text, 'a', sizeof(long_text));
	sha1(long_text, sizeof(long_text), d);
	hex(d, text);
	OK_STR(text, "291e9a6c66994949b57ba5e650361e98fc36b1ba");
	char token[WS_ACCEPT_LEN + 1];
	OK(ws_accept_token("dGhlIHNhbXBsZSBub25jZQ==", token));
	OK_STR(token, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	OK(!ws_accept_token("AA==", token) && !ws_accept_token("", token));
	OK(!ws_accept_token("dGhlIHNhbXBsZSBub25jZQ=a", token) &&
		!ws_accept_token("dGhlIHNhbXBsZSBub25jZ!==", token));
}

struct ws_tester {
	struct buffer out, got;
	struct ws *ws;
	bool close_on_message;
};

static void ws_got(const char *text, size_t len, void *userdata)
{
	struct ws_tester *t = userdata;
	buffer_append(&t->got, text, len);
	buffer_append_char(&t->got, '|');
	if (t->close_on_message)
		ws_close(t->ws, WS_CLOSE_NORMAL, "enough");
	else
		ws_send(t->ws, text, len);
}

static struct ws_tester *ws_tester_create(void)
{
	struct ws_tester *t = calloc(1, sizeof(*t));
	t->ws = ws_create(&t->out, ws_got, t);
	return t;
}

static void ws_tester_destroy(struct ws_tester *t)
{
	ws_destroy(t->ws);
	buffer_finish(&t->out);
	buffer_finish(&t->got);
	free(t);
}

/* A client's frame: masked with a key that changes the bytes. */
static size_t frame(char *out, unsigned first, const char *data, size_t len)
{
	static const unsigned char key[4] = { 0x11, 0x22, 0x33, 0x44 };
	size_t n = 0;
	out[n++] = (char)first;
	if (len < 126) {
		out[n++] = (char)(0x80 | len);
	} else {
		out[n++] = (char)(0x80 | 126);
		out[n++] = (char)(len >> 8);
		out[n++] = (char)len;
	}
	memcpy(out + n, key, 4);
	n += 4;
	for (size_t i = 0; i < len; i++)
		out[n++] = (char)(data[i] ^ key[i % 4]);
	return n;
}

static void ws_messages(void)
{
	char data[4096], big[300];
	size_t n = 0;
	memset(big, 'b', sizeof(big));
	n += frame(data + n, 0x81, "hi", 2);
	n += frame(data + n, 0x01, "he", 2); /* fragmented, with a ping in between */
	n += frame(data + n, 0x89, "p", 1);
	n += frame(data + n, 0x80, "llo", 3);
	n += frame(data + n, 0x81, big, sizeof(big));
	n += frame(data + n, 0x81, "", 0);
	for (size_t step = 1; step <= n; step = step < 20 ? step + 1 : step * 2) {
		struct ws_tester *t = ws_tester_create();
		bool fine = true;
		for (size_t at = 0; at < n; at += step)
			fine &= ws_feed(t->ws, data + at, n - at < step ? n - at : step) == 0;
		OK(fine && t->got.len == 2 + 1 + 5 + 1 + 300 + 1 + 1 &&
			!memcmp(t->got.data, "hi|hello|bb", 11));
		OK(t->out.len == 2 + 2 + (2 + 5) + (2 + 1) + (4 + 300) + 2 &&
			!ws_is_closing(t->ws));
		OK(memmem(t->out.data, t->out.len, "\x81\x02hi", 4) &&
			memmem(t->out.data, t->out.len, "\x8a\x01p", 3));
		ws_tester_destroy(t);
	}
}

static void ws_closing(void)
{
	char data[64];
	struct ws_tester *t = ws_tester_create();
	size_t n = frame(data, 0x88, "\x03\xe8", 2);
	OK(ws_feed(t->ws, data, n) == 0 && ws_is_over(t->ws) && ws_close_code(t->ws) == 1000);
	OK(t->out.len == 4 && !memcmp(t->out.data, "\x88\x02\x03\xe8", 4));
	OK(ws_send(t->ws, "late", 4) == -EPIPE);
	ws_tester_destroy(t);

	t = ws_tester_create();
	OK(ws_close(t->ws, WS_CLOSE_GOING_AWAY, "bye") == 0 && ws_is_closing(t->ws) &&
		!ws_is_over(t->ws));
	OK(ws_close(t->ws, WS_CLOSE_NORMAL, "again") == 0 && t->out.len == 2 + 2 + 3);
	n = frame(data, 0x88, "\x03\xe9", 2);
	OK(ws_feed(t->ws, data, n) == 0 && ws_is_over(t->ws));
	ws_tester_destroy(t);

	t = ws_tester_create();
	t->close_on_message = true;
	n = frame(data, 0x81, "a", 1);
	n += frame(data + n, 0x81, "b", 1);
	OK(ws_feed(t->ws, data, n) == 0 && t->got.len == 2 && ws_is_closing(t->ws));
	ws_tester_destroy(t);

	t = ws_tester_create();
	OK(ws_ping(t->ws) == 0 && t->out.len == 2 && (unsigned char)t->out.data[0] == 0x89);
	ws_tester_destroy(t);
}

static void ws_refuses(void)
{
	static const struct {
		unsigned first, code;
		const char *data;
		size_t len;
	} bad[] = {
		{ 0xc1, 1002, "x", 1 },                         /* reserved bit */
		{ 0xf1, 1002, "x", 1 }, { 0x83, 1002, "x", 1 }, /* reserved opcodes */
		{ 0x8b, 1002, "x", 1 }, { 0x09, 1002, "x", 1 }, /* fragmented control frame */
		{ 0x80, 1002, "x", 1 },                         /* continuation of nothing */
		/* close codes; 0: answered with none */
		{ 0x88, 0, "x", 1 }, { 0x88, 1002, "\0\0", 2 },
		{ 0x88, 1002, "\x03\xed", 2 }, /* 1005 */
		{ 0x88, 1002, "\xff\xff", 2 }, { 0x88, 1007, "\x03\xe8\xff\xfe", 4 },
		{ 0x81, 1007, "\xff\xfe\xfd", 3 }, { 0x81, 1007, "\xed\xa0\x80", 3 },
		{ 0x82, 1003, "bin", 3 }, /* binary */
	};
	char data[64];
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct ws_tester *t = ws_tester_create();
		size_t n = frame(data, bad[i].first, bad[i].data, bad[i].len);
		int r = ws_feed(t->ws, data, n);
		OK(r == 0 && t->got.len == 0 && ws_is_closing(t->ws));
		OK(t->out.len >= 2 && (unsigned char)t->out.data[0] == 0x88);
		unsigned code = t->out.len >= 4 ? (unsigned)(unsigned char)t->out.data[2] << 8 |
							  (unsigned char)t->out.data[3]
						: 0;
		OK(code == bad[i].code);
		if (code != bad[i].code)
			printf("# case %zu: %u\n", i, code);
		ws_tester_destroy(t);
	}
	struct ws_tester *t = ws_tester_create();
	/* not masked */
	OK(ws_feed(t->ws, "\x81\x02hi", 4) == 0 && t->got.len == 0 && ws_is_over(t->ws));
	ws_tester_destroy(t);
	t = ws_tester_create();
	OK(ws_feed(t->ws, "\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\1\2\3\4x", 15) == 0 &&
		ws_is_over(t->ws));
	OK(t->out.len >= 4 && !memcmp(t->out.data + 2, "\x03\xf1", 2)); /* 1009 */
	ws_tester_destroy(t);
}

/* ---- events ----------------------------------------------------------- */

static int sse_got(const char *event, const char *id, const char *data, size_t len, void *userdata)
{
	buffer_printf(userdata, "(%s,%s,%.*s)", event, id, (int)len, data);
	return 0;
}

static void events(void)
{
	struct buffer b = BUFFER_INIT(0);
	OK(sse_write(&b, "out\nput", "7", "one\ntwo\r\nthree\rfour", 19) == 0);
	OK_STR(buffer_cstr(&b),
		"event: out put\nid: 7\ndata: one\ndata: two\ndata: three\ndata: four\n\n");
	OK(sse_write(&b, NULL, NULL, "", 0) == 0);
	buffer_append_str(&b,
		":\n\nevent: x\n\ndata:no space\r\nignored: y\r\nnocolon\r\n\r\nid: 9\ndata: "
		"{\"a\":1}\n\ndata: cut");
	for (size_t step = 1; step <= b.len; step++) {
		struct buffer got = BUFFER_INIT(0);
		struct sse_reader r;
		int e = 0;
		sse_reader_init(&r, 1000, sse_got, &got);
		for (size_t at = 0; at < b.len; at += step)
			e |= sse_feed(&r, b.data + at, b.len - at < step ? b.len - at : step);
		const char *want = "(out put,7,one\ntwo\nthree\nfour)(message,7,)(message,7,no "
				   "space)(message,9,{\"a\":1})";
		if (e || strcmp(buffer_cstr(&got), want))
			OK_STR(buffer_cstr(&got), want);
		sse_reader_finish(&r);
		buffer_finish(&got);
	}
	OK(true);
	struct sse_reader r;
	sse_reader_init(&r, 100, sse_got, &b);
	char line[200];
	memset(line, 'x', sizeof(line));
	OK(sse_feed(&r, line, sizeof(line)) == -ENOBUFS);
	sse_reader_finish(&r);
	struct buffer tiny = BUFFER_INIT(10);
	OK(sse_write(&tiny, NULL, NULL, "does not fit", 12) == -ENOBUFS && tiny.len == 0);
	buffer_finish(&tiny);
	buffer_finish(&b);
}

/* ---- texts ------------------------------------------------------------ */

static void encodings(void)
{
	char out[16];
	OK(http_percent_decode("a%20b%C3%A9+", 12, false, out, sizeof(out)) == 0);
	OK_STR(out, "a bé+");
	OK(http_percent_decode("a+b", 3, true, out, sizeof(out)) == 0);
	OK_STR(out, "a b");
	OK(http_percent_decode("%00", 3, false, out, sizeof(out)) == -EILSEQ);
	OK(http_percent_decode("%ff", 3, false, out, sizeof(out)) == -EILSEQ);
	OK(http_percent_decode("%g0", 3, false, out, sizeof(out)) == -EINVAL);
	OK(http_percent_decode("%2", 2, false, out, sizeof(out)) == -EINVAL);
	OK(http_percent_decode("%", 1, false, out, sizeof(out)) == -EINVAL);
	OK(http_percent_decode("0123456789abcde", 15, false, out, sizeof(out)) == 0);
	OK(http_percent_decode("0123456789abcdef", 16, false, out, sizeof(out)) == -ENOBUFS);
	OK(http_percent_decode("", 0, false, out, sizeof(out)) == 0 && !*out);
	struct buffer b = BUFFER_INIT(0);
	OK(http_percent_encode(&b, "a/b c~é") == 0);
	OK_STR(buffer_cstr(&b), "a%2Fb%20c~%C3%A9");
	b.len = 0;
	OK(http_problem_write(&b, 404, "nope", "it's \"gone\"", NULL, "id1") == 0);
	OK(json_validate(b.data, b.len, NULL) == 0 &&
		strstr(buffer_cstr(&b), "\"request_id\":\"id1\""));
	buffer_finish(&b);
	OK_STR(http_status_text(413), "Content Too Large");
	OK_STR(http_status_text(799), "Unknown");
	OK_STR(http_method_name(HTTP_METHOD_OPTIONS), "OPTIONS");
}

static void addresses(void)
{
	struct http_address a = { 0 };
	static const char *const bad[] = { "", "localhost", "localhost:", "localhost:x",
		"localhost:70000", "::1:80", ":80", "unix:rel", "http://a", "a:80/x", "[]:80",
		"a:800000" };
	OK(http_address_parse("127.0.0.1:8000", NULL, &a) == 0 && !a.is_unix);
	OK_STR(a.host, "127.0.0.1");
	OK_STR(a.port, "8000");
	OK(http_address_parse("[::1]:0", NULL, &a) == 0);
	OK_STR(a.host, "::1");
	OK(http_address_parse("http://localhost:80/", NULL, &a) == 0);
	OK_STR(a.host, "localhost");
	OK(http_address_parse("unix:/run/x.sock", NULL, &a) == 0 && a.is_unix);
	OK_STR(a.host, "/run/x.sock");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct error e = { 0 };
		OK(http_address_parse(bad[i], &e, &a) == -EINVAL && e.remedy[0]);
	}
	OK_STR(a.host, "/run/x.sock");
}

static bool reply_head(struct http_reply *p, void *userdata)
{
	const char *name, *value;
	*(bool *)userdata = http_reply_header(p, 0, &name, &value) && !strcmp(name, "X");
	return true;
}

static bool reply_body(struct http_reply *p, const char *data, size_t len, void *userdata)
{
	return true;
}

static bool reply_end(struct http_reply *p, void *userdata)
{
	return true;
}

/* The head of an answer counts as held until it was passed on, not while the body comes. */
static void reply_memory(void)
{
	static const struct http_reply_handler handler = { reply_head, reply_body, reply_end };
	static const char start[] = "HTTP/1.1 200 OK\r\nX: ", end[] = "\r\n\r\nbody";
	char value[10000];
	struct http_reply p;
	bool seen = false;
	size_t before = hold_total();

	memset(value, 'x', sizeof(value));
	http_reply_init(&p, false, &handler, &seen);
	OK(http_reply_feed(&p, start, sizeof(start) - 1) == 0);
	OK(http_reply_feed(&p, value, sizeof(value)) == 0);
	OK(hold_total() >= before + sizeof(value));
	OK(http_reply_feed(&p, end, sizeof(end) - 1) == 0 && seen);
	OK(hold_total() == before);
	http_reply_finish(&p);
	OK(hold_total() == before);
}

int main(void)
{
	parses_requests();
	refuses_smuggling();
	refuses_odd_requests();
	bounds_the_head();
	stays_bad();
	can_stop_anywhere();
	hashes();
	ws_messages();
	ws_closing();
	ws_refuses();
	events();
	encodings();
	addresses();
	reply_memory();
	return tap_done();
}
