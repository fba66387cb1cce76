/* One sandbox: its jail, the guests that live in it, its end. */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "sandbox/proxy_client.h"

enum { FAILURES_TOLD = 3 }; /* of the stock in a row, before those who ask for sessions are told */

/* ---- host ids ------------------------------------------------------------------ */

static uint32_t take_host_id(struct sandbox_pool *n)
{
	for (unsigned tried = 0; tried < JAIL_HOST_ID_COUNT; tried++) {
		uint32_t id = n->next_host_id++ % JAIL_HOST_ID_COUNT;
		if (!(n->host_ids[id / 8] & (1U << (id % 8)))) {
			n->host_ids[id / 8] |= (uint8_t)(1U << (id % 8));
			return n->first_host_id + id;
		}
	}
	return n->first_host_id; /* more live sandboxes than ids: cannot be, descriptors run out long before */
}

static void give_back_host_id(struct sandbox_pool *n, uint32_t host_id)
{
	uint32_t id = host_id - n->first_host_id;
	n->host_ids[id / 8] &= (uint8_t) ~(1U << (id % 8));
}

/* ---- life of a sandbox -------------------------------------------------------------- */

struct sandbox *sandbox_find(struct sandbox_pool *n, uint32_t serial)
{
	struct sandbox *b;
	TAILQ_FOREACH(b, &n->sandboxes, link)
		if (b->serial == serial)
			return b;
	return NULL;
}

static void free_sandbox(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	TAILQ_REMOVE(&n->sandboxes, b, link);
	sandbox_remove_cgroup(b);
	if (!b->outer)
		give_back_host_id(n, b->host_id);
	for (int i = 0; i < JAIL_NAMESPACES; i++)
		fd_close(b->namespaces[i]);
	fd_close(b->arriving);
	struct sandbox *outer = b->outer;
	fd_close(b->init_pidfd);
	fd_close(b->init_control);
	fd_close(b->workspace);
	for (int i = 0; i < 3; i++)
		fd_close(b->far[i]);
	network_policy_finish(&b->kind.network);
	free(b);
	if (outer) {
		outer->nested--;
		if (outer->state == SANDBOX_CLOSED)
			sandbox_end_jail(outer);
	}
	sandbox_pool_finish_when_empty(n);
}

static void free_when_closed(struct sandbox *b)
{
	if (b->state == SANDBOX_CLOSED && !b->open_polls && !b->jail_asked && !b->snapshots_leaving)
		free_sandbox(b);
}

void sandbox_snapshot_gone(struct sandbox *b)
{
	free_when_closed(b);
}

static void poll_closed(uv_handle_t *h)
{
	struct sandbox *b = h->data;
	b->open_polls--;
	free_when_closed(b);
}

static void close_poll(uv_poll_t *p)
{
	if (!uv_is_closing((uv_handle_t *)p))
		uv_close((uv_handle_t *)p, poll_closed);
}

void sandbox_end_jail(struct sandbox *b)
{
	if (b->nested)
		return; /* its namespaces hold up theirs: the last one of them to go comes here again */
	/* Whoever lets go last frees all files, which takes as long as they are many: the jail's own processes, not the daemon. */
	fd_close_clear(&b->workspace);
	if (b->init_pidfd >= 0 && !b->init_reaped)
		process_signal(b->init_pidfd, SIGKILL);
	if (b->open_polls) {
		close_poll(&b->control_poll);
		if (b->init_reaped)
			close_poll(&b->init_poll);
	}
	free_when_closed(b);
}

void sandbox_close(struct sandbox *b)
{
	if (!b || b->state == SANDBOX_CLOSED)
		return;
	bool stock = !b->owner;
	b->state = SANDBOX_CLOSED;
	b->owner = NULL;
	proxy_client_close(b);
	sandbox_end_retiring_guest(b);
	guest_close(b->guest);
	b->guest = NULL;
	b->snapshots_leaving++; /* the last one to go would take the sandbox with it */
	sandbox_drop_snapshots(b);
	b->snapshots_leaving--;
	if (b->nested && b->cgroup[0])
		cgroup_kill_others(&b->pool->cgroups, b->cgroup, &b->limits, NULL, 0);
	if (stock)
		sandbox_pool_stock_changed(b->pool); /* another takes its place without waiting for a session to be asked for */
	sandbox_end_jail(b);
}

