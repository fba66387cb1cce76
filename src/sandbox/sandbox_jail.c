/*
 * The jail of a sandbox: asking the jailer for it, watching its init, and the orders that the init
 * carries out.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "sandbox/proxy_client.h"
#include "sandbox/sandbox.h"

void sandbox_ask_jail(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	struct {
		struct jail_request q;
		struct jail_network network;

	} m = { .q = { .serial = b->serial,
			.host_id = b->host_id,
			.disk_bytes = b->kind.disk_bytes,
			.inodes = b->kind.inodes,
			.exec = b->kind.exec,
			.net = b->kind.network.net,
			.mounts = b->kind.mounts } };
	unsigned unused[JAIL_LISTEN_MAX];
	bool allow = b->kind.network.net == JAIL_NET_ALLOW;
	if (!n->jailer_up || b->jail_asked)
		return; /* asked when it is up */
	if (allow)
		network_plan(b->kind.network.allow, &m.network, unused);
	m.q.nested = b->outer != NULL;
	m.q.watched = !sandbox_pool_has_groups(n);
	bool idle = b->kind.network.net == JAIL_NET_NONE;
	_cleanup_fd_ int with = b->outer ? child_pidfd(&b->outer->init)
				: idle   ? sandbox_take_spare_net(n)
					 : -1;

	/*
	 * No descriptor for it now: asked again. Nothing fails here, where the owner may not know
	 * its sandbox yet; an outer jail that is gone takes the copy along, whose end is told.
	 */
	if ((!b->outer || with >= 0) && helper_send(&n->jailer, &m, allow ? sizeof(m) : sizeof(m.q),
						&with, with >= 0 ? 1 : 0) == 0)
		b->jail_asked = true;
	else
		n->requests_refused = true;
}

static void on_init_exit(struct child *c, const struct process_exit *end)
{
	struct sandbox *b = (struct sandbox *)((char *)c - offsetof(struct sandbox, init));
	(void)end;
	b->init_reaped = true;
	if (b->state == SANDBOX_CLOSED) {
		sandbox_free_when_closed(b);
		return;
	}

	/*
	 * The jail is gone, and everything in it. An unowned sandbox is closed; an owner is told by
	 * the end of its guest, or here.
	 */
	if (!b->guest || b->state != SANDBOX_READY)
		sandbox_fail(b, "the jail's init died");
}

static void take_display(struct sandbox *b, int *fds, size_t n)
{
	if (b->display_asked && b->owner)
		b->events->on_display(b->owner, n == XSOCKET_FDS ? fds : NULL);
	b->display_asked = false;
	for (size_t i = 0; i < n; i++)
		fd_close(fds[i]);
}

static void ask_display(struct sandbox *b)
{
	uint8_t order[1 + XSOCKET_COOKIE] = { JAIL_DISPLAY };
	if (!b->wants_display || b->init_control < 0 || b->init_reaped)
		return;

	b->wants_display = false;
	memcpy(order + 1, b->cookie, XSOCKET_COOKIE);
	b->display_asked = write(b->init_control, order, sizeof(order)) == (ssize_t)sizeof(order);
	/*
	 * Nothing fails here, where the owner is about to take the sandbox: the end of its init is
	 * told, in another turn of the loop.
	 */
	if (!b->display_asked)
		child_signal(&b->init, SIGKILL);
}

void sandbox_open_display(struct sandbox *b, const uint8_t cookie[XSOCKET_COOKIE])
{
	memcpy(b->cookie, cookie, XSOCKET_COOKIE);
	b->wants_display = true;
	ask_display(b); /* now, or when the jail is there */
}

int sandbox_join_fds(struct sandbox *b, int *ret_init_pidfd, struct cgroup_join_fds *ret)
{
	_cleanup_fd_ int init = b->cgroup[0] ? child_pidfd(&b->init) : -ENOENT;
	int r = init < 0 ? init : cgroup_join_fds_open(&b->pool->cgroups, b->cgroup, ret);
	b->joins.others = true;
	if (r == 0)
		*ret_init_pidfd = TAKE_FD(init);
	return r;
}

