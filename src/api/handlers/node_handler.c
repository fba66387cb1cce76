/* The server as a node: its state, and draining it. */
#include <errno.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/schema/requests_console.h"
#include "base/node_id.h"
#include "json/json_write.h"

static void put_node(struct json_writer *w)
{
	const char *tag = node_tag();
	if (!*tag) {
		json_field_null(w, "node");
		json_field_null(w, "incarnation");
		return;
	}
	json_key(w, "node");
	json_put_text(w, tag, NODE_LETTERS);
	json_field_cstr(w, "incarnation", tag + NODE_LETTERS);
}

static void answer_node(struct call *c)
{
	const struct sessions_stats *stats = sessions_stats(c->api->sessions);
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	double left_s;
	bool draining = sessions_draining(c->api->sessions, &left_s);

	json_writer_init(&w, &b);
	json_open_object(&w);
	put_node(&w);
	json_field_cstr(&w, "state", draining ? "draining" : "serving");
	json_field_uint(&w, "sessions", stats->live);
	json_field_uint(&w, "max_sessions", stats->limit);
	json_field_uint(&w, "running_cells", stats->running_cells);
	if (draining && left_s > 0)
		json_field_double(&w, "deadline_s", (double)(uint64_t)(left_s * 1000) / 1000);
	else
		json_field_null(&w, "deadline_s");
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/* The figures of all tokens, and a drain that concerns all of them, are the operator's. */
static int check_operator(const struct call *c, struct error *e)
{
	if (guard_count(&c->api->guard) <= 1)
		return 0;

	error_set(e, -EPERM, "this server has several tokens, and none of them may act for all");
	error_remedy(e,
		"On its machine, send SIGUSR1 to the server: it drains, and a second SIGUSR1 cancels the drain.");
	return error_slug(e, "operator_only");
}

void handle_node(struct call *c)
{
	struct error e = { 0 };
	if (check_operator(c, &e) < 0)
		call_error(c, &e);
	else
		answer_node(c);
}

void handle_drain(struct call *c)
{
	struct drain_request q = { 0 };
	struct error e = { 0 };
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = check_operator(c, &e);

	if (r == 0)
		r = fields_decode_text(&drain_fields, body, len, &q, &e);
	if (r == 0)
		sessions_drain(c->api->sessions, q.deadline_s);
	fields_finish(&drain_fields, &q);
	if (r < 0)
		call_error(c, &e);
	else
		answer_node(c);
}

void handle_drain_cancel(struct call *c)
{
	struct error e = { 0 };
	if (check_operator(c, &e) < 0) {
		call_error(c, &e);
		return;
	}
	sessions_stop_drain(c->api->sessions);
	answer_node(c);
}
