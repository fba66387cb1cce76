/*
 * The daemon's side of one guest: its control socket and its two pipes, on the loop, and its
 * process as a watched child.
 *
 * Closing is asynchronous and has one path: guest_close(). No callback is called after it, the
 * process is killed and reaped, and the memory is then freed automatically. Callbacks may call
 * guest_close().
 */
#pragma once

#include <uv.h>

#include "base/process.h"
#include "sandbox/children.h"
#include "wire/output_stream.h"
#include "wire/wire.h"

struct guest;

struct guest_events {
	void (*on_frame)(void *owner, const struct wire_frame *f);
	void (*on_output)(void *owner, enum stream s, const char *data, size_t len);
	/*
	 * The process ended, or broke the protocol (`broken`); all it had written was delivered
	 * before. Close it now.
	 */
	void (*on_exit)(void *owner, const struct process_exit *end, bool broken);
};

/*
 * Makes the two ends; *ret_far holds [control, stdout, stderr] for the zygote, the caller's to
 * close.
 */
int guest_create(uv_loop_t *loop, struct children *children, const struct guest_events *events,
	void *owner, struct guest **ret, int ret_far[3]);

/*
 * A snapshot is to make the process, and says so on the control socket: frames are delivered from
 * now on. When the snapshot ends without doing so, on_exit comes.
 */
int guest_listen(struct guest *g);

/*
 * The process is there: a child of this process that is not reaped, and from now on the guest's to
 * watch. -ECHILD or -EEXIST when it cannot be.
 */
int guest_attach(struct guest *g, pid_t pid);

pid_t guest_pid(const struct guest *g); /* 0 before guest_attach */

/* Sends frames (whatever the buffer holds; it is emptied). Queued when the socket is full. */
void guest_send(struct guest *g, struct buffer *frames);

/* The descriptors that came last with a frame, the caller's now; -1 where there is none. */
enum { GUEST_FDS_MAX = 2 };
void guest_take_fds(struct guest *g, int ret[GUEST_FDS_MAX]);

void guest_signal(struct guest *g, int sig);
void guest_signal_group(struct guest *g, int sig); /* its process group; not snapshots */

/*
 * Reads what is in the pipes right now and delivers it: after DONE, everything the guest itself
 * wrote is there.
 */
void guest_drain(struct guest *g);

/*
 * What it prints is no longer wanted as it comes (only the last of it will be kept): its pipes are
 * read once a millisecond from now until guest_prioritise(). It waits meanwhile, and neither it nor
 * the daemon takes a CPU from others.
 */
void guest_rest(struct guest *g);
void guest_prioritise(struct guest *g);

/* No callback comes any more, but the process stays as it is until guest_close(). */
void guest_retire(struct guest *g);

void guest_close(struct guest *g); /* NULL is fine */
