/* The creation of a session, and the release of what it owns. */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/node_id.h"
#include "base/text.h"
#include "session/display/display_servers.h"
#include "session/idle_latency.h"
#include "session/internal.h"

static void on_display_ready(void *owner)
{
	session_start_next(owner); /* cells waited for it */
}

static void on_display_failed(void *owner, const char *text)
{
	session_guest_failed(owner, text); /* another jail, or none */
}

static const struct display_events display_events = { on_display_ready, on_display_failed };

static int make_display(struct session *s, struct error *e)
{
	struct display_params *p = &s->params.display;
	int r = displays_check(e);

	if (r < 0 && p->lazy) {
		s->params.has_display = false;
		return 0;
	}

	if (r < 0)
		return r;

	p->width = p->width ? p->width : DISPLAY_WIDTH;
	p->height = p->height ? p->height : DISPLAY_HEIGHT;
	p->depth = p->depth ? p->depth : DISPLAY_DEPTH;
	p->dpi = p->dpi ? p->dpi : DISPLAY_DPI;
	struct display_size size = { (unsigned)p->width, (unsigned)p->height, (unsigned)p->depth,
		(unsigned)p->dpi };
	r = display_create(s->table->displays, &size, p->lazy, &display_events, s, &s->display);
	return r < 0 ? error_set_errno(e, r, "making a display") : 0;
}

/* The default for those who asked for nothing; no more than the maximum for the others. */
static int resolve_network(
	const struct sessions_config *c, struct session_params *p, struct error *e)
{
	const struct network_policy loopback = { .given = true, .net = JAIL_NET_LOOPBACK };
	struct error unwanted = { 0 };
	if (p->network.given)
		return network_most_check(&c->max_network, &p->network, e);
	if (p->wants_loopback && c->default_network.net == JAIL_NET_NONE &&
		network_most_check(&c->max_network, &loopback, &unwanted) == 0) {
		p->network = loopback;
		return 0;
	}
	return network_policy_copy(&c->default_network, &p->network) < 0
		       ? error_set(e, -ENOMEM, "out of memory")
		       : 0;
}

static int check_room(struct sessions *t, struct error *e)
{
	if (t->end.draining) {
		error_set(e, -ESHUTDOWN, "the server is shutting down and accepts no new sessions");
		return error_slug(e, "draining");
	}

	if (sessions_check_drain(t, e) < 0)
		return -ESHUTDOWN;

	if (t->stats.live >= t->config.max_sessions) {
		error_set(e, -ENOSPC, "all %u sessions this server allows are in use",
			t->config.max_sessions);
		error_remedy(e,
			"{end_sessions}, wait for idle ones to expire, or {raise:max-sessions}.");
		return error_slug(e, "server_full");
	}
	return sessions_check_shortage(t, e);
}

static struct session *new_session(struct sessions *t)
{
	struct session *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;

	s->table = t;
	memcpy(s->id, "s_", 2);
	node_make_id(s->id + 2, SESSION_ID_LEN - 2);
	TAILQ_INIT(&s->queue.waiting);
	TAILQ_INIT(&s->recordings.list);
	TAILQ_INIT(&s->ports.list);
	TAILQ_INIT(&s->file_watches.list);
	TAILQ_INIT(&s->death.listeners);
	s->times.created_ns = s->times.used_ns = clock_now_ns();
	s->times.created_wall_ns = s->times.used_wall_ns = clock_wall_ns();
	uv_timer_init(t->config.loop, &s->clock.timer);
	uv_timer_init(t->config.loop, &s->queue.wake_timer);
	s->clock.timer.data = s->queue.wake_timer.data = s;
	outcome_init(&s->outcome);
	s->history.replay.good = s->history.replay.fresh = true;
	return s;
}

static void session_freed(uv_handle_t *h)
{
	struct session *s = h->data;
	struct sessions *t = s->table;
	session_params_finish(&s->params);
	profile_choice_finish(&s->profile);
	free(s->history.evicted);
	free(s->usage.network_record);
	free(s);
	t->end.closing_sessions--;
}

/*
 * The timers are closed one after the other, because libuv does not define the order of close
 * callbacks.
 */
static void wake_timer_closed(uv_handle_t *h)
{
	struct session *s = h->data;
	uv_close((uv_handle_t *)&s->clock.timer, session_freed);
}

void session_release(struct session *s)
{
	session_volumes_give_back(s);
	tools_finish(s);
	recordings_destroy(s);
	display_close(s->display);
	s->display = NULL;
	outcome_finish(&s->outcome);
	output_finish(&s->output.stream[0]);
	output_finish(&s->output.stream[1]);
	output_log_finish(&s->output.log);
	cell_history_finish(&s->cell_history);
	buffer_finish(&s->history.replay.frames);
	s->table->end.closing_sessions++;
	uv_close((uv_handle_t *)&s->queue.wake_timer, wake_timer_closed);
}

