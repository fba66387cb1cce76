#include "session/display/session_display.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "sandbox/pool.h"
#include "session/display/session_display_internal.h"

enum {
	TICK_MS = 100,
	START_SECONDS = 20, /* of an X server; a plain one on a busy machine takes seconds */
	RETRIES_MAX = 2,
	READ_BYTES = 256 * 1024,
	READS_PER_TURN = 16,
};

static const char gone_remedy[] =
	"The windows are lost; open them again. A new display starts when it is used next.";

static void start(struct display *d);
static void stop(struct display *d, const char *code, const char *text, const char *remedy);

/* ---- reading what a screen says ---------------------------------------------------------------- */

static void start_ticking(struct display *d);

static int on_frame(struct display *d, const struct wire_frame *f)
{
	struct display_reply reply;
	int r = display_reply_take(f, &reply);

	if (r < 0)
		return r;

	if (f->type == DISPLAY_SAY_UP && d->state == DISPLAY_STARTING) {
		d->state = DISPLAY_UP;
		d->up_before = true;
		d->untold = false;
		d->retries = 0;
		display_flush(d);
		return 0;
	}

	if (f->type == DISPLAY_SAY_TROUBLE && !f->serial)
		return -ECONNREFUSED; /* it could not even begin */
	struct question *q = display_find_question(d, f->serial);
	if (q)
		display_answer_question(q, &reply);
	return 0; /* an answer nobody waits for any more */
}

/* More of its picture would be more than the daemon holds of everybody's: the next tick looks again, while the question's time runs. */
static void hold_back(struct display *d)
{
	d->held_back = true;
	uv_poll_stop(&d->stream_poll);
	start_ticking(d);
}

