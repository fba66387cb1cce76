/* Copies of a berth's guest: parking them, and guests that come from them instead of the zygote. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/launcher.h"
#include "base/process.h"
#include "sandbox/sandbox.h"

bool berth_can_park(const struct berth *b)
{
	/* Without control groups nobody could end what a dead cell left running and spare the copies. */
	return strcmp(cgroup_home_kind(&b->nursery->cgroups), "none") != 0;
}

struct copy *berth_copy(struct berth *b, uint64_t ticket)
{
	struct copy *c;
	TAILQ_FOREACH(c, &b->copies, link)
		if (c->ticket == ticket)
			return c;
	return NULL;
}

void berth_drop_copies(struct berth *b)
{
	struct copy *c;
	while ((c = TAILQ_FIRST(&b->copies)))
		copy_drop(c);
}

static unsigned processes_with_copies(const struct berth *b)
{
	return b->limits.processes ? b->limits.processes + b->copies_counted : 0;
}

void berth_count_copies(struct berth *b)
{
	unsigned n = 0;
	struct copy *c;
	TAILQ_FOREACH(c, &b->copies, link)
		n += copy_is_kept(c);
	if (n == b->copies_counted || !b->cgroup[0])
		return;
	b->copies_counted = n;
	cgroup_set_processes(&b->nursery->cgroups, b->cgroup, processes_with_copies(b));
	berth_limits_changed(b);
}

uint64_t berth_memory(const struct berth *b)
{
	return b->cgroup[0] ? cgroup_memory(&b->nursery->cgroups, b->cgroup) : 0;
}

uint64_t berth_memory_used(const struct berth *b)
{
	struct jail_figures f = { 0 };
	if (b->cgroup[0])
		cgroup_figures_read(&b->nursery->cgroups, b->cgroup, &f);
	return f.used_bytes > f.cached_bytes ? f.used_bytes - f.cached_bytes : 0;
}

static size_t copy_pids(const struct berth *b, pid_t *ret, size_t max)
{
	size_t n = 0;
	struct copy *c;
	TAILQ_FOREACH(c, &b->copies, link)
		if (c->pid && n < max)
			ret[n++] = c->pid;
	return n;
}

void berth_kill_others(struct berth *b)
{
	struct cgroup_limits after = b->limits;
	after.processes = processes_with_copies(b);
	pid_t spare[LIMIT_COPIES];
	size_t n = copy_pids(b, spare, LIMIT_COPIES);
	if (b->guest)
		guest_signal(b->guest, SIGKILL);
	if (b->cgroup[0])
		cgroup_kill_others(&b->nursery->cgroups, b->cgroup, &after, spare, n);
}

void berth_restart_guest(struct berth *b)
{
	berth_drop_guest(b);
	berth_count_copies(b);
	berth_kill_others(b);
	b->state = BERTH_GUEST;
	berth_ask_guest(b);
}

bool berth_is_quiet(const struct berth *b)
{
	enum { TO_SPARE = 32 << 20 };
	pid_t known[LIMIT_COPIES + 1] = { guest_pid(b->guest) };
	size_t n = 1 + copy_pids(b, known + 1, LIMIT_COPIES);
	bool room = !b->limits.memory_bytes || berth_memory(b) + TO_SPARE < b->limits.memory_bytes;
	return room && known[0] && b->cgroup[0] && cgroup_holds_only(&b->nursery->cgroups, b->cgroup, known, n);
}

int berth_revive(struct berth *b, struct copy *c, bool restore_files, bool quiet, struct copy **ret)
{
	int pidfd = -1;
	pid_t pid = c->pid;
	struct guest *former = quiet ? TAKE_PTR(b->guest) : NULL;
	berth_drop_guest(b);
	if (former)
		guest_retire(former);
	b->former = former;
	int r = berth_new_guest(b);
	if (r == 0)
		r = copy_take(c, restore_files, ret, &pidfd);
	if (r < 0)
		return r;
	b->from = *ret;
	b->files_left[0] = '\0';
	b->state = BERTH_STARTING;
	for (int i = 0; i < 3; i++)
		fd_close_clear(&b->far[i]);
	return guest_attach(b->guest, pidfd, pid);
}