void sandbox_fail(struct sandbox *b, const char *text)
{
	struct sandbox_pool *n = b->pool;
	log_warning("a guest could not be made: %s", text);
	if (b->owner) {
		b->events->on_failed(b->owner, text);
	} else {
		n->stock_failed = true;
		bool making = b->state == SANDBOX_JAIL || b->state == SANDBOX_STARTING;
		if (making && ++n->stock_failures >= FAILURES_TOLD) /* whatever it is, others would fare no better */
			sandbox_pool_set_shortage(n, text);
		sandbox_close(b);
	}
}

void sandbox_fail_step(struct sandbox *b, int err, const char *step)
{
	char text[160];
	snprintf(text, sizeof(text), "%s: %s", step, strerror(-err));
	if (!b->outer) /* a nested jail may fail for its depth */
		sandbox_pool_note_shortage(b->pool, err, step);
	sandbox_fail(b, text);
}

struct guest *sandbox_guest(struct sandbox *b)
{
	return b->guest;
}

int sandbox_workspace(const struct sandbox *b)
{
	return b->workspace;
}

uint32_t sandbox_host_id(const struct sandbox *b)
{
	return b->host_id;
}

/* ---- the guest's events, passed on or kept ------------------------------------------ */

static void text_of_frame(const struct wire_frame *f, enum wire_tag tag, char *text, size_t size)
{
	struct wire_field field;
	size_t at = 0;
	while (wire_field_next(f, &at, &field) == 1)
		if (field.tag == tag)
			snprintf(text, size, "%.*s", (int)(field.len < size ? field.len : size - 1), field.data);
}

static void take_steps(struct sandbox *b, const struct wire_frame *f)
{
	struct step_times told = { 0 };
	struct wire_field field;
	size_t at = 0;
	uint64_t n;
	while (wire_field_next(f, &at, &field) == 1)
		if (field.tag == WIRE_STEP && wire_field_u64(&field, &n) == 0)
			step_add_packed(&told, n);
	step_add(&told, STEP_SPAWN, step_rest(&told, STEP_CLONE, STEP_PYTHON, clock_now_ns() - b->asked_ns));
	step_add_all(&b->pool->stats.steps, &told);
}

static void sandbox_on_frame(void *userdata, const struct wire_frame *f)
{
	struct sandbox *b = userdata;
	char text[256] = "no reason given";
	if (b->state != SANDBOX_STARTING) {
		if (b->owner)
			b->events->guest.on_frame(b->owner, f);
	} else if (f->type == WIRE_READY) {
		b->state = SANDBOX_READY;
		take_steps(b, f);
		b->pool->stock_failed = false;
		b->pool->stock_failures = 0;
		sandbox_pool_forget_shortage(b->pool);
		text_of_frame(f, WIRE_FILES_LEFT, b->files_left, sizeof(b->files_left));
		text_of_frame(f, WIRE_NOTE, b->note, sizeof(b->note));
		if (b->owner)
			b->events->on_ready(b->owner);
		else
			b->pool->stats.stock_ready++;
		sandbox_end_retiring_guest(b);
		b->ready_ms = uv_now(b->pool->config.loop);
		sandbox_pool_stock_changed(b->pool);
	} else if (f->type == WIRE_FAILED) {
		text_of_frame(f, WIRE_TEXT, text, sizeof(text));
		sandbox_fail(b, text);
	}
}

static void sandbox_on_output(void *userdata, enum stream s, const char *data, size_t len)
{
	struct sandbox *b = userdata;
	if (b->owner)
		b->events->guest.on_output(b->owner, s, data, len);
}

static void sandbox_on_exit(void *userdata, const struct process_exit *end, bool broken)
{
	struct sandbox *b = userdata;
	if (b->state == SANDBOX_STARTING) {
		char text[96];
		snprintf(text, sizeof(text), "it died while it started (%s %d)", end->signaled ? "signal" : "exit code", end->status);
		sandbox_fail(b, text);
	} else if (b->owner) {
		b->events->guest.on_exit(b->owner, end, broken);
	} else {
		if (b->state == SANDBOX_READY)
			b->pool->stats.stock_ready--;
		b->pool->stock_failed = true; /* whatever ended it, as a machine out of memory, would end the next one too */
		sandbox_close(b);
	}
}

