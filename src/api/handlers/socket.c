/*
 * A session over a WebSocket. Each message from the client has an id; everything said about it
 * carries that id. Several sockets may be attached to one session: its cells still run one after
 * another, whoever asked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/answers.h"
#include "api/api_words.h"
#include "api/call.h"
#include "api/events.h"
#include "api/schema/requests.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

struct socket_cell {
	struct socket *socket;
	struct cell *cell; /* NULL while session_execute() runs */
	char *id;          /* JSON text */
	struct events events;
	bool executing, dead;
	TAILQ_ENTRY(socket_cell) next;
};

struct socket {
	struct api *api;
	struct http_ws *ws;
	uint64_t owner;
	char session[SESSION_ID_LEN + 1];
	struct outbox out;
	TAILQ_HEAD(, socket_cell) cells;
	unsigned n_cells;
	bool leaving; /* closes when the last cell is done */
	struct session_listener listener;
	char *tools_id; /* JSON text of the id of the last tools message; NULL before one */
};

static int send_message(void *target, const char *data, size_t len)
{
	struct socket *s = target;
	return http_ws_send(s->ws, data, len);
}

/* ---- small answers ------------------------------------------------------- */

static void send_json(struct socket *s, struct json_writer *w, struct buffer *b)
{
	json_close(w);
	if (json_writer_end(w) >= 0 && outbox_send(&s->out, b) == -ENOBUFS)
		http_ws_close(s->ws, 1008, "too slow");
}

static void begin(struct json_writer *w, struct buffer *b, const char *id, const char *type)
{
	json_writer_init(w, b);
	json_open_object(w);
	if (id)
		json_field_raw(w, "id", id, strlen(id));
	else
		json_field_null(w, "id");
	json_field_cstr(w, "type", type);
}

static void send_error(struct socket *s, const char *id, const struct error *e)
{
	char remedy[EDGE_TEXT_MAX];
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	int status = call_status_of(e);
	begin(&w, &b, id, "error");
	json_field_cstr(&w, "title", http_status_text(status));
	json_field_int(&w, "status", status);
	json_field_cstr(&w, "code", *e->slug ? e->slug : "error");
	json_field_cstr(&w, "detail", e->text);
	json_field_cstr(&w, "remediation", api_remedy(e->remedy, remedy));
	send_json(s, &w, &b);
}

/* ---- cells --------------------------------------------------------------- */

static void cell_destroy(struct socket_cell *c)
{
	if (c->executing) {
		c->dead = true;
		return;
	}
	TAILQ_REMOVE(&c->socket->cells, c, next);
	c->socket->n_cells--;
	events_finish(&c->events);
	free(c->id);
	free(c);
}

static void on_started(void *userdata, unsigned cell)
{
	struct socket_cell *c = userdata;
	events_started(&c->events, c->socket->session, cell);
}

static void on_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	struct socket_cell *c = userdata;
	events_output(&c->events, stream, data, len);
}

static void on_display(void *userdata, const struct bundle *b)
{
	struct socket_cell *c = userdata;
	events_display(&c->events, b);
}

/* The server is draining and waited for this socket's cells. */
static void leave_when_done(struct socket *s)
{
	if (s->leaving && !s->n_cells && outbox_empty(&s->out))
		http_ws_close(s->ws, 1001, "the server is shutting down");
}

static void on_done(void *userdata, const struct observation *o)
{
	struct socket_cell *c = userdata;
	struct socket *s = c->socket;
	int r = events_done(&c->events, o);
	c->cell = NULL;
	cell_destroy(c);
	if (r == -ENOBUFS || r == -ENOMEM)
		http_ws_close(s->ws, 1008, "too slow");
	leave_when_done(s);
}

static const struct cell_observer observer = { .on_started = on_started,
	.on_output = on_output,
	.on_display = on_display,
	.on_done = on_done };

static struct socket_cell *cell_create(struct socket *s, char **id)
{
	struct socket_cell *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->socket = s;
	c->id = *id;
	*id = NULL;
	events_init(&c->events, &s->out, c->id);
	TAILQ_INSERT_TAIL(&s->cells, c, next);
	s->n_cells++;
	return c;
}