/* A session needs no template: its guest comes from the zygote then. */
static void do_without(struct berth *b, const char *why)
{
	const struct copy *c = b->from;
	bool asked = !b->moving; /* else its jail is not there yet */
	b->from = NULL;
	b->moving = false;
	b->kind.set = NULL;
	set_template_spoiled(b->nursery, c, why);
	if (!b->owner) {
		berth_close(b); /* made ahead, and in that template's jail: of no use for another session */
		return;
	}
	if (!asked)
		return;
	berth_drop_guest(b);
	b->state = BERTH_GUEST;
	berth_ask_guest(b);
}

/* Whether all of it has ended, reaped or not. */
static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	return poll(&p, 1, 0) == 1;
}

pid_t berth_own_process(const struct berth *b, int pidfd)
{
	pid_t pid = pidfd < 0 ? 0 : process_pid(pidfd);
	if (pid <= 1)
		return 0;
	if (geteuid() == 0) /* an id of its own for each family of sessions, which stays with a process to its end */
		return process_uid(pid) == (long)b->host_id ? pid : 0;
	/* One that ended is in no group any more, and nothing can be done to it. */
	bool own = b->cgroup[0] && cgroup_holds(&b->nursery->cgroups, b->cgroup, pid);
	return own || has_ended(pidfd) ? pid : 0;
}

void berth_not_alive(struct berth *b, const char *text)
{
	if (b->kind.set)
		do_without(b, text);
	else
		berth_fail(b, text);
}

void berth_take_live(struct nursery *n, struct copy *from, uint32_t serial, int pidfd, const char *text)
{
	_cleanup_discard_ int fd = pidfd;
	struct berth *b = berth_find(n, serial);
	pid_t pid = berth_own_process(from->berth, fd); /* it is in the outer session's group yet */
	if (!b || b->state != BERTH_STARTING || b->from != from || guest_pid(b->guest) || b->arriving >= 0) {
		if (pid)
			process_signal(fd, SIGKILL); /* nobody wants it any more; reaped with the orphans */
		return;
	}
	if (!pid)
		berth_not_alive(b, *text ? text : "the copy could not be brought to life");
	else
		arrival_begin(b, TAKE_FD(fd), pid);
}

static struct berth *waits_for(struct nursery *n, const struct copy *c)
{
	struct berth *b;
	TAILQ_FOREACH(b, &n->berths, link)
		if (b->from == c && b->state != BERTH_CLOSED &&
			(b->moving || (b->state == BERTH_STARTING && !guest_pid(b->guest) && b->arriving < 0)))
			return b;
	return NULL;
}

void berth_copy_died(struct nursery *n, struct copy *c)
{
	struct berth *b;
	while ((b = waits_for(n, c))) { /* from the start each time: whoever hears of it may close other berths */
		if (b->kind.set) {
			do_without(b, "its copy had died");
			continue;
		}
		b->from = NULL;
		b->moving = false;
		berth_fail(b, "the copy had died");
	}
}

const char *berth_files_left(const struct berth *b)
{
	return b->files_left;
}

const char *berth_note(const struct berth *b)
{
	return b->note;
}

/* ---- a guest from the jail around ------------------------------------------------------- */

int nursery_nest(struct nursery *n, struct copy *c, bool reseed, const struct berth_kind *kind, const struct cgroup_limits *limits, void *owner,
	struct berth **ret)
{
	struct berth *b = berth_new_in(n, kind, limits, owner, c->berth);
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

void berth_ask_move(struct berth *b)
{
	struct copy *c = (struct copy *)b->from; /* alive: whoever drops it says so to us first */
	const char *step = "making its ends";
	b->moving = false;
	int r = berth_new_guest(b);
	if (r == 0) {
		step = "making its control group";
		r = berth_make_cgroup(b);
	}
	if (r == 0) {
		step = "asking the copy";
		r = copy_move(c, b);
	}
	for (int i = 0; i < JAIL_NAMESPACES; i++)
		if (i != JAIL_NS_USER && i != JAIL_NS_PID)
			fd_close_clear(&b->namespaces[i]);
	b->state = BERTH_STARTING;
	if (r < 0) {
		char text[128];
		snprintf(text, sizeof(text), "%s: %s", step, strerror(-r));
		berth_not_alive(b, text);
	}
}
