/* Snapshots of a sandbox's guest: parking them, and guests that come from them instead of the zygote. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/launcher.h"
#include "base/process.h"
#include "sandbox/sandbox.h"

bool sandbox_can_snapshot(const struct sandbox *b)
{
	/* Without control groups nobody could end what a dead cell left running and spare the snapshots. */
	return strcmp(cgroup_home_kind(&b->pool->cgroups), "none") != 0;
}

struct snapshot *sandbox_snapshot(struct sandbox *b, uint64_t ticket)
{
	struct snapshot *c;
	TAILQ_FOREACH(c, &b->snapshots, link)
		if (c->ticket == ticket)
			return c;
	return NULL;
}

void sandbox_drop_snapshots(struct sandbox *b)
{
	struct snapshot *c;
	while ((c = TAILQ_FIRST(&b->snapshots)))
		snapshot_drop(c);
}

static unsigned processes_with_copies(const struct sandbox *b)
{
	return b->limits.processes ? b->limits.processes + b->snapshots_counted : 0;
}

void sandbox_count_snapshots(struct sandbox *b)
{
	unsigned n = 0;
	struct snapshot *c;
	TAILQ_FOREACH(c, &b->snapshots, link)
		n += snapshot_is_kept(c);
	if (n == b->snapshots_counted || !b->cgroup[0])
		return;
	b->snapshots_counted = n;
	cgroup_set_processes(&b->pool->cgroups, b->cgroup, processes_with_copies(b));
	sandbox_limits_changed(b);
}

uint64_t sandbox_memory(const struct sandbox *b)
{
	return b->cgroup[0] ? cgroup_memory(&b->pool->cgroups, b->cgroup) : 0;
}

uint64_t sandbox_memory_used(const struct sandbox *b)
{
	struct jail_figures f = { 0 };
	if (b->cgroup[0])
		cgroup_figures_read(&b->pool->cgroups, b->cgroup, &f);
	return f.used_bytes > f.cached_bytes ? f.used_bytes - f.cached_bytes : 0;
}

static size_t snapshot_pids(const struct sandbox *b, pid_t *ret, size_t max)
{
	size_t n = 0;
	struct snapshot *c;
	TAILQ_FOREACH(c, &b->snapshots, link)
		if (c->pid && !copy_has_ended(c) && n < max) /* a dead copy's number may be another process by now */
			ret[n++] = c->pid;
	return n;
}

void sandbox_kill_others(struct sandbox *b)
{
	struct cgroup_limits after = b->limits;
	after.processes = processes_with_copies(b);
	pid_t spare[LIMIT_COPIES];
	size_t n = snapshot_pids(b, spare, LIMIT_COPIES);
	if (b->guest)
		guest_signal(b->guest, SIGKILL);
	if (b->cgroup[0])
		cgroup_kill_others(&b->pool->cgroups, b->cgroup, &after, spare, n);
}

void sandbox_restart_guest(struct sandbox *b)
{
	sandbox_drop_guest(b);
	sandbox_count_snapshots(b);
	sandbox_kill_others(b);
	b->state = SANDBOX_GUEST;
	sandbox_ask_guest(b);
}

bool sandbox_is_quiet(const struct sandbox *b)
{
	enum { TO_SPARE = 32 << 20 };
	pid_t known[LIMIT_COPIES + 1] = { guest_pid(b->guest) };
	size_t n = 1 + snapshot_pids(b, known + 1, LIMIT_COPIES);
	bool room = !b->limits.memory_bytes || sandbox_memory(b) + TO_SPARE < b->limits.memory_bytes;
	return room && known[0] && b->cgroup[0] && cgroup_holds_only(&b->pool->cgroups, b->cgroup, known, n);
}

int sandbox_revive(struct sandbox *b, struct snapshot *c, bool restore_files, bool quiet, struct snapshot **ret)
{
	int pidfd = -1;
	pid_t pid = c->pid;
	struct guest *former = quiet ? TAKE_PTR(b->guest) : NULL;
	sandbox_drop_guest(b);
	if (former)
		guest_retire(former);
	b->former = former;
	int r = sandbox_new_guest(b);
	if (r == 0)
		r = snapshot_take(c, restore_files, ret, &pidfd);
	if (r < 0)
		return r;
	b->from = *ret;
	b->files_left[0] = '\0';
	b->state = SANDBOX_STARTING;
	for (int i = 0; i < 3; i++)
		fd_close_clear(&b->far[i]);
	return guest_attach(b->guest, pidfd, pid);
}

