/* Forks: new sessions that go on from the state of another one, or from a checkpoint of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sandbox/arrival.h"
#include "session/internal.h"

enum { FORK_MS = 60000 };

static void fail_fork(struct session *s, int err, const char *why)
{
	operation_fail(s, err, NULL,
		"Remove the cause, or fork from a checkpoint that was taken before.",
		"the session cannot be forked: %s", why);
}

/* Variables of the new sessions come behind those of their parent, and so before them in rank. */
static int add_environment(char *const *own, struct session_params *p)
{
	size_t n = 0, more = 0;
	while (p->env && p->env[n])
		n++;
	while (own && own[more])
		more++;
	if (!more)
		return 0;

	char **all = realloc(p->env, (n + more + 1) * sizeof(char *));
	if (!all)
		return -ENOMEM;
	p->env = all;
	memset(all + n, 0, (more + 1) * sizeof(char *));
	for (size_t i = 0; i < more; i++)
		if (!(all[n + i] = strdup(own[i])))
			return -ENOMEM;
	return 0;
}

/* The parent's parameters, with the changes for the new sessions. */
static int child_params(
	const struct session *s, const struct session_params *own, struct session_params *ret)
{
	_cleanup_free_ char *name = own->name ? strdup(own->name) : NULL,
			    *metadata = own->metadata ? strdup(own->metadata) : NULL;
	if (!name != !own->name || !metadata != !own->metadata ||
		session_params_copy(&s->params, ret) < 0)
		return -ENOMEM;

	ret->name = TAKE_PTR(name);
	if (metadata) {
		free(ret->metadata);
		ret->metadata = TAKE_PTR(metadata);
	}

	ret->ttl_s = own->ttl_s > 0 ? own->ttl_s : ret->ttl_s;
	ret->idle_timeout_s = own->idle_timeout_s > 0 ? own->idle_timeout_s : ret->idle_timeout_s;
	if (add_environment(own->env, ret) < 0) {
		session_params_finish(ret);
		return -ENOMEM;
	}
	return 0;
}

static void adopt(struct session *s, struct session *child)
{
	child->origin.fork_of = s;
	child->death.has_report =
		s->death.has_report; /* whoever made the fork has not been told, either */
	child->death.report = s->death.report;
	memcpy(child->origin.from, s->id, sizeof(child->origin.from));
}

/* Makes one more session from the snapshot. */
static int make_child(struct session *s, const struct fork_source *from, struct error *e)
{
	struct operation *o = s->history.request;
	struct session **child = &o->fork.children[o->fork.made];
	struct session_params p;
	int r = child_params(s, &o->fork.own, &p);
	if (r < 0)
		return r;

	r = session_create_from(s->table, &p, from, e, child);
	if (r < 0) {
		session_params_finish(&p);
		return r;
	}

	adopt(s, *child);
	o->fork.made++;
	return 0;
}

/* Requests all children; fork_child_ready() is called for each when it is ready. */
static void spread(struct session *s, struct snapshot *c)
{
	struct operation *o = s->history.request;
	struct error e = { 0 };

	if (!c) {
		fail_fork(s, -ENOENT, "the checkpoint is gone");
		return;
	}

	session_set_phase(s, PHASE_FORKING);
	o->fork.snapshot_id = c->snapshot_id;
	o->fork.spreading = c->held = true;
	session_start_clock(s, CLOCK_RECOVERING, FORK_MS);

	struct fork_source from = { c, !o->fork.same_numbers };
	int r = 0;
	while (r == 0 && o->fork.made < o->fork.count)
		r = make_child(s, &from, &e);
	if (r < 0)
		fail_fork(s, r, e.err ? e.text : "out of memory");
}

static void begin(struct session *s)
{
	struct operation *o = s->history.request;
	if (o->fork.snapshot_id)
		spread(s, sandbox_snapshot(s->sandbox, o->fork.snapshot_id));
	else if (checkpoint_is_current(s))
		spread(s, s->history.latest);
	else
		checkpoint_ask(s, &o->fork.snapshot_id);
}

static void parked(struct session *s, uint64_t snapshot_id)
{
	(void)snapshot_id;
	spread(s, s->history.latest);
}

/*
 * Forks that are being made fail as well, because the recovery needs the snapshot that they are
 * made from.
 */
static void guest_died(struct session *s)
{
	fail_fork(s, -ECANCELED, "its interpreter died meanwhile");
	recovery_begin(s);
}

static void finish(
	struct session *s, struct operation *o, const struct error *e, struct snapshot *c)
{
	struct snapshot *source = s->sandbox && o->fork.spreading
					  ? sandbox_snapshot(s->sandbox, o->fork.snapshot_id)
					  : NULL;
	(void)c;
	if (source)
		source->held = false;
	for (unsigned i = 0; i < o->fork.made; i++)
		if (o->fork.children[i])
			o->fork.children[i]->origin.fork_of = NULL;

