/* A kernel's channels over one WebSocket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/outbox.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/interpreter.h"
#include "base/text.h"
#include "dialects/dialects.h"
#include "dialects/jupyter/jupyter.h"
#include "dialects/jupyter/jupyter_routes.h"
#include "json/json_dump.h"
#include "json/json_write.h"

struct channels {
	struct kernel *kernel; /* NULL when it is gone */
	struct http_ws *ws;
	struct outbox out;
	bool binary, leaving;
	TAILQ_ENTRY(channels) link;
};

static int send_text(void *target, const char *data, size_t len)
{
	struct channels *c = target;
	return http_ws_send(c->ws, data, len);
}

static int send_binary(void *target, const char *data, size_t len)
{
	struct channels *c = target;
	return http_ws_send_binary(c->ws, data, len);
}

/* ---- telling -------------------------------------------------------------------- */

static void send_to(struct channels *c, const struct jupyter_message *m)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	int r = c->binary ? jupyter_write_binary(&b, m) : jupyter_write_text(&b, m);
	if (r >= 0)
		r = outbox_send(&c->out, &b);
	if (r == -ENOBUFS)
		http_ws_close(c->ws, 1008, "too slow");
}

/* The header's own part of a message of this kernel. */
static void stamp(
	struct kernel *k, struct jupyter_message *m, char id[64], char date[CLOCK_TEXT_MAX])
{
	snprintf(id, 64, "%s_%llu", k->id, (unsigned long long)++k->messages);
	m->id = id;
	m->session = k->id;
	m->date = clock_format(clock_wall_ns(), date);
}

void kernel_publish(
	struct kernel *k, const char *parent, const char *type, const struct buffer *content)
{
	char id[64], date[CLOCK_TEXT_MAX];
	struct channels *c;
	struct jupyter_message m = { .channel = "iopub",
		.type = type,
		.parent = parent,
		.content = content->data,
		.content_len = content->len };
	stamp(k, &m, id, date);
	TAILQ_FOREACH (c, &k->listeners, link)
		send_to(c, &m);
}

void kernel_publish_status(struct kernel *k, const char *parent, const char *state)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	if (buffer_printf(&b, "{\"execution_state\":\"%s\"}", state) >= 0)
		kernel_publish(k, parent, "status", &b);
}

void channels_reply(struct channels *c, struct kernel *k, const char *channel, const char *parent,
	const char *type, const struct buffer *content)
{
	char id[64], date[CLOCK_TEXT_MAX];
	struct jupyter_message m = { .channel = channel,
		.type = type,
		.parent = parent,
		.content = content->data,
		.content_len = content->len };
	stamp(k, &m, id, date);
	send_to(c, &m);
}

/* ---- requests that are answered at once ----------------------------------------------- */

/* A request on its way through the table below. */
struct asked {
	struct channels *c;
	struct kernel *k;
	const struct jupyter_request *request;
	const char *parent;
};

static void answer(const struct asked *a, const char *type, const char *content)
{
	struct buffer b = { .data = (char *)content, .len = strlen(content) };
	kernel_publish_status(a->k, a->parent, "busy");
	channels_reply(a->c, a->k, a->request->channel, a->parent, type, &b);
	kernel_publish_status(a->k, a->parent, "idle");
}

static void kernel_info(const struct asked *a)
{
	char text[1024];
	const char *python = interpreter_version();
	snprintf(text, sizeof(text),
		"{\"status\":\"ok\",\"protocol_version\":\"5.3\",\"implementation\":\"glovebox\","
		"\"implementation_version\":\"" GLOVEBOX_VERSION
		"\",\"language_info\":{\"name\":\"python\",\"version\":\"%s\",\"mimetype\":\"text/"
		"x-python\",\"file_extension\":\".py\",\"pygments_lexer\":\"ipython3\","
		"\"codemirror_mode\":{\"name\":\"ipython\",\"version\":3},\"nbconvert_exporter\":\"python\"},"
		"\"banner\":\"Python %s in a Glovebox session\",\"help_links\":[],\"supported_features\":[]}",
		python, python);
	answer(a, "kernel_info_reply", text);
}

