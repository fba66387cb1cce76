/*
 * Contexts: further interpreters of a session, in its jail, with its files and processes.
 *
 * A context is a session of its own in the table, with a queue and an output of its own, but it has
 * no jail: it ends with the session that it belongs to. It is not listed among sessions. It has no
 * history: a rollback, a checkpoint or a fork of the session concerns the session's own
 * interpreter, the default context.
 */
#pragma once

#include <stdbool.h>

#include "session/session.h"

/* The id by which the session's own interpreter is called among contexts. */
#define CONTEXT_DEFAULT "default"

/*
 * Makes one. cwd may be NULL. -EBUSY (slug "too_many_contexts"), -EAGAIN ("starting"), and what
 * session_create() says.
 */
int session_context_create(
	struct session *s, const char *cwd, struct error *e, struct session **ret);

/*
 * By id; the session itself by its own id or CONTEXT_DEFAULT. -ENOENT (slug "context_not_found").
 */
int session_context_find(struct session *s, const char *id, struct error *e, struct session **ret);

/*
 * The contexts beside the default one, in the order in which they were made. NULL starts, NULL
 * ends.
 */
struct session *session_context_next(struct session *s, struct session *after);

bool session_is_context(const struct session *s);
const char *session_context_cwd(const struct session *s); /* where it started */

/* ---- of the session layer ---- */
/*
 * A context has no history, processes, contexts or pause of its own: -EINVAL (slug "is_context").
 */
int context_refuse(const struct session *s, struct error *e);
void contexts_end(struct session *s); /* the session ends */