/* The session's own additional imports come after the server's. */
static int choose_profile(const struct sessions_config *c, const struct session_params *params,
	struct error *e, struct profile_choice *ret)
{
	char *all[2 * LIMIT_PROFILE_NAMES + 1];
	size_t n = 0;
	for (char **m = c->default_imports; m && *m && n < LIMIT_PROFILE_NAMES; m++)
		all[n++] = *m;
	for (char **m = params->additional_imports; m && *m && n < 2 * LIMIT_PROFILE_NAMES; m++)
		all[n++] = *m;
	all[n] = NULL;
	return profiles_choose(c->profiles, params->profile, c->default_profile, all,
		params->imports_below, e, ret);
}

/*
 * The limits, rules and resources that the session will have; -ERANGE and others when it may not
 * have them.
 */
static int resolve(struct sessions *t, struct session_params *params,
	const struct fork_source *from, struct error *e, struct session_limits *limits,
	struct profile_choice *ret_profile)
{
	int r = check_room(t, e);
	if (r == 0)
		r = session_params_check_sizes(params, e);
	if (r == 0 && !from) /* a fork asks for nothing: it has what its parent has */
		r = session_check_enforced(t, limits, e);
	if (r == 0)
		r = session_resolve_limits(&t->config, limits, e);
	if (r == 0)
		r = session_resolve_exec(&t->config, params, e);
	if (r == 0)
		r = resolve_network(&t->config, params, e);
	if (r == 0)
		r = session_mounts_check(&t->config, params->mounts, e);
	if (r == 0)
		r = choose_profile(&t->config, params, e, ret_profile);
	return r;
}

/* Parameters that were not given are the table's. */
static void fill_in_defaults(const struct sessions_config *c, struct session_params *p)
{
	if (p->ttl_s <= 0)
		p->ttl_s = c->default_ttl_s;
	if (p->idle_timeout_s <= 0)
		p->idle_timeout_s = c->default_idle_timeout_s;
	p->no_transactions = p->has_transactions ? !p->transactions : c->no_transactions;
	if (!p->has_keep_files)
		p->keep_files_bytes = c->keep_files_bytes;
	if (!p->has_keep_checkpoints)
		p->keep_checkpoints = c->keep_checkpoints;
}

static void enter_table(struct session *s, bool ready)
{
	struct sessions *t = s->table;
	TAILQ_INSERT_TAIL(&t->list, s, link);
	s->serial = ++t->stats.created;
	t->stats.live++;
	if (!ready)
		return;

	s->origin.ready = true;
	session_set_phase(s, PHASE_IDLE);
	t->stats.taken_ready++;
	stats_observe(&t->stats.create_seconds, 0);
}

/* The parameters stay the caller's. */
static int give_up(struct session *s, int r, struct error *e, const char *step)
{
	s->params = (struct session_params){ 0 };
	sandbox_close(s->sandbox);
	session_release(s);
	return step ? error_set_errno(e, r, "%s", step) : r;
}

int session_create(
	struct sessions *t, struct session_params *params, struct error *e, struct session **ret)
{
	bool may_wait = params->may_wait;
	int r = session_create_from(t, params, NULL, e, ret);
	if (r < 0 && !may_wait)
		sessions_count_refused(t, e);
	return r;
}

int session_create_from(struct sessions *t, struct session_params *params,
	const struct fork_source *from, struct error *e, struct session **ret)
{
	struct session_limits limits = params->limits;
	struct profile_choice profile = { 0 };
	bool ready = false;

	idle_latency_touch(t->idle_latency);
	int r = resolve(t, params, from, e, &limits, &profile);
	if (r < 0)
		return r;

	struct session *s = new_session(t);
	if (!s) {
		profile_choice_finish(&profile);
		return error_set(e, -ENOMEM, "out of memory");
	}

	s->profile = profile;
	s->stats_slot = stats_profile_slot(&t->stats, &profile);
	s->params = *params;
	cell_history_init(&s->cell_history, &t->cell_store, s->params.owner);
	s->params.limits = limits;
	output_init(&s->output.stream[0], limits.output_bytes);
	output_init(&s->output.stream[1], limits.output_bytes);
	output_log_init(&s->output.log, t->config.state_dir, limits.log_bytes);

	r = session_volumes_take(s, from != NULL, e);
	if (r == 0 && params->has_display)
		r = make_display(s, e);
	if (r < 0)
		return give_up(s, r, e, NULL);

	r = session_take_sandbox(s, from, &ready);
	if (r < 0 || !tsearch(s, &t->index, session_compare_ids))
		return give_up(s, r < 0 ? r : -ENOMEM, e, "making a session");

	*params = (struct session_params){ 0 };
	s->setup.packages_changed = s->params.packages_report != NULL;
	fill_in_defaults(&t->config, &s->params);
	enter_table(s, ready);
	watch_created(s);
	*ret = s;
	return 0;
}
