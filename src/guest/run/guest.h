/* The guest: the process in the jail that holds a session's interpreter. */
#pragma once

#include "guest/run/cell.h"

/*
 * Fixed and documented: the descriptor of ours that a guest has open beside 0, 1 and 2 is its
 * control socket. High, so that code that closes everything it did not open (os.closerange(3, 256))
 * does not end its own session. A parked copy, which runs no code, has from GUEST_FIRST_FD on what
 * came over its socket and waits for its use.
 */
enum { GUEST_CONTROL_FD = 1023, GUEST_FIRST_FD = 980 };

/*
 * What a guest and its parked copies are worth to the kernel's out-of-memory killer
 * (oom_score_adj): it takes the higher one first.
 */
#define GUEST_OOM_LIVE "700"
#define GUEST_OOM_PARKED "500"
#define GUEST_OOM_FRAGILE "1000" /* a copy beside a guest that uses more than half of the memory */

enum { GUEST_PARKED_FRAME_MAX = 4096 }; /* a parked copy is sent no more at once */

/* In the zygote: everything a guest needs, made once. -1 with a Python error. */
int guest_prepare(const struct support *support);

/*
 * In the zygote, when all is imported and warm: makes what every guest would otherwise make for
 * itself.
 */
void guest_settle(void);

/* What a guest does first and what its first cell does, without a guest. */
void guest_rehearse(void);

/*
 * In the guest, inside its jail, with GUEST_CONTROL_FD, 1 and 2 in place: serves cells until the
 * daemon hangs up.
 */
void __attribute__((noreturn)) guest_run(void);

/*
 * While a cell runs, with the GIL held: reads one result of a tool, or a part of it, without
 * waiting, and gives it to whoever waits. False when none is there. What else comes while a cell
 * runs (a cell inside it) is left for the main thread.
 */
bool guest_take_result(void);

/* In the main thread, while a cell runs: handles the frames that came, without waiting. */
void guest_take_frames(void);

/* Sends frames at once. False in a copy made by os.fork(), which has no daemon. */
bool guest_send_now(struct buffer *frames);

/*
 * Tells the daemon why there will be no guest (what was done, and which error that gave, or 0 where
 * the words say all), and ends the process. Plain C, no Python.
 */
void __attribute__((noreturn)) guest_fail(int control, const char *step, int err);