/* The observation's id is a text: a whole number as it is, a string without its quotes. */
static void plain_id(const char *json, char *out, size_t size)
{
	_cleanup_json_ json_t *v = NULL;
	if (*json != '"' || json_read(json, strlen(json), NULL, &v) < 0)
		snprintf(out, size, "%s", json);
	else
		snprintf(out, size, "%s", json_string_value(v));
}

static int check_room(const struct socket *s, struct error *e)
{
	if (s->n_cells < LIMIT_WS_CELLS)
		return 0;
	error_set(e, -EBUSY, "this socket already has %u unfinished cells", s->n_cells);
	error_remedy(e, "Wait for the done message of one of the cells.");
	error_slug(e, "queue_full");
	return -EBUSY;
}

static int execute(struct socket *s, struct socket_request *m, struct error *e)
{
	struct session *session;
	char id[160];
	int r = api_check_open(s->api, e);

	if (!r)
		r = api_session(s->api, s->session, s->owner, e, &session);
	if (!r)
		r = check_room(s, e);
	if (r < 0)
		return r;
	plain_id(m->id, id, sizeof(id));
	struct cell_request request;
	execute_cell_request(&m->execute, &request);
	request.dialect = "native";
	char *own_id = strdup(m->id);
	struct socket_cell *c = own_id ? cell_create(s, &own_id) : NULL;
	if (!c) {
		free(own_id);
		return error_set(e, -ENOMEM, "out of memory");
	}

	c->executing = true;
	r = session_execute(session, id, &request, &observer, c, e, &c->cell);
	c->executing = false;
	if (r < 0 || c->dead)
		cell_destroy(c);
	return r;
}

/* ---- the session itself -------------------------------------------------- */

/* Told when it happens, without an id: nobody asked. */
static void on_death(void *userdata, const struct session_death *d)
{
	struct socket *s = userdata;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	begin(&w, &b, NULL, "session");
	json_field_cstr(&w, "session", s->session);
	json_field_cstr(&w, "event", "interpreter_died");
	answer_put_death_fields(&w, d);
	send_json(s, &w, &b);
}

/* ---- messages ------------------------------------------------------------ */

static int interrupt(struct socket *s, struct socket_request *m, struct error *e)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct session *session;
	int r = api_session(s->api, s->session, s->owner, e, &session);
	if (r < 0)
		return r;
	begin(&w, &b, m->id, "interrupted");
	json_field_bool(&w, "interrupted", session_interrupt(session));
	send_json(s, &w, &b);
	return 0;
}

static int pong(struct socket *s, struct socket_request *m, struct error *e)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	begin(&w, &b, m->id, "pong");
	send_json(s, &w, &b);
	return 0;
}

/* ---- tools --------------------------------------------------------------- */

static void on_call(void *client, const struct tool_call *call)
{
	struct socket *s = client;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	begin(&w, &b, s->tools_id, "tool_call");
	answer_put_call(&w, call);
	send_json(s, &w, &b);
}

static void on_cancel(void *client, uint64_t id, const char *why)
{
	struct socket *s = client;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	begin(&w, &b, s->tools_id, "tool_cancel");
	json_field_uint(&w, "call", id);
	json_field_cstr(&w, "reason", why);
	send_json(s, &w, &b);
}

static int set_tools(struct socket *s, struct socket_request *m, struct error *e)
{
	static const struct tool_client_ops ops = { on_call, on_cancel };
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct session *session;
	int r = api_session(s->api, s->session, s->owner, e, &session);
	char *id = r < 0 ? NULL : strdup(m->id);

	if (r == 0)
		r = id ? session_set_tools(session, m->tools.tools, &ops, s, e)
		       : error_set(e, -ENOMEM, "out of memory");
	if (r < 0) {
		free(id);
		return r;
	}

	free(s->tools_id);
	s->tools_id = id;
	begin(&w, &b, id, "tools");
	answer_put_tools(&w, session);
	send_json(s, &w, &b);
	return 0;
}

/* An answer that fits is not answered itself: the next message is about something else already. */
static int tool_result(struct socket *s, struct socket_request *m, struct error *e)
{
	struct session *session;
	int r = api_session(s->api, s->session, s->owner, e, &session);
	return r < 0 ? r : api_answer_call(session, s, m->answer.call, &m->answer, e);
}

/* In the order of socket_types. */
static const struct {
	const struct fields *fields;
	int (*handle)(struct socket *s, struct socket_request *m, struct error *e);
} kinds[] = {
	{ &socket_execute_fields, execute },
	{ &socket_plain_fields, interrupt },
	{ &socket_plain_fields, pong },
	{ &socket_tools_fields, set_tools },
	{ &socket_answer_fields, tool_result },
};