static const struct guest_events sandbox_guest_events = { sandbox_on_frame, sandbox_on_output, sandbox_on_exit };

/* ---- asking ------------------------------------------------------------------------- */

void sandbox_ask_jail(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	struct {
		struct jail_request q;
		struct jail_network network;
	} m = { .q = { .serial = b->serial, .host_id = b->host_id, .disk_bytes = b->kind.disk_bytes, .inodes = b->kind.inodes, .exec = b->kind.exec,
			.net = b->kind.network.net } };
	unsigned unused[JAIL_LISTEN_MAX];
	bool allow = b->kind.network.net == JAIL_NET_ALLOW;
	if (!n->jailer_up || b->jail_asked)
		return; /* asked when it is up */
	if (allow)
		network_plan(b->kind.network.allow, &m.network, unused);
	m.q.nested = b->outer != NULL;
	if (helper_send(&n->jailer, &m, allow ? sizeof(m) : sizeof(m.q), b->outer ? &b->outer->init_pidfd : NULL, b->outer ? 1 : 0) == 0)
		b->jail_asked = true;
	else
		n->requests_refused = true;
}

int sandbox_new_guest(struct sandbox *b)
{
	return guest_create(b->pool->config.loop, &sandbox_guest_events, b, &b->guest, b->far);
}

void sandbox_ask_guest(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	struct wire_spawn q = { .serial = b->serial, .exec = b->kind.exec, .net = b->kind.network.net };
	struct cgroup_join_fds ticket = { 0 };
	if (b->moving) {
		sandbox_ask_move(b);
		return;
	}
	if (b->spare) {
		sandbox_make_cgroup(b); /* a failure is told when it counts */
		return;
	}
	struct template *t = b->kind.template;
	if (t ? !template_warm(t) : !n->zygote_warm)
		return; /* asked when it is warm */
	if (!b->guest) {
		int e = sandbox_new_guest(b);
		if (e < 0) {
			sandbox_fail_step(b, e, "making its pipes");
			return;
		}
	}
	b->from = NULL;
	b->files_left[0] = '\0';
	int r = sandbox_make_cgroup(b);
	if (r == 0)
		r = cgroup_join_fds_open(&n->cgroups, b->cgroup, &ticket);
	if (r < 0) {
		sandbox_fail_step(b, r, "making its control group");
		return;
	}
	int fds[WIRE_SPAWN_FDS_MAX] = { b->init_pidfd, b->far[0], b->far[1], b->far[2] };
	memcpy(fds + WIRE_SPAWN_FDS, ticket.fds, ticket.n * sizeof(int));
	q.into = (uint32_t)ticket.into;
	if (helper_send(t ? template_helper(t) : &n->zygote, &q, sizeof(q), fds, WIRE_SPAWN_FDS + ticket.n) == 0)
		b->state = SANDBOX_STARTING;
	else
		n->requests_refused = true;
	b->asked_ns = clock_now_ns();
	cgroup_join_fds_close(&ticket);
}

static void on_init_exit(uv_poll_t *p, int status, int events)
{
	struct sandbox *b = p->data;
	struct process_exit end;
	(void)status, (void)events;
	if (process_reap(b->init_pidfd, &end) == 0)
		return;
	b->init_reaped = true;
	uv_poll_stop(p);
	if (b->state == SANDBOX_CLOSED) {
		close_poll(p);
		return;
	}
	/* Its jail is gone, and all in it. A stock sandbox is dropped; an owner hears of it through his guest's end, or here. */
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
	if (!b->display_asked)
		sandbox_fail(b, "the jail's init takes no orders");
}

void sandbox_open_display(struct sandbox *b, const uint8_t cookie[XSOCKET_COOKIE])
{
	memcpy(b->cookie, cookie, XSOCKET_COOKIE);
	b->wants_display = true;
	ask_display(b); /* now, or when the jail is there */
}

