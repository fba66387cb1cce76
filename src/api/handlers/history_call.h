/*
 * A call that waits for a checkpoint, a rollback or a fork. It is freed exactly once: after the
 * request was answered, when the request was refused, or when the client left; then the session is
 * told that nobody waits any more.
 */
#pragma once

#include <stdbool.h>

#include "api/call.h"

enum history_answer {
	ANSWER_CHECKPOINT,
	ANSWER_ROLLBACK,
	ANSWER_FORKS,      /* a list of sessions */
	ANSWER_NEW_SESSION /* one fork, as a session that was made */
};

struct history_call {
	struct call *call;
	char session[CALL_ID_BYTES];
	enum history_answer answer;
	bool asking; /* the request function runs; it may answer before it returns */
	bool over;   /* answered, or refused */
};

/* Attaches one to the call; NULL without memory, and then the call was answered. */
struct history_call *history_call_new(
	struct call *c, const struct session *s, enum history_answer answer);

/* The request function returned r; answers the call when r is negative. */
void history_call_asked(struct history_call *h, int r, const struct error *e);

/* In the `done` function of the request, before and after the call is answered. */
struct call *history_call_begin_answer(struct history_call *h);
void history_call_end_answer(struct history_call *h);
