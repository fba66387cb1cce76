/* One session: creation, look-up, the end. */
#include "session/session.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "session/idle_latency.h"
#include "session/internal.h"
#include "sandbox/package_template.h"
#include "sandbox/plain_zygote.h"

const char *session_state_name(enum session_state s)
{
	static const char *const names[] = { "starting", "idle", "busy" };
	return names[s];
}

/* ---- guests' events ----------------------------------------------------------- */

static void on_frame(void *owner, const struct wire_frame *f)
{
	session_guest_frame(owner, f);
}

static void on_output(void *owner, enum stream stream, const char *data, size_t len)
{
	session_guest_output(owner, stream, data, len);
}

static void on_exit_event(void *owner, const struct process_exit *end, bool broken)
{
	session_guest_exit(owner, end, broken);
}

static void on_ready(void *owner)
{
	session_guest_ready(owner);
}

static void on_failed(void *owner, const char *text)
{
	session_guest_failed(owner, text);
}

static void on_network(void *owner, const struct proxy_event *e)
{
	session_network_event(owner, e);
}

static void on_display(void *owner, int *fds)
{
	struct session *s = owner;
	if (s->display)
		display_take_socket(s->display, fds);
}

const struct sandbox_events session_events = { { on_frame, on_output, on_exit_event }, on_ready, on_failed, on_network,
	on_display };

/* ---- display ------------------------------------------------------------------ */

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
	struct display_size size = { (unsigned)p->width, (unsigned)p->height, (unsigned)p->depth, (unsigned)p->dpi };
	r = display_create(s->table->displays, &size, p->lazy, &display_events, s, &s->display);
	return r < 0 ? error_set_errno(e, r, "making a display") : 0;
}

int64_t session_display_ask(struct session *s, enum display_ask what, const void *options, size_t len, double timeout_s,
	session_display_answer answer, void *userdata, struct error *e)
{
	if (s->display)
		return display_ask(s->display, what, options, len, false, timeout_s, answer, userdata, e);
	error_set(e, -ENOTSUP, "the session has no display");
	error_remedy(e, "Make a session with \"display\": true (or a size: {\"width\": 1280, \"height\": 800}).");
	return error_slug(e, "no_display");
}

void session_display_forget(struct session *s, uint32_t question)
{
	if (s->display)
		display_forget(s->display, question);
}

/* ---- index -------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct session *)a)->id, ((const struct session *)b)->id);
}

static void bury(struct sessions *t, const struct session *s, const char *why)
{
	struct tombstone *stone = &t->tombstones[t->next_tombstone++ % LIMIT_TOMBSTONES];
	memcpy(stone->id, s->id, sizeof(stone->id));
	snprintf(stone->why, sizeof(stone->why), "%s", why);
	stone->wall_ns = clock_wall_ns();
	stone->owner = s->params.owner;
}

uint64_t session_gone_owner(const struct sessions *t, const char *id)
{
	for (unsigned i = 0; i < LIMIT_TOMBSTONES; i++)
		if (!strcmp(t->tombstones[i].id, id))
			return t->tombstones[i].owner;
	return 0;
}

int session_find(struct sessions *t, const char *id, struct error *e, struct session **ret)
{
	struct session key;
	if (strlen(id) == SESSION_ID_LEN) {
		memcpy(key.id, id, SESSION_ID_LEN + 1);
		void *node = tfind(&key, &t->index, by_id);
		if (node) {
			*ret = *(struct session **)node;
			return 0;
		}
		for (unsigned i = 0; i < LIMIT_TOMBSTONES; i++) {
			char when[CLOCK_TEXT_MAX];
			if (strcmp(t->tombstones[i].id, id))
				continue;
			error_set(e, -EIDRM, "session %s ended at %s: %s", id, clock_format(t->tombstones[i].wall_ns, when),
				t->tombstones[i].why);
			error_remedy(e, "Make a new one with POST /v1/sessions; its variables and files are gone.");
			return error_slug(e, "session_gone");
		}
	}
	error_set(e, -ENOENT, "there is no session %.64s", id);
	error_remedy(e, "GET /v1/sessions lists those there are; POST /v1/sessions makes one.");
	return error_slug(e, "session_not_found");
}

struct session *sessions_next(struct sessions *t, struct session *after)
{
	for (struct session *s = after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&t->list); s; s = TAILQ_NEXT(s, link))
		if (!s->ending)
			return s;
	return NULL;
}

/* ---- creation ------------------------------------------------------------------ */

/* The default for those who asked for nothing; no more than the maximum for the others. */
static int settle_network(const struct sessions_config *c, struct session_params *p, struct error *e)
{
	if (p->network.given)
		return network_most_check(&c->max_network, &p->network, e);
	return network_policy_copy(&c->default_network, &p->network) < 0 ? error_set(e, -ENOMEM, "out of memory") : 0;
}

