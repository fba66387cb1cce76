/* The cells of a session as a file: a Jupyter notebook with the outputs, or a Python program. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/schema/requests_console.h"
#include "base/clock.h"
#include "base/interpreter.h"
#include "base/text.h"
#include "json/json_write.h"

/* ---- a notebook (nbformat 4.5) ------------------------------------------------------- */

static void put_stream(struct json_writer *w, const char *name, const struct captured *text)
{
	if (!text->head_len && !text->tail_len && !text->left_out)
		return;
	json_open_object(w);
	json_field_cstr(w, "output_type", "stream");
	json_field_cstr(w, "name", name);
	json_key(w, "text");
	answer_put_captured(w, text);
	json_close(w);
}

static void put_value(
	struct json_writer *w, const char *type, const struct bundle *b, unsigned cell)
{
	json_open_object(w);
	json_field_cstr(w, "output_type", type);
	json_key(w, "data");
	answer_put_bundle(w, b);
	json_key(w, "metadata");
	json_open_object(w);
	json_close(w);
	if (text_eq(type, "execute_result"))
		json_field_uint(w, "execution_count", cell);
	json_close(w);
}

static void put_error(struct json_writer *w, const struct cell_error *e)
{
	json_open_object(w);
	json_field_cstr(w, "output_type", "error");
	json_field_cstr(w, "ename", e->type);
	json_field_text(w, "evalue", e->message, e->message_len);
	json_key(w, "traceback");
	json_open_array(w);
	json_put_text(w, e->traceback, e->traceback_len);
	json_close(w);
	json_close(w);
}

static void put_outputs(struct json_writer *w, const struct observation *o)
{
	json_key(w, "outputs");
	json_open_array(w);
	put_stream(w, "stdout", &o->out);
	put_stream(w, "stderr", &o->err);
	for (unsigned i = 0; i < o->n_displays; i++)
		put_value(w, "display_data", &o->displays[i], 0);
	if (o->result)
		put_value(w, "execute_result", o->result, o->cell);
	if (o->error)
		put_error(w, o->error);
	json_close(w);
}

/* What a mark says to a reader. */
static void mark_text(const struct cell_record *r, char *text, size_t size)
{
	switch (r->kind) {
	case RECORD_ROLLBACK:
		snprintf(text, size, "Rolled back to the state after cell %u.", r->back_to);
		break;
	case RECORD_RESET:
		snprintf(text, size, "The interpreter was reset.");
		break;
	default:
		snprintf(text, size, "Checkpoint %.*s", (int)r->code_len, r->code ? r->code : "");
	}
}

static void put_cell(struct json_writer *w, struct session *s, const struct cell_record *r)
{
	struct observation now;
	bool running = r->running && session_cell_so_far(s, &now);
	char text[LIMIT_NAME_BYTES + 64];
	bool is_code = r->kind == RECORD_CELL;

	json_open_object(w);
	snprintf(text, sizeof(text), "cell-%" PRIu64, r->number);
	json_field_cstr(w, "id", text);
	json_field_cstr(w, "cell_type", is_code ? "code" : "markdown");
	json_key(w, "metadata");
	json_open_object(w);
	json_close(w);
	if (is_code) {
		json_field_text(w, "source", r->code, r->code_len);
		json_field_uint(w, "execution_count", r->cell);
		put_outputs(w, running ? &now : &r->after);
	} else {
		mark_text(r, text, sizeof(text));
		json_field_cstr(w, "source", text);
	}

	json_close(w);
}

/* ---- sending ------------------------------------------------------------------------- */

/* An export is sent cell by cell, at the client's pace: a history may have 16 MB. */
enum { TURN_NS = 1000 * 1000 };

struct export
{
	bool program; /* else a notebook */
	bool begun;
	uint64_t after; /* number of the last record that was sent */
};

