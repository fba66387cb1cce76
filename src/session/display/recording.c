#include "session/display/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory_account.h"
#include "display/image/apng.h"
#include "session/display/film.h"
#include "session/internal.h"

enum { FPS = 10, MAX_SECONDS = 600, LAST_FRAME_SECONDS = 5 };

struct recording {
	TAILQ_ENTRY(recording) link;
	struct session *session;
	unsigned id, asked; /* questions to the screen that were not answered */
	enum recording_state state;
	const char *ended;
	struct recording_params params;
	int fd;
	uint64_t bytes;
	struct apng apng;
	uint64_t last_ms; /* its last frame is shown so long */
	/* start: of the first frame, when there is one */
	uint64_t start_ns, started_wall_ns, end_ns;
	/* The newest frame, written when it is known how long it was shown. */
	struct {
		struct frame_info where;
		char *png;
		size_t len;
		uint64_t at_ns;
		struct hold bytes;
	} held;
	struct recording_cell cell[LIMIT_RECORDING_CELLS];
	unsigned n_cells;
	struct film *film[FILM_FORMATS]; /* those that were asked for */
};

/* ---- the file ------------------------------------------------------------------------------ */

static int open_file(const char *dir)
{
	int fd = dir ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		fd = memfd_create("glovebox-recording", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_out(struct recording *r, const struct buffer *b)
{
	int e = fd_write_full(r->fd, b->data, b->len);
	if (e == 0)
		r->bytes += b->len;
	return e;
}

static void drop_held(struct recording *r)
{
	free(r->held.png);
	hold_set(&r->held.bytes, 0);
	memset(&r->held, 0, sizeof(r->held));
}

/*
 * Writes the held frame, which was shown until now. A frame that is none is left out: its screen is
 * not sane.
 */
static int write_held(struct recording *r, uint64_t now)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	if (!r->held.png)
		return 0;

	int e = 0;
	if (!r->apng.frames)
		e = apng_begin(&r->apng, r->held.where.width, r->held.where.height, &b);
	r->last_ms = (now - r->held.at_ns) / NSEC_PER_MSEC;
	if (e == 0)
		e = apng_frame(&r->apng, &r->held.where, r->last_ms, r->held.png, r->held.len, &b);
	drop_held(r);
	return e == 0 ? write_out(r, &b) : e;
}

static void finish(struct recording *r, const char *why)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	uint8_t count[APNG_COUNT_BYTES];

	if (r->state == RECORDING_DONE)
		return;

	r->ended = r->ended ? r->ended : why;
	r->end_ns = r->end_ns ? r->end_ns : clock_now_ns();
	write_held(r, r->end_ns > r->held.at_ns ? r->end_ns : r->held.at_ns);
	r->state = RECORDING_DONE;
	if (!r->apng.frames || apng_end(&r->apng, &b) < 0 || write_out(r, &b) < 0)
		return;

	apng_count(&r->apng, count);
	if (pwrite(r->fd, count, sizeof(count), APNG_COUNT_AT) != (ssize_t)sizeof(count))
		r->ended = "no_space";
}

/* ---- frames ------------------------------------------------------------------------- */

static void note_cell(struct recording *r, uint64_t now)
{
	unsigned cell = r->session->queue.running ? r->session->queue.cells : 0;
	struct recording_cell *last = r->n_cells ? &r->cell[r->n_cells - 1] : NULL;
	uint64_t at = (now - r->start_ns) / NSEC_PER_MSEC;
	if (last && last->cell == cell) {
		last->to_ms = at;
		last->frames++;
	} else if (cell && r->n_cells < LIMIT_RECORDING_CELLS) {
		r->cell[r->n_cells++] = (struct recording_cell){ cell, at, at, r->apng.frames, 1 };
	}
}

static const char *take_frame(struct recording *r, const struct display_reply *reply)
{
	uint64_t now = clock_now_ns();
	if (!reply->len || !reply->frame.part_width)
		return NULL;

	if (!r->held.png && !r->apng.frames)
		r->start_ns = now;
	if (write_held(r, now) < 0)
		return "no_space";

	r->held.png = hold_set(&r->held.bytes, reply->len) < 0 ? NULL : malloc(reply->len);
	if (!r->held.png) {
		drop_held(r);
		return "no_space";
	}

	memcpy(r->held.png, reply->data, reply->len);
	r->held.len = reply->len;
	r->held.where = reply->frame;
	r->held.at_ns = now;
	note_cell(r, now);
	if (r->bytes + reply->len > LIMIT_RECORDING_BYTES)
		return "bytes";

	return r->apng.frames + 1 >= LIMIT_RECORDING_FRAMES ? "frames" : NULL;
}