int sandbox_join_fds(struct sandbox *b, int *ret_init_pidfd, struct cgroup_join_fds *ret)
{
	if (b->init_pidfd < 0 || b->init_reaped || !b->cgroup[0])
		return -ENOENT;
	*ret_init_pidfd = b->init_pidfd;
	return cgroup_join_fds_open(&b->pool->cgroups, b->cgroup, ret);
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
	if (byte == JAIL_FIGURES) {
		sandbox_tell_figures(b);
		return;
	}
	if (byte == JAIL_SWEEP && b->sweeps)
		b->sweeps--;
	if (b->state == SANDBOX_SWEEP && !b->sweeps) {
		b->state = SANDBOX_GUEST;
		sandbox_ask_guest(b);
	}
}

static int watch_jail(struct sandbox *b)
{
	uv_loop_t *loop = b->pool->config.loop;
	fd_set_nonblock(b->init_control, 1);
	int r = uv_poll_init(loop, &b->init_poll, b->init_pidfd);
	if (r == 0)
		r = uv_poll_init(loop, &b->control_poll, b->init_control);
	if (r < 0)
		return r;
	b->init_poll.data = b->control_poll.data = b;
	b->open_polls = 2;
	uv_poll_start(&b->init_poll, UV_READABLE, on_init_exit);
	uv_poll_start(&b->control_poll, UV_READABLE, on_told);
	return 0;
}

void sandbox_take_jail(struct sandbox *b, const struct jail_answer *a, int *fds, size_t n_fds)
{
	b->jail_asked = false;
	if (b->state == SANDBOX_CLOSED && (a->err || n_fds < JAIL_ANSWER_FDS)) {
		free_when_closed(b);
		return;
	}
	if (a->err) {
		if (!b->outer)
			sandbox_pool_note_shortage(b->pool, a->err, "making a jail");
		sandbox_fail(b, a->text);
		return;
	}
	if (n_fds < JAIL_ANSWER_FDS) { /* there was no room to take them, and the jail ends for want of its control socket */
		sandbox_fail_step(b, -EMFILE, "taking a jail");
		return;
	}
	b->init_pidfd = TAKE_FD(fds[0]);
	b->init_control = TAKE_FD(fds[1]);
	b->workspace = TAKE_FD(fds[2]);
	int r = watch_jail(b);
	if (b->state == SANDBOX_CLOSED) { /* closed while the jail was being made: undo it */
		process_signal(b->init_pidfd, SIGKILL);
		close_poll(&b->control_poll);
		return;
	}
	if (r < 0) {
		sandbox_fail(b, uv_strerror(r));
		return;
	}
	for (size_t i = JAIL_ANSWER_FDS; i < n_fds; i++) {
		if (!b->outer)
			b->outlets[b->n_outlets++] = TAKE_FD(fds[i]);
		else if (i - JAIL_ANSWER_FDS < JAIL_NAMESPACES)
			b->namespaces[i - JAIL_ANSWER_FDS] = TAKE_FD(fds[i]);
	}
	if (b->n_outlets)
		proxy_client_open(b);
	if (!b->pool->config.stock) { /* else a guest of the stock will show whether there is room */
		b->pool->stock_failures = 0;
		sandbox_pool_forget_shortage(b->pool);
	}
	b->state = SANDBOX_GUEST;
	ask_display(b);
	sandbox_ask_guest(b);
}

struct sandbox *sandbox_new(struct sandbox_pool *n, const struct sandbox_kind *kind, const struct cgroup_limits *limits, void *owner)
{
	return sandbox_new_in(n, kind, limits, owner, NULL);
}