static int write_program_cell(struct buffer *b, const struct cell_record *r)
{
	char text[LIMIT_NAME_BYTES + 64];
	if (r->kind == RECORD_CELL) {
		int err = buffer_printf(b, "# %%%% [%u] %s\n", r->cell,
			r->running ? "running" : cell_status_name(r->after.status));
		if (err == 0)
			err = buffer_append(b, r->code, r->code_len);
		return err < 0 ? err : buffer_append_str(b, "\n\n");
	}
	mark_text(r, text, sizeof(text));
	for (char *c = text; *c; c++)
		*c = *c == '\n' || *c == '\r' ? ' ' : *c;
	return buffer_printf(b, "# ---- %s\n\n", text);
}

static int write_notebook_cell(
	struct buffer *b, const struct export *x, struct session *s, const struct cell_record *r)
{
	struct json_writer w;
	int err = buffer_append_str(b, x->after ? "," : "");
	json_writer_init(&w, b);
	put_cell(&w, s, r);
	return err < 0 ? err : json_writer_end(&w);
}

/* The next piece; *ret_last: nothing follows. */
static int write_piece(struct export *x, struct session *s, struct buffer *b, bool *ret_last)
{
	static const char end[] =
		"],\"metadata\":{\"kernelspec\":{\"display_name\":\"Python 3 (Glovebox)\","
		"\"language\":\"python\",\"name\":\"python3\"},"
		"\"language_info\":{\"name\":\"python\",\"version\":\"%s\"}},"
		"\"nbformat\":4,\"nbformat_minor\":5}";
	const struct cell_record *r = cell_history_next(session_cell_history(s), x->after);
	int err = !x->begun && !x->program ? buffer_append_str(b, "{\"cells\":[") : 0;
	x->begun = true;
	*ret_last = !r;
	if (err < 0)
		return err;
	if (!r)
		return x->program ? 0 : buffer_printf(b, end, interpreter_version());

	err = x->program ? write_program_cell(b, r) : write_notebook_cell(b, x, s, r);
	x->after = r->number;
	return err;
}

static void export_gone(struct call *c)
{
	free(c->work);
	c->work = NULL;
	c->ops = NULL;
}

static void send_more(struct call *c)
{
	uint64_t began = clock_now_ns();
	do {
		_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
		struct session *s;
		bool last;
		/* without its end the file must not look complete */
		if (call_session(c, NULL, &s) < 0 || write_piece(c->work, s, &b, &last) < 0) {
			export_gone(c);
			call_cut_stream(c);
			return;
		}
		int r = b.len ? http_stream_write(c->x, b.data, b.len) : 0;
		if (r < 0)
			return; /* on_gone follows */
		if (last) {
			export_gone(c);
			call_finish_stream(c);
			return;
		}
		if (r > 0)
			return; /* on_drained follows */
	} while (clock_now_ns() - began < TURN_NS);
	call_later(c, send_more);
}

static void export_drained(struct call *c)
{
	if (!c->later)
		send_more(c);
}

static const struct call_ops export_ops = { .on_drained = export_drained, .on_gone = export_gone };

void handle_export(struct call *c)
{
	struct export_query q = { 0 };
	struct error e = { 0 };
	struct session *s;
	char disposition[96];
	int r = fields_decode_query(&export_query_fields, http_query(c->x), &q, &e);
	bool program = text_eq(q.format, "py");

	fields_finish(&export_query_fields, &q);
	if (r < 0 || call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}

	struct export *x = calloc(1, sizeof(*x));
	if (!x) {
		call_no_memory(c);
		return;
	}

	x->program = program;
	c->work = x;
	c->ops = &export_ops;
	snprintf(disposition, sizeof(disposition), "attachment; filename=\"session.%s\"",
		program ? "py" : "ipynb");
	http_add_header(c->x, "Content-Disposition", disposition);
	http_stream_begin(c->x, 200,
		program ? "text/x-python; charset=utf-8" : "application/x-ipynb+json", -1);
	send_more(c);
}
