/* What program.c and program_start.c share; not for others. */
#pragma once

#include <uv.h>

#include "base/buffer.h"
#include "sandbox/children.h"
#include "sandbox/sandbox.h"

enum { END_CONTROL, END_INPUT, END_STDOUT, END_STDERR, END_COUNT };

struct program {
	TAILQ_ENTRY(program) link;    /* of its sandbox */
	TAILQ_ENTRY(program) pending; /* of the pool, until the zygote has answered */
	struct sandbox *sandbox;      /* NULL once that is gone */
	struct sandbox_pool *pool;
	const struct program_events *events;
	void *owner;
	uint32_t serial;
	int fd[END_COUNT];
	int far[3]; /* control, stdout, stderr, until the zygote has them */
	uv_poll_t poll[END_COUNT];
	bool polled[END_COUNT], ended[END_COUNT];
	uv_timer_t left_over;
	unsigned open_handles;
	struct child process;
	pid_t pid; /* on the host; 0 before the zygote's answer */
	bool asked, is_pending, terminal, started, exited, reaped, closing, held, input_ends;
	pid_t inner_pid;
	struct buffer input;
};

/* program.c */
void program_free_when_done(struct program *p);
void program_forget_pending(struct program *p);
void program_close_end(struct program *p, int which);
void program_flush_input(struct program *p);
void program_on_output(uv_poll_t *h, int status, int events);
void program_on_exit(struct child *c, const struct process_exit *end);
/* Its owner closes it then: it may be gone when this returns. */
void program_fail(struct program *p, int err, const char *step);

/*
 * program_start.c: takes one message of its control socket. False when there is no other one to
 * wait for now.
 */
bool program_take_message(struct program *p);