static int ask(struct recording *r, bool last);

static void on_frame(void *userdata, const struct display_reply *reply)
{
	struct recording *r = userdata;
	const char *over = NULL;

	r->asked--;
	if (r->state == RECORDING_DONE)
		return;

	if (reply->type == DISPLAY_SAY_FRAME)
		over = take_frame(r, reply);
	else
		over = !strcmp(reply->code, "display_busy") ? "max_seconds" : "display_gone";
	if (r->state == RECORDING_FINISHING) {
		if (!r->asked)
			finish(r, r->ended);
		return;
	}

	if (over || ask(r, false) < 0)
		finish(r, over ? over : "display_gone");
}

static double seconds_left(const struct recording *r)
{
	double gone = (double)(clock_now_ns() - r->start_ns) / 1e9;
	return r->params.max_seconds - gone > 0.001 ? r->params.max_seconds - gone : 0.001;
}

static int ask(struct recording *r, bool last)
{
	struct display *d = r->session->display;
	struct frame_options o = { .watcher = r->id,
		.gap_ms = (uint32_t)(1000 / r->params.fps),
		.rgb = true,
		.now = last,
		.leave = last };
	int64_t e = display_ask(d, DISPLAY_ASK_FRAME, &o, sizeof(o), true,
		last ? LAST_FRAME_SECONDS : seconds_left(r), on_frame, r, NULL);

	if (e < 0)
		return (int)e;

	r->asked++;
	return 0;
}

/* ---- life --------------------------------------------------------------------------- */

static void destroy(struct recording *r)
{
	TAILQ_REMOVE(&r->session->recordings.list, r, link);
	if (r->session->display)
		display_forget_all(r->session->display, r);
	drop_held(r);
	for (int i = 0; i < FILM_FORMATS; i++)
		film_close(r->film[i]);
	fd_close(r->fd);
	free(r);
}

/* The oldest that is done makes room. */
static int make_room(struct session *s, struct error *e)
{
	struct recording *r, *done = NULL;
	unsigned n = 0;

	TAILQ_FOREACH (r, &s->recordings.list, link) {
		n++;
		if (!done && r->state == RECORDING_DONE)
			done = r;
	}

	if (n < LIMIT_RECORDINGS)
		return 0;

	if (!done) {
		error_set(e, -EBUSY, "%u recordings of this session are already running", n);
		error_remedy(e, "Stop one of them.");
		return error_slug(e, "too_many_recordings");
	}

	destroy(done);
	return 0;
}

int recording_start(
	struct session *s, const struct recording_params *p, struct error *e, unsigned *ret_id)
{
	int err = film_check(p->format, e);
	if (err < 0)
		return err;

	if (!s->display) {
		error_set(e, -ENOTSUP, "the session has no display, so there is nothing to record");
		error_remedy(e, "Make a session with {display}.");
		return error_slug(e, "no_display");
	}

	err = make_room(s, e);
	struct recording *r = err < 0 ? NULL : calloc(1, sizeof(*r));
	if (!r)
		return err < 0 ? err : error_set(e, -ENOMEM, "out of memory");

	r->session = s;
	r->fd = open_file(s->table->config.state_dir);
	r->params = *p;
	r->params.fps = p->fps ? p->fps : FPS;
	r->params.max_seconds = p->max_seconds > 0 ? p->max_seconds : MAX_SECONDS;
	r->start_ns = clock_now_ns();
	r->started_wall_ns = clock_wall_ns();
	r->id = ++s->recordings.last_id;
	TAILQ_INSERT_TAIL(&s->recordings.list, r, link);
	err = r->fd < 0 ? r->fd : ask(r, false);
	if (err < 0) {
		destroy(r);
		return error_set_errno(e, err, "starting a recording");
	}

	*ret_id = r->id;
	return 0;
}

static struct recording *find(struct session *s, unsigned id, struct error *e)
{
	struct recording *r;
	TAILQ_FOREACH (r, &s->recordings.list, link)
		if (r->id == id)
			return r;
	error_set(e, -ENOENT, "the session has no recording %u", id);
	error_remedy(e, "{list_recordings}.");
	error_slug(e, "recording_not_found");
	return NULL;
}

