/*
 * Sandboxes on a machine without control groups: who lives in them, what they use, and ending them,
 * by a /proc of their jail (jail/members.h).
 *
 * The kernel bounds each process (memory, by its data segment) and their number (by the user
 * namespace of the jail). What all of them use together is measured here, five times a second, and
 * the largest process is killed when that is too much.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "jail/members.h"
#include "sandbox/sandbox.h"

enum {
	/* of CPU time, for looking at shared pages at a time, but at so many processes */
	SHARE_MS = 20,
	SHARE_LEAST = 4,
	LOOK_REST = 5, /* after a look: this many times as long there is none */
	FILES_MS = 10, /* for looking at their open files, at a time */
	/* then, as many times as long, it is not done */
	SHARE_REST = 10,
	/* unless what is surely an upper bound has grown by this part of the limit */
	SHARE_GROWN = 8,
};

static const struct sandbox *owner_of_jail(const struct sandbox *b)
{
	return b->beside ? b->beside : b;
}

bool sandbox_is_watched(const struct sandbox *b)
{
	return !sandbox_pool_has_groups(b->pool) && owner_of_jail(b)->watch.proc >= 0;
}

static unsigned depth_of(const struct sandbox *b)
{
	unsigned depth = 1;
	for (; b->outer; b = b->outer)
		depth++;
	return depth;
}

bool sandbox_has_member(const struct sandbox *b, pid_t pid)
{
	b = owner_of_jail(b);
	return b->watch.proc >= 0 && members_have(b->watch.proc, depth_of(b), pid);
}

void sandbox_kill_members(struct sandbox *b, const struct cgroup_spared *spared)
{
	pid_t pids[LIMIT_SNAPSHOTS + LIMIT_PROGRAMS], leaders[LIMIT_PROGRAMS];
	struct members_spared s = { .pids = pids, .leaders = leaders };
	unsigned depth = depth_of(b);
	if (b->watch.proc < 0)
		return;

	/* one that is gone has no number, and needs none */
	for (size_t i = 0; spared && i < spared->n_pids && s.n_pids < LIMIT_SNAPSHOTS; i++)
		pids[s.n_pids++] = members_number(spared->pids[i], depth);
	for (size_t i = 0; spared && i < spared->n_leaders && s.n_leaders < LIMIT_PROGRAMS; i++)
		leaders[s.n_leaders++] = members_number(spared->leaders[i], depth);
	members_kill_others(b->watch.proc, &s, b->nested);
}

/* ---- what they use ------------------------------------------------------------------ */

static bool is_snapshot(const struct sandbox *b, unsigned depth, const struct member *m)
{
	const struct snapshot *c;
	TAILQ_FOREACH (c, &b->snapshots, link)
		if (c->pid && members_number(c->pid, depth) == m->pid)
			return true;
	return false;
}

/* CPU time never goes back: that of processes which the daemon reaps is gone with them. */
static void count_cpu(struct sandbox *b, uint64_t now_ns)
{
	if (now_ns > b->watch.cpu_last_ns)
		b->watch.cpu_ns += now_ns - b->watch.cpu_last_ns;
	b->watch.cpu_last_ns = now_ns;
}

struct look {
	struct member *all; /* owned */
	size_t n;
	uint64_t live, parked; /* bytes, shared pages in full */
};

/* Parked snapshots are put behind the others: `n_live` of them come first. */
static int look_at(struct sandbox *b, struct look *ret, size_t *ret_n_live)
{
	uint64_t cpu_ns = 0;
	unsigned depth = depth_of(b);
	struct look l = { 0 };
	size_t live = 0;
	int r = members_read(b->watch.proc, &l.all, &l.n, &cpu_ns);

	if (r < 0)
		return r;
	for (size_t i = 0; i < l.n; i++) {
		struct member m = l.all[i];
		cpu_ns += m.cpu_ns;
		if (!TAILQ_EMPTY(&b->snapshots) && is_snapshot(b, depth, &m)) {
			l.parked += m.bytes;
			continue;
		}
		l.live += m.bytes;
		l.all[i] = l.all[live];
		l.all[live++] = m;
	}

	count_cpu(b, cpu_ns);
	*ret = l;
	*ret_n_live = live;
	return 0;
}

/* The memory of a guest at its start is the zygote's, which all sessions share. */
static uint64_t without_base(const struct sandbox *b, uint64_t bytes)
{
	return bytes > b->watch.base_bytes ? bytes - b->watch.base_bytes : 0;
}

