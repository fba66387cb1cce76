/* Programs on their way: asked of the zygote, entering the jail, executed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "sandbox/program_internal.h"
#include "wire/start.h"

enum { INPUT_MAX = 8 << 20 }; /* waiting for a program that does not read */

/* ---- starting ----------------------------------------------------------------------- */

static int watch(struct program *p, int which, uv_poll_cb callback)
{
	if (p->fd[which] < 0)
		return 0;

	fd_set_nonblock(p->fd[which], 1);
	int r = uv_poll_init(p->pool->config.loop, &p->poll[which], p->fd[which]);
	if (r < 0)
		return r;

	p->poll[which].data = p;
	p->polled[which] = true;
	p->open_handles++;
	return callback ? uv_poll_start(&p->poll[which], UV_READABLE, callback) : 0;
}

/* Its streams are read from the moment it runs. */
static int watch_streams(struct program *p)
{
	int r = watch(p, END_INPUT, NULL);
	for (int which = END_STDOUT; r >= 0 && which <= END_STDERR; which++)
		r = watch(p, which, p->held ? NULL : program_on_output);
	return r;
}

/*
 * A terminal's master replaces the pipes. Two descriptors: libuv watches each of them for one
 * thing.
 */
static int take_terminal(struct program *p, int master)
{
	if (!p->terminal)
		return 0;
	if (master < 0 || !isatty(master))
		return -ENOTTY;

	int again = fcntl(master, F_DUPFD_CLOEXEC, 3);
	if (again < 0)
		return -errno;

	for (int which = END_STDOUT; which <= END_STDERR; which++)
		fd_close_clear(&p->fd[which]);
	p->fd[END_STDOUT] = again;
	p->fd[END_INPUT] = fcntl(master, F_DUPFD_CLOEXEC, 3);
	return p->fd[END_INPUT] < 0 ? -errno : 0;
}

static void begin(struct program *p)
{
	program_close_end(p, END_CONTROL);
	int r = watch_streams(p);
	if (r < 0) {
		program_fail(p, r, "watching its streams");
		return;
	}

	p->started = true;
	if (p->input.len || p->input_ends)
		program_flush_input(p);
	p->events->on_started(p->owner, p->inner_pid);
}

bool program_take_message(struct program *p)
{
	struct wire_started m = { 0 };
	_cleanup_fd_ int master = -1;
	ssize_t n = fd_recv_or_drop(p->fd[END_CONTROL], &m, sizeof(m), &master, 1, NULL);

	if (n == -EAGAIN)
		return false;

	m.step[sizeof(m.step) - 1] = '\0';
	if (n == 0 && p->inner_pid) {
		begin(p);
		return false;
	}

	if (n != (ssize_t)sizeof(m) || m.err) {
		uv_poll_stop(&p->poll[END_CONTROL]);
		if (n == (ssize_t)sizeof(m))
			program_fail(p, m.err, m.step);
		return false; /* without a message its end, which follows, says the rest */
	}

	p->inner_pid = m.pid;
	int r = take_terminal(p, master);
	if (r < 0)
		program_fail(p, r, "taking its terminal");
	return r == 0;
}

static void on_control(uv_poll_t *h, int status, int events)
{
	(void)status, (void)events;
	while (program_take_message(h->data))
		;
}

static int open_ends(struct program *p, const struct program_spec *spec, int *ret_input)
{
	int pair[2] = { -1, -1 }, in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r == 0 && spec->input && !spec->terminal && pipe2(in, O_CLOEXEC) < 0)
		r = -errno;
	if (r == 0 && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0))
		r = -errno;
	p->fd[END_CONTROL] = pair[0];
	p->fd[END_INPUT] = in[1];
	p->fd[END_STDOUT] = out[0];
	p->fd[END_STDERR] = err[0];
	p->far[0] = pair[1];
	p->far[1] = out[1];
	p->far[2] = err[1];
	*ret_input = in[0];
	return r;
}

static void ask(struct program *p)
{
	struct sandbox_pool *n = p->pool;
	struct sandbox *b = p->sandbox;
	struct cgroup_join_fds ticket = { 0 };
	_cleanup_fd_ int init = -1;

	if (p->asked || !n->zygote_warm)
		return; /* asked when it is warm */
	int r = b ? sandbox_join_fds(b, &init, &ticket) : -ENOENT;
	if (r < 0) {
		program_forget_pending(p);
		program_fail(p, r, "entering the session's sandbox");
		return;
	}

	struct wire_spawn q = { .serial = p->serial,
		.into = (uint32_t)ticket.into,
		.exec = b->kind.exec,
		.net = b->kind.network.net,
		.program = 1 };
	int fds[WIRE_SPAWN_FDS_MAX] = { init, p->far[0], p->far[1], p->far[2] };
	memcpy(fds + WIRE_SPAWN_FDS, ticket.fds, ticket.n * sizeof(int));
	if (helper_send(&n->zygote, &q, sizeof(q), fds, WIRE_SPAWN_FDS + ticket.n) == 0)
		p->asked = true;
	else
		n->requests_refused = true;
	cgroup_join_fds_close(&ticket);
}

