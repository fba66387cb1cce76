/* Recordings over HTTP. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/schema/requests_display.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "session/display/film.h"
#include "json/json_write.h"

static const char *const state_names[] = { "recording", "finishing", "done" };

/* ---- as JSON ---------------------------------------------------------------------------- */

static void put_cells(struct json_writer *w, const struct recording_info *r)
{
	json_key(w, "cells");
	json_open_array(w);
	for (unsigned i = 0; i < r->n_cells; i++) {
		json_open_object(w);
		json_field_uint(w, "cell", r->cells[i].cell);
		json_field_uint(w, "from_ms", r->cells[i].from_ms);
		json_field_uint(w, "to_ms", r->cells[i].to_ms);
		json_field_uint(w, "first_frame", r->cells[i].first_frame);
		json_field_uint(w, "frames", r->cells[i].frames);
		json_close(w);
	}
	json_close(w);
}

static void put_recording(struct json_writer *w, const struct recording_info *r)
{
	char started[CLOCK_TEXT_MAX];
	json_open_object(w);
	json_field_uint(w, "id", r->id);
	json_field_cstr(w, "state", state_names[r->state]);
	json_field_cstr(w, "ended", r->ended);
	json_field_cstr(w, "format", film_names[r->format]);
	json_field_uint(w, "width", r->width);
	json_field_uint(w, "height", r->height);
	json_field_uint(w, "frames", r->frames);
	json_field_uint(w, "bytes", r->bytes);
	json_field_uint(w, "duration_ms", r->duration_ms);
	json_field_cstr(w, "started", clock_format(r->started_wall_ns, started));
	put_cells(w, r);
	json_close(w);
}

/* ---- starting and stopping --------------------------------------------------------------- */

static void respond_with(struct call *c, struct session *s, unsigned id)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct recording_info info;
	struct json_writer w;
	if (recording_get(s, id, &e, &info, NULL) < 0) {
		call_error(c, &e);
		return;
	}
	json_writer_init(&w, &b);
	put_recording(&w, &info);
	call_respond(c, 200, &w, &b);
}

/* The newest that is not done, when none is named. */
static unsigned running(struct session *s)
{
	struct recording_info info;
	unsigned id = 0;
	for (unsigned at = 0; recording_next(s, at, &info); at = info.id)
		id = info.state == RECORDING_RUNNING ? info.id : id;
	return id;
}

static int stop(struct session *s, uint64_t id, struct error *e, unsigned *ret_id)
{
	*ret_id = id ? (unsigned)id : running(s);
	if (*ret_id)
		return recording_stop(s, *ret_id, "stopped", e);
	error_set(e, -ENOENT, "no recording of the session is running");
	error_remedy(e,
		"Start a recording with {\"action\": \"start\"}; GET …/recording lists the recordings.");
	error_slug(e, "recording_not_found");
	return -ENOENT;
}

/*
 * A recording that was just stopped still waits for its last frame; one whose format was named then
 * is made a film of it at once.
 */
static void respond_when_done(struct call *c)
{
	struct error e = { 0 };
	struct recording_info info;
	struct session *s;
	unsigned id = (unsigned)(uintptr_t)c->work;
	int fd, r = call_session(c, &e, &s);

	if (r == 0)
		r = recording_get(s, id, &e, &info, NULL);
	if (r == 0 && info.state != RECORDING_RUNNING &&
		(info.format == FILM_APNG || info.frames)) {
		r = info.state == RECORDING_FINISHING ? -EINPROGRESS : 0;
		if (r == 0 && info.format != FILM_APNG)
			r = recording_film(s, id, info.format, &e, &fd);
	}

	if (r == -EINPROGRESS)
		call_later(c, respond_when_done);
	else if (r < 0)
		call_error(c, &e);
	else
		respond_with(c, s, id);
}

void handle_recording(struct call *c)
{
	struct recording_request q = { 0 };
	struct error e = { 0 };
	struct session *s;
	size_t len;
	const char *body = http_body(c->x, &len);
	unsigned id = 0;
	int r = call_session(c, &e, &s);

	if (r == 0)
		r = fields_decode_text(&recording_fields, body, len, &q, &e);
	if (r == 0 && q.action == RECORDING_START) {
		r = recording_start(s, &q.params, &e, &id);
	} else if (r == 0) {
		r = film_check(q.params.format, &e); /* before it is stopped */
		if (r == 0)
			r = stop(s, q.id, &e, &id);
		if (r == 0 && q.params.format != FILM_APNG)
			r = recording_set_format(s, id, q.params.format, &e);
	}

	fields_finish(&recording_fields, &q);
	c->work = (void *)(uintptr_t)id;
	if (r < 0)
		call_error(c, &e);
	else
		respond_when_done(c);
}

/* ---- looking and fetching -------------------------------------------------------------------- */

void handle_recording_list(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct recording_info info;
	struct json_writer w;
	struct session *s;

	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "recordings");
	json_open_array(&w);
	for (unsigned at = 0; recording_next(s, at, &info); at = info.id)
		put_recording(&w, &info);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/* The number that the path ends with; 0, which none has, for what is no number. */
static unsigned id_of(const struct call *c)
{
	char *end;
	unsigned long id = strtoul(c->path, &end, 10);
	return *end || end == c->path || id > UINT32_MAX ? 0 : (unsigned)id;
}

/* Its own descriptor: the recording may be deleted while its film is sent. */
static void send_film(struct call *c, int film, const char *media_type)
{
	off_t size = lseek(film, 0, SEEK_END);
	int fd = size < 0 ? -1 : fcntl(film, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		call_problem(
			c, 503, "film_failed", "the recording cannot be read", "Try again later.");
	else
		call_send_file(c, fd, (uint64_t)size, media_type);
}

/* The format that is asked for, or the recording's own. */
static int format_of(
	struct call *c, struct session *s, unsigned id, struct error *e, enum film_format *ret)
{
	struct film_query q = { 0 };
	struct recording_info info;
	int r = fields_decode_query(&film_query_fields, http_query(c->x), &q, e);
	if (r == 0)
		r = recording_get(s, id, e, &info, NULL);
	for (unsigned i = 0; r == 0 && i < FILM_FORMATS; i++)
		if (q.format ? text_eq(q.format, film_names[i]) : info.format == i)
			*ret = (enum film_format)i;
	fields_finish(&film_query_fields, &q);
	return r;
}

void handle_recording_get(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	enum film_format format = FILM_APNG;
	unsigned id = id_of(c);
	int fd, r = call_session(c, &e, &s);

	if (r == 0)
		r = format_of(c, s, id, &e, &format);
	if (r == 0)
		r = recording_film(s, id, format, &e, &fd);
	if (r == -EINPROGRESS)
		call_later(c, handle_recording_get);
	else if (r < 0)
		call_error(c, &e);
	else
		send_film(c, fd, film_media_types[format]);
}

void handle_recording_delete(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	int r = call_session(c, &e, &s);
	if (r == 0)
		r = recording_delete(s, id_of(c), &e);
	if (r < 0)
		call_error(c, &e);
	else
		call_respond_as(c, 204, NULL, NULL);
}
