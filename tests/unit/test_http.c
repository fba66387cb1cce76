/*
 * The live server: a loop in the main thread, clients in another one that do what clients do, good
 * and bad. Only the client thread reports; what the handler saw is in atomics.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/limits.h"
#include "base/text.h"
#include "http/http.h"
#include "http/http_client.h"
#include "http/sse.h"
#include "tap.h"
#include "json/json_read.h"

/* ---- the server side -------------------------------------------------- */

static uv_loop_t loop;
static uv_async_t stop_signal;
/* ordinary; short limits; two connections; unix */
static struct http_server *server, *hasty, *small, *local;
static char unix_path[64];
static atomic_uint gone, logged, last_status, ws_closed_code, ws_full, drained_calls,
	closed_servers, upload_bytes;
static atomic_ulong upload_sum;

struct delayed {
	uv_timer_t timer;
	struct http_exchange *x;
	void (*act)(struct http_exchange *x);
};

static void free_timer(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_delay(uv_timer_t *timer)
{
	struct delayed *d = timer->data;
	http_set_userdata(d->x, NULL);
	d->act(d->x);
	uv_close((uv_handle_t *)timer, free_timer);
}

static void after(struct http_exchange *x, unsigned ms, void (*act)(struct http_exchange *x))
{
	struct delayed *d = calloc(1, sizeof(*d));
	d->x = x;
	d->act = act;
	uv_timer_init(&loop, &d->timer);
	d->timer.data = d;
	http_set_userdata(x, d);
	uv_timer_start(&d->timer, on_delay, ms, 0);
}

static void respond_info(struct http_exchange *x)
{
	struct buffer b = BUFFER_INIT(0);
	char name[32] = "";
	int has = http_query_param(x, "name", name, sizeof(name));
	const char *accept = http_header(x, "accept");
	buffer_printf(&b, "%s %s ?%s name=%d:%s id=%s accept=%s ws=%d len=%lld",
		http_method_name(http_method(x)), http_path(x), http_query(x), has,
		has == 1 ? name : "", http_request_id(x), accept ? accept : "-",
		http_wants_websocket(x), (long long)http_content_length(x));
	http_add_header(x, "X-Test", "a\r\nInjected: b");
	http_respond(x, 200, "text/plain", &b);
}

static void respond_echo(struct http_exchange *x)
{
	size_t len;
	const char *body = http_body(x, &len);
	http_respond_copy(x, 200, "application/octet-stream", body, len);
}

static void respond_big(struct http_exchange *x)
{
	struct buffer b = BUFFER_INIT(0);
	buffer_reserve(&b, 20000000);
	memset(b.data, 'B', 20000000);
	b.len = 20000000;
	http_respond(x, 200, "text/plain", &b);
}

enum { DOWNLOAD_BYTES = 12 * 1000 * 1000 };
static size_t download_at;

static void pump_download(struct http_exchange *x)
{
	char piece[10000];
	while (download_at < DOWNLOAD_BYTES) {
		memset(piece, 'a' + (int)(download_at / sizeof(piece) % 26), sizeof(piece));
		download_at += sizeof(piece);
		int r = http_stream_write(x, piece, sizeof(piece));
		if (r < 0)
			return;
		if (r > 0)
			return; /* on_drained goes on */
	}
	http_stream_end(x);
}

static void flood_stream(struct http_exchange *x)
{
	static char piece[100000];
	int r;
	do
		r = http_stream_write(x, piece, sizeof(piece));
	while (r >= 0);
	if (r == -ENOBUFS)
		ws_full++;
}

static void send_events(struct http_exchange *x)
{
	http_sse_event(x, "started", "1", "{}", 2);
	http_sse_event(x, "output", "2", "two\nlines", 9);
	http_sse_event(x, NULL, NULL, "x", 1);
	http_stream_end(x);
}

static void ws_message(struct http_ws *ws, const char *text, size_t len, void *userdata)
{
	static char piece[100000];
	int r = 0;
	if (len == 5 && !memcmp(text, "close", 5)) {
		http_ws_close(ws, 4000, "as you wish");
	} else if (len == 5 && !memcmp(text, "flood", 5)) {
		memset(piece, 'f', sizeof(piece));
		while (r >= 0)
			r = http_ws_send(ws, piece, sizeof(piece));
		if (r == -ENOBUFS)
			ws_full++;
	} else {
		http_ws_send(ws, text, len);
	}
}

static void ws_over(struct http_ws *ws, unsigned code, void *userdata)
{
	ws_closed_code = code;
}

static const struct http_ws_handler ws_handler = { .on_message = ws_message, .on_closed = ws_over };

static enum http_body_mode on_headers(struct http_exchange *x, void *userdata)
{
	const char *path = http_path(x);
	if (text_eq(path, "/early")) {
		http_respond_problem(x, 401, "unauthorized", "no", "say please");
		return HTTP_BODY_ANSWERED;
	}
	if (text_eq(path, "/tight"))
		http_limit_body(x, 10);
	if (text_eq(path, "/upload")) {
		http_limit_body(x, 100 * 1000 * 1000);
		upload_bytes = 0;
		upload_sum = 0;
		return HTTP_BODY_STREAM;
	}
	return HTTP_BODY_BUFFER;
}

static void on_body(struct http_exchange *x, const char *data, size_t len, void *userdata)
{
	unsigned long sum = 0;
	for (size_t i = 0; i < len; i++)
		sum += (unsigned char)data[i];
	upload_sum += sum;
	upload_bytes += (unsigned)len;
	if (text_eq(http_query(x),
		    "enough")) { /* answered in the middle of the body, while it is held back */
		http_pause(x);
		after(x, 10, respond_info);
		return;
	}
	if (http_query(x)[0]) { /* slow consumer */
		http_pause(x);
		after(x, 1, http_resume);
	}
}

static void answer_stream(struct http_exchange *x, const char *path)
{
	if (text_eq(path, "/download")) {
		download_at = 0;
		http_stream_begin(x, 200, "text/plain", DOWNLOAD_BYTES);
		pump_download(x);
	} else if (text_eq(path, "/chunked")) {
		download_at = 0;
		http_stream_begin(x, 200, "text/plain", -1);
		pump_download(x);
	} else if (text_eq(path, "/short")) {
		http_stream_begin(x, 200, "text/plain", 10);
		http_stream_write(x, "abc", 3);
		http_stream_end(x);
	} else if (text_eq(path, "/flood")) {
		http_stream_begin(x, 200, "text/plain", -1);
		flood_stream(x);
	} else if (text_eq(path, "/sse")) {
		http_sse_begin(x);
		after(x, 20, send_events);
	} else if (text_eq(path, "/beats")) {
		http_sse_begin(x);
	} else {
		http_respond_problem(x, 404, "not_found", "there is no such path", NULL);
	}
}

static void on_request(struct http_exchange *x, void *userdata)
{
	const char *path = http_path(x);
	char text[64];
	if (text_eq(path, "/info") || text_eq(path, "*"))
		respond_info(x);
	else if (text_eq(path, "/echo") || text_eq(path, "/tight"))
		respond_echo(x);
	else if (text_eq(path, "/later"))
		after(x, 50, respond_info);
	else if (text_eq(path, "/big"))
		respond_big(x);
	else if (text_eq(path, "/none"))
		http_respond(x, 204, NULL, NULL);
	else if (text_eq(path, "/upload"))
		http_respond_copy(x, 201, "text/plain", text,
			(size_t)snprintf(text, sizeof(text), "%u", (unsigned)upload_bytes));
	else if (text_eq(path, "/ws"))
		http_upgrade(x, NULL, &ws_handler, NULL);
	else if (!text_eq(path, "/never"))
		answer_stream(x, path);
}

static void on_drained(struct http_exchange *x, void *userdata)
{
	drained_calls++;
	pump_download(x);
}

static void on_gone(struct http_exchange *x, void *userdata)
{
	struct delayed *d = http_userdata(x);
	gone++;
	if (d)
		uv_close((uv_handle_t *)&d->timer, free_timer);
}

static void on_log(const struct http_log_entry *entry, void *userdata)
{
	last_status = (unsigned)entry->status;
	logged++;
}

static const struct http_handler handler = {
	.on_headers = on_headers,
	.on_body = on_body,
	.on_request = on_request,
	.on_drained = on_drained,
	.on_gone = on_gone,
	.on_log = on_log,
};

/* ---- the client side -------------------------------------------------- */

static int dial(const struct http_server *s)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)http_server_port(s)) };
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0) {
		fd_close(fd);
		return -1;
	}
	return fd;
}