struct cgroup_limits session_cgroup_limits(const struct session_limits *l)
{
	return (struct cgroup_limits){ .memory_bytes = l->memory_bytes ? l->memory_bytes + SANDBOX_MEMORY_HEADROOM : 0,
		.processes = (unsigned)l->processes,
		.cpus = l->cpus };
}

/* Where its guests come from: snapshots of one with the set's modules, the zygote with none of the system's packages, or the one that all have. */
static void choose_template(struct session *s, struct sandbox_kind *kind)
{
	struct sessions *t = s->table;
	const struct session_package *p = s->params.packages;
	bool plain = (s->params.packages_replace || t->common_replaces) && t->owned_preload[0];
	kind->template = plain ? template_plain(t->pool) : NULL;
	if (p && s->params.template_modules)
		kind->set = package_template_get(t->pool,
			&(struct package_template_spec){
				.path = p->path, .modules = s->params.template_modules, .owner = s->params.owner, .plain = plain },
			kind);
	snprintf(s->template, sizeof(s->template), "%s", kind->set ? package_template_name(kind->set) : kind->template ? "plain" : "default");
	s->template_warm = kind->set || (kind->template && template_warm(kind->template));
}

void sessions_await_packages(struct sessions *t)
{
	t->common_awaited = true;
}

void sessions_set_packages(struct sessions *t, const char *path, bool replaces)
{
	free(t->common_path);
	t->common_path = path ? strdup(path) : NULL;
	t->common_replaces = path && replaces;
	t->common_awaited = false;
}

void sessions_warm_template(struct sessions *t, const char *path, char *const *modules, bool replaces)
{
	bool plain = (replaces || t->common_replaces) && t->owned_preload[0];
	package_template_get(t->pool, &(struct package_template_spec){ .path = path, .modules = modules, .plain = plain }, NULL);
}

int session_take_sandbox(struct session *s, bool *ret_ready)
{
	struct cgroup_limits wall = session_cgroup_limits(&s->params.limits);
	struct sandbox_kind kind = { .disk_bytes = s->params.limits.disk_bytes, .inodes = s->params.limits.inodes,
		.exec = s->params.exec, .network = s->params.network };
	choose_template(s, &kind);
	struct fork_source *from = s->table->fork_source;
	if (from && !s->sandbox) {
		*ret_ready = false;
		s->setup_sent = true; /* the copy's was */
		s->replay.good = s->replay.fresh = false;
		s->cells = from->copy->cell;
		s->holds.state = s->holds.files = true;
		kind.set = NULL;
		return sandbox_pool_nest(s->table->pool, from->copy, from->reseed, &kind, &wall, s, &s->sandbox);
	}
	int r = sandbox_pool_take(s->table->pool, &kind, &wall, s, ret_ready, &s->sandbox);
	if (r == 0 && s->display)
		display_attach(s->display, s->sandbox);
	return r;
}

