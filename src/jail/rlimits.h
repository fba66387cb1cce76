/*
 * Per-process limits that every guest has from its start; all processes that it starts inherit
 * them. System calls only.
 */
#pragma once

enum {
	/* of the session's user, threads and processes together: the most; a session's own limit
	 * follows */
	RLIMITS_PROCESSES = 4096,
	RLIMITS_FILES = 1024, /* open at once; the hard limit is RLIMITS_FILES_HARD */
	RLIMITS_FILES_HARD = 4096,
	/* bytes that may not be swapped out; what the kernel gives everybody */
	RLIMITS_LOCKED = 8 << 20,
	/* queued ones and timers together: each is memory of the kernel's */
	RLIMITS_SIGNALS = 4096,
};

int rlimits_apply(const char **ret_step);
