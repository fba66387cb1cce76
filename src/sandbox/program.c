#include "sandbox/program.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fds.h"
#include "sandbox/program_internal.h"

enum {
	READ_AT_ONCE = 64 * 1024,
	READS_PER_TURN = 4,  /* of one stream; then others get their turn */
	DRAIN_MAX = 1 << 20, /* read at the end of the process */
	LEFT_OVER_MS = 20,   /* between two looks at what its children still write */
	END_OF_FILE = 4,     /* the character */
};

static char scratch[READ_AT_ONCE];

/* ---- life -------------------------------------------------------------------------------- */

void program_forget_pending(struct program *p)
{
	if (p->is_pending)
		TAILQ_REMOVE(&p->pool->programs, p, pending);
	p->is_pending = false;
}

void program_free_when_done(struct program *p)
{
	/* one that the zygote was asked for is killed when its pidfd comes */
	if (!p->closing || p->open_handles || p->is_pending || (p->pid && !p->reaped))
		return;

	for (int i = 0; i < END_COUNT; i++)
		fd_close(p->fd[i]);
	for (int i = 0; i < 3; i++)
		fd_close(p->far[i]);
	if (p->sandbox)
		TAILQ_REMOVE(&p->sandbox->programs, p, link);
	buffer_finish(&p->input);
	free(p);
}

static void on_handle_closed(uv_handle_t *h)
{
	struct program *p = h->data;
	p->open_handles--;
	program_free_when_done(p);
}

static void close_handle(uv_handle_t *h)
{
	if (!uv_is_closing(h))
		uv_close(h, on_handle_closed);
}

void program_close_end(struct program *p, int which)
{
	p->ended[which] = true;
	if (p->polled[which])
		close_handle((uv_handle_t *)&p->poll[which]);
	fd_close_clear(&p->fd[which]); /* libuv does not look at it any more */
}

void program_close(struct program *p)
{
	if (!p || p->closing)
		return;

	p->closing = true;
	program_signal(p, SIGKILL);
	if (p->is_pending && !p->asked)
		program_forget_pending(p);
	for (int i = 0; i < END_COUNT; i++)
		if (p->polled[i])
			close_handle((uv_handle_t *)&p->poll[i]);
	if (p->left_over.data)
		close_handle((uv_handle_t *)&p->left_over);
	program_free_when_done(p);
}

void program_fail(struct program *p, int err, const char *step)
{
	if (p->closing)
		program_free_when_done(p);
	else
		p->events->on_failed(p->owner, err, step);
}

/* ---- output ------------------------------------------------------------------------------- */

static enum stream stream_of(int which)
{
	return which == END_STDERR ? STREAM_STDERR : STREAM_STDOUT;
}

/* Reads up to max bytes. False when nothing more will come. */
static bool read_output(struct program *p, int which, size_t max)
{
	while (max && !p->closing) {
		ssize_t n = read(p->fd[which], scratch, sizeof(scratch));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			/* a terminal returns EIO when no process has it open any more */
			return false;
		if (!p->exited)
			p->events->on_output(p->owner, stream_of(which), scratch, (size_t)n);
		max -= (size_t)n < max ? (size_t)n : max;
		if (p->held)
			return true;
	}

	return true;
}

static void watch_outputs(struct program *p)
{
	for (int which = END_STDOUT; which <= END_STDERR; which++)
		if (p->polled[which] && !p->ended[which])
			uv_poll_start(&p->poll[which], UV_READABLE, program_on_output);
}

static void on_left_over(uv_timer_t *t)
{
	watch_outputs(t->data);
}

void program_on_output(uv_poll_t *h, int status, int events)
{
	struct program *p = h->data;
	int which = (int)(h - p->poll);

	(void)status, (void)events;
	if (!read_output(p, which, p->exited ? READ_AT_ONCE : READ_AT_ONCE * READS_PER_TURN) &&
		!p->closing) {
		program_close_end(p, which);
		return;
	}

	if (p->closing)
		return;

	/*
	 * What children of a program that has ended write is dropped, and must not take a
	 * processor.
	 */
	if (p->exited) {
		uv_poll_stop(h);
		uv_timer_start(&p->left_over, on_left_over, LEFT_OVER_MS, 0);
	}
}

