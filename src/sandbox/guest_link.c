#include "sandbox/guest_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/launcher.h"
#include "base/limits.h"
#include "base/memory_account.h"
#include "base/utf8.h"

enum {
	READ_AT_ONCE = 64 * 1024,
	READS_PER_TURN = 4,   /* of a pipe; then other sessions get their turn */
	READS_AT_EXIT = 1024, /* of the control socket: all it can hold */
	/* a subprocess that floods the pipe does not hold up the answer */
	DRAIN_MAX = 4 << 20,
	PIPE_BYTES = 256 * 1024, /* wished for; the kernel may give less */
	SEND_QUEUE_MAX = 64 << 20,
	LARGE_BYTES = 256 * 1024,
	REST_MS = 1,
	/* until a guest whose frames would be too much for the daemon is looked at again */
	HELD_BACK_MS = 20,
};

enum { END_CONTROL, END_STDOUT, END_STDERR, END_COUNT };

struct guest {
	uv_loop_t *loop;
	const struct guest_events *events;
	void *owner;
	struct children *children;
	struct child process;
	uv_poll_t poll[END_COUNT];
	uv_timer_t rest;   /* until the pipes are read again */
	int fd[END_COUNT]; /* control, stdout, stderr */
	unsigned open_polls;
	pid_t pid;
	int came[GUEST_FDS_MAX]; /* descriptors that came with frames, until somebody takes them */
	bool listening, attached, closing, retired, reaped, broken, unwanted, held_back;
	struct {
		char data[4];
		size_t len;
	} unfinished
		[2];   /* the start of a character at the end of what was read of stdout, stderr */
	bool ended[2]; /* the pipes: nobody can write to them any more */
	struct wire_reader in;
	struct hold held; /* of `in` */
	/* frames to send, and the number of bytes that the socket has already accepted */
	struct buffer queue;
	size_t queue_at;
};

/* Consumed before the next read; one loop, one buffer. */
static char scratch[READ_AT_ONCE];

int guest_create(uv_loop_t *loop, struct children *children, const struct guest_events *events,
	void *owner, struct guest **ret, int ret_far[3])
{
	int pair[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	struct guest *g = calloc(1, sizeof(*g));
	int r = g ? fd_socketpair(SOCK_STREAM, pair) : -ENOMEM;

	if (r == 0 && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0))
		r = -errno;
	if (r < 0) {
		for (int i = 0; i < 2; i++) {
			fd_close(pair[i]);
			fd_close(out[i]);
			fd_close(err[i]);
		}
		free(g);
		return r;
	}

	fcntl(out[1], F_SETPIPE_SZ, PIPE_BYTES);
	g->loop = loop;
	g->children = children;
	g->events = events;
	g->owner = owner;
	g->fd[END_CONTROL] = pair[0];
	g->fd[END_STDOUT] = out[0];
	g->fd[END_STDERR] = err[0];
	g->came[0] = g->came[1] = -1;
	for (int i = 0; i < END_COUNT; i++)
		fd_set_nonblock(g->fd[i], 1);
	wire_reader_init(&g->in, LIMIT_FRAME_BYTES);
	buffer_init(&g->queue, SEND_QUEUE_MAX);
	buffer_count(&g->queue);
	ret_far[0] = pair[1];
	ret_far[1] = out[1];
	ret_far[2] = err[1];
	*ret = g;
	return 0;
}

pid_t guest_pid(const struct guest *g)
{
	return g ? g->pid : 0; /* a sandbox may wait for its guest */
}

/* ---- reading ---------------------------------------------------------------- */

static void stop_poll(struct guest *g, int which)
{
	uv_poll_stop(&g->poll[which]);
}

/*
 * Passes on whole characters, so that what is kept, logged or streamed in pieces can be joined or
 * shown as it is.
 */
static void deliver_output(struct guest *g, int which, size_t len)
{
	size_t open = utf8_unfinished(scratch, len);
	memcpy(g->unfinished[which - END_STDOUT].data, scratch + len - open, open);
	g->unfinished[which - END_STDOUT].len = open;
	if (len > open)
		g->events->on_output(g->owner, which == END_STDOUT ? STREAM_STDOUT : STREAM_STDERR,
			scratch, len - open);
}