static int check_room(struct sessions *t, struct error *e)
{
	if (t->draining) {
		error_set(e, -ESHUTDOWN, "the server is about to end and takes no new sessions");
		return error_slug(e, "draining");
	}
	if (t->stats.live >= t->config.max_sessions) {
		error_set(e, -ENOSPC, "all %u sessions this server allows are in use", t->config.max_sessions);
		error_remedy(e, "DELETE sessions that are no longer needed, wait for idle ones to expire, or raise --max-sessions.");
		return error_slug(e, "too_many_sessions");
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
	text_random_id(s->id + 2, SESSION_ID_LEN - 2);
	TAILQ_INIT(&s->queue);
	TAILQ_INIT(&s->recordings);
	TAILQ_INIT(&s->listeners);
	s->created_ns = s->used_ns = clock_now_ns();
	s->created_wall_ns = s->used_wall_ns = clock_wall_ns();
	uv_timer_init(t->config.loop, &s->deadline);
	uv_timer_init(t->config.loop, &s->wake_timer);
	s->deadline.data = s->wake_timer.data = s;
	outcome_init(&s->outcome);
	s->replay.good = s->replay.fresh = true;
	return s;
}

static void session_freed(uv_handle_t *h)
{
	struct session *s = h->data;
	struct sessions *t = s->table;
	session_params_finish(&s->params);
	profile_choice_finish(&s->profile);
	free(s->evicted);
	free(s);
	t->closing_sessions--;
}

/* One after the other: libuv does not say in which order it tells. */
static void wake_timer_closed(uv_handle_t *h)
{
	struct session *s = h->data;
	uv_close((uv_handle_t *)&s->deadline, session_freed);
}

static void release(struct session *s)
{
	tools_finish(s);
	recordings_destroy(s);
	display_close(s->display);
	s->display = NULL;
	outcome_finish(&s->outcome);
	output_finish(&s->output[0]);
	output_finish(&s->output[1]);
	output_log_finish(&s->spool);
	buffer_finish(&s->replay.frames);
	s->table->closing_sessions++;
	uv_close((uv_handle_t *)&s->wake_timer, wake_timer_closed);
}

/* The session's own additional imports come after the server's. */
static int choose_profile(const struct sessions_config *c, const struct session_params *params, struct error *e,
	struct profile_choice *ret)
{
	char *all[2 * LIMIT_PROFILE_NAMES + 1];
	size_t n = 0;
	for (char **m = c->default_imports; m && *m && n < LIMIT_PROFILE_NAMES; m++)
		all[n++] = *m;
	for (char **m = params->additional_imports; m && *m && n < 2 * LIMIT_PROFILE_NAMES; m++)
		all[n++] = *m;
	all[n] = NULL;
	return profiles_choose(c->profiles, params->profile, c->default_profile, all, params->imports_below, e, ret);
}

int session_create(struct sessions *t, struct session_params *params, struct error *e, struct session **ret)
{
	struct session_limits limits = params->limits;
	_cleanup_(profile_choice_finish) struct profile_choice profile = { 0 };
	bool ready = false;
	idle_latency_touch(t->idle_latency);
	int r = check_room(t, e);
	if (r == 0 && !t->fork_source) /* a fork asks for nothing: it has what its parent has */
		r = session_check_enforced(t, &limits, e);
	if (r == 0)
		r = session_settle_limits(&t->config, &limits, e);
	if (r == 0)
		r = session_settle_exec(&t->config, params, e);
	if (r == 0)
		r = settle_network(&t->config, params, e);
	if (r == 0)
		r = choose_profile(&t->config, params, e, &profile);
	if (r < 0)
		return r;
	struct session *s = new_session(t);
	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->params = *params;
	s->params.limits = limits;
	r = params->has_display ? make_display(s, e) : 0;
	if (r < 0) {
		s->params = (struct session_params){ 0 };
		release(s);
		return r;
	}
	s->profile = profile;
	profile = (struct profile_choice){ 0 };
	r = session_take_sandbox(s, &ready);
	if (r < 0 || !tsearch(s, &t->index, by_id)) {
		s->params = (struct session_params){ 0 }; /* still the caller's */
		sandbox_close(s->sandbox);
		release(s);
		return error_set_errno(e, r < 0 ? r : -ENOMEM, "making a session");
	}
	*params = (struct session_params){ 0 };
	s->packages_news = s->params.packages_report != NULL;
	if (s->params.ttl_s <= 0)
		s->params.ttl_s = t->config.default_ttl_s;
	if (s->params.idle_timeout_s <= 0)
		s->params.idle_timeout_s = t->config.default_idle_timeout_s;
	s->params.no_transactions = s->params.has_transactions ? !s->params.transactions : t->config.no_transactions;
	if (!s->params.has_keep_files)
		s->params.keep_files_bytes = t->config.keep_files_bytes;
	if (!s->params.has_keep_checkpoints)
		s->params.keep_checkpoints = t->config.keep_checkpoints;
	output_init(&s->output[0], limits.output_bytes);
	output_init(&s->output[1], limits.output_bytes);
	output_log_init(&s->spool, t->config.state_dir, limits.log_bytes);
	TAILQ_INSERT_TAIL(&t->list, s, link);
	s->serial = ++t->stats.created;
	t->stats.live++;
	if (ready) {
		s->warm = s->guest_ready = true;
		t->stats.taken_ready++;
		stats_observe(&t->stats.create_seconds, 0);
	}
	*ret = s;
	return 0;
}

/* ---- the end --------------------------------------------------------------------- */

void session_end(struct session *s, const char *why)
{
	struct sessions *t = s->table;
	char text[160];
	if (s->ending)
		return;
	s->ending = true;
	snprintf(text, sizeof(text), "the session ended: %s", why);
	s->guest_ready = false; /* no queued cell may start now */
	session_fail_all_cells(s, CELL_KILLED, "session_gone", text, "Make a new session.");
	death_drop_listeners(s);
	recordings_destroy(s);
	display_close(s->display);
	s->display = NULL;
	fork_child_failed(s, "it ended");
	operation_cancel(s, "the session ended");
	history_forget(s);
	sandbox_close(s->sandbox);
	s->sandbox = NULL;
	bury(t, s, why);
	tdelete(s, &t->index, by_id);
	TAILQ_REMOVE(&t->list, s, link);
	t->stats.live--;
	t->stats.ended++;
	if (t->config.on_session_end)
		t->config.on_session_end(t->config.userdata, s->id, why);
	release(s);
}

int session_add_package(struct session *s, struct session_package *p, char *report, struct error *e)
{
	if (s->ending || s->table->draining) {
		error_set(e, -ESHUTDOWN, "the session is about to end");
		return error_slug(e, "draining");
	}
	if (p) {
		p->next = s->params.packages;
		s->params.packages = p;
	}
	if (report) {
		free(s->params.packages_report);
		s->params.packages_report = report;
		s->packages_news = true;
	}
	s->used_ns = clock_now_ns();
	if (p && s->setup_sent && s->guest_ready) /* else it is sent when the interpreter is ready, or before its first cell */
		session_send_path(s, p);
	return 0;
}

int session_reset(struct session *s, struct error *e)
{
	if (s->ending || s->table->draining) {
		error_set(e, -ESHUTDOWN, "the session is about to end");
		return error_slug(e, "draining");
	}
	if (s->fork_of && !s->guest_ready) {
		error_set(e, -EBUSY, "the session is still being forked");
		error_remedy(e, "Try again when the fork is ready.");
		return error_slug(e, "session_busy");
	}
	if (!s->guest_ready && !operation_restores(s))
		return 0; /* a fresh one is on its way already */
	s->guest_ready = s->setup_sent = s->holds.state = s->has_died = false;
	s->n_left = 0;
	struct cell_queue waiting;
	TAILQ_INIT(&waiting);
	TAILQ_CONCAT(&waiting, &s->queue, link); /* those that wait run in the fresh interpreter */
	unsigned queued = s->queued;
	s->queued = 0;
	s->table->stats.queued_cells -= queued;
	session_fail_all_cells(s, CELL_KILLED, "session_reset", "the session was reset while the cell ran", "Run it again.");
	TAILQ_CONCAT(&s->queue, &waiting, link);
	s->queued += queued;
	s->table->stats.queued_cells += queued;
	source_check_drop(s);
	output_finish(&s->output[0]);
	output_finish(&s->output[1]);
	operation_cancel(s, "the session was reset");
	room_lose_named(s);
	history_forget(s);
	if (s->display)
		display_restart(s->display); /* not when its end is noticed: the fresh guest may be quicker */
	sandbox_replace_guest(s->sandbox);
	return 0;
}

/* ---- looking at a session ------------------------------------------------------------ */

void session_info(const struct session *s, struct session_info *ret)
{
	uint64_t now = clock_now_ns();
	double age = (double)(now - s->created_ns) / 1e9, idle = (double)(now - s->used_ns) / 1e9;
	double left = s->params.ttl_s - age, left_idle = s->running ? left : s->params.idle_timeout_s - idle;
	struct guest *g = s->sandbox ? sandbox_guest(s->sandbox) : NULL;
	*ret = (struct session_info){ .id = s->id,
		.name = s->params.name,
		.metadata = s->params.metadata,
		.packages = s->params.packages_report,
		.from = *s->from ? s->from : NULL,
		.same_numbers = session_fork_note(s),
		.owner = s->params.owner,
		.serial = s->serial,
		.state = s->running ? SESSION_BUSY : s->guest_ready ? SESSION_IDLE : SESSION_STARTING,
		.created_wall_ns = s->created_wall_ns,
		.used_wall_ns = s->used_wall_ns,
		.ttl_s = s->params.ttl_s,
		.idle_timeout_s = s->params.idle_timeout_s,
		.expires_in_s = left < left_idle ? left : left_idle,
		.cells = s->cells,
		.queued = s->queued,
		.warm = s->warm || s->template_warm,
		.template = s->template,
		.left_running = s->n_left,
		.pid = g ? guest_pid(g) : 0,
		.exec = s->params.exec,
		.network = &s->params.network,
		.has_display = s->params.has_display,
		.display_up = s->display && display_is_up(s->display),
		.display = s->params.display,
		.profile = s->profile.name,
		.limits = s->params.limits,
		.not_enforced = sessions_not_enforced(s->table) };
	if (ret->expires_in_s < 0)
		ret->expires_in_s = 0;
}

int session_log_read(struct session *s, uint64_t position, struct log_entry *ret)
{
	return output_log_read(&s->spool, position, ret);
}

uint64_t session_log_dropped(const struct session *s)
{
	return s->spool.dropped;
}

int session_workspace_fd(const struct session *s)
{
	return s->sandbox ? sandbox_workspace(s->sandbox) : -1;
}

void session_owner(const struct session *s, uid_t *ret_uid, gid_t *ret_gid)
{
	bool root = geteuid() == 0;
	*ret_uid = root && s->sandbox ? sandbox_host_id(s->sandbox) : geteuid();
	*ret_gid = root && s->sandbox ? sandbox_host_id(s->sandbox) : getegid();
}
