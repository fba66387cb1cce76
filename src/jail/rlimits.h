/* Per-process limits every guest is born with; the kernel hands them on to whatever it starts. System calls only. */
#pragma once

enum {
	RLIMITS_PROCESSES = 4096, /* of the session's user, threads and processes together: the most; a session's own limit follows */
	RLIMITS_FILES = 1024,    /* open at once; the hard limit is RLIMITS_FILES_HARD */
	RLIMITS_FILES_HARD = 4096,
	RLIMITS_LOCKED = 8 << 20, /* bytes that may not be swapped out; what the kernel gives everybody */
	RLIMITS_SIGNALS = 4096,  /* queued ones and timers together: each is memory of the kernel's */
};

int rlimits_apply(const char **ret_step);