/* A session needs no template: its guest comes from the zygote then. */
static void do_without(struct sandbox *b, const char *why)
{
	const struct snapshot *c = b->from;
	bool asked = !b->moving; /* else its jail is not there yet */
	b->from = NULL;
	b->moving = false;
	b->kind.set = NULL;
	package_template_spoiled(b->pool, c, why);
	if (!b->owner) {
		sandbox_close(b); /* made ahead, and in that template's jail: of no use for another session */
		return;
	}
	if (!asked)
		return;
	sandbox_drop_guest(b);
	b->state = SANDBOX_GUEST;
	sandbox_ask_guest(b);
}

/* Whether all of it has ended, reaped or not. */
static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	return poll(&p, 1, 0) == 1;
}

pid_t sandbox_own_process(const struct sandbox *b, int pidfd)
{
	pid_t pid = pidfd < 0 ? 0 : process_pid(pidfd);
	if (pid <= 1)
		return 0;
	if (geteuid() == 0) /* an id of its own for each family of sessions, which stays with a process to its end */
		return process_uid(pid) == (long)b->host_id ? pid : 0;
	/* One that ended is in no group any more, and nothing can be done to it. */
	bool own = b->cgroup[0] && cgroup_holds(&b->pool->cgroups, b->cgroup, pid);
	return own || has_ended(pidfd) ? pid : 0;
}

void sandbox_not_alive(struct sandbox *b, const char *text)
{
	if (b->kind.set)
		do_without(b, text);
	else
		sandbox_fail(b, text);
}

void sandbox_take_live(struct sandbox_pool *n, struct snapshot *from, uint32_t serial, int pidfd, const char *text)
{
	_cleanup_discard_ int fd = pidfd;
	struct sandbox *b = sandbox_find(n, serial);
	pid_t pid = sandbox_own_process(from->sandbox, fd); /* it is in the outer session's group yet */
	if (!b || b->state != SANDBOX_STARTING || b->from != from || guest_pid(b->guest) || b->arriving >= 0) {
		if (pid)
			process_signal(fd, SIGKILL); /* nobody wants it any more; reaped with the orphans */
		return;
	}
	if (!pid)
		sandbox_not_alive(b, *text ? text : "the copy could not be brought to life");
	else
		arrival_begin(b, TAKE_FD(fd), pid);
}

static struct sandbox *waits_for(struct sandbox_pool *n, const struct snapshot *c)
{
	struct sandbox *b;
	TAILQ_FOREACH(b, &n->sandboxes, link)
		if (b->from == c && b->state != SANDBOX_CLOSED &&
			(b->moving || (b->state == SANDBOX_STARTING && !guest_pid(b->guest) && b->arriving < 0)))
			return b;
	return NULL;
}

void sandbox_snapshot_died(struct sandbox_pool *n, struct snapshot *c)
{
	struct sandbox *b;
	while ((b = waits_for(n, c))) { /* from the start each time: whoever hears of it may close other sandboxes */
		if (b->kind.set) {
			do_without(b, "its copy had died");
			continue;
		}
		b->from = NULL;
		b->moving = false;
		sandbox_fail(b, "the copy had died");
	}
}

const char *sandbox_files_not_restored(const struct sandbox *b)
{
	return b->files_left;
}

const char *sandbox_note(const struct sandbox *b)
{
	return b->note;
}

/* ---- a guest from the jail around ------------------------------------------------------- */

int sandbox_pool_nest(struct sandbox_pool *n, struct snapshot *c, bool reseed, const struct sandbox_kind *kind, const struct cgroup_limits *limits, void *owner,
	struct sandbox **ret)
{
	struct sandbox *b = sandbox_new_in(n, kind, limits, owner, c->sandbox);
	if (!b)
		return -ENOMEM;
	b->from = c;
	b->moving = true;
	b->reseed = reseed;
	b->kind.set = kind->set;
	*ret = b;
	arrival_expect(n);
	return 0;
}

void sandbox_ask_move(struct sandbox *b)
{
	struct snapshot *c = (struct snapshot *)b->from; /* alive: whoever drops it says so to us first */
	const char *step = "making its ends";
	b->moving = false;
	int r = sandbox_new_guest(b);
	if (r == 0) {
		step = "making its control group";
		r = sandbox_make_cgroup(b);
	}
	if (r == 0) {
		step = "asking the copy";
		r = snapshot_move(c, b);
	}
	for (int i = 0; i < JAIL_NAMESPACES; i++)
		if (i != JAIL_NS_USER && i != JAIL_NS_PID)
			fd_close_clear(&b->namespaces[i]);
	b->state = SANDBOX_STARTING;
	if (r < 0) {
		char text[128];
		snprintf(text, sizeof(text), "%s: %s", step, strerror(-r));
		sandbox_not_alive(b, text);
	}
}
