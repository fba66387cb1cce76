/* A session whose interpreter died: it goes on from its last snapshot, or afresh. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "session/internal.h"

enum { TRIES_MAX = 2 };

void recovery_lose(struct session *s, const char *why)
{
	if (s->ending)
		return;
	if (why)
		snprintf(s->no_snapshot, sizeof(s->no_snapshot), "%s", why);

	s->wipe = false;
	session_stop_clock(s);
	if (s->death.jail)
		room_lose_named(s);
	session_end_with_guest(s, false);
	history_forget(s);
	if (s->ending)
		return;

	if (room_keep_named(s))
		sandbox_restart_guest(s->sandbox); /* the variables are gone, the checkpoints are not */
	else
		sandbox_replace_guest(s->sandbox);
}

void recovery_begin(struct session *s)
{
	if (s->ending)
		return;
	if (!(s->recovery = operation_new(OPERATION_RECOVERY, NULL))) {
		recovery_lose(s, "the server is short of memory");
		return;
	}
	s->death.back_to = s->cells;
	if (!s->death.jail && (history_recover(s) || (!s->running && history_fall_back(s))))
		return;

	operation_free(TAKE_PTR(s->recovery));
	recovery_lose(s, NULL);
}

bool recovery_retry(struct session *s, unsigned *tries)
{
	return ++*tries < TRIES_MAX && history_retry(s);
}

/* The new interpreter died as well, or never came to life. */
static void fail(struct session *s)
{
	if (recovery_retry(s, &s->recovery->recovery.tries))
		return;

	log_warning("session %s: a copy of its guest could not take over", s->id);
	operation_free(TAKE_PTR(s->recovery));
	recovery_lose(s, "the copy did not come to life");
	operation_waits(s);
}

static void restored(struct session *s)
{
	operation_free(TAKE_PTR(s->recovery));
	if (!s->running && s->params.keep_files_bytes && !*sandbox_files_not_restored(s->sandbox))
		s->files_touched = false; /* what the API wrote since is gone, too */
	session_end_with_guest(s, true);
	operation_begin(s); /* a request that waited for this */
}

const struct operation_ops recovery_operation = {
	.restored = restored,
	.guest_died = fail,
	.restore_failed = fail,
};
