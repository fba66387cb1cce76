#include "cli/mcp_bridge.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "http/http_client.h"
#include "json/json_read.h"

#define META "io.modelcontextprotocol/"

enum {
	THREADS_MAX = 64,               /* requests under way; further lines wait in the pipe */
	LINE_MAX_BYTES = 64 * 1024 * 1024,
	NAME_MAX_BYTES = 1024,
	STACK_BYTES = 256 * 1024,
	LEASE_PATIENCE_S = 10,
};

struct connection {
	SLIST_ENTRY(connection) next;
	struct http_client *client;
};

static struct bridge {
	const struct mcp_bridge_config *config;
	pthread_mutex_t lock;      /* of all below */
	pthread_cond_t changed;    /* the lease has an answer, or a thread ended */
	SLIST_HEAD(, connection) idle;
	unsigned threads;
	char lease[40];            /* Mcp-Session-Id; "" without one */
	bool lease_tried, lease_failed;
	struct error lease_error;
} bridge = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t ended;

/* ---- stdout ---------------------------------------------------------------------------- */

static void write_line(const char *data, size_t len)
{
	if (!len)
		return;
	pthread_mutex_lock(&out_lock);
	if (cli_write(STDOUT_FILENO, data, len) == 0)
		cli_write(STDOUT_FILENO, "\n", 1);
	pthread_mutex_unlock(&out_lock);
}

static void write_error(const json_t *id, int code, const char *text)
{
	json_t *message = json_pack("{s:s, s:O?, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error", "code", code, "message", text);
	char *line = message ? json_dumps(message, JSON_COMPACT) : NULL;
	if (line)
		write_line(line, strlen(line));
	free(line);
	json_decref(message);
}

/* ---- connections ------------------------------------------------------------------------- */

static struct connection *take_connection(struct error *e)
{
	pthread_mutex_lock(&bridge.lock);
	struct connection *c = SLIST_FIRST(&bridge.idle);
	if (c)
		SLIST_REMOVE_HEAD(&bridge.idle, next);
	pthread_mutex_unlock(&bridge.lock);
	if (c)
		return c;

	c = calloc(1, sizeof(*c));
	if (!c || http_client_create(bridge.config->address, e, &c->client) < 0 ||
		http_client_set_token(c->client, bridge.config->token) < 0) {
		free(c);
		return NULL;
	}
	return c;
}

static void give_connection(struct connection *c)
{
	pthread_mutex_lock(&bridge.lock);
	SLIST_INSERT_HEAD(&bridge.idle, c, next);
	pthread_mutex_unlock(&bridge.lock);
}

/* ---- the lease ----------------------------------------------------------------------------- */

/* The first event's data is the id. */
static int on_lease(const char *data, size_t len, void *userdata)
{
	struct buffer *seen = userdata;
	const char *at;
	if (seen->len < 4096)
		buffer_append(seen, data, len);
	const char *text = buffer_cstr(seen);
	pthread_mutex_lock(&bridge.lock);
	if (text && !*bridge.lease && (at = strstr(text, "data: ")) && strchr(at, '\n')) {
		snprintf(bridge.lease, sizeof(bridge.lease), "%.*s", (int)strcspn(at + 6, "\r\n"), at + 6);
		bridge.lease_tried = true;
		pthread_cond_broadcast(&bridge.changed);
	}
	pthread_mutex_unlock(&bridge.lock);
	return ended ? -ECANCELED : 0;
}

/* Holds one lease until it breaks. */
static void hold_lease(struct http_client *client, struct error *e)
{
	_cleanup_buffer_ struct buffer seen = BUFFER_INIT(0);
	_cleanup_http_response_ struct http_client_response answer = { 0 };
	struct http_client_request q = {
		.silence_ms = 60000, /* the server sends a sign of life every 15 s */
		.method = "GET", .target = "/mcp/lease", .accept = "text/event-stream", .on_data = on_lease, .userdata = &seen
	};
	int r = http_client_call(client, &q, e, &answer);
	if (r == 0 && answer.status >= 400)
		error_set(e, -EACCES, "the server refused: HTTP status %d", answer.status);

	pthread_mutex_lock(&bridge.lock);
	bridge.lease_failed = !*bridge.lease;
	*bridge.lease = '\0';
	bridge.lease_tried = true;
	bridge.lease_error = *e;
	pthread_cond_broadcast(&bridge.changed);
	pthread_mutex_unlock(&bridge.lock);
}

