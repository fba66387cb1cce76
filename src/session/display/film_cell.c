/*
 * The film of a run: part of its answer, since its session is gone with it. The cell ends when the
 * film is made.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "session/display/film.h"
#include "session/internal.h"

enum { LOOK_MS = 10 };

struct film_cell {
	struct session *session;
	unsigned recording;
	enum film_format format;
	enum cell_status status; /* of the cell, whose code is over */
	int exit_code;
	bool waiting;
	struct buffer data; /* counted */
	struct error error;
	struct film_report shown;
	uv_timer_t timer;
};

int film_cell_create(struct session *s, struct cell *c, enum film_format format, struct error *e)
{
	int r = film_check(format, e);
	struct film_cell *f = r < 0 ? NULL : calloc(1, sizeof(*f));

	if (!f)
		return r < 0 ? r : error_set(e, -ENOMEM, "out of memory");

	f->session = s;
	f->format = format;
	buffer_count(&f->data);
	uv_timer_init(s->table->config.loop, &f->timer);
	f->timer.data = f;
	c->recording.film = f;
	return 0;
}

static int read_file(struct film_cell *f, int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	if (size > LIMIT_RUN_FILM_BYTES) {
		error_set(&f->error, -EFBIG,
			"the recording has %lld bytes, more than an answer may have (%d)",
			(long long)size, LIMIT_RUN_FILM_BYTES);
		error_remedy(&f->error,
			"Record fewer seconds, or record in a session and fetch the recording from it.");
		return error_slug(&f->error, "film_too_large");
	}

	if (size > 0 && buffer_reserve(&f->data, (size_t)size) < 0) {
		error_set(&f->error, -ENOMEM,
			"the server has no memory left to keep the recording of %lld bytes",
			(long long)size);
		error_remedy(&f->error,
			"Try again later, or record in a session and fetch the recording from it.");
		return error_slug(&f->error, "server_memory");
	}

	if (size <= 0 || pread(fd, f->data.data, (size_t)size, 0) != (ssize_t)size)
		return error_set(&f->error, -EIO, "the recording could not be read");

	f->data.len = (size_t)size;
	return 0;
}

/* True when the wait is over. */
static bool look(struct film_cell *f)
{
	int fd, r = recording_film(f->session, f->recording, f->format, &f->error, &fd);
	if (r == -EINPROGRESS)
		return false;
	if (r == 0)
		read_file(f, fd);
	return true;
}

static void on_tick(uv_timer_t *t)
{
	struct film_cell *f = t->data;
	if (!look(f))
		return;
	uv_timer_stop(t);
	session_end_cell(f->session, f->status, f->exit_code); /* f is on its way out after it */
}

bool film_cell_finish(
	struct film_cell *f, unsigned recording, enum cell_status status, int exit_code)
{
	if (f->waiting || !recording)
		return false;

	f->waiting = true;
	f->recording = recording;
	f->status = status;
	f->exit_code = exit_code;
	recording_stop(f->session, recording, "cell", NULL);
	uv_timer_start(&f->timer, on_tick, 0, LOOK_MS);
	return true;
}

enum cell_status film_cell_status(
	const struct film_cell *f, enum cell_status otherwise, int *exit_code)
{
	if (!f->waiting)
		return otherwise;
	*exit_code = f->exit_code;
	return f->status;
}

void film_cell_report(struct film_cell *f, struct observation *o)
{
	struct recording_info info;
	bool known = f->recording &&
		     recording_get(f->session, f->recording, NULL, &info, NULL) == 0;

	if (!f->data.len && !f->error.err)
		error_set(
			&f->error, -ECANCELED, "the cell ended before its recording was converted");
	f->shown = (struct film_report){ .format = f->format,
		.data = f->data.len ? f->data.data : NULL,
		.len = f->data.len,
		.frames = known ? info.frames : 0,
		.duration_ms = known ? info.duration_ms : 0,
		.error = &f->error };
	o->film = &f->shown;
}

void film_cell_take(struct film_cell *f, struct buffer *ret)
{
	*ret = f->data;
	f->data = (struct buffer)BUFFER_COUNTED(0);
}

static void on_closed(uv_handle_t *h)
{
	struct film_cell *f = h->data;
	buffer_finish(&f->data);
	free(f);
}

void film_cell_destroy(struct film_cell *f)
{
	if (f)
		uv_close((uv_handle_t *)&f->timer, on_closed);
}