void sandbox_members_born(struct sandbox *b)
{
	struct member m;
	if (b->watch.base_bytes || !sandbox_is_watched(b) || b->beside)
		return;
	if (b->outer)
		b->watch.base_bytes = b->outer->watch.base_bytes;
	else if (members_read_host(guest_pid(b->guest), &m) == 0)
		b->watch.base_bytes = m.bytes;
}

uint64_t sandbox_snapshot_bytes(const struct snapshot *c)
{
	struct member m;
	return c->pid && members_read_host(c->pid, &m) == 0 ? without_base(c->sandbox, m.bytes) : 0;
}

void sandbox_members_figures(struct sandbox *b, struct jail_figures *ret)
{
	struct look l;
	size_t live;
	if (look_at(b, &l, &live) < 0)
		return;
	ret->used_bytes = without_base(b, l.live);
	ret->user_ns = b->watch.cpu_ns;
	free(l.all);
}

uint64_t sandbox_members_bytes(struct sandbox *b)
{
	struct look l;
	size_t live;
	if (look_at(b, &l, &live) < 0)
		return 0;
	uint64_t bytes = l.live;
	for (size_t i = live; i < l.n; i++)
		bytes += without_base(b, l.all[i].bytes);
	free(l.all);
	return without_base(b, bytes);
}

uint64_t sandbox_members_cpu_ns(struct sandbox *b)
{
	struct look l;
	size_t live;
	if (look_at(b, &l, &live) == 0)
		free(l.all);
	return b->watch.cpu_ns;
}

/* ---- too much memory ---------------------------------------------------------------- */

/* A busy machine is no reason to look at fewer processes. */
static uint64_t cpu_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/*
 * Their memory with shared pages counted once. Processes that the time limit leaves out are assumed
 * to share the same proportion of their memory; each measurement begins with another process, so
 * that every process is measured at some time. *ret_largest is the largest of the measured
 * processes.
 */
static uint64_t share_of_all(
	struct sandbox *b, const struct member *all, size_t n, const struct member **ret_largest)
{
	uint64_t began = cpu_now_ns(), full = 0, shared = 0, rest = 0, most = 0;
	size_t first = b->watch.looks++ % n;

	for (size_t i = 0; i < n; i++) {
		const struct member *m = &all[(first + i) % n];
		if (i >= SHARE_LEAST && cpu_now_ns() - began > SHARE_MS * NSEC_PER_MSEC) {
			rest += m->bytes;
			continue;
		}
		uint64_t bytes = members_share(b->watch.proc, m);
		full += m->bytes;
		shared += bytes;
		if (bytes >= most)
			*ret_largest = m;
		most = bytes > most ? bytes : most;
	}

	b->watch.rest_until_ns = clock_now_ns() + (cpu_now_ns() - began) * SHARE_REST;
	return shared + (full ? (uint64_t)((double)rest * ((double)shared / (double)full)) : rest);
}

void sandbox_watch_memory(struct sandbox *b)
{
	struct look l;
	size_t live;
	uint64_t limit = b->limits.memory_bytes, start = clock_now_ns();
	if (!limit || b->beside || b->state == SANDBOX_CLOSED || !sandbox_is_watched(b) ||
		start < b->watch.next_look_ns || look_at(b, &l, &live) < 0)
		return;

	struct members_files counted = { .n = 0 };
	uint64_t began = cpu_now_ns();
	for (size_t i = 0; i < live && cpu_now_ns() - began < FILES_MS * NSEC_PER_MSEC; i++) {
		members_add_unnamed(b->watch.proc, &l.all[i], &counted);
		l.live += l.all[i].unnamed;
	}

	bool grown = l.live > b->watch.looked_bytes + limit / SHARE_GROWN;
	if (live && l.live > limit && (grown || clock_now_ns() >= b->watch.rest_until_ns)) {
		b->watch.looked_bytes = l.live;
		const struct member *largest = l.all;
		if (share_of_all(b, l.all, live, &largest) > limit &&
			members_signal(b->watch.proc, largest->pid, SIGKILL) == 0)
			b->watch.kills++;
	}
	free(l.all);
	/* a session with many processes, or a busy machine: the daemon has other things to do */
	b->watch.next_look_ns = clock_now_ns() + (clock_now_ns() - start) * LOOK_REST;
}
