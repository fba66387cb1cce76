/*
 * Room for checkpoints: beyond the most a session may have, or the memory they may hold, those that
 * were not used for longest go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "session/internal.h"

enum {
	SMAPS_MAX = 16384,
	/* measuring takes a millisecond each, or more: then as many times as long there is none */
	WEIGH_REST = 20,
	WEIGH_SAME = 64,      /* two looks agree when they differ by less than this part */
	WEIGH_LOOK_MS = 1000, /* how often somebody looks whether there is reason to */
};

uint64_t evict_snapshot_size(struct snapshot *c)
{
	char path[64];
	_cleanup_free_ char *text = NULL;
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)c->pid);
	if (!c->respawning) { /* else as it was before */
		const char *at = fd_read_file(path, SMAPS_MAX, &text, NULL) < 0
					 ? NULL
					 : strstr(text, "\nPss:");
		/* only root may look into copies */
		c->size_bytes = at ? strtoull(at + strlen("\nPss:"), NULL, 10) * 1024
				   : sandbox_snapshot_bytes(c);
	}
	return c->size_bytes;
}

/* May it go? Not the one that the session's state is, or has just been made. */
static bool may_go(const struct session *s, const struct snapshot *c)
{
	return c->name && !c->held && !c->respawning && c != s->history.latest &&
	       c->snapshot_id != s->history.head;
}

static struct snapshot *least_used(struct session *s, unsigned *ret_n)
{
	struct snapshot *c, *found = NULL;
	*ret_n = 0;
	for (c = NULL; (c = sandbox_next_snapshot(s->sandbox, c));) {
		if (!may_go(s, c))
			continue;
		++*ret_n;
		if (!found || c->used_ns < found->used_ns)
			found = c;
	}
	return found;
}

/*
 * It is told with the next answer; should there be no memory for that, it only is not found when
 * somebody goes back to it.
 */
void evict_note(struct session *s, struct snapshot *c)
{
	if (!c->name) {
		history_evict(s, c);
		return;
	}

	char *told = NULL;
	if (asprintf(&told, "%s%s%s", s->history.evicted ? s->history.evicted : "",
		    s->history.evicted ? " " : "", c->id) >= 0) {
		free(s->history.evicted);
		s->history.evicted = told;
	}

	s->table->stats.checkpoints_evicted++;
	history_evict(s, c);
}

void evict_named(struct session *s)
{
	for (struct snapshot *c = sandbox_next_snapshot(s->sandbox, NULL), *next; c; c = next) {
		next = sandbox_next_snapshot(s->sandbox, c);
		if (c->name)
			evict_note(s, c);
	}
}

bool evict_unnamed(struct session *s)
{
	bool any = false;
	for (struct snapshot *c = sandbox_next_snapshot(s->sandbox, NULL), *next; c; c = next) {
		next = sandbox_next_snapshot(s->sandbox, c);
		if (c->name && snapshot_is_there(c))
			any = true;
		else
			evict_note(s, c);
	}
	return any;
}

static uint64_t most_bytes(const struct session *s)
{
	return s->table->config.checkpoint_bytes ? s->table->config.checkpoint_bytes
						 : s->params.limits.memory_bytes / 2;
}

/* Of all that have a name. */
static uint64_t measure(struct session *s)
{
	struct snapshot *c;
	uint64_t all = 0, began = clock_now_ns();
	for (c = NULL; (c = sandbox_next_snapshot(s->sandbox, c));)
		all += c->name ? evict_snapshot_size(c) : 0;
	uint64_t now = clock_now_ns();
	s->history.measured.rest_until_ns = now + (now - began) * WEIGH_REST;
	return all;
}

/*
 * A share of memory is small while processes hold the same that are about to go (a copy that was
 * let go, the guest before a rollback, what a cell left running), and grows when they have gone,
 * with nobody asking for anything. So snapshots are measured until two looks agree, and again when
 * what the whole family holds, which one small file tells, has changed.
 */
static bool worth_measuring(struct session *s, uint64_t now, bool at_once)
{
	if (!at_once && now < (s->history.measured.due ? s->history.measured.rest_until_ns
						       : s->history.measured.look_at_ns))
		return false;

	uint64_t family = sandbox_memory(s->sandbox);
	bool changed = family != s->history.measured.family_bytes;
	s->history.measured.family_bytes = family;
	s->history.measured.look_at_ns = now + WEIGH_LOOK_MS * NSEC_PER_MSEC;
	if (family <= most_bytes(s))
		s->history.measured.due = false; /* it holds at least what its checkpoints do */
	else if (changed && now >= s->history.measured.rest_until_ns)
		s->history.measured.due = true;
	return family > most_bytes(s) && (s->history.measured.due || at_once);
}

void evict_over_memory(struct session *s, bool at_once)
{
	unsigned n;
	uint64_t now = clock_now_ns(), most = most_bytes(s);
	struct snapshot *c = least_used(s, &n);

	if (!c || !most || !worth_measuring(s, now, at_once))
		return;

	uint64_t all = measure(s), before = s->history.measured.bytes,
		 differ = all > before ? all - before : before - all;
	s->history.measured.bytes = all;
	s->history.measured.due = all > most || s->queue.running ||
				  sandbox_snapshots_leaving(s->sandbox) ||
				  differ > all / WEIGH_SAME;
	while (all > most && (c = least_used(s, &n))) {
		log_info(
			"session %s: checkpoint %s is evicted, because its checkpoints use %llu MB",
			s->id, c->id, (unsigned long long)(all >> 20));
		all -= c->size_bytes < all ? c->size_bytes : all;
		evict_note(s, c);
	}
}

void evict_for_new(struct session *s)
{
	unsigned n;
	struct snapshot *c = least_used(s, &n);
	if (c && n >= s->table->config.max_checkpoints)
		evict_note(s, c);
	evict_over_memory(s, true);
}
