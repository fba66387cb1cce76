/* Checkpoints over HTTP: take, list, delete, go back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/handlers/history_call.h"
#include "api/schema/requests.h"
#include "base/clock.h"
#include "base/text.h"
#include "json/json_write.h"

static void put_checkpoint(struct json_writer *w, const struct checkpoint_info *c)
{
	char text[CLOCK_TEXT_MAX];
	json_open_object(w);
	json_field_cstr(w, "id", c->id);
	json_field_cstr(w, "name", c->name);
	json_field_cstr(w, "parent", c->parent);
	json_field_uint(w, "cell", c->cell);
	json_field_cstr(w, "created", clock_format(c->created_wall_ns, text));
	json_field_double(
		w, "age_s", (double)((clock_wall_ns() - c->created_wall_ns) / 1000000) / 1e3);
	json_field_uint(w, "size_bytes", c->size_bytes);
	json_field_bool(w, "current", c->current);
	json_field_bool(w, "files", c->files);
	json_close(w);
}

void answer_put_checkpoint_result(struct json_writer *w, const struct checkpoint_result *a)
{
	json_key(w, "checkpoint");
	if (a->checkpoint)
		put_checkpoint(w, a->checkpoint);
	else
		json_put_null(w);
	answer_put_words(w, "evicted", a->evicted);
	if (a->back)
		answer_put_replayed(w, &a->replayed);
}

void answer_put_checkpoints(struct json_writer *w, struct session *s)
{
	struct checkpoint_info info;
	json_key(w, "checkpoints");
	json_open_array(w);
	for (unsigned i = 0; session_checkpoint_info(s, i, true, &info); i++)
		put_checkpoint(w, &info);
	json_close(w);
}

int rollback_check(const struct checkpoint_request *q, struct error *e)
{
	if (!q->checkpoint == q->undo)
		return 0;
	error_set(e, -EINVAL,
		q->undo ? "$.undo: cannot be combined with checkpoint"
			: "$.checkpoint: is required, unless undo is given");
	error_remedy(e,
		"{\"checkpoint\": \"k_…\"} rolls back to a checkpoint (an id or a name); {\"undo\": true} undoes the last cell.");
	return error_slug(e, q->undo ? "invalid_field" : "missing_field");
}

/* ---- taking one, going back ---------------------------------------------------------- */

static void on_done(void *userdata, const struct error *e, const struct checkpoint_result *arrival)
{
	struct history_call *h = userdata;
	struct call *c = history_call_begin_answer(h);
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	if (e) {
		call_error(c, e);
	} else {
		json_writer_init(&w, &b);
		json_open_object(&w);
		json_field_cstr(&w, "session", h->session);
		answer_put_checkpoint_result(&w, arrival);
		json_close(&w);
		call_respond(c, h->answer == ANSWER_ROLLBACK ? 200 : 201, &w, &b);
	}
	history_call_end_answer(h);
}

/* Starts the operation, and answers the client at once if it could not be started. */
static void ask(struct call *c, struct session *s, const struct checkpoint_request *q, bool back)
{
	struct error e = { 0 };
	struct history_call *h = history_call_new(c, s, back ? ANSWER_ROLLBACK : ANSWER_CHECKPOINT);
	if (!h)
		return;

	int r = back ? session_rollback(s, q->checkpoint, on_done, h, &e)
		     : session_checkpoint(s, q->name, on_done, h, &e);
	history_call_asked(h, r, &e);
}

static void handle(struct call *c, const struct fields *fields, bool back)
{
	struct error e = { 0 };
	struct checkpoint_request q = { 0 };
	struct session *s;
	int r = call_begin(c, fields, &q, &e, &s);
	if (!r && back)
		r = rollback_check(&q, &e);
	http_drop_body(c->x);

	if (r < 0)
		call_error(c, &e);
	else
		ask(c, s, &q, back);
	fields_finish(fields, &q);
}

void handle_checkpoint_create(struct call *c)
{
	handle(c, &checkpoint_fields, false);
}

void handle_rollback(struct call *c)
{
	handle(c, &rollback_fields, true);
}

/* ---- the others -------------------------------------------------------------------- */

void handle_checkpoint_list(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}
	json_writer_init(&w, &b);
	json_open_object(&w);
	answer_put_checkpoints(&w, s);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_checkpoint_delete(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	if (call_session(c, &e, &s) < 0 || session_checkpoint_delete(s, c->path, &e) < 0)
		call_error(c, &e);
	else
		call_respond_as(c, 204, NULL, NULL);
}