static int find_kind(const json_t *tree)
{
	const char *type = json_string_value(json_object_get(tree, "type"));
	for (int i = 0; type && socket_types[i]; i++)
		if (text_eq(socket_types[i], type))
			return i;
	return -1;
}

/* The id to answer a broken message with, as far as it has one: JSON text, or NULL. */
static char *id_of(const json_t *tree)
{
	const json_t *id = json_object_get(tree, "id");
	if (!json_is_integer(id) && (!json_is_string(id) || json_string_length(id) > 128))
		return NULL;
	return json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY);
}

static int handle_tree(struct socket *s, const json_t *tree, struct error *e)
{
	struct socket_request m = { 0 };
	int kind = find_kind(tree);
	/* An unknown type is the plain table's to complain about: it knows the list. */
	const struct fields *fields = kind < 0 ? &socket_plain_fields : kinds[kind].fields;
	int r = fields_decode(fields, tree, &m, e);
	if (!r && kind >= 0)
		r = kinds[kind].handle(s, &m, e);
	fields_finish(fields, &m);
	return r;
}

static void on_message(struct http_ws *ws, const char *text, size_t len, void *userdata)
{
	struct socket *s = userdata;
	struct error e = { 0 };
	_cleanup_json_ json_t *tree = NULL;
	if (json_read(text, len, &e, &tree) < 0) {
		send_error(s, NULL, &e);
		return;
	}
	if (handle_tree(s, tree, &e) >= 0)
		return;
	char *id = id_of(tree);
	send_error(s, id, &e);
	free(id);
}

static void on_drained(struct http_ws *ws, void *userdata)
{
	struct socket *s = userdata;
	outbox_drained(&s->out);
	leave_when_done(s);
}

/* Cells that run are waited for: their asker hears how they ended. */
static bool on_shutdown(struct http_ws *ws, void *userdata)
{
	struct socket *s = userdata;
	s->leaving = s->n_cells || !outbox_empty(&s->out);
	return s->leaving;
}

static void on_closed(struct http_ws *ws, unsigned code, void *userdata)
{
	struct socket *s = userdata;
	struct socket_cell *c;
	while ((c = TAILQ_FIRST(&s->cells))) {
		cell_abandon(c->cell);
		cell_destroy(c);
	}
	struct session *session;
	if (s->tools_id && !session_find(s->api->sessions, s->session, NULL, &session))
		session_drop_tools(session, s);
	session_unlisten(&s->listener);
	free(s->tools_id);
	outbox_finish(&s->out);
	free(s);
}

/* ---- attaching ----------------------------------------------------------- */

static void refuse(struct call *c, struct error *e)
{
	/*
	 * To a handshake an ended session and an unknown one are the same: there is nothing here to
	 * attach to.
	 */
	if (text_eq(e->slug, "session_gone") || text_eq(e->slug, "node_restarted"))
		call_problem(c, 404, e->slug, e->text, e->remedy);
	else
		call_error(c, e);
}

void handle_socket(struct call *c)
{
	static const struct http_ws_handler handler = { on_message, on_drained, on_closed,
		on_shutdown };
	struct error e = { 0 };
	struct session_info info;
	struct session *session;

	if (call_session(c, &e, &session) < 0) {
		refuse(c, &e);
		return;
	}

	if (!http_wants_websocket(c->x)) {
		http_add_header(c->x, "Upgrade", "websocket");
		call_problem(c, 426, "upgrade_required", "this address supports WebSocket only",
			"Use a WebSocket client, or POST …/execute.");
		return;
	}

	struct socket *s = calloc(1, sizeof(*s));
	if (!s) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	s->api = c->api;
	s->owner = c->owner;
	session_info(session, &info);
	snprintf(s->session, sizeof(s->session), "%s", info.id);
	TAILQ_INIT(&s->cells);
	outbox_init(&s->out, send_message, s);
	struct http_exchange *x = c->x;
	call_release(c);
	s->ws = http_upgrade(x, NULL, &handler, s);
	if (!s->ws) {
		free(s);
		return;
	}

	s->listener = (struct session_listener){ .on_death = on_death, .userdata = s };
	session_listen(session, &s->listener);
}
