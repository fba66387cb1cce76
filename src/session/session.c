/* One session: how it is found, looked at, reset and ended. */
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
#include "base/node_id.h"
#include "base/text.h"
#include "session/contexts/contexts.h"
#include "session/files/file_watch.h"
#include "session/internal.h"
#include "session/ports/port_link.h"
#include "session/processes/processes.h"

const char *session_state_name(enum session_state s)
{
	static const char *const names[] = { "starting", "idle", "busy", "paused" };
	return names[s];
}

/* ---- display ------------------------------------------------------------------ */

static int no_display(struct error *e)
{
	error_set(e, -ENOTSUP, "the session has no display");
	error_remedy(e, "Make a session with {display}.");
	return error_slug(e, "no_display");
}

int64_t session_display_ask(struct session *s, enum display_ask what, const void *options,
	size_t len, double timeout_s, session_display_answer answer, void *userdata,
	struct error *e)
{
	if (s->display) {
		int64_t question = display_ask(
			s->display, what, options, len, false, timeout_s, answer, userdata, e);
		if (question > 0)
			display_outlive(s->display, (uint32_t)question);
		return question;
	}
	return no_display(e);
}

int session_display_resize(struct session *s, const struct display_size *size, struct error *e)
{
	if (!s->display)
		return no_display(e);
	if (display_resize(s->display, size) < 0) {
		error_set(e, -EBUSY, "the display is already in use with another size");
		return error_slug(e, "display_in_use");
	}

	s->params.display.width = size->width;
	s->params.display.height = size->height;
	s->params.display.depth = size->depth;
	s->params.display.dpi = size->dpi;
	return 0;
}

void session_display_forget(struct session *s, uint32_t question)
{
	if (s->display)
		display_forget(s->display, question);
}

void sessions_display_forget(struct sessions *t, const void *userdata)
{
	if (t->displays)
		displays_forget(t->displays, userdata);
}

/* ---- index -------------------------------------------------------------------- */

int session_compare_ids(const void *a, const void *b)
{
	return strcmp(((const struct session *)a)->id, ((const struct session *)b)->id);
}

static void remember_ended(struct sessions *t, const struct session *s, const char *why)
{
	struct tombstone *stone = &t->tombstones[t->next_tombstone++ % LIMIT_TOMBSTONES];
	memcpy(stone->id, s->id, sizeof(stone->id));
	snprintf(stone->why, sizeof(stone->why), "%s", why);
	stone->wall_ns = clock_wall_ns();
	stone->owner = s->params.owner;
}

static const struct tombstone *find_ended(const struct sessions *t, const char *id)
{
	for (unsigned i = 0; i < LIMIT_TOMBSTONES; i++)
		if (!strcmp(t->tombstones[i].id, id))
			return &t->tombstones[i];
	return NULL;
}

uint64_t session_gone_owner(const struct sessions *t, const char *id)
{
	const struct tombstone *ended = find_ended(t, id);
	return ended ? ended->owner : 0;
}

const char *session_gone_why(const struct sessions *t, const char *id, uint64_t owner)
{
	const struct tombstone *ended = find_ended(t, id);
	return ended && ended->owner == owner ? ended->why : NULL;
}

int session_find(struct sessions *t, const char *id, struct error *e, struct session **ret)
{
	struct session key;
	if (strlen(id) == SESSION_ID_LEN) {
		memcpy(key.id, id, SESSION_ID_LEN + 1);
		void *node = tfind(&key, &t->index, session_compare_ids);
		if (node) {
			*ret = *(struct session **)node;
			return 0;
		}
	}

	const struct tombstone *ended = find_ended(t, id);
	if (ended) {
		char when[CLOCK_TEXT_MAX];
		error_set(e, -EIDRM, "session %s ended at %s: %s", id,
			clock_format(ended->wall_ns, when), ended->why);
		error_remedy(
			e, "{new_session}; the variables and files of the old session are lost.");
		return error_slug(e, "session_gone");
	}

	if (strlen(id) == SESSION_ID_LEN && node_made_before(id + 2)) {
		error_set(e, -EIDRM,
			"session %s ended when the server of its node was started anew", id);
		error_remedy(
			e, "{new_session}; the variables and files of the old session are lost.");
		return error_slug(e, "node_restarted");
	}

	error_set(e, -ENOENT, "there is no session %.64s", id);
	error_remedy(e, "{find_session}.");
	return error_slug(e, "session_not_found");
}

struct session *sessions_next(struct sessions *t, struct session *after)
{
	for (struct session *s = after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&t->list); s;
		s = TAILQ_NEXT(s, link))
		if (s->phase != PHASE_ENDING && !s->origin.context_of)
			return s;
	return NULL;
}

/* ---- the end --------------------------------------------------------------------- */

/* Ends all that happens in the session, and tells everybody who waits for it. */
static void stop_all(struct session *s, const char *why)
{
	char text[160];
	snprintf(text, sizeof(text), "the session ended: %s", why);
	session_set_phase(s, PHASE_ENDING); /* no queued cell may start now */
	session_fail_all_cells(s, CELL_KILLED, "session_gone", text, "Make a new session.");
	death_drop_listeners(s);
	recordings_destroy(s);
	display_close(s->display);
	s->display = NULL;
	fork_child_failed(s, "it ended");
	operation_cancel(s, "the session ended");
	history_forget(s);
	contexts_end(s);
	processes_end(s);
	ports_end(s);
	file_watches_end(s);
	sandbox_close(s->sandbox);
	s->sandbox = NULL;
}

