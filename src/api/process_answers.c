#include "api/process_answers.h"

#include <stdio.h>
#include <string.h>

#include "api/answers.h"
#include "base/clock.h"
#include "http/http.h"
#include "json/json_write.h"

static const char *const stream_names[] = { "stdout", "stderr" };

static void put_words(struct json_writer *w, const char *key, char *const *list)
{
	json_key(w, key);
	json_open_array(w);
	for (; list && *list; list++)
		json_put_cstr(w, *list);
	json_close(w);
}

static void put_end(struct json_writer *w, const struct process_info *i)
{
	bool ended = i->state == PROCESS_EXITED;
	json_key(w, "exit_code");
	if (ended)
		json_put_int(w, i->exit_code);
	else
		json_put_null(w);
	json_key(w, "signal");
	if (ended && i->signal)
		json_put_int(w, i->signal);
	else
		json_put_null(w);
	json_field_bool(w, "timed_out", i->timed_out);
	json_field_cstr(w, "error", i->state == PROCESS_FAILED ? i->why : NULL);
	json_field_double(w, "wall_ms", i->wall_s * 1e3);
	json_field_uint(w, "output_bytes", i->output_bytes);
}

static void put_output(struct json_writer *w, struct session_process *p)
{
	for (int i = 0; i < 2; i++) {
		struct captured c;
		session_process_output(p, (enum stream)i, &c);
		json_key(w, stream_names[i]);
		answer_put_captured(w, &c);
	}
}

void answer_put_process(struct json_writer *w, struct session_process *p, bool output)
{
	struct process_info i;
	char when[CLOCK_TEXT_MAX];

	session_process_info(p, &i);
	json_open_object(w);
	json_field_uint(w, "id", i.id);
	json_field_cstr(w, "state", process_state_name(i.state));
	json_field_cstr(w, "cmd", i.command);
	put_words(w, "argv", i.argv);
	json_field_cstr(w, "cwd", i.cwd);
	json_field_cstr(w, "tag", i.tag);
	json_field_bool(w, "pty", i.has_terminal);
	json_field_cstr(w, "started", clock_format(i.started_wall_ns, when));
	put_end(w, &i);
	if (output)
		put_output(w, p);
	json_close(w);
}

/* ---- events -------------------------------------------------------------------------------- */

void process_events_finish(struct process_events *f)
{
	process_reader_detach(&f->reader);
	buffer_finish(&f->held[0]);
	buffer_finish(&f->held[1]);
}

static void send_event(
	struct process_events *f, const char *type, const struct json_writer *w, struct buffer *b)
{
	char id[24];
	snprintf(id, sizeof(id), "%llu", (unsigned long long)f->reader.position);
	if (json_writer_end(w) == 0)
		f->full = http_sse_event(f->x, type, id, b->data, b->len) != 0;
}

static void send_process(struct process_events *f, const char *type)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	answer_put_process(&w, f->reader.process, false);
	send_event(f, type, &w, &b);
}

static void send_missed(struct process_events *f, uint64_t bytes)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_uint(&w, "bytes", bytes);
	json_close(&w);
	send_event(f, "missed", &w, &b);
}

static void send_piece(struct process_events *f, enum stream stream, const char *data, size_t len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (!len)
		return;
	json_writer_init(&w, &b);
	json_open_object(&w);
	if (f->base64)
		json_field_base64(&w, "base64", data, len);
	else
		json_field_text(&w, "text", data, len);
	json_close(&w);
	send_event(f, stream_names[stream], &w, &b);
}

/* Text goes out in whole characters. */
static void send_output(struct process_events *f, const struct kept_view *v)
{
	struct buffer *held = &f->held[v->stream];
	if (v->missed)
		send_missed(f, v->missed);
	if (f->base64) {
		send_piece(f, v->stream, v->data, v->len);
		return;
	}
	if (buffer_append(held, v->data, v->len) < 0)
		return;
	size_t whole = json_utf8_whole(held->data, held->len);
	send_piece(f, v->stream, held->data, whole);
	buffer_consume(held, whole);
}

static bool send_end(struct process_events *f, enum process_state state)
{
	for (int i = 0; i < 2; i++)
		send_piece(f, (enum stream)i, f->held[i].data, f->held[i].len);
	send_process(f, state == PROCESS_FAILED ? "failed" : "exit");
	f->over = true;
	return true;
}

bool process_events_pump(struct process_events *f)
{
	struct process_info i;
	struct kept_view v;

	if (f->over || !f->reader.process)
		return f->over;
	session_process_info(f->reader.process, &i);
	if (!f->told_start && i.state != PROCESS_STARTING && i.state != PROCESS_FAILED) {
		f->told_start = true;
		send_process(f, "started");
	}

	while (!f->full && process_reader_next(&f->reader, &v))
		send_output(f, &v);
	if (f->full || i.state == PROCESS_STARTING || i.state == PROCESS_RUNNING)
		return false;
	return send_end(f, i.state);
}
