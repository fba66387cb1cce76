/*
 * What trainers and evaluators call (private to its files): SandboxFusion's /run_code and
 * /run_jupyter, NeMo-Skills' /execute, Dify's /v1/sandbox/run. All of them are programs in sessions
 * of their own (api/run_jobs.h), but for NeMo's named sessions.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "api/call.h"
#include "api/run_jobs.h"
#include "base/buffer.h"

struct json_writer;
struct named_sessions;

struct trainers {
	struct api *api;
	struct named_sessions *named; /* of NeMo's clients */
};
struct trainers *trainers_of(const struct call *c);

/* ---- a call that waits for a program (script_call.c) ----------------------------- */

struct script_ops {
	/* Answers the call. */
	void (*answer)(struct call *c, void *extra, const struct job_outcome *outcome);
	void (*free_extra)(void *extra); /* may be NULL */
};

/*
 * Starts the program and answers when it has ended; takes request and extra over. `bytes`: held for
 * the request while it waits.
 */
void script_call_start(struct call *c, struct run_request *run, size_t bytes, double patience_s,
	const struct script_ops *ops, void *extra);

/* The body as an object; NULL with an error that says what is wrong. Any Content-Type will do. */
json_t *script_call_body(struct call *c, size_t *ret_len, struct error *e);

/* A text of the request into a request; a missing one stays empty. -ENOMEM. */
int script_set_text(struct field_text *to, const char *text, size_t len);

/* ---- outcomes as scripts have them (script_outcome.c) ------------------------------ */

/*
 * stdout, and stderr with the traceback behind it, as python3 would have written them. -ENOMEM,
 * -ENOBUFS.
 */
int script_stdout(const struct observation *o, struct buffer *out);
int script_stderr(const struct observation *o, struct buffer *out);
/* Negative for a signal that ended the program, as subprocess has it. */
int script_return_code(const struct observation *o);
/* The program's own error: a traceback, and not only an exit code. */
bool script_raised(const struct observation *o);
/* Ran out of its time. */
bool script_timed_out(const struct observation *o);

/* ---- files by path (script_files.c) -------------------------------------------------- */

/* "./a", "/workspace/a" and "a" are the same file; NULL: not below /workspace. */
const char *script_path(const char *path);
/*
 * {path: base64 or null} into files of the request. -EINVAL with an error that names the path,
 * -ENOMEM.
 */
int script_take_files(const json_t *files, struct field_files *ret, struct error *e);
/* The member `files`: those of the list that are there, in base64. */
void script_put_files(struct json_writer *w, const json_t *paths, struct session *s);

/* ---- errors --------------------------------------------------------------------------- */

/* {"detail": text}, as FastAPI's servers answer. */
void trainers_detail(struct call *c, int status, const char *text);
/* 422 with a list of one error about a field. */
void trainers_invalid(struct call *c, const char *field, const char *message);

/* ---- named sessions (named_sessions.c) ---------------------------------------------------- */

int named_sessions_create(struct api *a, struct named_sessions **ret);
void named_sessions_destroy(struct named_sessions *n);
/* The session of a name, made at first sight and when the one before has ended. */
int named_session_get(struct named_sessions *n, uint64_t owner, const char *name, struct error *e,
	struct session **ret, bool *ret_new);
/* Ends it. -ENOENT. */
int named_session_end(struct named_sessions *n, uint64_t owner, const char *name);

void handle_run_code(struct call *c);
void handle_run_jupyter(struct call *c);
void handle_fusion_ping(struct call *c);
void handle_nemo_execute(struct call *c);
void handle_nemo_delete(struct call *c);
void handle_dify_run(struct call *c);
void handle_dify_dependencies(struct call *c);

extern const struct route trainers_routes[];