	if (o->fork.done)
		o->fork.done(o->userdata, e, o->fork.children, e ? 0 : o->fork.count);
	if (!e && o->fork.done)
		return;

	for (unsigned i = 0; i < o->fork.made; i++) /* nobody will ever know their ids */
		if (o->fork.children[i])
			session_end(o->fork.children[i],
				e ? "not all of the forks could be made"
				  : "the client that asked for the fork disconnected");
}

static void release(struct operation *o)
{
	free(o->fork.children);
	session_params_finish(&o->fork.own);
}

const struct operation_ops fork_operation = {
	.slug = "cannot_fork",
	.begin = begin,
	.parked = parked,
	.guest_died = guest_died,
	.finish = finish,
	.release = release,
};

/* ---- the new sessions ------------------------------------------------------------------ */

/* The fork that waits for this session, ready or not; NULL when none does any more. */
static struct operation *waiting_fork(const struct session *child)
{
	struct operation *o = child->origin.fork_of ? child->origin.fork_of->history.request : NULL;
	return o && o->kind == OPERATION_FORK && o->fork.spreading ? o : NULL;
}

void fork_child_ready(struct session *child)
{
	struct session *s = child->origin.fork_of;
	struct operation *o = waiting_fork(child);

	if (!o || child->origin.fork_ready)
		return;

	child->origin.fork_ready = true;
	if (++o->fork.ready < o->fork.count)
		return;

	s->table->stats.forks += o->fork.count;
	for (unsigned i = 0; i < o->fork.count; i++)
		if (o->fork.children[i])
			watch_fork(s, o->fork.children[i]);
	operation_succeed(s, NULL);
}

/* Also when the session ends after it was ready: the operation must not keep a pointer to it. */
void fork_child_failed(struct session *child, const char *why)
{
	struct session *s = child->origin.fork_of;
	struct operation *o = waiting_fork(child);
	child->origin.fork_of = NULL;
	if (!o)
		return;

	for (unsigned i = 0; i < o->fork.made; i++)
		if (o->fork.children[i] == child)
			o->fork.children[i] = NULL; /* it ends by itself */
	fail_fork(s, -ECANCELED, why);
}

struct session *sessions_find_checkpoint(struct sessions *t, const char *id, uint64_t owner)
{
	for (struct session *s = sessions_next(t, NULL); s; s = sessions_next(t, s)) {
		struct snapshot *c = s->params.owner == owner && s->sandbox ? checkpoint_find(s, id)
									    : NULL;
		if (c && text_eq(c->id, id))
			return s;
	}
	return NULL;
}

const char *session_fork_note(const struct session *s)
{
	return s->sandbox ? sandbox_note(s->sandbox) : "";
}

/* What a fork cannot have two of. */
static int check_forkable(struct session *s, const struct fork_request *q, struct error *e)
{
	/*
	 * A screen that nobody asked for, or that nothing was ever shown on, is no obstacle: the
	 * forks have none.
	 */
	bool shows = s->display && !s->params.display.lazy && display_is_up(s->display);
	const char *why = shows                                     ? "its display is in use"
			  : s->params.network.net == JAIL_NET_ALLOW ? "it may reach the network"
								    : NULL;
	if (why) {
		error_set(e, -ENOTSUP, "the session cannot be forked: %s", why);
		error_remedy(e,
			"Create a session without a display and without network rules, run the cells again, and fork it.");
		return error_slug(e, "cannot_fork");
	}

	if (s->table->stats.live + q->count > s->table->config.max_sessions) {
		error_set(e, -ENOSPC, "%u more sessions are more than the %u this server allows",
			q->count, s->table->config.max_sessions);
		error_remedy(e, "{end_sessions}, or {raise:max-sessions}.");
		return error_slug(e, "server_full");
	}
	return 0;
}

int session_fork(struct session *s, const struct fork_request *q, fork_done done, void *userdata,
	struct error *e)
{
	int r = sessions_check_drain(s->table, e);
	if (r == 0)
		r = checkpoint_check_idle(s, e);
	if (r == 0)
		r = check_forkable(s, q, e);
	struct snapshot *c = r == 0 && q->at && s->sandbox ? checkpoint_find(s, q->at) : NULL;
	if (r < 0)
		return r;
	if (q->at && !c)
		return checkpoint_not_found(q->at, e);

	struct operation *o = operation_new(OPERATION_FORK, userdata);
	if (!o || !(o->fork.children = calloc(q->count, sizeof(struct session *)))) {
		operation_free(o);
		return error_set(e, -ENOMEM, "out of memory");
	}

	o->fork.snapshot_id = c ? c->snapshot_id : 0;
	o->fork.count = q->count;
	o->fork.same_numbers = q->same_numbers;
	o->fork.done = done;
	if (q->own) {
		o->fork.own = *q->own;
		*q->own = (struct session_params){ 0 };
	}

	/* takes some milliseconds on its own, while the snapshot and the jails are made */
	arrival_expect(s->table->pool);
	operation_request(s, o);
	return 0;
}
