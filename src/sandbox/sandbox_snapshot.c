/*
 * Snapshots of a sandbox's guest: parking them, and guests that come from them instead of the
 * zygote.
 */
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
	/*
	 * Without this, no process could end the processes that a dead cell left running and spare
	 * the snapshots. A jail that does not exist yet will have its /proc.
	 */
	return !b->beside &&
	       (sandbox_pool_has_groups(b->pool) || b->watch.proc >= 0 || b->state == SANDBOX_JAIL);
}

struct snapshot *sandbox_snapshot(struct sandbox *b, uint64_t snapshot_id)
{
	struct snapshot *c;
	TAILQ_FOREACH (c, &b->snapshots, link)
		if (c->snapshot_id == snapshot_id)
			return c;
	return NULL;
}

struct snapshot *sandbox_next_snapshot(const struct sandbox *b, const struct snapshot *c)
{
	return c ? TAILQ_NEXT(c, link) : TAILQ_FIRST(&b->snapshots);
}

struct snapshot *sandbox_previous_snapshot(const struct sandbox *b, const struct snapshot *c)
{
	return c ? TAILQ_PREV(c, snapshot_list, link) : TAILQ_LAST(&b->snapshots, snapshot_list);
}

void sandbox_snapshot_is_newest(struct sandbox *b, struct snapshot *c)
{
	TAILQ_REMOVE(&b->snapshots, c, link);
	TAILQ_INSERT_TAIL(&b->snapshots, c, link);
}

unsigned sandbox_snapshots_leaving(const struct sandbox *b)
{
	return b->snapshots_leaving;
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
	TAILQ_FOREACH (c, &b->snapshots, link)
		n += snapshot_is_kept(c);
	if (n == b->snapshots_counted || !b->cgroup[0])
		return;

	b->snapshots_counted = n;
	cgroup_set_processes(&b->pool->cgroups, b->cgroup, processes_with_copies(b));
	sandbox_limits_changed(b);
}

uint64_t sandbox_memory(const struct sandbox *b)
{
	if (sandbox_is_watched(b))
		return sandbox_members_bytes((struct sandbox *)b);
	return b->cgroup[0] ? sandbox_own_bytes(b, cgroup_memory(&b->pool->cgroups, b->cgroup)) : 0;
}

uint64_t sandbox_memory_used(const struct sandbox *b)
{
	struct jail_figures f = { 0 };
	if (sandbox_is_watched(b))
		return sandbox_members_bytes((struct sandbox *)b);
	if (b->cgroup[0])
		cgroup_figures_read(&b->pool->cgroups, b->cgroup, &f);
	return f.used_bytes > f.cached_bytes ? f.used_bytes - f.cached_bytes : 0;
}

static size_t snapshot_pids(const struct sandbox *b, pid_t *ret, size_t max)
{
	size_t n = 0;
	struct snapshot *c;
	TAILQ_FOREACH (c, &b->snapshots, link)
		/* a dead copy's number may be another process by now */
		if (c->pid && !snapshot_has_ended(c) && n < max)
			ret[n++] = c->pid;
	return n;
}

bool sandbox_has_programs(const struct sandbox *b)
{
	pid_t one;
	return (!TAILQ_EMPTY(&b->programs) || sandbox_beside_guests(b, &one, 1)) && b->cgroup[0] &&
	       sandbox_can_snapshot(b);
}

void sandbox_kill_group(
	struct sandbox *b, const struct cgroup_limits *after, const struct cgroup_spared *spared)
{
	if (!sandbox_pool_has_groups(b->pool))
		sandbox_kill_members(b, spared);
	else if (b->cgroup[0])
		cgroup_kill_others(&b->pool->cgroups, b->cgroup, after, spared);
}

void sandbox_kill_others(struct sandbox *b)
{
	struct cgroup_limits after = b->limits;
	after.processes = processes_with_copies(b);
	pid_t spare[LIMIT_SNAPSHOTS], leaders[LIMIT_PROGRAMS];
	struct cgroup_spared spared = { .pids = spare,
		.n_pids = snapshot_pids(b, spare, LIMIT_SNAPSHOTS),
		.leaders = leaders,
		.n_leaders = programs_leaders(b, leaders, LIMIT_PROGRAMS) };
	spared.n_leaders += sandbox_beside_guests(
		b, leaders + spared.n_leaders, LIMIT_PROGRAMS - spared.n_leaders);
	/*
	 * Many processes that run leave the daemon too little time to look at each of them; these
	 * stop at once.
	 */
	if (b->guest && sandbox_is_watched(b))
		guest_signal_group(b->guest, SIGSTOP);
	if (b->guest)
		guest_signal(b->guest, SIGKILL);
	/* of a guest in another one's jail the children stay: they are not told apart */
	if (!b->beside)
		sandbox_kill_group(b, &after, &spared);
}

void sandbox_restart_guest(struct sandbox *b)
{
	sandbox_drop_guest(b);
	sandbox_count_snapshots(b);
	sandbox_kill_others(b);
	b->state = SANDBOX_GUEST;
	sandbox_ask_guest(b);
}

bool sandbox_is_alone(const struct sandbox *b)
{
	pid_t known[LIMIT_SNAPSHOTS + 1] = { b->guest ? guest_pid(b->guest) : 0 };
	size_t n = 1 + snapshot_pids(b, known + 1, LIMIT_SNAPSHOTS);
	return known[0] && b->cgroup[0] &&
	       cgroup_holds_only(&b->pool->cgroups, b->cgroup, known, n);
}

