/* The cells that a session ran: page by page, one of them, its values. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/handlers/cells_handler.h"
#include "api/schema/requests_console.h"
#include "base/clock.h"
#include "base/text.h"
#include "json/json_write.h"

enum { PAGE_DEFAULT = 100, INLINE_BYTES = 8 * 1024 };

/* ---- one record ------------------------------------------------------------------ */

static bool is_base64(const char *mime)
{
	return !strncmp(mime, "image/", 6) ? !text_eq(mime, "image/svg+xml")
					   : text_eq(mime, "application/pdf");
}

/* A value by reference: its forms and their addresses. Short texts are included directly. */
static void put_reference(struct json_writer *w, const struct bundle *b, const char *href)
{
	struct bundle small = { 0 };
	json_open_object(w);
	json_key(w, "types");
	json_open_object(w);
	for (unsigned i = 0; i < b->n; i++) {
		const struct bundle_item *item = &b->item[i];
		json_key_text(w, item->mime, strlen(item->mime));
		json_put_uint(w, item->len);
		if (item->len <= INLINE_BYTES && !is_base64(item->mime))
			small.item[small.n++] = *item;
	}

	json_close(w);
	json_key(w, "data");
	answer_put_bundle(w, &small);
	json_field_cstr(w, "href", href);
	json_close(w);
}

static void put_values(
	struct json_writer *w, const char *session, uint64_t number, const struct observation *o)
{
	char href[160];
	json_key(w, "result");
	snprintf(href, sizeof(href), "/v1/sessions/%s/cells/%" PRIu64 "/result", session, number);
	if (o->result)
		put_reference(w, o->result, href);
	else
		json_put_null(w);
	json_key(w, "displays");
	json_open_array(w);
	for (unsigned i = 0; i < o->n_displays; i++) {
		snprintf(href, sizeof(href), "/v1/sessions/%s/cells/%" PRIu64 "/displays/%u",
			session, number, i);
		put_reference(w, &o->displays[i], href);
	}

	json_close(w);
	snprintf(href, sizeof(href), "/v1/sessions/%s/cells/%" PRIu64 "/screenshot", session,
		number);
	json_field_cstr(w, "screenshot", o->screenshot ? href : NULL);
}

static void put_outcome(struct json_writer *w, const struct observation *o)
{
	json_key(w, "stdout");
	answer_put_captured(w, &o->out);
	json_key(w, "stderr");
	answer_put_captured(w, &o->err);
	answer_put_error(w, o->error);
	answer_put_files(w, o);
	json_field_bool(w, "state_lost", o->state_lost);
	json_field_bool(w, "rolled_back", o->rolled_back);
	json_field_bool(w, "files_rolled_back", o->files_rolled_back);
	answer_put_truncated(w, o);
	answer_put_usage(w, o);
}

static void put_mark(struct json_writer *w, const struct cell_record *r)
{
	json_field_text(w, "name", r->code ? r->code : "", r->code_len);
	if (r->kind == RECORD_ROLLBACK)
		json_field_uint(w, "back_to", r->back_to);
}

void answer_put_cell_record(struct json_writer *w, struct session *s, const struct cell_record *r)
{
	struct session_info info;
	struct observation now;
	const struct observation *o = &r->after;
	char when[CLOCK_TEXT_MAX];

	session_info(s, &info);
	if (r->running && session_cell_so_far(s, &now))
		o = &now;
	json_open_object(w);
	json_field_uint(w, "number", r->number);
	json_field_cstr(w, "kind", cell_record_kind_names[r->kind]);
	json_field_uint(w, "cell", r->cell);
	json_field_cstr(w, "time", clock_format(r->wall_ns, when));
	if (r->kind != RECORD_CELL) {
		put_mark(w, r);
		json_close(w);
		return;
	}

	json_field_cstr(w, "id", o->id);
	json_field_cstr(w, "dialect", r->dialect);
	json_field_text(w, "code", r->code, r->code_len);
	json_field_uint(w, "code_left_out", r->code_cut);
	json_field_bool(w, "done", !r->running);
	json_field_cstr(w, "status", cell_status_name(o->status));
	json_field_int(w, "exit_code", o->exit_code);
	put_values(w, info.id, r->number, o);
	put_outcome(w, o);
	json_close(w);
}

