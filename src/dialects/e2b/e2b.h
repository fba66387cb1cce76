/*
 * E2B: their SDKs' control plane, interpreter and envd, on the session table (private to this
 * folder).
 *
 * A sandbox is a session; its id is the session's without "s_", which fits a DNS label. Two access
 * tokens belong to each, derived from a secret of the daemon's: nothing is stored. Requests to a
 * sandbox name it in the header E2b-Sandbox-Id and are claimed whatever their path.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "api/call.h"
#include "base/sha256.h"
#include "session/processes/processes.h"

#define E2B_HOME "/home/user"
#define E2B_ENVD_VERSION "0.6.13"

enum {
	E2B_PORT_ENVD = 49983,
	E2B_PORT_INTERPRETER = 49999,
	E2B_SECRET_BYTES = 32,
	E2B_PATH_BYTES = 4096
};

struct e2b {
	struct api *api;
	unsigned char secret[E2B_SECRET_BYTES];
};
struct e2b *e2b_of(const struct call *c);

/* ---- ids and tokens ---- */
const char *e2b_sandbox_id(const char *session_id); /* without "s_" */
void e2b_session_id(const char *sandbox_id, char ret[SESSION_ID_LEN + 1]);
void e2b_token(
	const struct e2b *e, const char *purpose, const char *session_id, char ret[SHA256_HEX + 1]);

/* ---- errors in E2B's shape ---- */
/* Of the API and the HTTP server to requests of this dialect: Connect's shape for calls of envd. */
extern const struct http_problem_form e2b_problem_form;
void e2b_error(struct call *c, int status, const char *message);
/* The status follows from the error's slug; the remedy is part of the message. */
void e2b_fail(struct call *c, const struct error *e);

/*
 * The sandbox of a request to it; answers and returns NULL when there is none (502) or the token is
 * wrong (401).
 */
struct session *e2b_session(struct call *c);

/*
 * A link with a signature, which names no sandbox (e2b_signature.c); its sandbox, or NULL: it is
 * wrong, or over.
 */
bool e2b_is_signed(const struct http_exchange *x);
struct session *e2b_signed_session(struct call *c);

/* ---- the control plane: e2b_control.c, rows in e2b_routes.c ---- */
extern const struct route e2b_routes[], e2b_stray_route;
void e2b_create(struct call *c);
void e2b_list(struct call *c);
void e2b_get(struct call *c);
void e2b_kill(struct call *c);
void e2b_timeout(struct call *c);
void e2b_refresh(struct call *c);
void e2b_connect_sandbox(struct call *c);
void e2b_metrics(struct call *c);
/* e2b_list.c, e2b_network.c */
void e2b_update_network(struct call *c);
/* For addresses of E2B's API that have no row of their own. */
void e2b_unserved(struct call *c);
bool e2b_is_stray(const char *path);
/* e2b_templates.c */
void e2b_list_templates(struct call *c);
void e2b_template_alias(struct call *c);
void e2b_logs(struct call *c);
/* e2b_snapshots.c */
void e2b_pause(struct call *c);
void e2b_fork(struct call *c);
void e2b_snapshot(struct call *c);
void e2b_list_snapshots(struct call *c);
void e2b_delete_template(struct call *c);

/* ---- the interpreter: e2b_execute.c ---- */
void e2b_execute(struct call *c, struct session *s);
/* Sets variables of an interpreter that runs already; `variables` may be NULL. */
void e2b_set_environment(struct sessions *t, const char *id, const json_t *variables);
void e2b_plain(struct call *c, int status, const char *text); /* an answer of plain text */
/* e2b_contexts.c */
#define E2B_NO_LANGUAGE "This language is not available; Glovebox runs python and bash"
void e2b_contexts(struct call *c, struct session *s);
bool e2b_is_language(const char *language);
const char *e2b_language(const struct session *s); /* of a context or the sandbox itself */
/* As a client names it: the part of its id behind "s_", or the default one. NULL: there is none. */
struct session *e2b_find_context(struct session *s, const char *name, size_t len);
/* Appends JSON with everything beyond ASCII escaped, and a line end. */
int e2b_ascii_line(struct buffer *out, const char *json, size_t len);