static void comm_info(const struct asked *a)
{
	answer(a, "comm_info_reply", "{\"status\":\"ok\",\"comms\":{}}");
}

static void interrupt(const struct asked *a)
{
	struct session *s;
	if (kernel_session(a->k, NULL, &s) >= 0)
		session_interrupt(s);
	answer(a, "interrupt_reply", "{\"status\":\"ok\"}");
}

static void shut_down(const struct asked *a)
{
	struct error e = { 0 };
	bool restart = json_is_true(json_object_get(a->request->content, "restart"));
	answer(a, "shutdown_reply",
		restart ? "{\"status\":\"ok\",\"restart\":true}"
			: "{\"status\":\"ok\",\"restart\":false}");
	if (!restart)
		kernel_end(a->k, "its kernel was shut down");
	else
		kernel_restart(a->k, &e);
}

/* ---- requests that take time ------------------------------------------------------------ */

static void start(const struct asked *a, void (*take)(struct kernel_request *, json_t *))
{
	struct kernel_request *r = kernel_request_create(
		a->k, a->c, a->parent, a->request->channel);
	if (r)
		take(r, a->request->content);
	else
		http_ws_close(a->c->ws, 1011, "out of memory");
}

static void execute(const struct asked *a)
{
	start(a, kernel_execute);
}

static void is_complete(const struct asked *a)
{
	start(a, kernel_check);
}

static void complete(const struct asked *a)
{
	start(a, kernel_complete);
}

static void inspect(const struct asked *a)
{
	start(a, kernel_inspect);
}

static void history(const struct asked *a)
{
	start(a, kernel_history);
}

static void comm_open(const struct asked *a)
{
	start(a, kernel_refuse_comm);
}

/* About a comm that is not there. */
static void comm_other(const struct asked *a)
{
	kernel_publish_status(a->k, a->parent, "busy");
	kernel_publish_status(a->k, a->parent, "idle");
}

static void input_reply(const struct asked *a)
{
	kernel_take_line(a->k, a->request->content);
}

static const struct {
	const char *type;
	void (*handle)(const struct asked *a);
} kinds[] = {
	{ "execute_request", execute },
	{ "kernel_info_request", kernel_info },
	{ "is_complete_request", is_complete },
	{ "complete_request", complete },
	{ "inspect_request", inspect },
	{ "history_request", history },
	{ "comm_info_request", comm_info },
	{ "comm_open", comm_open },
	{ "comm_msg", comm_other },
	{ "comm_close", comm_other },
	{ "interrupt_request", interrupt },
	{ "shutdown_request", shut_down },
	{ "input_reply", input_reply },
};

static void handle(struct channels *c, struct jupyter_request *request)
{
	_cleanup_free_ char *parent = NULL;
	bool fits = json_dump(request->header, LIMIT_JUPYTER_HEADER_BYTES, &parent, NULL) == 0;
	struct asked a = { c, c->kernel, request, parent };

	if (!fits) {
		http_ws_close(c->ws, 1008, "the header of the message is too long");
		return;
	}

	/*
	 * What is not here (a debugger's requests) is ignored, as kernels do.
	 */
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (text_eq(kinds[i].type, request->type)) {
			kinds[i].handle(&a);
			return;
		}
	}
}

static void receive(struct channels *c, const char *data, size_t len, bool binary)
{
	struct jupyter_request request;
	struct error e = { 0 };
	int r = binary ? jupyter_read_binary(data, len, &e, &request)
		       : jupyter_read_text(data, len, &e, &request);
	if (r < 0) {
		http_ws_close(c->ws, 1007, e.text);
		return;
	}
	if (c->kernel)
		handle(c, &request);
	jupyter_request_finish(&request);
}

