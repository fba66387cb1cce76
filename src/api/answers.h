/* The JSON of answers: sessions, observations, and the events that lead to them (DESIGN §7). */
#pragma once

#include <stddef.h>

#include "session/session.h"
#include "session/tools/session_tools.h"

struct json_writer;

void answer_put_session(struct json_writer *w, const struct session *s);
void answer_put_observation(struct json_writer *w, const struct observation *o);

/* Members of an observation. */
void answer_put_error(struct json_writer *w, const struct cell_error *e); /* NULL: null */
void answer_put_files(struct json_writer *w, const struct observation *o);
void answer_put_truncated(struct json_writer *w, const struct observation *o);
void answer_put_usage(struct json_writer *w, const struct observation *o);

/*
 * The same without all that may be large (output, values, pictures), which is counted as left out:
 * for want of memory.
 */
void answer_without_output(const struct observation *o, struct observation *ret);
/*
 * An interpreter that died between cells: the members of an object, and the same as a line for
 * dialects that only have text, with its line end.
 */
void answer_put_death_fields(struct json_writer *w, const struct session_death *d);
enum { DEATH_LINE_MAX = 1024 };
const char *answer_death_line(const struct session_death *d, char line[DEATH_LINE_MAX]);

/* 201 with the session and where it is; ends the call. */
struct call;
void answer_created(struct call *c, const struct session *s);

/*
 * The members of an answer that a checkpoint was taken or gone back to (NULL: to a state without
 * one), and of the list of all of them.
 */
void answer_put_checkpoint_result(struct json_writer *w, const struct checkpoint_result *a);
void answer_put_checkpoints(struct json_writer *w, struct session *s);

/* Members: which cells were run again. */
void answer_put_replayed(struct json_writer *w, const struct replayed *r);

/* A list of texts from words with blanks between; empty for NULL. */
void answer_put_words(struct json_writer *w, const char *key, const char *words);

/* POST /v1/sessions with `from`: what must not stand beside it, and making it. */
struct create_request;
int create_check_from(const char *body, size_t len, struct error *e);
void create_from(struct call *c, struct create_request *q);

/*
 * One value in its forms: an object of media types. JSON from a guest that is not sound is given as
 * text.
 */
void answer_put_bundle(struct json_writer *w, const struct bundle *b);

/* The members of a call, without the object around them. */
void answer_put_call(struct json_writer *w, const struct tool_call *call);
void answer_put_tools(struct json_writer *w, const struct session *s);

/* Gives the session what a client said about a call. As session_answer_call(). */
struct tool_answer;
int api_answer_call(struct session *s, const void *client, uint64_t call,
	const struct tool_answer *a, struct error *e);
/* A picture, and the one of the end; null without either. */
void answer_put_film(struct json_writer *w, const struct film_report *f); /* NULL: null */
/* What there is to know of a picture, in words a model can act on; NULL: nothing. */
const char *screenshot_note(const struct screenshot *s);
void answer_put_screenshot(
	struct json_writer *w, const struct screenshot *s, const struct screenshot *end);
void answer_put_windows(struct json_writer *w, const struct window_entry *list, unsigned n);

/* Captured output as one string: head, the count of what is missing, tail. */
void answer_put_captured(struct json_writer *w, const struct captured *c);