/* ---- envd ---- */
/* /files: e2b_files.c, e2b_upload.c */
void e2b_files_get(struct call *c);
enum http_body_mode e2b_upload_begin(struct call *c);
void e2b_upload_end(struct call *c);
/* 1 and the path of the address, 0 when it has none, or -EINVAL. */
int e2b_files_path(struct call *c, char path[E2B_PATH_BYTES]);
/* Whether the native API refuses the path although the sandbox's user may be allowed to use it. */
bool e2b_files_refused(const struct error *e);
void e2b_files_fail(struct call *c, const struct error *e);
void e2b_files_failure(struct call *c, int exit_code, const struct buffer *err); /* of a script */
/* e2b_metadata.c: that of a request as JSON, or NULL; owned. -EINVAL, -ENOMEM. */
int e2b_metadata_read(struct call *c, char **ret, struct error *e);
/* Of a file below the home. -ENOSYS: this kernel keeps none. */
int e2b_metadata_store(struct session *s, const char *path, const char *json, struct error *e);
/* The workspace if some file in it may have metadata, else -1; not the caller's. */
int e2b_metadata_root(struct session *s);
/* The member "metadata" of an entry, if the file has any. */
void e2b_metadata_put(struct json_writer *w, int root, const char *path);
/* `method` is what follows "filesystem.Filesystem/" or "process.Process/". */
void e2b_filesystem(struct call *c, struct session *s, const char *method, json_t *request);
void e2b_process(struct call *c, struct session *s, const char *method, json_t *request);
void e2b_process_stream(struct call *c, struct session *s, const char *method, json_t *request);

/*
 * e2b_desktop.c: changes the command of a sandbox with a screen when it is one of @e2b/desktop's that
 * the session does without. argv has room for 8. Finish `d`, which starts as 0, behind the last use
 * of argv, also after an error.
 */
struct e2b_desktop {
	char *script, port[8], view[160];
};
int e2b_desktop(
	struct call *c, struct session *s, struct e2b_desktop *d, char **argv, struct error *e);
void e2b_desktop_finish(struct e2b_desktop *d);

/* e2b_watch.c: a stream, and the calls of those who poll (false: it is not one of them). */
void e2b_watch_stream(struct call *c, struct session *s, json_t *request);
bool e2b_watch(struct call *c, struct session *s, const char *method, json_t *request);

/* Connect: an error of a unary call, and the frames of a stream. */
#define E2B_PROCESS "/process.Process/"
#define E2B_FILESYSTEM "/filesystem.Filesystem/"
bool e2b_is_connect(const struct http_exchange *x);
void e2b_connect_error(struct call *c, const char *code, const char *message);
int e2b_frame(struct buffer *out, unsigned char flags, const char *json, size_t len);
const char *e2b_connect_code(const struct error *e);

/* A path as clients write it: absolute, ~/x, or below the home. -ENAMETOOLONG. */
int e2b_path(const char *path, char *ret, size_t size);
/* Below the workspace: the part behind it ("" for itself), else NULL. */
const char *e2b_below_home(const char *absolute);

/* ---- commands of our own in the sandbox: e2b_shell.c ---- */
enum {
	E2B_SHELL_FAILED = -1,
	E2B_SHELL_TOO_MUCH = -2
}; /* it could not be started; it printed more than 16 MiB */
/*
 * What a script that failed printed, or why it could not be started; never empty. `text` has room
 * for E2B_FAILURE_TEXT bytes.
 */
enum { E2B_FAILURE_TEXT = 512 };
const char *e2b_shell_failure(int exit_code, const struct buffer *err, char *text);
typedef void (*e2b_shell_done)(struct call *c, void *userdata, int exit_code,
	const struct buffer *out, const struct buffer *err);
/*
 * Runs a script for sh with arguments; `done` is called once unless the client leaves, and then
 * answers and frees userdata, as `drop` does otherwise.
 */
void e2b_shell(struct call *c, struct session *s, const char *script, const char *const *arguments,
	const char *input, size_t input_len, e2b_shell_done done, void (*drop)(void *userdata),
	void *userdata);