/* Reads up to max bytes of one pipe. False when nothing more will come. */
static bool read_pipe(struct guest *g, int which, size_t max)
{
	while (max && !g->closing) {
		size_t held = g->unfinished[which - END_STDOUT].len, room = sizeof(scratch) - held;
		memcpy(scratch, g->unfinished[which - END_STDOUT].data, held);
		ssize_t n = read(g->fd[which], scratch + held, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		if (n == 0)
			return false;
		deliver_output(g, which, held + (size_t)n);
		max -= (size_t)n < max ? (size_t)n : max;
		if ((size_t)n < room)
			return true; /* a short read emptied it */
	}

	return true;
}

/* What was begun and never finished is told as it is. */
static void deliver_rest(struct guest *g, int which)
{
	size_t len = g->unfinished[which - END_STDOUT].len;
	g->unfinished[which - END_STDOUT].len = 0;
	if (len && !g->closing)
		g->events->on_output(g->owner, which == END_STDOUT ? STREAM_STDOUT : STREAM_STDERR,
			g->unfinished[which - END_STDOUT].data, len);
}

void guest_drain(struct guest *g)
{
	for (int which = END_STDOUT; which <= END_STDERR; which++) {
		if (!g->closing)
			read_pipe(g, which, DRAIN_MAX);
		deliver_rest(g, which);
	}
}

static void deliver_frames(struct guest *g)
{
	struct wire_frame f;
	int r = 0;

	while (!g->closing && (r = wire_reader_next(&g->in, &f)) == 1)
		g->events->on_frame(g->owner, &f);
	wire_reader_trim(&g->in, 2 * READ_AT_ONCE);
	hold_set(&g->held, wire_reader_pending(&g->in));
	if (!g->closing && r < 0) {
		g->broken = true;
		guest_signal(g, SIGKILL); /* the end of the process is reported as usual */
		stop_poll(g, END_CONTROL);
	}
}

static void drop_came(struct guest *g)
{
	for (int i = 0; i < GUEST_FDS_MAX; i++)
		launcher_discard(TAKE_FD(g->came[i]));
}

static void on_rested(uv_timer_t *t);

/*
 * More of its frames would be more than the daemon keeps of everybody's: it waits, and its cell's
 * time runs.
 */
static void hold_back(struct guest *g)
{
	g->held_back = true;
	stop_poll(g, END_CONTROL);
	if (!uv_is_active((uv_handle_t *)&g->rest))
		uv_timer_start(&g->rest, on_rested, HELD_BACK_MS, 0);
}

/* Reads frames that are there, at most a few reads. False when the other side is closed. */
static bool read_control(struct guest *g, unsigned reads)
{
	while (reads-- && !g->closing && !g->broken) {
		char *at;
		size_t room;
		if (hold_set(&g->held, wire_reader_pending(&g->in) + READ_AT_ONCE) < 0) {
			hold_back(g);
			return true;
		}
		if (wire_reader_room(&g->in, READ_AT_ONCE, &at, &room) < 0) {
			g->broken = true;
			guest_signal(g, SIGKILL);
			return false;
		}
		int came[GUEST_FDS_MAX] = { -1, -1 };
		ssize_t n = fd_recv_or_drop(
			g->fd[END_CONTROL], at, room, came, GUEST_FDS_MAX, NULL);
		if (came[0] >= 0) {
			drop_came(g); /* nobody asked for those */
			memcpy(g->came, came, sizeof(came));
		}
		if (n == -EMSGSIZE) {
			g->broken = true;
			guest_signal(g, SIGKILL);
		}
		if (n <= 0)
			return n == -EAGAIN;
		wire_reader_filled(&g->in, (size_t)n);
		deliver_frames(g);
	}

	return true;
}

static void flush_queue(struct guest *g);
static void watch_writable(struct guest *g, bool on);

static const struct process_exit killed = { .signaled = true, .status = SIGKILL };

static void on_control(uv_poll_t *p, int status, int events)
{
	struct guest *g = p->data;
	if (events & UV_WRITABLE)
		flush_queue(g);
	bool open = (status >= 0 && !(events & UV_READABLE)) || read_control(g, 1);
	if (g->closing || (open && !g->broken))
		return;

	stop_poll(g, END_CONTROL); /* the exit, which follows, is what counts */
	if (!g->attached)
		g->events->on_exit(g->owner, &killed, g->broken); /* there will be no process */
}

static void on_pipe(uv_poll_t *p, int status, int events)
{
	struct guest *g = p->data;
	int which = p == &g->poll[END_STDOUT] ? END_STDOUT : END_STDERR;

	(void)status, (void)events;
	if (!read_pipe(g, which, READ_AT_ONCE * READS_PER_TURN) && !g->closing) {
		stop_poll(g, which);
		g->ended[which - END_STDOUT] = true;
	} else if (g->unwanted && !g->closing) {
		stop_poll(g, END_STDOUT);
		stop_poll(g, END_STDERR);
		uv_timer_start(&g->rest, on_rested, REST_MS, 0);
	}
}

static void on_rested(uv_timer_t *t)
{
	struct guest *g = t->data;
	if (g->held_back)
		watch_writable(g, g->queue.len > 0);
	g->held_back = false;
	for (int which = END_STDOUT; which <= END_STDERR; which++)
		if (!g->ended[which - END_STDOUT])
			uv_poll_start(&g->poll[which], UV_READABLE, on_pipe);
}

void guest_rest(struct guest *g)
{
	g->unwanted = true;
}

void guest_prioritise(struct guest *g)
{
	g->unwanted = false;
}

static void free_when_done(struct guest *g)
{
	if (!g->closing || g->open_polls || (g->attached && !g->reaped))
		return;

	launcher_discard_socket(TAKE_FD(g->fd[END_CONTROL]));
	for (int i = 0; i < END_COUNT; i++)
		fd_close(g->fd[i]);
	drop_came(g);
	wire_reader_finish(&g->in);
	hold_set(&g->held, 0);
	buffer_finish(&g->queue);
	free(g);
}

static void on_poll_closed(uv_handle_t *h)
{
	struct guest *g = h->data;
	g->open_polls--;
	free_when_done(g);
}

static void close_polls(struct guest *g)
{
	int n = g->attached ? END_COUNT : g->listening ? 1 : 0;
	for (int i = 0; i < n; i++)
		if (g->poll[i].data && !uv_is_closing((uv_handle_t *)&g->poll[i]))
			uv_close((uv_handle_t *)&g->poll[i], on_poll_closed);
	if (g->rest.data && !uv_is_closing((uv_handle_t *)&g->rest))
		uv_close((uv_handle_t *)&g->rest, on_poll_closed);
}

static void on_process_exit(struct child *c, const struct process_exit *end)
{
	struct guest *g = (struct guest *)((char *)c - offsetof(struct guest, process));
	g->reaped = true;
	if (g->closing) {
		free_when_done(g);
		return;
	}

	if (g->retired)
		return;

	/* Frames first, then what was printed, then the end: as the guest did them. */
	read_control(g, READS_AT_EXIT);
	if (!g->closing)
		guest_drain(g);
	if (!g->closing)
		g->events->on_exit(g->owner, end, g->broken);
}

static int poll_end(struct guest *g, int which, uv_poll_cb callback)
{
	int r = uv_poll_init(g->loop, &g->poll[which], g->fd[which]);
	if (r < 0)
		return r;
	g->poll[which].data = g;
	g->open_polls++;
	return uv_poll_start(&g->poll[which], UV_READABLE, callback);
}

int guest_listen(struct guest *g)
{
	if (g->listening)
		return 0;
	g->listening = true;
	uv_timer_init(g->loop, &g->rest);
	g->rest.data = g;
	g->open_polls++;
	return poll_end(g, END_CONTROL, on_control);
}

int guest_attach(struct guest *g, pid_t pid)
{
	g->process.on_exit = on_process_exit;
	int r = child_watch(g->children, &g->process, pid);
	if (r < 0)
		return r;

	g->pid = pid;
	g->attached = true;
	r = guest_listen(g);
	for (int i = END_STDOUT; r == 0 && i < END_COUNT; i++)
		r = poll_end(g, i, on_pipe);
	if (r == 0 && g->queue.len)
		flush_queue(g);
	return r;
}

/* ---- writing ---------------------------------------------------------------- */

static void watch_writable(struct guest *g, bool on)
{
	uv_poll_start(&g->poll[END_CONTROL], UV_READABLE | (on ? UV_WRITABLE : 0), on_control);
}

/*
 * Returns how many bytes the socket took. A guest that is gone takes them all: its end is reported
 * elsewhere.
 */
static size_t send_some(struct guest *g, const char *data, size_t len)
{
	ssize_t n;
	do
		n = send(g->fd[END_CONTROL], data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return (size_t)n;
	return errno == EAGAIN ? 0 : len;
}

static void flush_queue(struct guest *g)
{
	g->queue_at += send_some(g, g->queue.data + g->queue_at, g->queue.len - g->queue_at);
	if (g->queue_at == g->queue.len) {
		buffer_finish(&g->queue);
		g->queue_at = 0;
	}
	watch_writable(g, g->queue.len > 0);
}

/*
 * What the socket did not take of the frames. Large ones change their owner; they are not copied.
 */
static int queue_rest(struct guest *g, struct buffer *frames, size_t sent)
{
	if (g->queue.len || frames->len - sent < LARGE_BYTES)
		return buffer_append(&g->queue, frames->data + sent, frames->len - sent);
	int r = buffer_move(&g->queue, frames);
	g->queue_at = r == 0 ? sent : 0;
	return r;
}

void guest_send(struct guest *g, struct buffer *frames)
{
	size_t sent = g->attached && !g->queue.len ? send_some(g, frames->data, frames->len) : 0;
	if (sent < frames->len) {
		if (queue_rest(g, frames, sent) < 0)
			guest_signal(g, SIGKILL);
		else if (g->attached)
			watch_writable(g, true);
	}

	frames->len = 0;
}

void guest_take_fds(struct guest *g, int ret[GUEST_FDS_MAX])
{
	for (int i = 0; i < GUEST_FDS_MAX; i++)
		ret[i] = TAKE_FD(g->came[i]);
}

void guest_signal(struct guest *g, int sig)
{
	child_signal(&g->process, sig);
}

void guest_signal_group(struct guest *g, int sig)
{
	child_signal_group(&g->process, sig);
}

void guest_retire(struct guest *g)
{
	g->retired = true;
	for (int i = END_CONTROL; g->attached && i < END_COUNT; i++)
		stop_poll(g, i);
	if (g->rest.data)
		uv_timer_stop(&g->rest);
}

void guest_close(struct guest *g)
{
	if (!g || g->closing)
		return;
	g->closing = true;
	guest_signal(g, SIGKILL);
	close_polls(g);
	free_when_done(g);
}