/* ---- a page ------------------------------------------------------------------------ */

/* With `last`: the number behind which the last so many records are. */
static uint64_t start_of(const struct cell_history *h, const struct cells_query *q)
{
	const struct cell_record *r = TAILQ_LAST(&h->records, cell_record_list);
	if (!q->last)
		return q->after;
	for (uint64_t i = 1; r && i < q->last; i++)
		r = TAILQ_PREV(r, cell_record_list, link);
	return r ? r->number - 1 : 0;
}

static void put_page(struct json_writer *w, struct session *s, const struct cells_query *q,
	struct buffer *b, uint64_t *ret_next)
{
	const struct cell_history *h = session_cell_history(s);
	uint64_t at = start_of(h, q), limit = q->last ? q->last : q->limit;
	const struct cell_record *r = cell_history_next(h, at);
	for (uint64_t n = 0; r && n < limit && b->len < LIMIT_LOG_PAGE_BYTES; n++) {
		answer_put_cell_record(w, s, r);
		at = r->number;
		r = TAILQ_NEXT(r, link);
	}
	*ret_next = r ? at : 0;
}

void handle_cells(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct cells_query q = { .limit = PAGE_DEFAULT };
	struct error e = { 0 };
	struct json_writer w;
	struct session *s;
	uint64_t next;
	int r = fields_decode_query(&cells_query_fields, http_query(c->x), &q, &e);

	fields_finish(&cells_query_fields, &q);
	if (r < 0 || call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}

	const struct cell_history *h = session_cell_history(s);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "cells");
	json_open_array(&w);
	put_page(&w, s, &q, &b, &next);
	json_close(&w);
	if (next)
		json_field_uint(&w, "next", next);
	else
		json_field_null(&w, "next");
	json_field_uint(&w, "total", h->last);
	json_field_uint(&w, "dropped", h->dropped);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/* ---- one cell ---------------------------------------------------------------------- */

static void not_found(struct call *c, const char *what)
{
	char text[LIMIT_PATH_BYTES + 64];
	snprintf(text, sizeof(text), "there is no %s here: %s", what, c->path);
	call_problem(c, 404, "cell_not_found", text,
		"GET …/cells lists the cells that are kept; the oldest ones are dropped first.");
}

static void respond_bundle(struct call *c, const struct bundle *bundle)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	answer_put_bundle(&w, bundle);
	call_respond(c, 200, &w, &b);
}

/* "/displays/2", "/result" or "/screenshot" of a cell. */
static void respond_part(struct call *c, const struct observation *o, const char *part)
{
	char *end;
	unsigned long k = 0;
	bool display = !strncmp(part, "/displays/", 10);

	if (display) {
		k = strtoul(part + 10, &end, 10);
		display = end != part + 10 && !*end && k < o->n_displays;
	}

	if (display)
		respond_bundle(c, &o->displays[k]);
	else if (text_eq(part, "/result") && o->result)
		respond_bundle(c, o->result);
	else if (text_eq(part, "/screenshot") && o->screenshot && o->screenshot->data)
		call_respond_static(c, 200, "application/octet-stream", o->screenshot->data,
			o->screenshot->len);
	else
		not_found(c, "such part of a cell");
}

void handle_cell(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct error e = { 0 };
	struct observation now;
	struct json_writer w;
	struct session *s;
	char *end;

	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}

	unsigned long long number = strtoull(c->path, &end, 10);
	const struct cell_record *r = cell_history_find(session_cell_history(s), number);
	if (!r || end == c->path || (*end && (*end != '/' || r->kind != RECORD_CELL))) {
		not_found(c, "cell");
	} else if (*end) {
		bool running = r->running && session_cell_so_far(s, &now);
		respond_part(c, running ? &now : &r->after, end);
	} else {
		json_writer_init(&w, &b);
		answer_put_cell_record(&w, s, r);
		call_respond(c, 200, &w, &b);
	}
}