void program_hold_output(struct program *p, bool hold)
{
	if (p->held == hold)
		return;

	p->held = hold;
	if (p->exited || p->closing)
		return;

	if (!hold)
		watch_outputs(p);
	for (int which = END_STDOUT; hold && which <= END_STDERR; which++)
		if (p->polled[which] && !p->ended[which])
			uv_poll_stop(&p->poll[which]);
}

/* ---- input ---------------------------------------------------------------------------------- */

static void on_input(uv_poll_t *h, int status, int events);

void program_flush_input(struct program *p)
{
	while (p->input.len) {
		ssize_t n = write(p->fd[END_INPUT], p->input.data, p->input.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			buffer_finish(&p->input);
			program_close_end(p, END_INPUT);
			return;
		}
		buffer_consume(&p->input, (size_t)n);
	}

	if (!p->input.len && p->input_ends) {
		program_close_end(p, END_INPUT);
		return;
	}

	if (!p->polled[END_INPUT])
		return;

	if (p->input.len)
		uv_poll_start(&p->poll[END_INPUT], UV_WRITABLE, on_input);
	else
		uv_poll_stop(&p->poll[END_INPUT]);
}

static void on_input(uv_poll_t *h, int status, int events)
{
	struct program *p = h->data;
	(void)status, (void)events;
	if (!p->ended[END_INPUT] && !p->closing)
		program_flush_input(p);
}

int program_write(struct program *p, const void *data, size_t len)
{
	if (p->exited || p->input_ends || p->ended[END_INPUT] ||
		(p->fd[END_INPUT] < 0 && !p->terminal))
		return -EPIPE;
	if (buffer_append(&p->input, data, len) < 0)
		return -ENOBUFS;

	if (p->fd[END_INPUT] >= 0)
		program_flush_input(p);
	return 0;
}

void program_close_input(struct program *p)
{
	if (p->terminal) {
		static const char end = END_OF_FILE;
		program_write(p, &end, 1);
		return;
	}

	if (p->input_ends || p->ended[END_INPUT] || p->fd[END_INPUT] < 0)
		return;

	p->input_ends = true;
	program_flush_input(p);
}

/* ---- its process -------------------------------------------------------------------- */

int program_signal(struct program *p, int sig)
{
	/*
	 * Its number is its own while it is not reaped, and so is that of its group, which its
	 * leader cannot leave.
	 */
	if (!p->pid || p->reaped)
		return -ESRCH;
	/* one that has not come so far as to have a group is signalled alone */
	if (kill(-p->pid, sig) < 0)
		child_signal(&p->process, sig);
	return 0;
}

int program_resize(struct program *p, unsigned rows, unsigned columns)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns };
	if (!p->terminal || p->fd[END_STDOUT] < 0 || p->ended[END_STDOUT])
		return -ENOTTY;
	return ioctl(p->fd[END_STDOUT], TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

void program_on_exit(struct child *c, const struct process_exit *end)
{
	struct program *p = (struct program *)((char *)c - offsetof(struct program, process));
	p->reaped = true;
	if (p->closing) {
		program_free_when_done(p);
		return;
	}

	/* a short one may have ended before what it said was read */
	while (!p->started && !p->closing && program_take_message(p))
		;
	if (p->closing)
		return;

	if (!p->started) {
		program_fail(p, -ECHILD, "it was killed while it started");
		return;
	}

	p->held = false;
	for (int which = END_STDOUT; which <= END_STDERR && !p->closing; which++)
		if (p->polled[which] && !p->ended[which] && !read_output(p, which, DRAIN_MAX) &&
			!p->closing)
			program_close_end(p, which);
	if (p->closing)
		return;

	p->exited = true;
	watch_outputs(p);
	p->events->on_exit(p->owner, end);
}