/* ---- the connection ------------------------------------------------------------------------ */

static void on_message(struct http_ws *ws, const char *text, size_t len, void *userdata)
{
	receive(userdata, text, len, false);
}

static void on_binary(struct http_ws *ws, const char *data, size_t len, void *userdata)
{
	receive(userdata, data, len, true);
}

static bool is_waiting(const struct channels *c)
{
	struct kernel_request *r;
	if (!outbox_empty(&c->out))
		return true;
	if (!c->kernel)
		return false;
	TAILQ_FOREACH (r, &c->kernel->requests, link)
		if (r->asker == c)
			return true;
	return false;
}

void channels_settle(struct channels *c)
{
	if (c->leaving && !is_waiting(c))
		http_ws_close(c->ws, 1001, "the server is shutting down");
}

static void on_drained(struct http_ws *ws, void *userdata)
{
	struct channels *c = userdata;
	outbox_drained(&c->out);
	channels_settle(c);
}

/* Cells that run are waited for: their asker hears how they ended. */
static bool on_shutdown(struct http_ws *ws, void *userdata)
{
	struct channels *c = userdata;
	c->leaving = is_waiting(c);
	return c->leaving;
}

static void leave(struct channels *c)
{
	struct kernel_request *r;
	if (!c->kernel)
		return;
	TAILQ_FOREACH (r, &c->kernel->requests, link)
		if (r->asker == c)
			r->asker = NULL;
	kernel_drop_lines_of(c->kernel, c);
	TAILQ_REMOVE(&c->kernel->listeners, c, link);
	c->kernel->connections--;
	c->kernel = NULL;
}

void channels_close(struct channels *c, const char *why)
{
	leave(c);
	http_ws_close(c->ws, 1000, why);
}

/* The kernel stays, and its cells go on: Jupyter's clients come and go. */
static void on_closed(struct http_ws *ws, unsigned code, void *userdata)
{
	struct channels *c = userdata;
	leave(c);
	outbox_finish(&c->out);
	free(c);
}

/* Does the client offer the binary framing? */
static bool offers_v1(const struct call *c)
{
	const char *offered = http_header(c->x, "Sec-WebSocket-Protocol");
	size_t n = strlen(jupyter_protocol_v1);
	while (offered && *offered) {
		offered += strspn(offered, " \t,");
		size_t len = strcspn(offered, " \t,");
		if (len == n && !strncmp(offered, jupyter_protocol_v1, n))
			return true;
		offered += len;
	}
	return false;
}

static void attach(struct channels *c, struct kernel *k)
{
	c->kernel = k;
	TAILQ_INSERT_TAIL(&k->listeners, c, link);
	k->connections++;
	k->used_wall_ns = clock_wall_ns();
}

void handle_jupyter_channels(struct call *call)
{
	static const struct http_ws_handler handler = { on_message, on_drained, on_closed,
		on_shutdown, on_binary };
	struct kernel *k = kernel_find(
		dialect_state(call->api, &dialect_jupyter), call->owner, call->id);

	if (!k) {
		call_problem(call, 404, "kernel_not_found", "there is no such kernel",
			"Start one with POST /api/kernels.");
		return;
	}

	if (!http_wants_websocket(call->x)) {
		http_add_header(call->x, "Upgrade", "websocket");
		call_problem(call, 426, "upgrade_required", "this address supports WebSocket only",
			"Use a WebSocket client.");
		return;
	}

	struct channels *c = calloc(1, sizeof(*c));
	if (!c) {
		call_problem(call, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	c->binary = offers_v1(call);
	outbox_init(&c->out, c->binary ? send_binary : send_text, c);
	struct http_exchange *x = call->x;
	call_release(call);
	c->ws = http_upgrade(x, c->binary ? jupyter_protocol_v1 : NULL, &handler, c);
	if (!c->ws)
		free(c);
	else
		attach(c, k);
}
