/*
 * Processes of a session: commands that a client runs beside its interpreters, in the same jail and
 * under the same limits.
 *
 * A `struct session_process *` is valid until its process was deleted or forgotten, or its session
 * ended; code that keeps such a pointer across turns of the loop attaches a reader, which is told
 * about the end. Numbers (`id`) are those of the processes in the jail. Ended processes are kept
 * for a while; the oldest are dropped first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "session/processes/kept_output.h"
#include "session/session.h"

struct session_process;
struct processes;

struct process_request {
	/* a command for the shell (bash, or sh where there is none), or … */
	const char *command;
	char *const *argv; /* … a program and its arguments, NULL at the end */
	char *const *env;  /* "NAME=value", NULL at the end, beside the session's; or NULL */
	const char *cwd;   /* relative to /workspace; NULL: /workspace */
	const char *home;  /* $HOME and the directory that `cwd` is relative to; NULL: /workspace */
	const char *tag;   /* a name of the client's, or NULL */
	const char *input; /* its whole standard input, or NULL */
	size_t input_len;
	bool keep_input;        /* its standard input stays open for session_process_write() */
	bool login;             /* the shell reads its start-up files */
	double timeout_s;       /* 0: none */
	unsigned rows, columns; /* of a terminal; 0: it has none */
};

enum process_state { PROCESS_STARTING, PROCESS_RUNNING, PROCESS_EXITED, PROCESS_FAILED };
const char *process_state_name(enum process_state s); /* "starting", "running", … */

struct process_info {
	unsigned id; /* 0 while it starts */
	enum process_state state;
	const char *command;   /* as it was given; or NULL */
	char *const *argv;     /* what is executed */
	char *const *env;      /* that it was given; or NULL */
	const char *cwd, *tag; /* may be NULL */
	bool has_terminal, has_input;
	/* of one that has ended */
	int exit_code; /* 128 + the signal's number when a signal ended it */
	int signal;    /* 0: none */
	bool timed_out;
	const char *why; /* PROCESS_FAILED: why it could not be started */
	int err;         /* the same as a negative errno */
	uint64_t started_wall_ns;
	double wall_s;
	uint64_t output_bytes; /* that it printed */
	uint64_t kept_from;    /* the position of the oldest byte that can still be read */
};

/*
 * Starts one. `r` (may be NULL) is attached before anything can happen. -EPERM (slugs
 * "exec_not_allowed", "policy_process"), -EBUSY ("too_many_processes"), -EINVAL, -ESHUTDOWN,
 * -EAGAIN ("starting": the session has no jail yet).
 */
struct process_reader;
int session_process_start(struct session *s, const struct process_request *q,
	struct process_reader *r, struct error *e, struct session_process **ret);

/* -ENOENT (slug "process_not_found"). */
int session_process_find(
	struct session *s, unsigned id, struct error *e, struct session_process **ret);
struct session_process *session_process_find_tag(struct session *s, const char *tag);
struct session_process *session_process_next(struct session *s, struct session_process *after);
void session_process_info(const struct session_process *p, struct process_info *ret);

/* What it printed, head and tail of each stream, as limits.output_bytes allows. */
void session_process_output(struct session_process *p, enum stream stream, struct captured *ret);

/* -EPIPE (slug "no_stdin"), -ENOBUFS (slug "stdin_full"). */
int session_process_write(struct session_process *p, const char *data, size_t len, struct error *e);
void session_process_close_input(struct session_process *p);
/* -ESRCH (slug "process_ended"). */
int session_process_signal(struct session_process *p, int sig, struct error *e);
/* -ENOTTY (slug "no_terminal"). */
int session_process_resize(
	struct session_process *p, unsigned rows, unsigned columns, struct error *e);
void session_process_delete(struct session_process *p); /* kills and forgets it */

/* ---- readers ------------------------------------------------------------------------------ */

/*
 * Somebody who follows a process: told whenever there is something new (output, a change of state),
 * in the turn in which it happens. While a reader lags behind, the process is held back rather than
 * output lost. Owned by whoever reads; `process` is NULL once it is gone.
 */
struct process_reader {
	TAILQ_ENTRY(process_reader) link;
	struct session_process *process;
	uint64_t position; /* of the next byte to read */
	void (*on_news)(struct process_reader *r);
	/* the process is forgotten, or its session has ended */
	void (*on_gone)(struct process_reader *r);
	void *userdata;
};
void process_reader_attach(struct process_reader *r, struct session_process *p);
void process_reader_detach(struct process_reader *r); /* idempotent */
/* The next piece, and the reader moves behind it; false when there is none now. */
bool process_reader_next(struct process_reader *r, struct kept_view *ret);

/* ---- of the session layer ---- */
void processes_end(struct session *s);            /* the session ends */
bool processes_running(const struct session *s);  /* or start */
bool processes_attended(const struct session *s); /* somebody follows one that runs */