static bool say(int fd, const char *text)
{
	return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/*
 * Reads until the end, until `stop` was seen (when given), or until nothing came for ms. True at
 * the end of the stream.
 */
/* for what takes milliseconds where the machine has nothing else to do */
enum { PATIENCE_MS = 30000 };

static bool hear(int fd, struct buffer *b, const char *stop, int ms)
{
	char piece[65536];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	for (;;) {
		if (stop && b->len && memmem(b->data, b->len, stop, strlen(stop)))
			return false;
		if (poll(&p, 1, ms) <= 0)
			return false;
		ssize_t n = recv(fd, piece, sizeof(piece), 0);
		if (n <= 0)
			return true;
		buffer_append(b, piece, (size_t)n);
	}
}

/*
 * One request on a connection of its own; the answer as text (the caller frees it), up to this word
 * where the connection stays open.
 */
static char *ask_until(const struct http_server *s, const char *request, const char *stop)
{
	struct buffer b = BUFFER_INIT(0);
	int fd = dial(s);
	say(fd, request);
	hear(fd, &b, stop, PATIENCE_MS);
	fd_close(fd);
	buffer_append_char(&b, '\0');
	return buffer_take(&b, NULL);
}

static char *ask(const struct http_server *s, const char *request)
{
	return ask_until(s, request, NULL);
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;
	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		n++;
	return n;
}

static bool eventually(atomic_uint *value, unsigned want)
{
	for (int i = 0; i < PATIENCE_MS / 10 && *value != want; i++)
		usleep(10000);
	return *value == want;
}

static bool all_closed(const struct http_server *s)
{
	/* Read from another thread for want of a better sign; a stale value only makes it wait. */
	const volatile unsigned *open = &http_server_stats(s)->open;
	for (int i = 0; i < PATIENCE_MS / 10 && *open; i++)
		usleep(10000);
	return *open == 0;
}

/* Until so many requests have come in, or so many connections are open; as above. */
static bool have_come(const struct http_server *s, uint64_t requests)
{
	const volatile uint64_t *come = &http_server_stats(s)->requests;
	for (int i = 0; i < PATIENCE_MS && *come < requests; i++)
		usleep(1000);
	return *come >= requests;
}

static bool are_open(const struct http_server *s, unsigned n)
{
	const volatile unsigned *open = &http_server_stats(s)->open;
	for (int i = 0; i < PATIENCE_MS && *open != n; i++)
		usleep(1000);
	return *open == n;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_CLOSE(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static void answers(void)
{
	struct error e = { 0 };
	struct http_client *c = NULL;
	struct http_client_response r = { 0 };
	char address[64];
	snprintf(address, sizeof(address), "http://%s/", http_server_address(server));
	OK(http_client_create(address, &e, &c) == 0);
	struct http_client_request q = { .method = "GET",
		.target = "/info?a=b&name=J%C3%B6+x",
		.accept = "x/y",
		.silence_ms = 3000 };
	OK(http_client_call(c, &q, &e, &r) == 0 && r.status == 200);
	OK_STR(r.content_type, "text/plain");
	OK(strstr(buffer_cstr(&r.body), "GET /info ?a=b&name=J%C3%B6+x name=1:Jö x id="));
	OK(r.request_id[0] && strstr(buffer_cstr(&r.body), r.request_id));
	http_client_response_finish(&r);
	for (int i = 0; i < 3; i++) {
		struct http_client_request post = { .method = "POST",
			.target = "/echo",
			.body = "hello",
			.body_len = 5,
			.silence_ms = 3000 };
		OK(http_client_call(c, &post, &e, &r) == 0 && r.status == 200);
		OK_STR(buffer_cstr(&r.body), "hello");
		http_client_response_finish(&r);
	}
	OK(http_server_stats(server)->accepted == 1); /* one connection for all of them */
	q.target = "/none";
	OK(http_client_call(c, &q, &e, &r) == 0 && r.status == 204 && r.body.len == 0);
	http_client_response_finish(&r);
	q.method = "HEAD";
	q.target = "/info";
	OK(http_client_call(c, &q, &e, &r) == 0 && r.status == 200 && r.body.len == 0);
	http_client_response_finish(&r);
	q = (struct http_client_request){ .method = "GET", .target = "/big", .silence_ms = 5000 };
	OK(http_client_call(c, &q, &e, &r) == 0 && r.body.len == 20000000 &&
		r.body.data[19999999] == 'B');
	http_client_response_finish(&r);
	q.max_body = 1000;
	OK(http_client_call(c, &q, &e, &r) == -EFBIG);
	q.max_body = 0;
	q.target = "/never";
	q.silence_ms = 100;
	OK(http_client_call(c, &q, &e, &r) == -ETIMEDOUT);
	q.target = "/short";
	q.silence_ms = 3000;
	OK(http_client_call(c, &q, &e, &r) == -ECONNRESET);
	q.target = "/nowhere";
	OK(http_client_call(c, &q, &e, &r) == 0 && r.status == 404); /* connected again by itself */
	OK_STR(r.content_type, "application/problem+json");
	OK(json_validate(r.body.data, r.body.len, NULL) == 0);
	http_client_response_finish(&r);
	http_client_destroy(c);
	OK(http_client_create("127.0.0.1:1", &e, &c) == 0);
	OK(http_client_call(c, &q, &e, &r) == -ECONNREFUSED && e.remedy[0]);
	http_client_destroy(c);
	OK(eventually(&gone, 1)); /* the one that timed out */
}

static void heads(void)
{
	char *text = ask(server,
		"GET /info HTTP/1.1\r\nHost: a\r\nX-Request-Id: my.id-7\r\nConnection: close\r\n\r\n");
	OK(strstr(text, "HTTP/1.1 200 OK\r\n") == text &&
		strstr(text, "\r\nX-Request-Id: my.id-7\r\n"));
	OK(strstr(text, "\r\nX-Content-Type-Options: nosniff\r\n") &&
		strstr(text, "\r\nCache-Control: no-store\r\n"));
	OK(strstr(text, "\r\nContent-Type: text/plain\r\n") &&
		strstr(text, "\r\nConnection: close\r\n"));
	OK(!strstr(text, "\r\nInjected") && strstr(text, "X-Test: a  Injected: b\r\n") &&
		!strstr(text, "Server:"));
	free(text);
	text = ask(server,
		"GET /info HTTP/1.1\r\nHost: a\r\nX-Request-Id: bad id\r\nConnection: close\r\n\r\n");
	OK(!strstr(text, "bad id") && strstr(text, "\r\nX-Request-Id: "));
	free(text);
	text = ask(server, "GET /info HTTP/1.0\r\n\r\n");
	OK(strstr(text, "HTTP/1.1 200") && strstr(text, "\r\nConnection: close\r\n"));
	free(text);
	text = ask(server,
		"GET /info HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /chunked HTTP/1.0\r\n\r\n");
	OK(strstr(text, "\r\nConnection: keep-alive\r\n") && count(text, "HTTP/1.1 200") == 2);
	OK(!strstr(text, "chunked\r\n") && strlen(text) > DOWNLOAD_BYTES);
	free(text);
	text = ask(server, "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	OK(strstr(text, "OPTIONS * ?"));
	free(text);
	text = ask(server, "HEAD /download HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	OK(strstr(text, "Content-Length: 12000000\r\n") && strlen(text) < 400);
	free(text);
	OK(eventually(&last_status, 200));
}

static void refusals(void)
{
	static const struct {
		const char *request, *answer;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n" },
		{ "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 501 Not Implemented\r\n" },
		{ "\x16\x03\x01", "HTTP/1.1 400 " },
		{ "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "HTTP/1.1 505 " },
		{ "POST /tight HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n",
			"HTTP/1.1 413 " },
		{ "POST /tight HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
		  "chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n",
			"HTTP/1.1 413 " },
		{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10995116277760\r\n\r\n",
			"HTTP/1.1 413 " },
		{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n{}" GET("/info"),
			"HTTP/1.1 400 " },
		{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" GET(
			  "/info"),
			"HTTP/1.1 400 " },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = ask(server, cases[i].request);
		OK(strstr(text, cases[i].answer) == text &&
			strstr(text, "\r\nConnection: close\r\n"));
		OK(strstr(text, "application/problem+json") && strstr(text, "\r\nX-Request-Id: ") &&
			count(text, "\r\nX-Request-Id") == 1);
		char *body = strstr(text, "\r\n\r\n");
		OK(body && json_validate(body + 4, strlen(body + 4), NULL) == 0);
		free(text);
	}
	/* An answer that comes before a small body keeps the connection. */
	char *text = ask(server,
		"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" GET_CLOSE(
			"/info"));
	OK(strstr(text, "HTTP/1.1 401 ") == text && strstr(text, "HTTP/1.1 200 "));
	free(text);
	text = ask(server,
		"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\nhello" GET(
			"/info"));
	OK(strstr(text, "HTTP/1.1 401 ") == text && !strstr(text, "HTTP/1.1 200 ") &&
		strstr(text, "Connection: close"));
	free(text);
}

static void pipelines(void)
{
	struct buffer in = BUFFER_INIT(0), out = BUFFER_INIT(0);
	int fd = dial(server);
	for (int i = 0; i < 300; i++)
		buffer_printf(&in, "GET /info?n=%d. HTTP/1.1\r\nHost: a\r\n\r\n", i);
	buffer_append_str(&in, "GET /later HTTP/1.1\r\nHost: a\r\n\r\nPOST /echo HTTP/1.1\r\nHost: "
			       "a\r\nContent-Length: 4\r\n\r\ndone"
			       "GET /info?last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	OK(fd_write_full(fd, in.data, in.len) == 0);
	OK(hear(fd, &out, NULL, PATIENCE_MS));
	const char *text = buffer_cstr(&out), *at = text;
	bool order = true;
	for (int i = 0; i < 300 && at; i++) {
		char word[16];
		snprintf(word, sizeof(word), "?n=%d. ", i);
		at = strstr(at, word);
		order &= at != NULL;
	}
	OK(order && count(text, "HTTP/1.1 200 OK") == 303);
	const char *later = strstr(text, "GET /later"), *echo = strstr(text, "done"),
		   *last = strstr(text, "?last");
	OK(at && later > at && echo > later && last > echo);
	fd_close(fd);
	buffer_finish(&in);
	buffer_finish(&out);

	/* In single bytes. */
	static const char request[] =
		"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nbytes";
	fd = dial(server);
	for (size_t i = 0; i < sizeof(request) - 1; i++) {
		(void)!send(fd, request + i, 1, MSG_NOSIGNAL);
		usleep(200);
	}
	OK(hear(fd, &out, NULL, PATIENCE_MS) && strstr(buffer_cstr(&out), "\r\n\r\nbytes"));
	fd_close(fd);
	buffer_finish(&out);
}

/* Many requests whose answers nobody reads: the server stops reading instead of piling them up. */
static void is_not_flooded(void)
{
	struct buffer in = BUFFER_INIT(0);
	int fd = dial(server);
	fd_set_nonblock(fd, 1);
	for (int i = 0; i < 50; i++)
		buffer_append_str(&in, GET("/big"));
	OK(fd_write_full(fd, in.data, in.len) == 0);
	uint64_t before = http_server_stats(server)->requests;
	usleep(200000);
	OK(http_server_stats(server)->requests - before <= 2);
	fd_close(fd);
	buffer_finish(&in);
	OK(all_closed(server));
}

static void uploads(void)
{
	enum { SIZE = 3 * 1000 * 1000 };
	char *data = malloc(SIZE), head[200];
	unsigned long sum = 0;
	for (size_t i = 0; i < SIZE; i++)
		sum += (unsigned char)(data[i] = (char)(i * 7 + i / 251));
	for (int slow = 0; slow < 2; slow++) {
		struct buffer out = BUFFER_INIT(0);
		int fd = dial(server);
		snprintf(head, sizeof(head),
			"PUT /upload%s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
			slow ? "?slow" : "", SIZE);
		OK(say(fd, head) && fd_write_full(fd, data, SIZE) == 0);
		hear(fd, &out, "3000000", PATIENCE_MS);
		OK(strstr(buffer_cstr(&out), "HTTP/1.1 201 Created") &&
			strstr(out.data, "\r\n\r\n3000000") && upload_sum == sum);
		/* the same in chunks, on the same connection */
		out.len = 0;
		snprintf(head, sizeof(head),
			"PUT /upload%s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
			slow ? "?slow" : "");
		OK(say(fd, head));
		bool sent = true;
		for (size_t at = 0; at < SIZE; at += 50000) {
			snprintf(head, sizeof(head), "%x\r\n", 50000);
			sent &= say(fd, head) && fd_write_full(fd, data + at, 50000) == 0 &&
				say(fd, "\r\n");
		}
		OK(sent && say(fd, "0\r\n\r\n"));
		hear(fd, &out, "3000000", PATIENCE_MS);
		OK(strstr(buffer_cstr(&out), "\r\n\r\n3000000") && upload_sum == sum);
		fd_close(fd);
		buffer_finish(&out);
	}
	struct buffer out = BUFFER_INIT(0);
	int fd = dial(server);
	say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
	hear(fd, &out, "\r\n\r\n", PATIENCE_MS);
	OK_STR(buffer_cstr(&out), "HTTP/1.1 100 Continue\r\n\r\n");
	say(fd, "body");
	hear(fd, &out, "body", PATIENCE_MS);
	OK(strstr(buffer_cstr(&out), "HTTP/1.1 200 OK") != NULL);
	fd_close(fd);
	buffer_finish(&out);
	char *enough = ask_until(server,
		"PUT /upload?enough HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nsome",
		"HTTP/1.1 200 ");
	OK(strstr(enough, "HTTP/1.1 200 ") == enough);
	free(enough);
	fd = dial(server);
	out = (struct buffer)BUFFER_INIT(0);
	say(fd, "PUT /upload?enough HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nsome");
	hear(fd, &out, "len=9", PATIENCE_MS);
	say(fd, " more" GET_CLOSE("/info"));
	OK(hear(fd, &out, NULL, PATIENCE_MS) && count(buffer_cstr(&out), "HTTP/1.1 200 ") == 2);
	fd_close(fd);
	buffer_finish(&out);
	char *text = ask(server,
		"POST /early HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
	OK(strstr(text, "HTTP/1.1 401 ") == text && strstr(text, "Connection: close"));
	free(text);
	free(data);
}

static int swallow(const char *data, size_t len, void *userdata)
{
	*(size_t *)userdata += len;
	return 0;
}

static void downloads(void)
{
	struct http_client *c = NULL;
	struct http_client_response r = { 0 };
	size_t got = 0;
	OK(http_client_create(http_server_address(server), NULL, &c) == 0);
	struct http_client_request q = {
		.method = "GET", .target = "/download", .silence_ms = 3000
	};
	OK(http_client_call(c, &q, NULL, &r) == 0 && r.body.len == DOWNLOAD_BYTES &&
		r.body.data[10000] == 'b');
	http_client_response_finish(&r);
	q.target = "/chunked";
	q.on_data = swallow;
	q.userdata = &got;
	OK(http_client_call(c, &q, NULL, &r) == 0 && got == DOWNLOAD_BYTES && r.body.len == 0);
	http_client_response_finish(&r);
	http_client_destroy(c);
	/* a client that reads late: the handler waits for it */
	struct buffer out = BUFFER_INIT(0);
	unsigned before = drained_calls;
	int fd = dial(server);
	say(fd, GET_CLOSE("/download"));
	usleep(100000);
	OK(hear(fd, &out, NULL, PATIENCE_MS) && out.len > DOWNLOAD_BYTES && drained_calls > before);
	fd_close(fd);
	buffer_finish(&out);
}

struct event_list {
	char text[256];
	size_t len;
	struct sse_reader reader;
};

static int note_event(
	const char *event, const char *id, const char *data, size_t len, void *userdata)
{
	struct event_list *list = userdata;
	list->len += (size_t)snprintf(list->text + list->len, sizeof(list->text) - list->len,
		"%s/%s/%.*s;", event, id, (int)len, data);
	return 0;
}

static int feed_events(const char *data, size_t len, void *userdata)
{
	struct event_list *list = userdata;
	return sse_feed(&list->reader, data, len);
}

static void event_streams(void)
{
	struct event_list list = { 0 };
	struct http_client *c = NULL;
	struct http_client_response r = { 0 };
	sse_reader_init(&list.reader, 10000, note_event, &list);
	OK(http_client_create(http_server_address(server), NULL, &c) == 0);
	struct http_client_request q = { .method = "GET",
		.target = "/sse",
		.accept = "text/event-stream",
		.silence_ms = 3000,
		.on_data = feed_events,
		.userdata = &list };
	OK(http_client_call(c, &q, NULL, &r) == 0);
	OK_STR(r.content_type, "text/event-stream");
	OK_STR(list.text, "started/1/{};output/2/two\nlines;message/2/x;");
	http_client_response_finish(&r);
	sse_reader_finish(&list.reader);
	http_client_destroy(c);
	struct buffer out = BUFFER_INIT(0);
	unsigned before = gone;
	int fd = dial(hasty);
	say(fd, GET("/beats"));
	hear(fd, &out, "3\r\n:\n\n\r\n3\r\n:\n\n\r\n", PATIENCE_MS);
	OK(strstr(buffer_cstr(&out), "3\r\n:\n\n\r\n3\r\n:\n\n\r\n") != NULL);
	fd_close(fd);
	OK(eventually(&gone, before + 1));
	buffer_finish(&out);
}

static void departures(void)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	unsigned before = gone;
	uint64_t come = http_server_stats(server)->requests;
	int fd = dial(server);
	say(fd, GET("/never"));
	OK(have_come(server, come + 1));
	fd_close(fd);
	OK(eventually(&gone, before + 1)); /* closed */
	fd = dial(server);
	say(fd, GET("/never"));
	OK(have_come(server, come + 2));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	fd_close(fd);
	OK(eventually(&gone, before + 2)); /* reset */
	fd = dial(server);
	say(fd, GET("/never") GET("/info")); /* with another request behind it */
	OK(have_come(server, come + 3));
	shutdown(fd, SHUT_WR);
	OK(eventually(&gone, before + 3)); /* half-closed */
	fd_close(fd);
	fd = dial(server);
	say(fd, "POST /upload?slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\npart");
	OK(have_come(server, come + 4));
	fd_close(fd);
	OK(eventually(&gone, before + 4)); /* in the middle of a body */
	/* Answers that need no waiting reach a client that half-closes at once. */
	struct buffer out = BUFFER_INIT(0);
	fd = dial(server);
	say(fd, GET("/info") GET("/info"));
	shutdown(fd, SHUT_WR);
	OK(hear(fd, &out, NULL, PATIENCE_MS) && count(buffer_cstr(&out), "HTTP/1.1 200") == 2);
	fd_close(fd);
	buffer_finish(&out);
	/* Nobody is told about connections without a request. */
	for (int i = 0; i < 20; i++) {
		fd = dial(server);
		say(fd, "GET / HT");
		fd_close(fd);
	}
	OK(all_closed(server) && gone == before + 4);
}

static void slow_clients(void)
{
	struct buffer out = BUFFER_INIT(0);
	unsigned before = gone;
	int fd = dial(hasty);
	say(fd, "GET / HTTP/1.1\r\nHo");
	OK(hear(fd, &out, NULL, PATIENCE_MS) && strstr(buffer_cstr(&out), "HTTP/1.1 408 "));
	fd_close(fd);
	out.len = 0;
	fd = dial(hasty);
	say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nab");
	OK(hear(fd, &out, NULL, PATIENCE_MS) && strstr(buffer_cstr(&out), "HTTP/1.1 408 "));
	OK(eventually(&gone, before + 1));
	fd_close(fd);
	out.len = 0;
	fd = dial(hasty); /* says nothing at all */
	OK(hear(fd, &out, NULL, PATIENCE_MS) && out.len == 0);
	fd_close(fd);
	fd = dial(hasty); /* kept alive, then silent */
	say(fd, GET("/info"));
	OK(hear(fd, &out, NULL, PATIENCE_MS) && count(buffer_cstr(&out), "HTTP/1.1 200") == 1);
	fd_close(fd);
	out.len = 0;
	fd = dial(hasty); /* waits for an answer longer than any of the limits */
	say(fd, GET("/never"));
	OK(!hear(fd, &out, NULL, 1200) && out.len == 0);
	fd_close(fd);
	OK(eventually(&gone, before + 2));
	fd = dial(hasty); /* does not read */
	say(fd, GET("/big"));
	OK(all_closed(hasty));
	fd_close(fd);
	fd = dial(hasty);
	say(fd, GET("/flood"));
	OK(eventually(&ws_full, 1) && eventually(&gone, before + 3));
	fd_close(fd);
	OK(all_closed(hasty));
	buffer_finish(&out);
}

/* ---- WebSocket -------------------------------------------------------- */

#define WS_HEAD(version, key)                                               \
	"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: " \
	"Upgrade\r\nSec-WebSocket-Version: " version "\r\nSec-WebSocket-Key: " key "\r\n\r\n"
#define WS_OPEN WS_HEAD("13", "dGhlIHNhbXBsZSBub25jZQ==")

/* Masked with zeros, so the bytes stay readable. */
static void ws_say(int fd, unsigned first, const char *text)
{
	char frame[200];
	size_t len = strlen(text);
	frame[0] = (char)first;
	frame[1] = (char)(0x80 | len);
	memset(frame + 2, 0, 4);
	memcpy(frame + 6, text, len);
	(void)!send(fd, frame, len + 6, MSG_NOSIGNAL);
}

static int ws_dial(struct buffer *out)
{
	int fd = dial(server);
	out->len = 0;
	say(fd, WS_OPEN);
	hear(fd, out, "\r\n\r\n", PATIENCE_MS);
	return fd;
}

static void websockets(void)
{
	struct buffer out = BUFFER_INIT(0);
	int fd = ws_dial(&out);
	OK(strstr(buffer_cstr(&out), "HTTP/1.1 101 ") &&
		strstr(out.data, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
	OK(eventually(&last_status, 101));
	ws_say(fd, 0x81, "hello");
	hear(fd, &out, "\x81\x05hello", PATIENCE_MS);
	OK(memmem(out.data, out.len, "\x81\x05hello", 7));
	ws_say(fd, 0x89, "p");
	hear(fd, &out, "\x8a\x01p", PATIENCE_MS);
	OK(memmem(out.data, out.len, "\x8a\x01p", 3));
	ws_say(fd, 0x88, "\x03\xe8");
	OK(hear(fd, &out, NULL, PATIENCE_MS) && memmem(out.data, out.len, "\x88\x02\x03\xe8", 4));
	OK(eventually(&ws_closed_code, 1000));
	fd_close(fd);

	fd = ws_dial(&out); /* the server closes */
	ws_say(fd, 0x81, "close");
	hear(fd, &out, "as you wish", PATIENCE_MS);
	OK(memmem(out.data, out.len,
		"\x88\x0d\x0f\xa0"
		"as you wish",
		15));
	ws_say(fd, 0x88, "\x0f\xa0");
	OK(hear(fd, &out, NULL, PATIENCE_MS) && eventually(&ws_closed_code, 4000));
	fd_close(fd);

	fd = ws_dial(&out); /* frames that break the rules */
	ws_say(fd, 0xc1, "x");
	OK(hear(fd, &out, NULL, PATIENCE_MS) && memmem(out.data, out.len, "\x88\x02\x03\xea", 4) &&
		eventually(&ws_closed_code, 1002));
	fd_close(fd);

	fd = ws_dial(&out); /* the connection is cut */
	fd_close(fd);
	OK(eventually(&ws_closed_code, 1006));

	fd = ws_dial(&out); /* a client that does not read */
	ws_full = 0;
	ws_say(fd, 0x81, "flood");
	OK(eventually(&ws_full, 1) && eventually(&ws_closed_code, 1008));
	fd_close(fd);

	fd = dial(server); /* the first message right behind the handshake */
	char early[256];
	size_t n = strlen(WS_OPEN);
	memcpy(early, WS_OPEN, n);
	memcpy(early + n, "\x81\x82\0\0\0\0hi", 8);
	(void)!send(fd, early, n + 8, MSG_NOSIGNAL);
	out.len = 0;
	hear(fd, &out, "\x81\x02hi", PATIENCE_MS);
	OK(out.len && memmem(out.data, out.len, "\x81\x02hi", 4));
	fd_close(fd);

	static const struct {
		const char *request, *answer;
	} bad[] = {
		{ WS_HEAD("8", "dGhlIHNhbXBsZSBub25jZQ=="), "HTTP/1.1 426 " },
		{ WS_HEAD("13", "AA=="), "HTTP/1.1 400 " },
		{ GET("/ws"), "HTTP/1.1 400 " },
		{ "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
			"HTTP/1.1 400 " },
		{ "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: "
		  "Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Content-Length: 2\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nxx",
			"HTTP/1.1 400 " },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char *text = ask_until(server, bad[i].request, bad[i].answer);
		OK(strstr(text, bad[i].answer) == text);
		free(text);
	}
	OK(all_closed(server));
	buffer_finish(&out);
}

/* 200,000 pings whose pongs nobody reads: the server stops reading, it does not pile them up. */
static void ping_flood(void)
{
	struct buffer out = BUFFER_INIT(0), in = BUFFER_INIT(0);
	char ping[106] = "\x89\xe4";
	int fd = ws_dial(&out), small_buffer = 65536;
	memset(ping + 6, 'p', 100);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small_buffer, sizeof(small_buffer));
	fd_set_nonblock(fd, 1);
	for (int i = 0; i < 1000; i++)
		buffer_append(&in, ping, sizeof(ping));
	size_t sent = 0;
	for (int i = 0; i < 2000; i++) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		if (poll(&p, 1, 300) <= 0)
			break;
		ssize_t n = send(fd, in.data, in.len, MSG_NOSIGNAL);
		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	OK(sent < 100 * 1000 * 1000);
	char *text = ask(server, GET_CLOSE("/info"));
	OK(strstr(text, "HTTP/1.1 200") == text);
	free(text);
	fd_close(fd);
	OK(all_closed(server));
	buffer_finish(&in);
	buffer_finish(&out);
}

/* ---- limits of the machine -------------------------------------------- */

static void connection_limit(void)
{
	struct buffer out = BUFFER_INIT(0);
	int a = dial(small), b = dial(small);
	say(a, GET("/info"));
	say(b, GET("/info"));
	hear(a, &out, "len=0", PATIENCE_MS);
	OK(count(buffer_cstr(&out), "HTTP/1.1 200") == 1);
	out.len = 0;
	hear(b, &out, "len=0", PATIENCE_MS);
	OK(count(buffer_cstr(&out), "HTTP/1.1 200") == 1);
	char *text = ask(small, GET("/info"));
	OK(strstr(text, "HTTP/1.1 503 ") == text && strstr(text, "too_many_connections"));
	char *body = strstr(text, "\r\n\r\n");
	OK(body && json_validate(body + 4, strlen(body + 4), NULL) == 0);
	free(text);
	fd_close(a);
	OK(are_open(small, 1));
	text = ask(small, GET_CLOSE("/info"));
	OK(strstr(text, "HTTP/1.1 200 ") == text);
	free(text);
	fd_close(b);
	buffer_finish(&out);
}

static double cpu_seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/*
 * Without descriptors the server turns clients away without spinning, and works again when there
 * are some.
 */
static void out_of_descriptors(void)
{
	struct rlimit old, low;
	int taken[256], n = 0;
	getrlimit(RLIMIT_NOFILE, &old);
	low = old;
	low.rlim_cur = 200;
	setrlimit(RLIMIT_NOFILE, &low);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), idle = dial(server);
	OK(are_open(server, 1));
	while (n < 256 && (taken[n] = fcntl(idle, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	OK(n > 0 && n < 256);
	double before = cpu_seconds();
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)http_server_port(server)) };
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(connect(client, (struct sockaddr *)&in, sizeof(in)) == 0);
	struct buffer out = BUFFER_INIT(0);
	OK(hear(client, &out, NULL, PATIENCE_MS) && strstr(buffer_cstr(&out), "HTTP/1.1 503 "));
	usleep(500000);
	OK(cpu_seconds() - before < 0.3);
	say(idle, GET("/info")); /* those who are in are still served */
	out.len = 0;
	hear(idle, &out, "len=0", PATIENCE_MS);
	OK(count(buffer_cstr(&out), "HTTP/1.1 200") == 1);
	while (n)
		fd_close(taken[--n]);
	setrlimit(RLIMIT_NOFILE, &old);
	fd_close(client);
	fd_close(idle);
	char *text = ask(server, GET_CLOSE("/info"));
	OK(strstr(text, "HTTP/1.1 200 ") == text);
	free(text);
	buffer_finish(&out);
}

static void unix_sockets(void)
{
	struct http_client *c = NULL;
	struct http_client_response r = { 0 };
	struct error e = { 0 };
	struct stat st;
	OK(http_client_create(http_server_address(local), &e, &c) == 0);
	struct http_client_request q = { .method = "GET", .target = "/info", .silence_ms = 2000 };
	OK(http_client_call(c, &q, &e, &r) == 0 && r.status == 200);
	http_client_response_finish(&r);
	http_client_destroy(c);
	OK(stat(unix_path, &st) == 0 && (st.st_mode & 0777) == 0600);
	struct http_server_config again = {
		.loop = &loop, .listen = http_server_address(local), .handler = &handler
	};
	struct http_server *none = NULL;
	OK(http_server_create(&again, &e, &none) == -EADDRINUSE && !none && e.remedy[0]);
	again.listen = http_server_address(server);
	OK(http_server_create(&again, &e, &none) == -EADDRINUSE && !none);
	again.listen = "nonsense";
	OK(http_server_create(&again, &e, &none) == -EINVAL && !none);
}

/* ---- the end ---------------------------------------------------------- */

static int pending_fd = -1, cut_fd = -1;

static void on_server_done(void *userdata)
{
	closed_servers++;
}

static void on_stop(uv_async_t *async)
{
	http_server_close(server, on_server_done, NULL);
	http_server_close(server, NULL, NULL); /* idempotent */
	http_server_close(small, on_server_done, NULL);
	http_server_close(local, on_server_done, NULL);
	http_server_close(hasty, on_server_done, NULL);
	http_server_cut(hasty);
	uv_close((uv_handle_t *)&stop_signal, NULL);
}

/* Closing: a pending answer is finished, an idle connection and a cut one are not waited for. */
static void closing(void)
{
	struct buffer out = BUFFER_INIT(0);
	unsigned before = gone;
	uint64_t come = http_server_stats(server)->requests,
		 come_hasty = http_server_stats(hasty)->requests;
	int idle = dial(server), ws;
	ws = ws_dial(&out);
	pending_fd = dial(server);
	cut_fd = dial(hasty);
	say(pending_fd, GET("/later"));
	say(cut_fd, GET("/never"));
	OK(have_come(server, come + 2) && have_come(hasty, come_hasty + 1) && are_open(server, 3));
	uv_async_send(&stop_signal);
	out.len = 0;
	OK(hear(pending_fd, &out, NULL, PATIENCE_MS) &&
		strstr(buffer_cstr(&out), "HTTP/1.1 200 ") &&
		strstr(out.data, "Connection: close"));
	out.len = 0;
	OK(hear(cut_fd, &out, NULL, PATIENCE_MS) && out.len == 0 && eventually(&gone, before + 1));
	OK(hear(idle, &out, NULL, PATIENCE_MS) && out.len == 0);
	hear(ws, &out, "down", PATIENCE_MS);
	OK(out.len > 4 && !memcmp(out.data + 2, "\x03\xe9", 2)); /* 1001 */
	ws_say(ws, 0x88, "\x03\xe9");
	fd_close(idle);
	fd_close(ws);
	fd_close(pending_fd);
	fd_close(cut_fd);
	OK(eventually(&closed_servers, 4));
	OK(access(unix_path, F_OK) < 0);
	buffer_finish(&out);
}

static void *client_main(void *unused)
{
	answers();
	heads();
	refusals();
	pipelines();
	is_not_flooded();
	uploads();
	downloads();
	event_streams();
	departures();
	slow_clients();
	websockets();
	ping_flood();
	connection_limit();
	out_of_descriptors();
	unix_sockets();
	closing();
	return NULL;
}

static struct http_server *start(const char *listen_at, struct http_server_config config)
{
	struct http_server *s = NULL;
	struct error e = { 0 };
	config.loop = &loop;
	config.listen = listen_at;
	config.handler = &handler;
	OK(http_server_create(&config, &e, &s) == 0);
	if (!s) {
		printf("Bail out! %s\n", e.text);
		exit(1);
	}
	return s;
}

int main(void)
{
	char address[80];
	pthread_t thread;
	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&loop);
	uv_async_init(&loop, &stop_signal, on_stop);
	snprintf(unix_path, sizeof(unix_path), "/tmp/test_http.%d.sock", (int)getpid());
	snprintf(address, sizeof(address), "unix:%s", unix_path);
	server = start("127.0.0.1:0", (struct http_server_config){ 0 });
	hasty = start("127.0.0.1:0", (struct http_server_config){ .header_ms = 300,
					     .body_ms = 300,
					     .idle_ms = 300,
					     .write_ms = 400,
					     .heartbeat_ms = 100 });
	small = start("127.0.0.1:0", (struct http_server_config){ .max_connections = 2 });
	local = start(address, (struct http_server_config){ 0 });
	OK(http_server_port(server) != 0 && http_server_port(local) == 0);
	pthread_create(&thread, NULL, client_main, NULL);
	OK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
	pthread_join(thread, NULL);
	OK(uv_loop_close(&loop) == 0); /* nothing was left behind */
	return tap_done();
}