static void on_stream(uv_poll_t *p, int status, int events)
{
	struct display *d = p->data;
	struct wire_frame f;

	(void)status;
	if (events & UV_WRITABLE)
		display_flush(d);
	for (int turn = 0;
		turn < READS_PER_TURN && d->stream_open && events & (UV_READABLE | UV_DISCONNECT);
		turn++) {
		char *at;
		size_t room;
		if (hold_set(&d->held, wire_reader_pending(&d->in)) < 0) {
			hold_back(d);
			return;
		}
		if (wire_reader_room(&d->in, READ_BYTES, &at, &room) < 0)
			break;
		ssize_t n = read(d->stream, at, room);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		int r = n <= 0 ? -EPIPE : 0;
		if (n > 0)
			wire_reader_filled(&d->in, (size_t)n);
		while (r == 0 && d->stream_open && (r = wire_reader_next(&d->in, &f)) == 1)
			r = on_frame(d, &f);
		if (d->stream_open)
			wire_reader_trim(&d->in, READ_BYTES);
		if (r < 0 && d->stream_open) {
			stop(d, "display_gone", display_note_death(d), gone_remedy);
			return;
		}
	}
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void watch_stream(struct display *d, bool writing)
{
	d->writing = writing;
	uv_poll_start(&d->stream_poll, UV_READABLE | UV_DISCONNECT | (writing ? UV_WRITABLE : 0),
		on_stream);
}

void display_flush(struct display *d)
{
	if (d->state != DISPLAY_UP || !d->stream_open)
		return;

	while (d->queue.len) {
		ssize_t n = send(
			d->stream, d->queue.data, d->queue.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break; /* full, or its end, which is reported elsewhere */
		buffer_consume(&d->queue, (size_t)n);
	}

	if (d->writing != (d->queue.len > 0))
		watch_stream(d, d->queue.len > 0);
	if (!d->queue.len)
		buffer_finish(&d->queue);
}

static void tell_start_error(struct display *d)
{
	char text[160];
	snprintf(text, sizeof(text), "the session's X server could not be started: %s",
		strerror(-d->start_error));
	d->start_error = 0;
	d->retries = RETRIES_MAX;
	stop(d, "display_failed", text, "Try again; `glovebox doctor` checks the machine.");
}

static void on_tick(uv_timer_t *t)
{
	struct display *d = t->data;
	uint64_t now = clock_now_ns();

	if (d->held_back && d->stream_open)
		watch_stream(d, d->writing);
	d->held_back = false;
	displays_watch(d->displays);
	if (d->state == DISPLAY_WAITING)
		start(d); /* a helper that failed is tried again after a while */
	if (d->state == DISPLAY_STARTING && d->start_error < 0)
		tell_start_error(d);

	/*
	 * Our connection waits in the queue of the socket. If the X server ends before it accepts
	 * the connection, the connection shows no error.
	 */
	if (d->state == DISPLAY_STARTING && d->server >= 0 &&
		process_signal(d->server, 0) == -ESRCH)
		stop(d, "display_failed", "the session's X server ended while it started",
			"`glovebox doctor` checks the machine.");
	/* A screen ends with its X server, but one that was stopped by code of the session, whose user it is, does not notice. */
	if (d->state == DISPLAY_UP && d->stream_open && display_server_ended(d))
		stop(d, "display_gone", display_note_death(d), gone_remedy);
	if ((d->state == DISPLAY_STARTING || d->state == DISPLAY_WAITING) &&
		now - d->start_ns > START_SECONDS * NSEC_PER_SEC)
		stop(d, "display_failed", "the session's X server could not be started",
			"The server's log says more; `glovebox doctor` checks the machine.");
	for (unsigned i = 0; i < LIMIT_DISPLAY_ASKS; i++) {
		struct question *q = &d->question[i];
		if (q->serial && q->refused)
			display_fail_question(q, "display_gone", q->refused, gone_remedy);
		else if (q->serial && q->deadline_ns && now > q->deadline_ns)
			display_fail_question(q, "display_busy",
				"the session's X server did not answer in time",
				"A program may have locked the X server (XGrabServer), or the session has used up its CPU time; interrupt the cell or reset the session.");
	}

	if (!display_has_questions(d) && !d->held_back && d->state != DISPLAY_STARTING &&
		d->state != DISPLAY_WAITING)
		uv_timer_stop(t);
}

/* A picture of a display that has just lost its windows would be a picture of something else. Answered in the next turn of the loop. */
static bool refuse(struct display *d, struct question *q)
{
	q->refused = display_refuses(d);
	if (!q->refused)
		return false;
	uv_timer_start(&d->timer, on_tick, 0, TICK_MS);
	return true;
}

static void start_ticking(struct display *d)
{
	if (!uv_is_active((uv_handle_t *)&d->timer))
		uv_timer_start(&d->timer, on_tick, TICK_MS, TICK_MS);
}

int64_t display_ask(struct display *d, enum display_ask what, const void *options, size_t len,
	bool lazy, double timeout_s, display_answer fn, void *userdata, struct error *e)
{
	struct question *q = NULL;
	for (unsigned i = 0; i < LIMIT_DISPLAY_ASKS && !q; i++)
		q = d->question[i].serial ? NULL : &d->question[i];
	if (!q) {
		error_set(e, -EBUSY, "%u requests to this display are already waiting",
			LIMIT_DISPLAY_ASKS);
		error_remedy(e, "Wait for their answers before you send more.");
		return error_slug(e, "too_many_questions");
	}

	if (!++d->next_serial)
		d->next_serial = 1;
	if (!lazy && what != DISPLAY_ASK_FRAME && refuse(d, q)) {
		q->serial = d->next_serial;
		q->answer = fn;
		q->userdata = userdata;
		return q->serial;
	}

	if (display_frame(&d->queue, what, d->next_serial, options, len) < 0)
		return error_set(e, -ENOMEM, "out of memory");

	*q = (struct question){ .serial = d->next_serial,
		.deadline_ns = timeout_s > 0 ? clock_now_ns() + (uint64_t)(timeout_s * 1e9) : 0,
		.answer = fn,
		.userdata = userdata };
	uint32_t serial = q->serial;
	start_ticking(d);
	if (d->state == DISPLAY_UP)
		display_flush(d);
	else if (!lazy)
		start(d);
	return serial;
}

void display_prioritise(struct display *d, uint32_t serial, double timeout_s)
{
	struct question *q = display_find_question(d, serial);
	if (!q)
		return;

	q->deadline_ns = clock_now_ns() + (uint64_t)(timeout_s * 1e9);
	bool refused = refuse(d, q);
	if (display_frame(&d->queue, refused ? DISPLAY_ASK_CANCEL : DISPLAY_ASK_NOW, serial, NULL,
		    0) < 0 ||
		refused)
		return;

	if (d->state == DISPLAY_UP)
		display_flush(d);
	else
		start(d);
}

/* ---- starting -------------------------------------------------------------------------------------- */

static int open_stream(struct display *d, int *ret_far)
{
	int pair[2];
	int r = fd_socketpair(SOCK_STREAM, pair);

	if (r < 0)
		return r;

	fd_set_nonblock(pair[0], 1);
	r = uv_poll_init(displays_loop(d->displays), &d->stream_poll, pair[0]);
	if (r < 0) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		return r;
	}

	d->stream_poll.data = d;
	d->stream = pair[0];
	d->stream_open = true;
	wire_reader_init(&d->in, LIMIT_FRAME_BYTES);
	watch_stream(d, false);
	*ret_far = pair[1];
	return 0;
}

static int start_processes(struct display *d)
{
	_cleanup_fd_ int client = display_connect(d), cookie = display_authority(d), far = -1;
	if (client < 0 || cookie < 0)
		return client < 0 ? client : cookie;

	int r = open_stream(d, &far);
	if (r < 0)
		return r;

	d->spawn_serial = displays_next_serial(d->displays);
	r = display_spawn(d, DISPLAY_SERVER, d->listening, cookie);
	return r < 0 ? r : display_spawn(d, DISPLAY_SCREEN, far, client);
}

static void start(struct display *d)
{
	if (d->state != DISPLAY_LISTENING && d->state != DISPLAY_WAITING)
		return; /* on its way, or nowhere to be yet: started when the socket is there */
	if (d->state == DISPLAY_LISTENING)
		d->start_ns = clock_now_ns();
	if (d->listen_open)
		uv_poll_stop(&d->listen_poll);
	d->state = DISPLAY_WAITING;
	start_ticking(d);
	if (!displays_ready(d->displays, &d->size) || d->stream_open || d->closing)
		return;

	d->state = DISPLAY_STARTING;
	/* Told by the next tick: questions are answered in another turn of the loop, and a socket that code keeps full costs ten tries a second. */
	d->start_error = start_processes(d);
}

void display_helpers_changed(struct display *d)
{
	if (d->state == DISPLAY_WAITING)
		start(d);
}

void display_helper_ended(struct display *d, bool screens)
{
	if (d->state == DISPLAY_STARTING && d->stream_open &&
		(d->server < 0 || (screens && d->screen < 0)))
		stop(d, "display_failed", "the session's X server could not be started",
			"The server's log says more.");
}

void display_spawned(
	struct display *d, enum display_process process, int err, const char *step, int pidfd)
{
	int *place = process == DISPLAY_SERVER ? &d->server : &d->screen;
	if (d->state != DISPLAY_STARTING && d->state != DISPLAY_UP) {
		if (pidfd >= 0)
			process_signal(pidfd, SIGKILL);
		fd_close(pidfd);
		return;
	}

	fd_close(*place);
	*place = pidfd;
	if (err) {
		log_warning("a process of a display could not be started: %s: %s", step,
			strerror(-err));
		/* a jail that has ended is not the X server's fault; its socket asks for a start again and again */
		if (d->state == DISPLAY_STARTING && !(d->sandbox && sandbox_has_jail(d->sandbox))) {
			d->start_error = err;
			return;
		}
		stop(d, "display_failed", "the session's X server could not be started",
			"The server's log says more.");
	}
}

static void on_connection(uv_poll_t *p, int status, int events)
{
	(void)status, (void)events;
	start(p->data);
}

void display_listen_again(struct display *d)
{
	if (d->state == DISPLAY_CLOSED || !d->listen_open || d->closing)
		return;
	d->state = DISPLAY_LISTENING;
	uv_poll_start(&d->listen_poll, UV_READABLE, on_connection);
	if (display_has_questions(d))
		start(d);
}

/* ---- stopping ----------------------------------------------------------------------------------------- */

static void free_when_closed(struct display *d)
{
	if (d->state != DISPLAY_CLOSED || d->closing)
		return;
	buffer_finish(&d->queue);
	free(d);
}

static void handle_closed(uv_handle_t *h)
{
	struct display *d = h->data;
	d->closing--;
	free_when_closed(d);
	/* (freed, or another handle is still on its way) */
}

static void stream_closed(uv_handle_t *h)
{
	struct display *d = h->data;
	fd_close_clear(&d->stream);
	wire_reader_finish(&d->in);
	hold_set(&d->held, 0);
	d->closing--;
	if (d->state == DISPLAY_CLOSED)
		free_when_closed(d);
	else
		display_listen_again(d);
}

static void listen_closed(uv_handle_t *h)
{
	struct display *d = h->data;
	fd_close_clear(&d->listening);
	fd_close_clear(&d->place);
	handle_closed(h);
}

static void close_stream(struct display *d)
{
	if (!d->stream_open)
		return;
	d->stream_open = d->writing = false;
	d->closing++;
	uv_close((uv_handle_t *)&d->stream_poll, stream_closed);
}

/* Server and screen are gone, or must go. A first start that failed is tried again, with a plain server; then those who asked are told. */
static void stop(struct display *d, const char *code, const char *text, const char *remedy)
{
	bool failed_start = d->state == DISPLAY_STARTING;
	display_kill_processes(d);
	bool had_stream = d->stream_open;
	close_stream(d);
	d->state = DISPLAY_LISTENING;
	if (failed_start && d->retries++ < RETRIES_MAX) {
		displays_give_up(d->displays, &d->size);
	} else {
		d->retries = 0;
		buffer_finish(&d->queue);
		display_fail_questions(d, code, text, remedy);
	}

	if (!had_stream)
		display_listen_again(d);
}

void display_restart(struct display *d)
{
	display_forget_death(d);
	if (d->state != DISPLAY_UP && d->state != DISPLAY_STARTING)
		return;
	d->state = DISPLAY_UP; /* a start that is cut short has not failed */
	stop(d, "display_gone",
		"the session was reset or rolled back, and its display was restarted",
		"Try again.");
}

void display_detach(struct display *d)
{
	display_kill_processes(d);
	close_stream(d);
	if (d->listen_open) {
		d->listen_open = false;
		d->closing++;
		uv_close((uv_handle_t *)&d->listen_poll, listen_closed);
	}

	d->sandbox = NULL;
	d->up_before = false;
	if (d->state != DISPLAY_CLOSED)
		d->state = DISPLAY_NOWHERE;
	buffer_finish(&d->queue);
	if (d->state != DISPLAY_CLOSED)
		display_fail_questions(
			d, "display_gone", "the session's display ended", "Try again.");
}

/* Another turn of the loop than that in which the session ended: those who wait may do anything now. */
static void timer_closed(uv_handle_t *h)
{
	struct display *d = h->data;
	display_fail_questions(d, "session_gone", "the session ended", "Make a new session.");
	displays_ended(d->displays, d);
	handle_closed(h);
}

void display_close(struct display *d)
{
	if (!d || d->state == DISPLAY_CLOSED)
		return;

	for (unsigned i = 0; i < LIMIT_DISPLAY_ASKS; i++)
		if (!d->question[i].outlives)
			d->question[i] = (struct question){ 0 };
	d->state = DISPLAY_CLOSED;
	display_detach(d);
	displays_ending(d->displays, d);
	d->closing++;
	uv_close((uv_handle_t *)&d->timer, timer_closed);
}