void session_end(struct session *s, const char *why)
{
	struct sessions *t = s->table;
	if (s->phase == PHASE_ENDING)
		return;
	stop_all(s, why);

	remember_ended(t, s, why);
	tdelete(s, &t->index, session_compare_ids);
	TAILQ_REMOVE(&t->list, s, link);
	t->stats.live--;
	t->stats.ended++;
	introspect_drop(s);
	watch_ended(s, why);

	if (t->config.on_session_end)
		t->config.on_session_end(t->config.userdata, s->id, why);
	session_release(s);
}

int session_add_package(struct session *s, struct session_package *p, char *report, struct error *e)
{
	if (s->phase == PHASE_ENDING || s->table->end.draining) {
		error_set(e, -ESHUTDOWN, "the session is ending");
		return error_slug(e, "draining");
	}

	if (p) {
		p->next = s->params.packages;
		s->params.packages = p;
	}

	if (report) {
		free(s->params.packages_report);
		s->params.packages_report = report;
		s->setup.packages_changed = true;
	}

	s->times.used_ns = clock_now_ns();
	/* else it is sent when the interpreter is ready, or before its first cell */
	if (p && s->setup.sent && session_has_guest(s))
		session_send_path(s, p);
	return 0;
}

/* Fails the running cell; the cells that wait run in the fresh interpreter. */
static void fail_running_cell(struct session *s)
{
	struct cell_queue waiting;
	unsigned n = s->queue.n_waiting;
	TAILQ_INIT(&waiting);
	TAILQ_CONCAT(&waiting, &s->queue.waiting, link);
	s->queue.n_waiting = 0;
	s->table->stats.queued_cells -= n;

	session_fail_all_cells(s, CELL_KILLED, "session_reset",
		"the session was reset while the cell ran", "Run it again.");

	TAILQ_CONCAT(&s->queue.waiting, &waiting, link);
	s->queue.n_waiting += n;
	s->table->stats.queued_cells += n;
}

static int check_reset(const struct session *s, struct error *e)
{
	if (s->phase == PHASE_ENDING || s->table->end.draining) {
		error_set(e, -ESHUTDOWN, "the session is ending");
		return error_slug(e, "draining");
	}

	if (s->origin.fork_of && !session_has_guest(s)) {
		error_set(e, -EBUSY, "the session is still being forked");
		error_remedy(e, "Try again when the fork is ready.");
		return error_slug(e, "session_busy");
	}
	return 0;
}

int session_reset(struct session *s, struct error *e)
{
	int r = check_reset(s, e);
	if (r < 0)
		return r;
	if (!session_has_guest(s) && !session_is_restoring(s))
		return 0; /* a fresh one is on its way already */

	session_set_phase(s, PHASE_STARTING);
	s->setup.sent = s->death.holds.state = s->death.has_report = false;
	s->queue.n_background = 0;
	fail_running_cell(s);
	watch_reset(s);
	source_check_drop(s);
	introspect_drop(s);
	output_finish(&s->output.stream[0]);
	output_finish(&s->output.stream[1]);

	operation_cancel(s, "the session was reset");
	evict_named(s);
	history_forget(s);
	if (s->display)
		/* not when its end is noticed: the fresh guest may be quicker */
		display_restart(s->display);
	sandbox_replace_guest(s->sandbox);
	return 0;
}

uv_loop_t *session_loop(const struct session *s)
{
	return s->table->config.loop;
}

/* ---- looking at a session ------------------------------------------------------------ */

void session_info(const struct session *s, struct session_info *ret)
{
	uint64_t now = clock_now_ns();
	double age = (double)(now - s->times.created_ns) / 1e9,

	       idle = (double)(now - s->times.used_ns) / 1e9;
	double left = s->params.ttl_s - age,
	       left_idle = s->queue.running || processes_attended(s) || ports_attended(s)
				   ? left
				   : s->params.idle_timeout_s - idle;
	struct guest *g = s->sandbox ? sandbox_guest(s->sandbox) : NULL;
	*ret = (struct session_info){ .id = s->id,
		.name = s->params.name,
		.metadata = s->params.metadata,
		.packages = s->params.packages_report,
		.from = *s->origin.from ? s->origin.from : NULL,
		.same_numbers = session_fork_note(s),
		.owner = s->params.owner,
		.serial = s->serial,
		.state = s->pause.since_ns      ? SESSION_PAUSED
			 : s->queue.running     ? SESSION_BUSY
			 : session_has_guest(s) ? SESSION_IDLE
						: SESSION_STARTING,
		.created_wall_ns = s->times.created_wall_ns,
		.used_wall_ns = s->times.used_wall_ns,
		.ttl_s = s->params.ttl_s,
		.idle_timeout_s = s->params.idle_timeout_s,
		.pause_on_expiry = s->params.pause_on_expiry,
		.private_ports = s->params.private_ports,
		.expires_in_s = left < left_idle ? left : left_idle,
		.cells = s->queue.cells,
		.queued = s->queue.n_waiting,
		.warm = s->origin.ready || s->origin.template_warm,
		.template = s->origin.template,
		.left_running = s->queue.n_background,
		.pid = g ? guest_pid(g) : 0,
		.exec = s->params.exec,
		.network = &s->params.network,
		.mounts = s->params.mounts,
		.volumes = s->params.volumes,
		.has_display = s->params.has_display,
		.display_up = s->display && display_is_up(s->display),
		.display = s->params.display,
		.profile = s->profile.name,
		.limits = s->params.limits,
		.not_enforced = sessions_not_enforced(s->table) };
	if (s->pause.since_ns)
		ret->expires_in_s = pause_expires_in_s(s);
	if (ret->expires_in_s < 0)
		ret->expires_in_s = 0;
}

int session_log_read(struct session *s, uint64_t position, struct log_entry *ret)
{
	return output_log_read(&s->output.log, position, ret);
}

uint64_t session_log_dropped(const struct session *s)
{
	return s->output.log.dropped;
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