bool sandbox_is_quiet(const struct sandbox *b)
{
	enum { TO_SPARE = 32 << 20 };
	bool room = !b->limits.memory_bytes ||
		    sandbox_memory(b) + TO_SPARE < b->limits.memory_bytes;
	return room && sandbox_is_alone(b);
}

int sandbox_restore_snapshot(struct sandbox *b, struct snapshot *c, bool restore_files, bool quiet,
	struct snapshot **ret)
{
	pid_t pid = c->pid;
	struct guest *retiring = quiet ? TAKE_PTR(b->guest) : NULL;

	sandbox_drop_guest(b);
	if (retiring)
		guest_retire(retiring);
	b->retiring_guest = retiring;
	int r = sandbox_new_guest(b);
	if (r == 0)
		r = snapshot_become_guest(c, restore_files, ret);
	if (r < 0)
		return r;

	b->from = *ret;
	b->files_not_restored[0] = '\0';
	b->state = SANDBOX_STARTING;
	for (int i = 0; i < 3; i++)
		fd_close_clear(&b->guest_fds[i]);
	return guest_attach(b->guest, pid);
}

/* The template is optional for a session: without it, the guest comes from the zygote. */
static void do_without(struct sandbox *b, const char *why)
{
	const struct snapshot *c = b->from;
	bool asked = !b->moving; /* else its jail is not there yet */

	b->from = NULL;
	b->moving = false;
	b->kind.set = NULL;
	package_template_spoiled(b->pool, c, why);
	if (!b->owner) {
		/* made in advance, in the jail of that template: useless for any other session */
		sandbox_close(b);
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

	/* an id of its own for each family of sessions, which stays with a process to its end */
	if (geteuid() == 0)
		return process_uid(pid) == (long)b->host_id ? pid : 0;

	/* One that ended is in no group any more, and nothing can be done to it. */
	bool own = sandbox_pool_has_groups(b->pool)
			   ? b->cgroup[0] && cgroup_holds(&b->pool->cgroups, b->cgroup, pid)
			   : sandbox_has_member(b, pid);
	return own || has_ended(pidfd) ? pid : 0;
}

void sandbox_snapshot_failed(struct sandbox *b, const char *text)
{
	if (b->kind.set)
		do_without(b, text);
	else
		sandbox_fail(b, text);
}

void sandbox_take_live(struct sandbox *b, const char *text)
{
	int came[GUEST_FDS_MAX];
	guest_take_fds(b->guest, came);
	launcher_discard(came[1]);
	_cleanup_discard_ int fd = came[0];

	/* it is in the outer session's group yet */
	pid_t pid = b->outer ? sandbox_own_process(b->outer, fd) : 0;
	if (!b->from || b->arriving >= 0) {
		if (pid)
			/* no longer needed; reaped with the orphans */
			process_signal(fd, SIGKILL);
		return;
	}

	if (!pid)
		sandbox_snapshot_failed(b, *text ? text : "the snapshot could not be restored");
	else
		arrival_begin(b, TAKE_FD(fd), pid);
}

static struct sandbox *waits_for(struct sandbox_pool *n, const struct snapshot *c)
{
	struct sandbox *b;
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (b->from == c && b->state != SANDBOX_CLOSED &&
			(b->moving || (b->state == SANDBOX_STARTING && !guest_pid(b->guest) &&
					      b->arriving < 0)))
			return b;
	return NULL;
}

void sandbox_snapshot_died(struct sandbox_pool *n, struct snapshot *c)
{
	struct sandbox *b;

	/* from the start each time: the callback may close other sandboxes */
	while ((b = waits_for(n, c))) {
		if (b->kind.set) {
			do_without(b, "its snapshot had died");
			continue;
		}
		b->from = NULL;
		b->moving = false;
		sandbox_fail(b, "the snapshot had died");
	}
}

const char *sandbox_files_not_restored(const struct sandbox *b)
{
	return b->files_not_restored;
}

const char *sandbox_note(const struct sandbox *b)
{
	return b->note;
}

/* ---- a guest from the jail around ------------------------------------------------------- */

int sandbox_pool_nest(struct sandbox_pool *n, struct snapshot *c, bool reseed,
	const struct sandbox_kind *kind, const struct cgroup_limits *limits, void *owner,
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
	/* alive: whoever drops it says so to us first */
	struct snapshot *c = (struct snapshot *)b->from;
	const char *step = "making its ends";
	b->moving = false;
	int r = sandbox_new_guest(b);
	if (r == 0) {
		step = "making its control group";
		r = sandbox_make_cgroup(b);
	}

	if (r == 0) {
		step = "asking the snapshot";
		r = snapshot_move(c, b);
	}

	for (int i = 0; i < JAIL_NAMESPACES; i++)
		if (i != JAIL_NS_USER && i != JAIL_NS_PID)
			fd_close_clear(&b->namespaces[i]);
	b->state = SANDBOX_STARTING;
	if (r < 0) {
		char text[128];
		snprintf(text, sizeof(text), "%s: %s", step, strerror(-r));
		sandbox_snapshot_failed(b, text);
	}
}