int sandbox_start_program(struct sandbox *b, const struct program_spec *spec,
	const struct program_events *events, void *owner, struct program **ret)
{
	_cleanup_fd_ int input = -1;
	if (!child_runs(&b->init) || b->init_reaped || b->state == SANDBOX_CLOSED ||
		sandbox_make_cgroup(b) < 0)
		return -ENOENT;

	struct program *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;

	for (int i = 0; i < END_COUNT; i++)
		p->fd[i] = -1;
	p->pool = b->pool;
	p->events = events;
	p->owner = owner;
	p->terminal = spec->terminal;
	p->serial = ++b->pool->next_serial;
	buffer_init(&p->input, INPUT_MAX);
	buffer_count(&p->input);
	int r = open_ends(p, spec, &input);
	if (r == 0)
		r = fd_send(p->fd[END_CONTROL], spec->frame->data, spec->frame->len, &input,
			input >= 0 ? 1 : 0);
	if (r < 0) {
		p->closing = true;
		program_free_when_done(p);
		return r;
	}

	p->sandbox = b;
	TAILQ_INSERT_TAIL(&b->programs, p, link);
	TAILQ_INSERT_TAIL(&b->pool->programs, p, pending);
	p->is_pending = true;
	*ret = p;
	ask(p);
	return 0;
}

static struct program *find(struct sandbox_pool *n, uint32_t serial)
{
	struct program *p;
	TAILQ_FOREACH (p, &n->programs, pending)
		if (p->serial == serial)
			return p;
	return NULL;
}

/* Its end is told by its pidfd's owner, the list of children; its pidfd itself is not needed. */
static int attach(struct program *p, pid_t pid)
{
	p->process.on_exit = program_on_exit;
	int r = child_watch(p->pool->children, &p->process, pid);
	if (r < 0)
		return r;

	p->pid = pid;
	if (p->closing) {
		program_signal(p, SIGKILL);
		return 0;
	}

	uv_timer_init(p->pool->config.loop, &p->left_over);
	p->left_over.data = p;
	p->open_handles++;
	return watch(p, END_CONTROL, on_control);
}

bool programs_spawned(
	struct sandbox_pool *n, uint32_t serial, int err, int *fds, size_t n_fds, pid_t pid)
{
	struct program *p = find(n, serial);
	if (!p)
		return false;

	program_forget_pending(p);
	for (int i = 0; i < 3; i++)
		fd_close_clear(&p->far[i]);

	/*
	 * without an errno its pidfd was what there was no room for, and it is there all the same
	 */
	int r = err ? err : attach(p, pid);
	if (r < 0 && !err && n_fds == 1)
		process_signal(fds[0], SIGKILL);
	if (r < 0)
		program_fail(p, r, "making its process");
	return true;
}

void programs_ask_again(struct sandbox_pool *n)
{
	for (struct program *p = TAILQ_FIRST(&n->programs), *next; p; p = next) {
		next = TAILQ_NEXT(p, pending);
		ask(p);
	}
}

/* It may have made the process or not: nothing that it was asked for comes any more. */
void programs_zygote_died(struct sandbox_pool *n)
{
	for (struct program *p = TAILQ_FIRST(&n->programs), *next; p; p = next) {
		next = TAILQ_NEXT(p, pending);
		if (!p->asked)
			continue;
		program_forget_pending(p);
		program_fail(p, -EAGAIN, "the zygote ended while it started");
	}
}

size_t programs_leaders(const struct sandbox *b, pid_t *ret, size_t max)
{
	size_t n = 0;
	struct program *p;
	TAILQ_FOREACH (p, &b->programs, link)
		if (p->pid && !p->reaped && n < max)
			ret[n++] = p->pid;
	return n;
}

void programs_detach(struct sandbox *b)
{
	struct program *p;
	while ((p = TAILQ_FIRST(&b->programs))) {
		TAILQ_REMOVE(&b->programs, p, link);
		p->sandbox = NULL;
	}
}
