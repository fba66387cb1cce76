/* Declarations shared by the files of processes.h; private to them. */
#pragma once

#include "sandbox/program.h"
#include "session/internal.h"
#include "session/output.h"
#include "session/processes/processes.h"

struct session_process {
	TAILQ_ENTRY(session_process) link;
	struct session *session;
	struct program *program; /* NULL once it has failed */
	enum process_state state;
	unsigned id;
	char *command, *cwd, *tag, **argv, **env;
	bool terminal, input, timed_out, ending;
	double timeout_s; /* 0: none */
	struct process_exit end;
	int err;
	char why[160];
	uint64_t started_ns, started_wall_ns, ended_ns;
	struct kept_output kept;
	struct output output[2];
	TAILQ_HEAD(, process_reader) readers;
	uv_timer_t timer;
};

/* Oldest first; those that have ended are behind the others' ends in time, not in place. */
struct processes {
	TAILQ_HEAD(process_list, session_process) list;
	unsigned running, ended;
};

static inline bool process_has_ended(const struct session_process *p)
{
	return p->state == PROCESS_EXITED || p->state == PROCESS_FAILED;
}
