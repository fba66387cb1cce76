/* A session whose interpreter died continues from its last snapshot, or starts afresh. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "session/internal.h"

enum { TRIES_MAX = 2 };

void recovery_lose(struct session *s, const char *why)
{
	if (s->phase == PHASE_ENDING)
		return;

	if (why)
		snprintf(s->history.no_snapshot, sizeof(s->history.no_snapshot), "%s", why);

	s->setup.clear_workspace = false;
	session_stop_clock(s);
	if (s->death.last.jail)
		evict_named(s);
	session_end_with_guest(s, false);
	history_forget(s);
	if (s->phase == PHASE_ENDING)
		return;

	if (evict_unnamed(s))
		/* the variables are gone, the checkpoints are not */
		sandbox_restart_guest(s->sandbox);
	else
		sandbox_replace_guest(s->sandbox);
}

void recovery_begin(struct session *s)
{
	if (s->phase == PHASE_ENDING)
		return;

	if (!(s->history.recovery = operation_new(OPERATION_RECOVERY, NULL))) {
		recovery_lose(s, "out of memory");
		return;
	}

	/*
	 * no cell has run since a death that was not told yet: the state is the one that its report
	 * names
	 */
	bool untold = !s->queue.running && s->death.has_report && !s->death.report.state_lost;
	s->death.last.back_to = untold ? s->death.report.cell : s->queue.cells;
	if (!s->death.last.jail &&
		(history_recover(s) || (!s->queue.running && history_fall_back(s))))
		return;

	operation_free(TAKE_PTR(s->history.recovery));
	recovery_lose(s, NULL);
}

bool recovery_retry(struct session *s, unsigned *tries)
{
	return ++*tries < TRIES_MAX && history_retry(s);
}

/* The new interpreter died as well, or never came to life. */
static void fail(struct session *s)
{
	if (recovery_retry(s, &s->history.recovery->recovery.tries))
		return;

	log_warning("session %s: a snapshot of its interpreter could not be restored", s->id);
	operation_free(TAKE_PTR(s->history.recovery));
	recovery_lose(s, "the snapshot could not be restored");
	operation_waits(s);
}

static void restored(struct session *s)
{
	operation_free(TAKE_PTR(s->history.recovery));
	s->history.replay.deaths += s->history.replayed.n_differ > 0;
	/* Further back than to before the cell: its answer says so. */
	if (s->queue.running && s->death.last.back_to != s->queue.cells)
		death_between_cells(s, true);
	if (!s->queue.running && s->params.keep_files_bytes &&
		!*sandbox_files_not_restored(s->sandbox))
		s->usage.uploads.touched = false; /* what the API wrote since is gone, too */
	session_end_with_guest(s, true);
	operation_begin(s); /* a request that waited for this */
}

const struct operation_ops recovery_operation = {
	.restored = restored,
	.guest_died = fail,
	.restore_failed = fail,
};
