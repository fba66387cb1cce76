#include "api/event_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "json/json_write.h"

/* An error in an event is a line of text; the cell's record has all of it. */
enum { ERROR_BYTES = 400 };

static size_t error_text(const struct observation *o, char text[ERROR_BYTES])
{
	const struct cell_error *e = o ? o->error : NULL;
	if (!e)
		return 0;
	int n = snprintf(text, ERROR_BYTES, "%s: %.*s", e->type ? e->type : "Error",
		(int)(e->message_len < ERROR_BYTES ? e->message_len : ERROR_BYTES), e->message);
	size_t len = n < 0 ? 0 : (size_t)n < ERROR_BYTES ? (size_t)n : ERROR_BYTES - 1;
	return len - utf8_unfinished(text, len);
}

struct hub_event *hub_event_create(const struct session_event *from)
{
	char error[ERROR_BYTES];
	size_t error_len = error_text(from->outcome, error);
	size_t name_len = from->name ? strlen(from->name) : 0;
	size_t text_len = from->text ? from->len : 0;

	if (text_len > LIMIT_HUB_TEXT_BYTES) {
		text_len = LIMIT_HUB_TEXT_BYTES;
		text_len -= utf8_unfinished(from->text, text_len);
	}

	size_t bytes = sizeof(struct hub_event) + name_len + text_len + error_len;
	struct hub_event *ev = malloc(bytes);
	if (!ev)
		return NULL;

	*ev = (struct hub_event){ .owner = from->owner,
		.wall_ns = clock_wall_ns(),
		.bytes = bytes,
		.kind = from->kind,
		.cell = from->cell,
		.record = from->record,
		.figure = from->number,
		.stream = from->stream,
		.dialect = from->dialect,
		.status = from->outcome ? from->outcome->status : CELL_OK,
		.wall_ms = from->outcome ? from->outcome->wall_ms : 0,
		.name_len = name_len,
		.text_len = text_len,
		.error_len = error_len,
		.text_cut = (from->text ? from->len : 0) - text_len,
		.has_name = from->name,
		.has_text = from->text,
		.has_error = error_len };
	snprintf(ev->session, sizeof(ev->session), "%s", from->session);
	snprintf(ev->id, sizeof(ev->id), "%s", from->id ? from->id : "");
	if (name_len)
		memcpy(ev->data, from->name, name_len);
	if (text_len)
		memcpy(ev->data + name_len, from->text, text_len);
	memcpy(ev->data + name_len + text_len, error, error_len);
	return ev;
}

/* What the text of an event is called in its JSON. */
static const char *const text_keys[SESSION_EVENT_KINDS] = {
	[SESSION_EVENT_STARTED] = "code",
	[SESSION_EVENT_OUTPUT] = "text",
	[SESSION_EVENT_LIMIT] = "code",
	[SESSION_EVENT_CHECKPOINT] = "checkpoint_name",
	[SESSION_EVENT_ROLLBACK] = "checkpoint_name",
	[SESSION_EVENT_DIED] = "why",
	[SESSION_EVENT_ENDED] = "why",
};

/* … and its id. */
static const char *const id_keys[SESSION_EVENT_KINDS] = {
	[SESSION_EVENT_CREATED] = "from",
	[SESSION_EVENT_CHECKPOINT] = "checkpoint",
	[SESSION_EVENT_ROLLBACK] = "checkpoint",
	[SESSION_EVENT_FORK] = "fork",
};

static void put_outcome(struct json_writer *w, const struct hub_event *ev)
{
	json_field_cstr(w, "status", cell_status_name(ev->status));
	json_field_double(w, "wall_ms", ev->wall_ms);
	if (ev->has_error)
		json_field_text(w, "error", ev->data + ev->name_len + ev->text_len, ev->error_len);
	else
		json_field_null(w, "error");
}

int hub_event_write(const struct hub_event *ev, const char *id, struct buffer *out)
{
	struct json_writer w;
	char when[CLOCK_TEXT_MAX];

	json_writer_init(&w, out);
	json_open_object(&w);
	json_field_cstr(&w, "type", session_event_names[ev->kind]);
	json_field_cstr(&w, "event_id", id);
	json_field_cstr(&w, "time", clock_format(ev->wall_ns, when));
	json_field_cstr(&w, "session", ev->session);
	if (ev->has_name)
		json_field_text(&w, "name", ev->data, ev->name_len);
	else
		json_field_null(&w, "name");
	json_field_uint(&w, "cell", ev->cell);
	if (ev->record)
		json_field_uint(&w, "number", ev->record);
	if (ev->has_text && text_keys[ev->kind])
		json_field_text(&w, text_keys[ev->kind], ev->data + ev->name_len, ev->text_len);
	if (ev->text_cut)
		json_field_uint(&w, "left_out", ev->text_cut);
	if (ev->id[0] && id_keys[ev->kind])
		json_field_cstr(&w, id_keys[ev->kind], ev->id);
	if (ev->kind == SESSION_EVENT_OUTPUT)
		json_field_cstr(&w, "stream", ev->stream == STREAM_STDOUT ? "stdout" : "stderr");
	if (ev->kind == SESSION_EVENT_DISPLAY)
		json_field_uint(&w, "display", ev->figure);
	if (ev->kind == SESSION_EVENT_ROLLBACK)
		json_field_uint(&w, "back_to", ev->figure);
	if (ev->dialect)
		json_field_cstr(&w, "dialect", ev->dialect);
	if (ev->kind == SESSION_EVENT_DONE)
		put_outcome(&w, ev);
	json_close(&w);
	return json_writer_end(&w);
}
