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
#define E2B_KEY_NETWORK "network"   /* as the client gave it */
#define E2B_KEY_INTERNET "internet" /* what the client said of allow_internet_access */
/*
 * A snapshot is a paused fork that is not listed as a sandbox: its name, and the id of the sandbox
 * it was made of.
 */
#define E2B_KEY_SNAPSHOT "snapshot"
#define E2B_KEY_SNAPSHOT_OF "snapshot_of"

/* The object in the metadata, a reference of the caller's; NULL for a session of another client. */
json_t *e2b_kept(const struct session_info *i);

/* The other way round: puts the object into the metadata. -EINVAL when it is too large; -ENOMEM. */
int e2b_keep(const json_t *kept, struct session_params *p, struct error *e);

/* The body as an object; answers and returns NULL when it is none. */
json_t *e2b_body(struct call *c);

/*
 * The sandbox that the address names, when it is the asker's; answers with 404 and returns NULL
 * otherwise.
 */
struct session *e2b_named(struct call *c);

/*
 * Variables of a create as "NAME=value", behind `fixed` (NULL at its end, or NULL). What was added
 * belongs to p, also after -ENOMEM.
 */
int e2b_environment(const json_t *variables, const char *const *fixed, struct session_params *p);

double e2b_timeout_of(const json_t *body, double otherwise);
/* It ends so long from now; with `extend` never earlier than before. */
void e2b_set_end(struct session *s, double seconds, bool extend);

/* The fields of a sandbox, into an open object; and as the whole answer. */
void e2b_put_sandbox(struct call *c, struct json_writer *w, const struct session_info *i);
void e2b_answer_sandbox(struct call *c, int status, const struct session *s);

/* Its description, as an object of its own. */
void e2b_put_info(struct call *c, struct json_writer *w, const struct session_info *i);

/* The page that a request asks for (0: from the start); answers and fails when it is none. */
int e2b_page(struct call *c, uint64_t *ret_limit, uint64_t *ret_cursor);

/* ---- e2b_network.c ---- */
/*
 * The network that the body of a create asks for; ret stays untouched when it asks for nothing.
 * -ENOSYS (slug "e2b_unserved"), -EINVAL.
 */
int e2b_network(const json_t *body, struct network_policy *ret, struct error *e);
void e2b_keep_network(json_t *kept, const json_t *body);
void e2b_put_network(struct json_writer *w, const struct session_info *i, const json_t *kept);

/* ---- e2b_templates.c ---- */
enum e2b_template { E2B_TEMPLATE_UNKNOWN, E2B_TEMPLATE_BUILTIN, E2B_TEMPLATE_PROFILE };
enum e2b_template e2b_template(const struct call *c, const char *name); /* NULL is unknown */

/* ---- e2b_snapshots.c ---- */
/* The caller's snapshot of this id or name, or NULL. */
struct session *e2b_find_snapshot(struct call *c, const char *which);
/* Makes a sandbox that goes on from it; answers. `body` is that of a create. */
void e2b_create_from(struct call *c, struct session *snapshot, const json_t *body);