static void on_told(uv_poll_t *p, int status, int events)
{
	struct sandbox *b = p->data;
	char byte;
	int fds[XSOCKET_FDS];
	size_t n_fds = 0;

	(void)status, (void)events;
	if (fd_recv_or_drop(b->init_control, &byte, 1, fds, XSOCKET_FDS, &n_fds) != 1) {
		uv_poll_stop(p);
		return;
	}

	if (byte == JAIL_DISPLAY) {
		take_display(b, fds, n_fds);
		return;
	}

	if (byte == JAIL_SOCKETS) {
		socket_asks_answered(b, fds, n_fds);
		return;
	}

	if (byte == JAIL_FIGURES) {
		sandbox_tell_figures(b);
		return;
	}

	if (byte == JAIL_SWEEP && b->kills_pending)
		b->kills_pending--;
	if (b->state == SANDBOX_KILL_ALL && !b->kills_pending) {
		b->state = SANDBOX_GUEST;
		sandbox_ask_guest(b);
	}
}

static int watch_jail(struct sandbox *b, pid_t init)
{
	fd_set_nonblock(b->init_control, 1);
	b->init.on_exit = on_init_exit;
	int r = child_watch(b->pool->children, &b->init, init);
	if (r == 0)
		r = uv_poll_init(b->pool->config.loop, &b->control_poll, b->init_control);
	if (r < 0)
		return r;

	b->control_poll.data = b;
	b->open_polls = 1;
	return uv_poll_start(&b->control_poll, UV_READABLE, on_told);
}

int sandbox_tell_init(struct sandbox *b, const void *data, size_t len, const int *fds, size_t n_fds)
{
	return b->init_control < 0 || b->init_reaped
		       ? -EPIPE
		       : fd_send_now(b->init_control, data, len, fds, n_fds);
}

void sandbox_take_jail(struct sandbox *b, const struct jail_answer *a, int *fds, size_t n_fds)
{
	b->jail_asked = false;
	if (b->state == SANDBOX_CLOSED && (a->err || n_fds < JAIL_ANSWER_FDS)) {
		sandbox_free_when_closed(b);
		return;
	}

	if (a->err) {
		if (!b->outer)
			sandbox_pool_note_shortage(b->pool, a->err, "making a jail");
		sandbox_fail(b, a->text);
		return;
	}

	/* there was no room to take them, and the jail ends for want of its control socket */
	if (n_fds < JAIL_ANSWER_FDS) {
		sandbox_fail_step(b, -EMFILE, "taking a jail");
		return;
	}

	b->init_control = TAKE_FD(fds[1]);
	int r = watch_jail(b, a->pid);
	if (b->state == SANDBOX_CLOSED) { /* closed while the jail was being made: undo it */
		sandbox_end_jail(b);
		return;
	}

	if (r < 0) {
		sandbox_fail(b, uv_strerror(r));
		return;
	}

	sandbox_keep_workspace(b, TAKE_FD(fds[2]));
	if (!sandbox_pool_has_groups(b->pool) && n_fds > JAIL_ANSWER_FDS)
		b->watch.proc = TAKE_FD(fds[n_fds - 1]);
	for (size_t i = JAIL_ANSWER_FDS; i < n_fds; i++) {
		if (!b->outer && fds[i] >= 0)
			b->outlets[b->n_outlets++] = TAKE_FD(fds[i]);
		else if (i - JAIL_ANSWER_FDS < JAIL_NAMESPACES)
			b->namespaces[i - JAIL_ANSWER_FDS] = TAKE_FD(fds[i]);
	}

	if (b->n_outlets)
		proxy_client_open(b);

	/* else the next ready guest shows whether there are resources again */
	if (!b->pool->config.ready_target) {
		b->pool->refill_failures = 0;
		sandbox_pool_forget_shortage(b->pool);
	}

	b->state = SANDBOX_GUEST;
	ask_display(b);
	sandbox_ask_guest(b);
}
