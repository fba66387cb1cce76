/* A session's output log, page by page. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/schema/requests.h"
#include "base/clock.h"
#include "base/text.h"
#include "json/json_write.h"

static const char *const stream_names[] = { "stdout", "stderr" };

/* How one page comes out: entries as JSON, or just their text. */
struct page {
	struct json_writer *json; /* NULL: plain text */
	struct buffer *text;
	struct buffer held[2]; /* the start of a character that the stream's next entry completes */
	uint64_t next;
	bool end;
};

static void put_entry(
	struct json_writer *w, const struct log_entry *entry, const char *text, size_t len)
{
	char when[CLOCK_TEXT_MAX];
	json_open_object(w);
	json_field_uint(w, "position", entry->position);
	json_field_uint(w, "cell", entry->cell);
	json_field_cstr(w, "stream", stream_names[entry->stream]);
	json_field_cstr(w, "time", clock_format(entry->wall_ns, when));
	json_field_text(w, "text", text, len);
	json_close(w);
}

static void page_add(struct page *p, const struct log_entry *entry)
{
	struct buffer *held = &p->held[entry->stream];
	if (!p->json) {
		buffer_append(p->text, entry->data, entry->len);
		return;
	}
	if (buffer_append(held, entry->data, entry->len) < 0)
		return;
	size_t whole = json_utf8_whole(held->data, held->len);
	put_entry(p->json, entry, held->data, whole);
	buffer_consume(held, whole);
}

static bool wanted(const struct log_entry *entry, const struct log_query *q)
{
	return (!q->has_cell || entry->cell == q->cell) &&
	       (!q->stream || text_eq(q->stream, stream_names[entry->stream]));
}

/* Reads from q->after until the page is full, enough was looked at, or the log is at its end. */
static int fill(struct page *p, struct session *s, const struct log_query *q)
{
	uint64_t entries = 0, bytes = 0;
	p->next = q->after;
	for (unsigned looked = 0;
		looked < LIMIT_LOG_SCAN && entries < q->limit && bytes < LIMIT_LOG_PAGE_BYTES;
		looked++) {
		struct log_entry entry;
		int r = session_log_read(s, p->next, &entry);
		if (r <= 0) {
			p->end = true;
			return r;
		}
		p->next = entry.next;
		if (!wanted(&entry, q))
			continue;
		page_add(p, &entry);
		entries++;
		bytes += entry.len;
	}

	return 0;
}

static int read_page(struct call *c, struct page *p, struct error *e, struct session **ret)
{
	struct log_query q = { .limit = LIMIT_PAGE };
	int r = fields_decode_query(&log_query_fields, http_query(c->x), &q, e);
	if (!r)
		r = call_session(c, e, ret);
	if (!r && fill(p, *ret, &q) < 0) {
		r = error_set(
			e, -EINVAL, "?after: no entry of the log starts at %" PRIu64, q.after);
		error_remedy(
			e, "Start with after=0 and continue with `next` of the previous page.");
		error_slug(e, "invalid_parameter");
	}
	fields_finish(&log_query_fields, &q);
	return r;
}

static void page_finish(struct page *p)
{
	buffer_finish(&p->held[0]);
	buffer_finish(&p->held[1]);
}

static void respond_text(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct page p = { .text = &b };
	struct error e = { 0 };
	struct session *s;
	char next[24];
	if (read_page(c, &p, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}
	snprintf(next, sizeof(next), "%" PRIu64, p.next);
	http_add_header(c->x, "X-Next-After", next);
	http_add_header(c->x, "X-Log-End", p.end ? "true" : "false");
	call_respond_as(c, 200, "text/plain; charset=utf-8", &b);
}

static void respond_json(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct page p = { .json = &w };
	struct error e = { 0 };
	struct session *s;

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "entries");
	json_open_array(&w);
	int r = read_page(c, &p, &e, &s);
	page_finish(&p);
	if (r < 0) {
		call_error(c, &e);
		return;
	}

	json_close(&w);
	json_field_uint(&w, "next", p.next);
	json_field_bool(&w, "end", p.end);
	json_field_uint(&w, "dropped_bytes", session_log_dropped(s));
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_logs(struct call *c)
{
	if (call_accepts(c, "text/plain"))
		respond_text(c);
	else
		respond_json(c);
}