/* A server that restarts is found again; its sessions are gone, and requests say so. */
static void *lease_main(void *unused)
{
	struct http_client *client = NULL;
	struct error e = { 0 };
	(void)unused;
	if (http_client_create(bridge.config->address, &e, &client) < 0) {
		pthread_mutex_lock(&bridge.lock);
		bridge.lease_tried = bridge.lease_failed = true;
		bridge.lease_error = e;
		pthread_cond_broadcast(&bridge.changed);
		pthread_mutex_unlock(&bridge.lock);
		return NULL;
	}
	http_client_set_token(client, bridge.config->token);
	for (unsigned failures = 0; !ended && failures < LEASE_PATIENCE_S * 2;) {
		e = (struct error){ 0 };
		hold_lease(client, &e);
		failures = bridge.lease_failed ? failures + 1 : 0;
		usleep(500 * 1000);
	}
	http_client_destroy(client);
	return NULL;
}

static int start_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	int r = pthread_create(&thread, &attributes, run, argument);
	pthread_attr_destroy(&attributes);
	return -r;
}

static int start_lease(struct error *e)
{
	int r = start_thread(lease_main, NULL);
	if (r < 0)
		return error_set_errno(e, r, "starting a thread");

	pthread_mutex_lock(&bridge.lock);
	while (!bridge.lease_tried)
		pthread_cond_wait(&bridge.changed, &bridge.lock);
	r = bridge.lease_failed ? -ECONNREFUSED : 0;
	if (r < 0)
		*e = bridge.lease_error;
	pthread_mutex_unlock(&bridge.lock);
	return r;
}

/* ---- one message -------------------------------------------------------------------------------- */

struct message {
	json_t *tree;
	char *line;
	size_t len;
};

static void message_free(struct message *m)
{
	json_decref(m->tree);
	free(m->line);
	free(m);
}

/* A header value must be one line of ASCII; everything else goes in base64. */
static void put_header(struct buffer *b, const char *name, const char *value)
{
	_cleanup_buffer_ struct buffer coded = BUFFER_INIT(0);
	bool plain = true;
	for (const char *p = value; *p; p++)
		plain &= *p > 32 && *p < 127;
	if (plain && strncmp(value, "=?", 2)) {
		buffer_printf(b, "%s: %s\r\n", name, value);
		return;
	}
	if (text_base64(&coded, value, strlen(value)) == 0 && buffer_cstr(&coded))
		buffer_printf(b, "%s: =?base64?%s?=\r\n", name, coded.data);
}

/* The headers that HTTP has and stdio does not: they repeat what the message says. */
static void put_headers(struct buffer *b, const json_t *message)
{
	static const char *const names[] = { "name", "uri", "taskId" };
	const json_t *params = json_object_get(message, "params");
	const char *version = json_string_value(json_object_get(json_object_get(params, "_meta"), META "protocolVersion"));
	const char *method = json_string_value(json_object_get(message, "method"));

	if (version) {
		put_header(b, "MCP-Protocol-Version", version);
		if (method)
			put_header(b, "Mcp-Method", method);
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			const char *value = json_string_value(json_object_get(params, names[i]));
			if (value && strlen(value) < NAME_MAX_BYTES) {
				put_header(b, "Mcp-Name", value);
				break;
			}
		}
	}
	pthread_mutex_lock(&bridge.lock);
	if (*bridge.lease)
		buffer_printf(b, "Mcp-Session-Id: %s\r\n", bridge.lease);
	pthread_mutex_unlock(&bridge.lock);
}

/* An answer that comes in pieces: JSON, or events whose data are messages. */
struct answer {
	struct buffer pending;
	bool events, decided;
};

static void take_events(struct answer *a)
{
	char *end;
	while (a->pending.len && (end = memchr(a->pending.data, '\n', a->pending.len))) {
		size_t len = (size_t)(end - a->pending.data);
		if (len > 6 && !strncmp(a->pending.data, "data: ", 6))
			write_line(a->pending.data + 6, len - 6);
		buffer_consume(&a->pending, len + 1);
	}
}

static int on_data(const char *data, size_t len, void *userdata)
{
	struct answer *a = userdata;
	if (buffer_append(&a->pending, data, len) < 0)
		return -EFBIG;
	if (!a->decided && a->pending.len) {
		a->decided = true;
		a->events = a->pending.data[0] != '{' && a->pending.data[0] != '[';
	}
	if (a->events)
		take_events(a);
	return 0;
}

static void trim(struct buffer *b)
{
	while (b->len && (b->data[b->len - 1] == '\n' || b->data[b->len - 1] == '\r'))
		b->len--;
}

