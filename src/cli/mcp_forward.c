#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"
#include "cli/mcp_bridge.h"
#include "cli/mcp_forward.h"
#include "http/http_client.h"

#define META "io.modelcontextprotocol/"

enum { LINE_MAX_BYTES = 64 * 1024 * 1024, NAME_MAX_BYTES = 16 * 1024 };

/* ---- messages ------------------------------------------------------------------------------- */

struct mcp_message *mcp_message_create(json_t *tree, const char *line, size_t len)
{
	struct mcp_message *m = calloc(1, sizeof(*m));
	char *copy = malloc(len + 1);
	if (!m || !copy) {
		free(m);
		free(copy);
		json_decref(tree);
		return NULL;
	}

	memcpy(copy, line, len);
	copy[len] = '\0';
	*m = (struct mcp_message){ .tree = tree, .line = copy, .len = len, .cancel_fd = -1 };
	return m;
}

void mcp_message_destroy(struct mcp_message *m)
{
	json_decref(m->tree);
	fd_close(m->cancel_fd);
	free(m->line);
	free(m);
}

/* Only now, since thousands of messages may wait, and a process has few descriptors. */
void mcp_message_start(struct mcp_message *m)
{
	m->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void mcp_message_cancel(struct mcp_message *m)
{
	uint64_t one = 1;
	m->cancelled = true;
	if (m->cancel_fd >= 0 && write(m->cancel_fd, &one, sizeof(one)) < 0)
		return; /* full: it is readable already */
}

/* ---- stdout ---------------------------------------------------------------------------- */

static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;

static void write_line(const char *data, size_t len)
{
	if (!len)
		return;
	pthread_mutex_lock(&out_lock);
	if (fd_write_waiting(STDOUT_FILENO, data, len) == 0)
		fd_write_waiting(STDOUT_FILENO, "\n", 1);
	pthread_mutex_unlock(&out_lock);
}

void mcp_write_error(const json_t *id, int code, const char *text)
{
	json_t *message = json_pack("{s:s, s:O?, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id,
		"error", "code", code, "message", text);
	char *line = message ? json_dumps(message, JSON_COMPACT) : NULL;
	if (line)
		write_line(line, strlen(line));
	free(line);
	json_decref(message);
}

/* ---- connections ------------------------------------------------------------------------- */

struct connection {
	SLIST_ENTRY(connection) next;
	struct http_client *client;
};

static SLIST_HEAD(, connection) idle = SLIST_HEAD_INITIALIZER(idle);
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

static struct connection *take_connection(const struct mcp_bridge_config *config, struct error *e)
{
	pthread_mutex_lock(&idle_lock);
	struct connection *c = SLIST_FIRST(&idle);
	if (c)
		SLIST_REMOVE_HEAD(&idle, next);
	pthread_mutex_unlock(&idle_lock);
	if (c)
		return c;

	c = calloc(1, sizeof(*c));
	if (!c || http_client_create(config->address, e, &c->client) < 0 ||
		http_client_set_token(c->client, config->token) < 0) {
		free(c);
		return NULL;
	}
	return c;
}

static void give_connection(struct connection *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&idle_lock);
	SLIST_INSERT_HEAD(&idle, c, next);
	pthread_mutex_unlock(&idle_lock);
}

void mcp_forward_end(void)
{
	struct connection *c;
	pthread_mutex_lock(&idle_lock);
	while ((c = SLIST_FIRST(&idle))) {
		SLIST_REMOVE_HEAD(&idle, next);
		http_client_destroy(c->client);
		free(c);
	}
	pthread_mutex_unlock(&idle_lock);
}

/* ---- one message -------------------------------------------------------------------- */

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
	const char *version = json_string_value(
		json_object_get(json_object_get(params, "_meta"), META "protocolVersion"));
	const char *method = json_string_value(json_object_get(message, "method"));
	char lease[MCP_LEASE_ID];

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
	mcp_lease_id(lease);
	if (*lease)
		buffer_printf(b, "Mcp-Session-Id: %s\r\n", lease);
}

/* An answer that comes in pieces: JSON, or events whose data are messages. */
struct answer {
	const struct mcp_message *message;
	struct buffer pending;
	bool events, decided;
};

static void take_events(struct answer *a)
{
	char *end;
	while (a->pending.len && (end = memchr(a->pending.data, '\n', a->pending.len))) {
		size_t len = (size_t)(end - a->pending.data);
		if (len > 6 && !strncmp(a->pending.data, "data: ", 6) && !a->message->cancelled)
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

static void write_answer(
	const struct http_client_response *answer, struct answer *pieces, const json_t *id)
{
	struct buffer body = answer->body;
	if (answer->status / 100 == 2) {
		trim(&pieces->pending);
		write_line(pieces->pending.data, pieces->pending.len);
	} else if (strstr(answer->content_type, "application/json")) {
		trim(&body);
		write_line(body.data, body.len);
	} else if (id && answer->status == 413) {
		mcp_write_error(id, -32600, "the message is larger than the server accepts");
	} else if (id) {
		mcp_write_error(id, -32603,
			answer->status == 401
				? "the server needs a token: give --token or GLOVEBOX_TOKEN"
				: "the Glovebox server refused the request");
	}
}

void mcp_forward(const struct mcp_bridge_config *config, struct mcp_message *m)
{
	_cleanup_buffer_ struct buffer headers = BUFFER_INIT(0);
	_cleanup_http_response_ struct http_client_response answer = { 0 };
	struct answer pieces = { .message = m, .pending = BUFFER_INIT(LINE_MAX_BYTES) };
	const json_t *id = json_object_get(m->tree, "id");
	struct error e = { 0 };
	struct connection *c = take_connection(config, &e);

	put_headers(&headers, m->tree);
	struct http_client_request q = { .method = "POST",
		.target = "/mcp",
		.accept = "application/json, text/event-stream",
		.headers = headers.len ? buffer_cstr(&headers) : NULL,
		.body = m->line,
		.body_len = m->len,
		.cancel_fd = m->cancel_fd > 0 ? m->cancel_fd : 0,
		.on_data = on_data,
		.userdata = &pieces };
	int r = c ? http_client_call(c->client, &q, &e, &answer) : -ENOMEM;
	if (m->cancelled)
		; /* a cancelled request has no response */
	else if (r == 0)
		write_answer(&answer, &pieces, id);
	else if (id)
		mcp_write_error(
			id, -32603, *e.text ? e.text : "the Glovebox server cannot be reached");
	buffer_finish(&pieces.pending);
	give_connection(c);
}