/*
 * The last frame is the screen of now, whatever the time between frames. The question before it is
 * answered with nothing.
 */
static void stop(struct recording *r, const char *why)
{
	if (r->state != RECORDING_RUNNING)
		return;

	r->ended = why;
	if (!display_is_up(r->session->display)) {
		display_forget_all(r->session->display, r);
		finish(r, why);
		return;
	}

	r->state = RECORDING_FINISHING;
	r->end_ns = clock_now_ns();
	if (ask(r, true) < 0)
		finish(r, why);
}

int recording_stop(struct session *s, unsigned id, const char *why, struct error *e)
{
	struct recording *r;
	if (id) {
		if (!(r = find(s, id, e)))
			return -ENOENT;
		stop(r, why);
		return 0;
	}

	TAILQ_FOREACH (r, &s->recordings.list, link)
		stop(r, why);
	return 0;
}

static void tell(const struct recording *r, struct recording_info *ret)
{
	uint64_t end = r->end_ns ? r->end_ns : clock_now_ns();
	*ret = (struct recording_info){ .id = r->id,
		.state = r->state,
		.ended = r->ended,
		.format = r->params.format,
		.width = r->apng.width,
		.height = r->apng.height,
		.frames = r->apng.frames + (r->held.png != NULL),
		.bytes = r->bytes,
		.duration_ms = end > r->start_ns ? (end - r->start_ns) / NSEC_PER_MSEC : 0,
		.started_wall_ns = r->started_wall_ns,
		.cells = r->cell,
		.n_cells = r->n_cells };
}

int recording_get(
	struct session *s, unsigned id, struct error *e, struct recording_info *ret, int *ret_fd)
{
	struct recording *r = find(s, id, e);
	if (!r)
		return -ENOENT;
	tell(r, ret);
	if (ret_fd)
		*ret_fd = r->fd;
	return 0;
}

static int check_complete(const struct recording *r, struct error *e)
{
	if (r->state == RECORDING_FINISHING)
		return -EINPROGRESS;

	if (r->state == RECORDING_RUNNING) {
		error_set(e, -EBUSY, "the recording is still running");
		error_remedy(e, "Stop it with {\"action\": \"stop\"} first.");
		return error_slug(e, "recording_running");
	}

	if (r->apng.frames)
		return 0;

	error_set(e, -ENODATA,
		"no program used the display during the recording, so the recording is empty");
	error_remedy(e, "Record while windows are open.");
	return error_slug(e, "nothing_recorded");
}

int recording_film(
	struct session *s, unsigned id, enum film_format format, struct error *e, int *ret_fd)
{
	struct recording *r = find(s, id, e);
	if (!r)
		return -ENOENT;

	int err = film_check(format, e);
	if (err == 0)
		err = check_complete(r, e);
	if (err == 0 && format == FILM_APNG) {
		*ret_fd = r->fd;
		return 0;
	}

	struct film_make make = { format, r->apng.frames, (r->end_ns - r->start_ns) / NSEC_PER_MSEC,
		r->last_ms };
	if (err == 0 && !r->film[format])
		err = film_create(s->display, &make, r->fd, e, &r->film[format]);
	if (err < 0)
		return err;

	err = film_get(r->film[format], e, ret_fd);
	if (err < 0 && err != -EINPROGRESS) {
		film_close(r->film[format]);
		r->film[format] = NULL;
	}
	return err;
}

int recording_set_format(struct session *s, unsigned id, enum film_format format, struct error *e)
{
	struct recording *r = find(s, id, e);
	int err = r ? film_check(format, e) : -ENOENT;
	if (err == 0)
		r->params.format = format;
	return err;
}

bool recording_next(struct session *s, unsigned after, struct recording_info *ret)
{
	struct recording *r;
	TAILQ_FOREACH (r, &s->recordings.list, link)
		if (r->id > after) {
			tell(r, ret);
			return true;
		}
	return false;
}

int recording_delete(struct session *s, unsigned id, struct error *e)
{
	struct recording *r = find(s, id, e);
	if (!r)
		return -ENOENT;
	destroy(r);
	return 0;
}

void recordings_destroy(struct session *s)
{
	struct recording *r;
	while ((r = TAILQ_FIRST(&s->recordings.list)))
		destroy(r);
}
