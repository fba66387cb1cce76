/*
 * Copies of the guest. A parked copy is a fork that was taken between two cells, stays in the jail,
 * runs no Python and waits on its own socket. It can be told to become the live guest, with the
 * variables and, from file_snapshot.h, the files of the moment at which it was parked; it then
 * leaves another copy in its place, so that this can be repeated any number of times. It can also
 * be told to fork a guest for another jail. Rollbacks, checkpoints and forks are built from these
 * operations.
 *
 * A copy is taken only if it will be consistent: one thread, no child processes, no pipes, sockets
 * or locks, and memory for both. It is made by the bare system call: no at-fork handler runs, so a
 * copy continues exactly where the guest was, including the state of random number generators.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "guest/run/cell.h"
#include "wire/wire.h"

/* How the guest's own loop takes part. */
struct guest_snapshot_host {
	const struct support *support;
	void (*send)(struct buffer *frames, const int *fds, size_t n); /* on the control socket */
	/* a copy has read nothing yet */
	void (*forget_input)(void);
};
void guest_snapshot_prepare(const struct guest_snapshot_host *host);

/* read(2) of the control socket that keeps the descriptors that come along. */
ssize_t guest_snapshot_receive(void *data, size_t len);

/* In a copy made by the cell's own os.fork(): nothing of this is its own. */
void guest_snapshot_forked(void);

/* WIRE_PARK: now. WIRE_PARK_NEXT: see guest_snapshot_when_idle(). */
void guest_snapshot_handle(const struct wire_frame *f);
void guest_snapshot_cell_done(uint32_t serial, uint64_t took_ns);

/*
 * Is a copy wanted, and was a cell run? Then, when nothing comes for guest_snapshot_patience_ms(),
 * guest_snapshot_when_idle(): so a client that sends cell after cell does not wait for copies.
 * Cells that were quick are soon run again if need be, and wait longer for their copy, which is a
 * hundred times their work: trainers step many sessions by turns, and would else have a copy made
 * for each step. Like WIRE_PARK it returns in the guest and also, perhaps much later, in every live
 * guest that is made from the copy, whose control socket is then another one.
 */
enum { PARK_SOON_MS = 2, PARK_LATER_MS = 50, PARK_QUICK_MS = 10 };
int guest_snapshot_patience_ms(void);
bool guest_snapshot_due(void);
void guest_snapshot_when_idle(void);
