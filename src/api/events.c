#include "api/events.h"

#include <errno.h>
#include <string.h>

#include "api/answers.h"
#include "http/sse.h"
#include "json/json_write.h"

void events_init(struct events *ev, struct outbox *out, const char *id)
{
	*ev = (struct events){ .out = out, .id = id };
	buffer_init(&ev->held[STREAM_STDOUT], 0);
	buffer_init(&ev->held[STREAM_STDERR], 0);
}

void events_finish(struct events *ev)
{
	buffer_finish(&ev->held[STREAM_STDOUT]);
	buffer_finish(&ev->held[STREAM_STDERR]);
}

/* Opens the message's object. */
static void begin(
	const struct events *ev, struct json_writer *w, struct buffer *b, const char *type)
{
	json_writer_init(w, b);
	json_open_object(w);
	if (ev->id)
		json_field_raw(w, "id", ev->id, strlen(ev->id));
	json_field_cstr(w, "type", type);
	json_field_uint(w, "cell", ev->cell);
}

/*
 * Sends a whole JSON text in the target's clothes. An event that cannot be made is left out: `done`
 * has it all.
 */
static int send_json(
	struct events *ev, const struct json_writer *w, struct buffer *json, const char *type)
{
	_cleanup_buffer_ struct buffer framed = BUFFER_INIT(0);
	int r = json_writer_end(w);
	if (r < 0)
		return r;
	if (ev->id)
		return outbox_send(ev->out, json);
	r = sse_write(&framed, type, NULL, json->data, json->len);
	return r < 0 ? r : outbox_send(ev->out, &framed);
}

static void send_event(
	struct events *ev, struct json_writer *w, struct buffer *json, const char *type)
{
	json_close(w);
	send_json(ev, w, json, type);
}

void events_died(struct events *ev, const char *session, const struct session_death *d)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	begin(ev, &w, &b, "session");
	json_field_cstr(&w, "session", session);
	json_field_cstr(&w, "event", "interpreter_died");
	answer_put_death_fields(&w, d);
	send_event(ev, &w, &b, "session");
}

void events_started(struct events *ev, const char *session, unsigned cell)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	ev->cell = cell;
	begin(ev, &w, &b, "started");
	json_field_cstr(&w, "session", session);
	send_event(ev, &w, &b, "started");
}

static void send_text(struct events *ev, enum stream stream, const char *text, size_t len)
{
	static const char *const names[] = { "stdout", "stderr" };
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (!len)
		return;
	begin(ev, &w, &b, names[stream]);
	json_field_text(&w, "text", text, len);
	send_event(ev, &w, &b, names[stream]);
}

void events_output(struct events *ev, enum stream stream, const char *data, size_t len)
{
	struct buffer *held = &ev->held[stream];
	if (!held->len) {
		/* The usual case: whole characters, nothing to join. */
		size_t whole = json_utf8_whole(data, len);
		send_text(ev, stream, data, whole);
		buffer_append(held, data + whole, len - whole);
		return;
	}
	if (buffer_append(held, data, len) < 0)
		return;
	size_t whole = json_utf8_whole(held->data, held->len);
	send_text(ev, stream, held->data, whole);
	buffer_consume(held, whole);
}

void events_display(struct events *ev, const struct bundle *bundle)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	begin(ev, &w, &b, "display");
	json_key(&w, "data");
	answer_put_bundle(&w, bundle);
	send_event(ev, &w, &b, "display");
}

void events_flush(struct events *ev)
{
	for (int i = 0; i < 2; i++) {
		send_text(ev, (enum stream)i, ev->held[i].data, ev->held[i].len);
		ev->held[i].len = 0;
	}
}

static void write_done(const struct events *ev, struct json_writer *w, struct buffer *b,
	const struct observation *o)
{
	begin(ev, w, b, "done");
	json_key(w, "observation");
	answer_put_observation(w, o);
	json_close(w);
}

int events_done(struct events *ev, const struct observation *o)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	events_flush(ev);
	ev->cell = o->cell;
	write_done(ev, &w, &b, o);
	if (json_writer_end(&w) == -ENOBUFS) { /* how it ended is told in any case */
		struct observation lean;
		answer_without_output(o, &lean);
		b.len = 0;
		write_done(ev, &w, &b, &lean);
	}
	int r = json_writer_end(&w);
	return r < 0 ? r : outbox_send(ev->out, &b);
}
