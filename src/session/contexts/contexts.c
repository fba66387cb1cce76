#include "session/contexts/contexts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "session/internal.h"
#include "json/json_write.h"

#define YEAR_SECONDS 31536000.0

bool session_is_context(const struct session *s)
{
	return s->origin.context_of != NULL;
}

const char *session_context_cwd(const struct session *s)
{
	return s->origin.context_cwd[0] ? s->origin.context_cwd : "/workspace";
}

struct session *session_context_next(struct session *s, struct session *after)
{
	struct session *c = after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&s->table->list);
	for (; c; c = TAILQ_NEXT(c, link))
		if (c->origin.context_of == s && c->phase != PHASE_ENDING)
			return c;
	return NULL;
}

int session_context_find(struct session *s, const char *id, struct error *e, struct session **ret)
{
	if (text_eq(id, CONTEXT_DEFAULT) || text_eq(id, s->id)) {
		*ret = s;
		return 0;
	}

	for (struct session *c = session_context_next(s, NULL); c; c = session_context_next(s, c)) {
		if (!text_eq(c->id, id))
			continue;
		*ret = c;
		return 0;
	}

	const char *why = session_gone_why(s->table, id, s->params.owner);
	if (why)
		error_set(e, -ENOENT, "the context %.40s has ended: %s", id, why);
	else
		error_set(e, -ENOENT, "there is no context %.40s in this session", id);
	error_remedy(e, "{list_contexts}; \"default\" is the session's own.");
	return error_slug(e, "context_not_found");
}

int context_refuse(const struct session *s, struct error *e)
{
	if (!session_is_context(s))
		return 0;
	error_set(e, -EINVAL,
		"%s is a context: history, processes, contexts and pauses are those of its session",
		s->id);
	error_remedy(e, "Ask for the same of session %s.", s->origin.context_of->id);
	return error_slug(e, "is_context");
}

static int check_room(struct session *s, struct error *e)
{
	unsigned n = 0;
	if (session_is_paused(s))
		return pause_refuse(s, e);
	int r = context_refuse(s, e);
	if (r < 0)
		return r;
	for (struct session *c = session_context_next(s, NULL); c; c = session_context_next(s, c))
		n++;
	if (n < LIMIT_CONTEXTS)
		return 0;
	error_set(e, -EBUSY, "the session has %u contexts, the most that it may have", n);
	error_remedy(e, "Delete some of them. {list_contexts}.");
	return error_slug(e, "too_many_contexts");
}

/* Runs the first cell of the context, whose outcome is reported to no client. */
static void enter(struct session *c, const char *cwd)
{
	static const struct cell_observer nobody = { 0 };
	_cleanup_buffer_ struct buffer code = BUFFER_INIT(0);
	struct json_writer w;
	struct cell *cell;
	buffer_append_str(&code, "__import__('os').chdir(");
	json_writer_init(&w, &code);
	json_put_cstr(&w, cwd); /* a JSON string is one of Python's too */
	if (json_writer_end(&w) < 0 || buffer_append_str(&code, ")") < 0)
		return;
	struct cell_request q = { .code = code.data, .code_len = code.len, .detach = true };
	session_execute(c, NULL, &q, &nobody, NULL, NULL, &cell);
}

int session_context_create(
	struct session *s, const char *cwd, struct error *e, struct session **ret)
{
	struct session_params p;
	struct session *c;
	int r = check_room(s, e);

	if (r < 0)
		return r;
	if (session_params_copy(&s->params, &p) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	p.has_transactions = true;
	p.transactions = false;
	p.ttl_s = p.idle_timeout_s = YEAR_SECONDS; /* the session's own count */
	struct fork_source from = { .beside = s };
	r = session_create_from(s->table, &p, &from, e, &c);
	session_params_finish(&p);
	if (r == -EAGAIN && !e->slug[0]) {
		error_set(e, r, "the session is still starting");
		error_slug(e, "starting");
	}

	if (r < 0)
		return r;
	session_files_share(s);
	if (cwd) {
		snprintf(c->origin.context_cwd, sizeof(c->origin.context_cwd), "%s", cwd);
		enter(c, cwd);
	}

	*ret = c;
	return 0;
}

void contexts_end(struct session *s)
{
	struct session *c;
	while ((c = session_context_next(s, NULL)))
		session_end(c, "its session ended");
}