struct sandbox *sandbox_new_in(struct sandbox_pool *n, const struct sandbox_kind *kind, const struct cgroup_limits *limits, void *owner, struct sandbox *outer)
{
	struct sandbox *b = calloc(1, sizeof(*b));
	if (!b || network_policy_copy(&kind->network, &b->kind.network) < 0) {
		free(b);
		return NULL;
	}
	b->pool = n;
	b->owner = owner;
	b->events = n->config.events;
	b->serial = ++n->next_serial;
	b->outer = outer;
	b->host_id = outer ? outer->host_id : take_host_id(n); /* a nested user namespace has no other id to give */
	if (outer)
		outer->nested++;
	b->kind.disk_bytes = kind->disk_bytes;
	b->kind.inodes = kind->inodes;
	b->kind.exec = kind->exec;
	b->kind.template = kind->template;
	b->limits = *limits;
	b->init_pidfd = b->arriving = b->init_control = b->workspace = b->far[0] = b->far[1] = b->far[2] = -1;
	TAILQ_INIT(&b->snapshots);
	for (int i = 0; i < JAIL_NAMESPACES; i++)
		b->namespaces[i] = -1;
	TAILQ_INSERT_TAIL(&n->sandboxes, b, link);
	sandbox_ask_jail(b);
	return b;
}

void sandbox_want_guest(struct sandbox *b)
{
	b->spare = false;
	if (b->state == SANDBOX_GUEST)
		sandbox_ask_guest(b);
}

void sandbox_rehearse(struct sandbox *b)
{
	_cleanup_buffer_ struct buffer frame = BUFFER_INIT(0);
	size_t start;
	b->rehearsed_ms = uv_now(b->pool->config.loop);
	if (wire_begin(&frame, WIRE_REHEARSE, 0, &start) == 0) {
		wire_end(&frame, start);
		guest_send(b->guest, &frame);
	}
}

bool sandbox_is_stock(const struct sandbox *b)
{
	return !b->owner && b->state != SANDBOX_CLOSED;
}

void sandbox_take_guest(struct sandbox *b, int pidfd, pid_t pid)
{
	for (int i = 0; i < 3; i++)
		fd_close_clear(&b->far[i]);
	int r = guest_attach(b->guest, pidfd, pid);
	if (r < 0)
		sandbox_fail(b, uv_strerror(r));
}

void sandbox_end_retiring_guest(struct sandbox *b)
{
	guest_close(b->former);
	b->former = NULL;
}

void sandbox_drop_guest(struct sandbox *b)
{
	sandbox_end_retiring_guest(b);
	guest_close(b->guest);
	b->guest = NULL;
	for (int i = 0; i < 3; i++)
		fd_close_clear(&b->far[i]);
}

void sandbox_forget_guest(struct sandbox *b)
{
	if (b->state != SANDBOX_STARTING || !b->guest || guest_pid(b->guest) || b->from)
		return;
	sandbox_drop_guest(b);
	b->state = SANDBOX_GUEST;
}

void sandbox_forget_jail(struct sandbox *b)
{
	b->jail_asked = false;
	free_when_closed(b);
}

/* The init's socket closes before its jail's processes are killed, its pidfd only says so after they have gone. */
bool sandbox_has_jail(const struct sandbox *b)
{
	struct pollfd p = { .fd = b->init_control, .events = POLLRDHUP };
	return b->init_control >= 0 && !b->init_reaped && (poll(&p, 1, 0) == 0 || !(p.revents & (POLLHUP | POLLRDHUP | POLLERR)));
}

/* Asks the init to kill everything else in the jail. */
static bool sweep(struct sandbox *b)
{
	char byte = JAIL_SWEEP;
	if (b->init_reaped || write(b->init_control, &byte, 1) != 1)
		return false;
	b->sweeps++;
	return true;
}

void sandbox_kill_all(struct sandbox *b)
{
	if (!TAILQ_EMPTY(&b->snapshots) || b->nested) {
		sandbox_kill_others(b);
		return;
	}
	if (b->guest)
		guest_signal(b->guest, SIGKILL);
	if (b->state == SANDBOX_READY)
		sweep(b);
}

void sandbox_replace_guest(struct sandbox *b)
{
	sandbox_drop_guest(b);
	sandbox_drop_snapshots(b); /* the sweep takes them too */
	sandbox_count_snapshots(b);
	if (b->state == SANDBOX_JAIL)
		return; /* nothing there yet: its first guest will do */
	if (b->nested) { /* a sweep would reach into the jails that are nested in this one */
		sandbox_kill_others(b);
		b->state = SANDBOX_GUEST;
		sandbox_ask_guest(b);
		return;
	}
	if (!sweep(b)) {
		sandbox_fail(b, "the jail's init died");
		return;
	}
	b->state = SANDBOX_SWEEP;
}