static void forward(const struct message *m)
{
	_cleanup_buffer_ struct buffer headers = BUFFER_INIT(0);
	_cleanup_http_response_ struct http_client_response answer = { 0 };
	struct answer pieces = { .pending = BUFFER_INIT(LINE_MAX_BYTES) };
	const json_t *id = json_object_get(m->tree, "id");
	struct error e = { 0 };
	struct connection *c = take_connection(&e);

	put_headers(&headers, m->tree);
	struct http_client_request q = { .method = "POST",
		.target = "/mcp",
		.accept = "application/json, text/event-stream",
		.headers = headers.len ? buffer_cstr(&headers) : NULL,
		.body = m->line,
		.body_len = m->len,
		.on_data = on_data,
		.userdata = &pieces };
	int r = c ? http_client_call(c->client, &q, &e, &answer) : -ENOMEM;
	if (r < 0) {
		if (id)
			write_error(id, -32603, *e.text ? e.text : "the Glovebox server cannot be reached");
	} else if (answer.status / 100 == 2) {
		trim(&pieces.pending);
		write_line(pieces.pending.data, pieces.pending.len);
	} else if (strstr(answer.content_type, "application/json")) {
		trim(&answer.body);
		write_line(answer.body.data, answer.body.len);
	} else if (id) {
		write_error(id, -32603, answer.status == 401 ? "the server needs a token: give --token or GLOVEBOX_TOKEN"
							     : "the Glovebox server refused the request");
	}
	buffer_finish(&pieces.pending);
	if (c)
		give_connection(c);
}

static void *request_main(void *argument)
{
	struct message *m = argument;
	forward(m);
	message_free(m);
	pthread_mutex_lock(&bridge.lock);
	bridge.threads--;
	pthread_cond_broadcast(&bridge.changed);
	pthread_mutex_unlock(&bridge.lock);
	return NULL;
}

/* Notifications are forwarded in order, before the next line is read: a cancellation must not overtake its request. */
static void start_message(struct message *m)
{
	if (!json_object_get(m->tree, "id")) {
		forward(m);
		message_free(m);
		return;
	}
	pthread_mutex_lock(&bridge.lock);
	while (bridge.threads >= THREADS_MAX)
		pthread_cond_wait(&bridge.changed, &bridge.lock);
	bridge.threads++;
	pthread_mutex_unlock(&bridge.lock);
	if (start_thread(request_main, m) == 0)
		return;
	write_error(json_object_get(m->tree, "id"), -32603, "too many requests at once");
	message_free(m);
	pthread_mutex_lock(&bridge.lock);
	bridge.threads--;
	pthread_mutex_unlock(&bridge.lock);
}

/* ---- stdin ---------------------------------------------------------------------------------------- */

static void take_line(char *line, size_t len)
{
	struct error e = { 0 };
	json_t *tree = NULL;
	while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		len--;
	if (!len)
		return;
	if (json_read(line, len, &e, &tree) < 0) {
		write_error(json_null(), -32700, e.text);
		return;
	}
	struct message *m = calloc(1, sizeof(*m));
	char *copy = malloc(len + 1);
	if (!m || !copy) {
		free(m);
		free(copy);
		json_decref(tree);
		return;
	}
	memcpy(copy, line, len);
	copy[len] = '\0';
	*m = (struct message){ .tree = tree, .line = copy, .len = len };
	start_message(m);
}

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

/* Without SA_RESTART, so that a signal ends the read of stdin. */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int read_lines(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(LINE_MAX_BYTES);
	char *end;
	while (!ended) {
		if (buffer_reserve(&b, 65536) < 0)
			return -EFBIG;
		ssize_t n = read(STDIN_FILENO, b.data + b.len, b.cap - b.len);
		if (n <= 0)
			return 0; /* the host closed stdin, or a signal came */
		size_t looked = b.len;
		b.len += (size_t)n;
		while ((end = memchr(b.data + looked, '\n', b.len - looked))) {
			size_t len = (size_t)(end - b.data) + 1;
			take_line(b.data, len);
			buffer_consume(&b, len);
			looked = 0;
		}
	}
	return 0;
}

int mcp_bridge_run(const struct mcp_bridge_config *config, struct error *e)
{
	bridge.config = config;
	SLIST_INIT(&bridge.idle);
	catch_signals();
	int r = start_lease(e);
	if (r == 0)
		r = read_lines() < 0 ? error_set(e, -EFBIG, "a line on stdin is longer than 64 MB") : 0;
	ended = 1;
	return r;
}
