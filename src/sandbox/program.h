/*
 * The daemon's side of one program that runs beside the interpreters of a sandbox: its standard
 * streams or its terminal, and its pidfd.
 *
 * The zygote clones the process, which enters the jail as a guest does: same namespaces, control
 * group, user, Landlock rules and system call filter. It is a child of the daemon, the leader of
 * its own session and process group. Closing has one path, program_close(): no callback is called
 * after it, the group is killed, the process is reaped, and the memory is then freed automatically.
 * Callbacks may call program_close().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/process.h"
#include "sandbox/guest_link.h"

struct buffer;
struct program;
struct sandbox;
struct sandbox_pool;

struct program_events {
	/* the program runs; its number in the jail */
	void (*on_started)(void *owner, pid_t pid);
	/* the program could not be started: the step that failed. Close it */
	void (*on_failed)(void *owner, int err, const char *step);
	/* a terminal's output is that of STREAM_STDOUT */
	void (*on_output)(void *owner, enum stream s, const char *data, size_t len);
	/*
	 * Its process ended; all it had written was delivered before. What its children still write
	 * is read and dropped until program_close().
	 */
	void (*on_exit)(void *owner, const struct process_exit *end);
};

struct program_spec {
	const struct buffer *frame; /* START, whole (wire/start.h) */
	bool terminal;              /* it has one; else pipes */
	bool input;                 /* a pipe for its standard input; else /dev/null */
};

/*
 * Asks for the program; on_started or on_failed follows, the latter perhaps before this returns.
 * -ENOENT: the sandbox has no jail now.
 */
int sandbox_start_program(struct sandbox *b, const struct program_spec *spec,
	const struct program_events *events, void *owner, struct program **ret);

/*
 * Queues input. -EPIPE: it has none, or does not read any more; -ENOBUFS: too much waits already.
 */
int program_write(struct program *p, const void *data, size_t len);
/* The end of its input, behind what waits; a terminal gets its end-of-file character. */
void program_close_input(struct program *p);

/* To the whole process group. -ESRCH when its process has ended. */
int program_signal(struct program *p, int sig);
int program_resize(struct program *p, unsigned rows, unsigned columns); /* -ENOTTY without one */

/* Its output is not read while it is held; the program waits then. */
void program_hold_output(struct program *p, bool hold);

void program_close(struct program *p); /* NULL is fine */

/* ---- of the sandbox layer ---- */

/* Numbers on the host of the leaders of the sandbox's programs; returns how many. */
size_t programs_leaders(const struct sandbox *b, pid_t *ret, size_t max);
/* The zygote's answer; false when the serial is not that of a program. */
bool programs_spawned(
	struct sandbox_pool *n, uint32_t serial, int err, int *fds, size_t n_fds, pid_t pid);
void programs_ask_again(struct sandbox_pool *n); /* the zygote is warm */
void programs_zygote_died(struct sandbox_pool *n);
void programs_detach(struct sandbox *b); /* the sandbox is about to be freed */
