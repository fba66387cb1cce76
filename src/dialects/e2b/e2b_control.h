/* What the files of the control plane share (private to this folder). */
#pragma once

#include <jansson.h>

#include "dialects/e2b/e2b.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define E2B_TIMEOUT_S 300.0

/* In the session's metadata: what E2B's answers say of a sandbox. */
#define E2B_KEY_TEMPLATE "e2b_template"
#define E2B_KEY_METADATA "metadata"
#define E2B_KEY_RESUME "auto_resume"
/*
 * A snapshot is a paused fork that is not listed as a sandbox: its name, and the id of the sandbox
 * it was made of.
 */
#define E2B_KEY_SNAPSHOT "snapshot"
#define E2B_KEY_SNAPSHOT_OF "snapshot_of"

/* The object in the metadata, a reference of the caller's; NULL for a session of another client. */
json_t *e2b_kept(const struct session_info *i);

/* The body as an object; answers and returns NULL when it is none. */
json_t *e2b_body(struct call *c);

/*
 * The sandbox that the address names, when it is the asker's; answers with 404 and returns NULL
 * otherwise.
 */
struct session *e2b_named(struct call *c);

double e2b_timeout_of(const json_t *body, double otherwise);
/* It ends so long from now; with `extend` never earlier than before. */
void e2b_set_end(struct session *s, double seconds, bool extend);

/* The fields of a sandbox, into an open object; and as the whole answer. */
void e2b_put_sandbox(struct call *c, struct json_writer *w, const struct session_info *i);
void e2b_answer_sandbox(struct call *c, int status, const struct session *s);

uint64_t e2b_query_number(struct call *c, const char *name, uint64_t most, uint64_t otherwise);

/* ---- e2b_templates.c ---- */
enum e2b_template { E2B_TEMPLATE_UNKNOWN, E2B_TEMPLATE_BUILTIN, E2B_TEMPLATE_PROFILE };
enum e2b_template e2b_template(const struct call *c, const char *name); /* NULL is unknown */

/* ---- e2b_snapshots.c ---- */
/* The caller's snapshot of this id or name, or NULL. */
struct session *e2b_find_snapshot(struct call *c, const char *which);
/* Makes a sandbox that goes on from it; answers. `body` is that of a create. */
void e2b_create_from(struct call *c, struct session *snapshot, const json_t *body);
