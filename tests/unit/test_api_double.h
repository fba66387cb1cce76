/*
 * A session table that runs nothing: it stands for src/session in the API's tests, so that they
 * need no guest and every outcome can be had at will. The "code" of a cell says what happens:
 *
 * 	print TEXT       TEXT on stdout, status ok, the value of TEXT as result
 * 	split            "é€" on stdout in three pieces that cut both characters
 * 	bad              invalid UTF-8, a result that claims to be JSON and is not, an error
 * 	hang             runs until it is interrupted or abandoned
 * 	big N            N displays of one million characters
 * 	now              done before session_execute() returns
 *
 * A session named "slow" is reachable after 100 ms only.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/machine_room.h"
#include "base/text.h"
#include "session/cells/introspect.h"
#include "session/cells/session_cells.h"
#include "session/display/film.h"
#include "session/network_record.h"
#include "session/pause.h"
#include "session/session.h"
#include "session/tools/session_tools.h"
#include "session/volumes/volumes.h"

const double stats_bounds_s[STATS_BUCKETS - 1] = { 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5,
	1, 5, 10, 60, 600 };

struct cell {
	struct session *session;
	char *id, *code;
	const struct cell_observer *observer;
	struct cell_observer copy;
	void *userdata;
	unsigned number;
	bool running, detach;
	TAILQ_ENTRY(cell) next;
};

struct session {
	struct sessions *table;
	struct session_params params;
	char id[SESSION_ID_LEN + 1];
	uint64_t serial, born_ns;
	unsigned cells;
	int workspace;
	bool touched;
	TAILQ_HEAD(, cell) queue;
	TAILQ_ENTRY(session) next;
};

struct sessions {
	uv_timer_t timer;
	char base[64], gone[SESSION_ID_LEN + 1];
	uint64_t gone_owner;
	unsigned max, max_queued;
	struct sessions_stats stats;
	TAILQ_HEAD(, session) list;
};

static const char *const double_statuses[] = { "ok", "error", "timeout", "interrupted",
	"out_of_memory", "killed", "refused", "running" };

const char *cell_status_name(enum cell_status s)
{
	return double_statuses[s];
}

const char *const picture_outcome_names[PICTURE_OUTCOMES] = { "taken", "empty", "failed" };
const char *const refusal_names[REFUSALS] = { "too_many_sessions", "token_quota", "no_resources",
	"draining", "limit", "profile", "network", "other" };

void sessions_count_refusal(struct sessions *t, enum refusal why)
{
	t->stats.refused[why]++;
}

void sessions_room(const struct sessions *t, struct machine_room *ret)
{
	(void)t;
	machine_room_look(ret);
}

const char *session_state_name(enum session_state s)
{
	static const char *const names[] = { "starting", "idle", "busy" };
	return names[s];
}

static bool double_drains;

void sessions_drain(struct sessions *t, double deadline_s)
{
	(void)t;
	(void)deadline_s;
	double_drains = true;
}

void sessions_stop_drain(struct sessions *t)
{
	(void)t;
	double_drains = false;
}

bool sessions_draining(const struct sessions *t, double *ret_left_s)
{
	(void)t;
	*ret_left_s = 0;
	return double_drains;
}

int sessions_check_drain(const struct sessions *t, struct error *e)
{
	(void)t;
	(void)e;
	return 0;
}

bool sessions_ready(const struct sessions *t)
{
	return true;
}

const char *sessions_complaint(const struct sessions *t)
{
	(void)t;
	return "the interpreter is warming up";
}

int session_charge_upload(struct session *s, size_t bytes, struct error *e)
{
	(void)s, (void)bytes, (void)e;
	return 0;
}

const char *sessions_not_enforced(const struct sessions *t)
{
	(void)t;
	return "";
}

const char *sessions_shortage(struct sessions *t)
{
	(void)t;
	return NULL;
}

const char *sessions_preload_report(const struct sessions *t)
{
	return "nosuch: No module named 'nosuch'\n";
}

const struct sessions_stats *sessions_stats(const struct sessions *t)
{
	return &t->stats;
}

/* ---- history and events: none ---------------------------------------------- */

const char *const session_event_names[SESSION_EVENT_KINDS] = { "created" };
const char *const cell_record_kind_names[RECORD_KINDS] = { "cell" };

void sessions_watch(struct sessions *t, session_watcher watcher, void *userdata)
{
	(void)t, (void)watcher, (void)userdata;
}

const struct cell_history *session_cell_history(const struct session *s)
{
	static struct cell_history none;
	(void)s;
	TAILQ_INIT(&none.records);
	return &none;
}

bool session_cell_so_far(struct session *s, struct observation *ret)
{
	(void)s, (void)ret;
	return false;
}

const struct cell_record *cell_history_next(const struct cell_history *h, uint64_t after)
{
	(void)h, (void)after;
	return NULL;
}

const struct cell_record *cell_history_find(const struct cell_history *h, uint64_t number)
{
	(void)h, (void)number;
	return NULL;
}

void session_update(struct session *s, struct session_update *u)
{
	(void)s, (void)u;
}

void session_figures(struct session *s, struct session_figures *ret)
{
	(void)s;
	*ret = (struct session_figures){ 0 };
}

int session_introspect(struct session *s, const char *request, size_t len, introspect_done done,
	void *userdata, struct error *e)
{
	(void)s, (void)request, (void)len, (void)done, (void)userdata;
	return error_set(e, -EBUSY, "busy");
}

struct volumes *sessions_volumes(struct sessions *t)
{
	(void)t;
	return NULL;
}

struct volume *volumes_next(struct volumes *v, uint64_t owner, const struct volume *after)
{
	(void)v;
	(void)owner;
	(void)after;
	return NULL;
}

int volumes_find(
	struct volumes *v, uint64_t owner, const char *name, struct error *e, struct volume **ret)
{
	(void)v;
	(void)owner;
	(void)ret;
	error_set(e, -ENOENT, "there is no volume '%s'", name);
	return error_slug(e, "volume_not_found");
}

int volumes_make(struct volumes *v, uint64_t owner, const char *name, uint64_t quota_bytes,
	struct error *e, struct volume **ret)
{
	(void)quota_bytes;
	return volumes_find(v, owner, name, e, ret);
}

int volumes_remove(struct volumes *v, uint64_t owner, const char *name, struct error *e)
{
	return volumes_find(v, owner, name, e, NULL);
}

void volume_info(const struct volume *v, struct volume_info *ret)
{
	(void)v;
	*ret = (struct volume_info){ 0 };
}

const struct network_record *session_network_record(const struct session *s)
{
	(void)s;
	return NULL;
}

const struct network_attempt *network_record_get(const struct network_record *r, uint64_t number)
{
	(void)r, (void)number;
	return NULL;
}

void session_introspect_forget(struct session *s, void *userdata)
{
	(void)s, (void)userdata;
}

/* ---- cells ---------------------------------------------------------------- */

static void double_free_cell(struct cell *c)
{
	TAILQ_REMOVE(&c->session->queue, c, next);
	free(c->id);
	free(c->code);
	free(c);
}

static void double_done(struct cell *c, struct observation *o)
{
	struct cell_observer observer = c->copy;
	void *userdata = c->userdata;
	char id[160], session[SESSION_ID_LEN + 1];
	snprintf(id, sizeof(id), "%s", c->id);
	snprintf(session, sizeof(session), "%s", c->session->id);
	o->id = id;
	o->session = session;
	o->cell = c->number;
	o->wall_ms = 1.23456;
	c->session->table->stats.cells[0].count[o->status]++;
	double_free_cell(c);
	observer.on_done(userdata, o);
}

/* What cells of the double tell at length is static. */
struct observation_kept *observation_keep(const struct observation *o)
{
	(void)o;
	return malloc(1);
}

void observation_release(struct observation_kept *k)
{
	free(k);
}

static void double_output(struct cell *c, const char *data, size_t len)
{
	if (c->copy.on_output)
		c->copy.on_output(c->userdata, STREAM_STDOUT, data, len);
}

static void double_print(struct cell *c)
{
	char text[256];
	snprintf(text, sizeof(text), "%s\n", c->code + 6);
	struct bundle value = { .item = { { "text/plain", c->code + 6, strlen(c->code + 6), false },
					{ "application/json", "{\"a\":[1]}", 9, true } },
		.n = 2 };
	struct file_entry file = { "made.txt", 5, FILE_CREATED };
	char *copy = strdup(c->code + 6);
	value.item[0].data = copy;
	double_output(c, text, strlen(text));
	struct observation o = { .out = { text, "", strlen(text), 0, 0 },
		.err = { "", "", 0, 0, 0 },
		.result = &value,
		.files = &file,
		.n_files = 1 };
	double_done(c, &o);
	free(copy);
}

static void double_split(struct cell *c)
{
	double_output(c, "\xc3", 1);
	double_output(c, "\xa9\xe2", 2);
	double_output(c, "\x82\xac", 2);
	double_output(c, "\xe2\x82", 2);
	struct observation o = { .out = { "é€\xe2\x82", "", 7, 0, 0 }, .err = { "", "", 0, 0, 0 } };
	double_done(c, &o);
}

static void double_bad(struct cell *c)
{
	struct bundle value = { .item = { { "application/json", "{oops", 5, true },
					{ "text/plain", "\xff<", 2, false },
					{ "text/plain", "again", 5, false } },
		.n = 3 };
	struct cell_error error = { "ValueError", "n\0o", "Traceback\xff", 3, 10, 0, "", "" };
	struct observation o = { .status = CELL_ERROR,
		.exit_code = 1,
		.state_lost = true,
		.out = { "head", "tail", 4, 4, 12345 },
		.err = { "\xff", "", 1, 0, 0 },
		.result = &value,
		.error = &error,
		.files_cut = true,
		.displays_left_out = 2 };
	double_done(c, &o);
}

static void double_big(struct cell *c)
{
	unsigned n = (unsigned)strtoul(c->code + 4, NULL, 10);
	static char million[1000000];
	struct bundle *displays = calloc(n, sizeof(*displays));
	memset(million, 'x', sizeof(million));
	for (unsigned i = 0; i < n; i++) {
		displays[i].n = 1;
		displays[i].item[0] = (struct bundle_item){ "text/plain", million, sizeof(million),
			false };
		if (c->copy.on_display)
			c->copy.on_display(c->userdata, &displays[i]);
	}
	struct observation o = { .out = { "", "", 0, 0, 0 },
		.err = { "", "", 0, 0, 0 },
		.displays = displays,
		.n_displays = n };
	double_done(c, &o);
	free(displays);
}

static void double_end(struct cell *c, enum cell_status status)
{
	struct observation o = { .status = status,
		.exit_code = 130,
		.out = { "", "", 0, 0, 0 },
		.err = { "", "", 0, 0, 0 } };
	double_done(c, &o);
}

static void double_run(struct cell *c)
{
	c->running = true;
	c->number = ++c->session->cells;
	if (c->copy.on_started)
		c->copy.on_started(c->userdata, c->number);
	if (text_starts(c->code, "print "))
		double_print(c);
	else if (text_starts(c->code, "big "))
		double_big(c);
	else if (text_eq(c->code, "split"))
		double_split(c);
	else if (text_eq(c->code, "bad"))
		double_bad(c);
	else if (!text_eq(c->code, "hang"))
		double_end(c, CELL_OK);
}

static void double_tick(uv_timer_t *timer)
{
	struct sessions *t = timer->data;
	struct session *s;
	TAILQ_FOREACH (s, &t->list, next) {
		struct cell *c = TAILQ_FIRST(&s->queue);
		if (c && !c->running)
			double_run(c);
	}
}

int session_execute(struct session *s, const char *id, const struct cell_request *request,
	const struct cell_observer *observer, void *userdata, struct error *e, struct cell **ret)
{
	struct cell *c;
	unsigned n = 0;
	TAILQ_FOREACH (c, &s->queue, next)
		n++;
	if (n > s->table->max_queued) {
		error_set(e, -EBUSY, "too many cells wait");
		return error_slug(e, "queue_full");
	}
	c = calloc(1, sizeof(*c));
	c->session = s;
	c->id = strdup(id ? id : "made");
	c->code = strndup(request->code, request->code_len);
	c->copy = *observer;
	c->userdata = userdata;
	c->detach = request->detach;
	TAILQ_INSERT_TAIL(&s->queue, c, next);
	*ret = c;
	if (text_eq(c->code, "now"))
		double_run(c);
	return 0;
}

void cell_abandon(struct cell *c)
{
	c->session->table->stats.cells[0].count[c->detach ? CELL_OK : CELL_INTERRUPTED]++;
	double_free_cell(c);
}

bool session_interrupt(struct session *s)
{
	struct cell *c = TAILQ_FIRST(&s->queue);
	if (!c || !c->running)
		return false;
	double_end(c, CELL_INTERRUPTED);
	return true;
}

/* ---- sessions ------------------------------------------------------------- */

int session_create(
	struct sessions *t, struct session_params *params, struct error *e, struct session **ret)
{
	char path[128];
	if (t->stats.live >= t->max) {
		error_set(e, -ENOSPC, "there are %u sessions already", t->max);
		return error_slug(e, "server_full");
	}
	struct session *s = calloc(1, sizeof(*s));
	s->table = t;
	s->params = *params;
	s->serial = ++t->stats.created;
	s->born_ns = clock_now_ns();
	memcpy(s->id, "s_", 2);
	text_random_id(s->id + 2, SESSION_ID_LEN - 2);
	snprintf(path, sizeof(path), "%s/%s", t->base, s->id);
	mkdir(path, 0755);
	s->workspace = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	TAILQ_INIT(&s->queue);
	TAILQ_INSERT_TAIL(&t->list, s, next);
	t->stats.live++;
	*ret = s;
	return 0;
}

int session_find(struct sessions *t, const char *id, struct error *e, struct session **ret)
{
	struct session *s;
	TAILQ_FOREACH (s, &t->list, next) {
		if (text_eq(s->id, id)) {
			*ret = s;
			return 0;
		}
	}
	error_set(
		e, text_eq(id, t->gone) ? -EIDRM : -ENOENT, "session %s ended: it was deleted", id);
	return error_slug(e, text_eq(id, t->gone) ? "session_gone" : "session_not_found"),
	       text_eq(id, t->gone) ? -EIDRM : -ENOENT;
}

uint64_t session_gone_owner(const struct sessions *t, const char *id)
{
	return text_eq(id, t->gone) ? t->gone_owner : 0;
}

static void double_free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

void session_end(struct session *s, const char *why)
{
	struct sessions *t = s->table;
	struct cell *c;
	while ((c = TAILQ_FIRST(&s->queue)))
		double_end(c, CELL_KILLED);
	snprintf(t->gone, sizeof(t->gone), "%s", s->id);
	t->gone_owner = s->params.owner;
	TAILQ_REMOVE(&t->list, s, next);
	t->stats.live--;
	t->stats.ended++;
	fd_close(s->workspace);
	free(s->params.name);
	free(s->params.metadata);
	double_free_list(s->params.env);
	double_free_list(s->params.preload);
	free(s);
}

void session_package_free(struct session_package *p)
{
	for (struct session_package *next; p; p = next) {
		next = p->next;
		free(p->path);
		free(p);
	}
}

void sessions_on_packages(struct sessions *t,
	void (*ask)(void *, const char *, uint64_t, const char *, size_t), void *userdata)
{
	(void)t, (void)ask, (void)userdata;
}

void session_answer_packages(struct session *s, uint64_t number, struct session_package *p,
	char *report, const char *why)
{
	(void)s, (void)number, (void)why;
	session_package_free(p);
	free(report);
}

int session_add_package(struct session *s, struct session_package *p, char *report, struct error *e)
{
	(void)s, (void)e;
	session_package_free(p);
	free(report);
	return 0;
}

int session_check(struct session *s, const char *code, size_t len,
	void (*answer)(void *userdata, const char *verdict), void *userdata, struct error *e)
{
	answer(userdata, len && code[len - 1] == ':' ? "incomplete" : "complete");
	return 0;
}

/* A session of the double has one checkpoint, "here", once it was asked for one. */
static struct checkpoint_info checkpoint_double = {
	.id = "k_aaaaaaaaaaaaaaaaaaaa", .cell = 2, .current = true, .files = true
};

int session_checkpoint(
	struct session *s, const char *name, checkpoint_done done, void *userdata, struct error *e)
{
	(void)s, (void)e;
	checkpoint_double.name = name && !strcmp(name, "here") ? "here" : "other";
	done(userdata, NULL, &(struct checkpoint_result){ .checkpoint = &checkpoint_double });
	return 0;
}

int session_rollback(
	struct session *s, const char *which, checkpoint_done done, void *userdata, struct error *e)
{
	(void)s;
	if (which && strcmp(which, "here")) {
		error_set(e, -ENOENT, "there is no checkpoint %s in this session", which);
		return error_slug(e, "checkpoint_not_found");
	}
	done(userdata, NULL,
		&(struct checkpoint_result){ .checkpoint = &checkpoint_double, .back = true });
	return 0;
}

int session_checkpoint_delete(struct session *s, const char *which, struct error *e)
{
	(void)s, (void)which, (void)e;
	return 0;
}

bool session_checkpoint_info(struct session *s, unsigned i, bool size, struct checkpoint_info *ret)
{
	(void)s, (void)size;
	*ret = checkpoint_double;
	return i == 0;
}

int session_fork(struct session *s, const struct fork_request *q, fork_done done, void *userdata,
	struct error *e)
{
	(void)q, (void)e;
	done(userdata, NULL, &s, 1);
	return 0;
}

struct session *sessions_find_checkpoint(struct sessions *t, const char *id, uint64_t owner)
{
	(void)owner;
	return strcmp(id, checkpoint_double.id) ? NULL : sessions_next(t, NULL);
}

const char *session_fork_note(const struct session *s)
{
	(void)s;
	return "";
}

void session_listen(struct session *s, struct session_listener *l)
{
	l->session = s;
}

void session_unlisten(struct session_listener *l)
{
	l->session = NULL;
}

void session_history_abandon(struct session *s, void *userdata)
{
	(void)s, (void)userdata;
}

int session_pause(struct session *s, struct error *e)
{
	(void)s;
	(void)e;
	return 0;
}

int session_resume(struct session *s, double ttl_s, struct error *e)
{
	(void)s;
	(void)ttl_s;
	(void)e;
	return 0;
}

int session_reset(struct session *s, struct error *e)
{
	struct cell *c;
	while ((c = TAILQ_FIRST(&s->queue)))
		double_end(c, CELL_KILLED);
	return 0;
}

struct session *sessions_next(struct sessions *t, struct session *after)
{
	return after ? TAILQ_NEXT(after, next) : TAILQ_FIRST(&t->list);
}

void session_info(const struct session *s, struct session_info *ret)
{
	const struct cell *c;
	unsigned n = 0;
	TAILQ_FOREACH (c, &s->queue, next)
		n++;
	*ret = (struct session_info){ .id = s->id,
		.name = s->params.name,
		.metadata = s->params.metadata,
		.owner = s->params.owner,
		.serial = s->serial,
		.state = session_workspace_fd(s) < 0 ? SESSION_STARTING
			 : TAILQ_EMPTY(&s->queue)    ? SESSION_IDLE
						     : SESSION_BUSY,
		.created_wall_ns = 1700000000123000000ULL,
		.used_wall_ns = 1700000000123000000ULL,
		.ttl_s = 60,
		.idle_timeout_s = 30,
		.expires_in_s = 12.5,
		.cells = s->cells,
		.queued = n ? n - 1 : 0,
		.network = &s->params.network,
		.limits = s->params.limits };
}

int session_log_read(struct session *s, uint64_t position, struct log_entry *ret)
{
	static const struct {
		unsigned cell;
		enum stream stream;
		const char *text;
	} entries[] = { { 1, STREAM_STDOUT, "one \xc3" }, { 1, STREAM_STDERR, "err" },
		{ 1, STREAM_STDOUT, "\xa9 two" }, { 2, STREAM_STDOUT, "\xff" } };
	if (position > 4)
		return -EINVAL;
	if (position == 4)
		return 0;
	*ret = (struct log_entry){ .position = position,
		.next = position + 1,
		.cell = entries[position].cell,
		.stream = entries[position].stream,
		.data = entries[position].text,
		.len = strlen(entries[position].text) };
	return 1;
}

uint64_t session_log_dropped(const struct session *s)
{
	return 77;
}

/* No session of the double has a display. */
int64_t session_display_ask(struct session *s, enum display_ask what, const void *options,
	size_t len, double timeout_s, session_display_answer answer, void *userdata,
	struct error *e)
{
	(void)what, (void)options, (void)len, (void)timeout_s, (void)answer, (void)userdata,
		(void)s;
	error_set(e, -ENOTSUP, "the session has no display");
	return error_slug(e, "no_display");
}

int recording_start(
	struct session *s, const struct recording_params *p, struct error *e, unsigned *ret_id)
{
	(void)s, (void)p, (void)ret_id;
	error_set(e, -ENOTSUP, "the session has no display");
	return error_slug(e, "no_display");
}

static int no_recording(struct error *e)
{
	error_set(e, -ENOENT, "no such recording");
	error_slug(e, "recording_not_found");
	return -ENOENT;
}

int recording_stop(struct session *s, unsigned id, const char *why, struct error *e)
{
	(void)s, (void)id, (void)why;
	return no_recording(e);
}

int recording_get(
	struct session *s, unsigned id, struct error *e, struct recording_info *ret, int *ret_fd)
{
	(void)s, (void)id, (void)ret, (void)ret_fd;
	return no_recording(e);
}

int film_check(enum film_format format, struct error *e)
{
	(void)format, (void)e;
	return 0;
}

int recording_film(
	struct session *s, unsigned id, enum film_format format, struct error *e, int *ret_fd)
{
	(void)s, (void)id, (void)format, (void)ret_fd;
	return no_recording(e);
}

int recording_set_format(struct session *s, unsigned id, enum film_format format, struct error *e)
{
	(void)s, (void)id, (void)format;
	return no_recording(e);
}

bool recording_next(struct session *s, unsigned after, struct recording_info *ret)
{
	(void)s, (void)after, (void)ret;
	return false;
}

int recording_delete(struct session *s, unsigned id, struct error *e)
{
	(void)s, (void)id;
	return no_recording(e);
}

void sessions_display_forget(struct sessions *t, const void *userdata)
{
	(void)t, (void)userdata;
}

void session_display_forget(struct session *s, uint32_t question)
{
	(void)s, (void)question;
}

int session_display_resize(struct session *s, const struct display_size *size, struct error *e)
{
	(void)s, (void)size, (void)e;
	return 0;
}

int session_workspace_fd(const struct session *s)
{
	bool slow = text_eq(s->params.name, "slow") &&
		    clock_now_ns() < s->born_ns + 100 * NSEC_PER_MSEC;
	return slow ? -1 : s->workspace;
}

void session_owner(const struct session *s, uid_t *ret_uid, gid_t *ret_gid)
{
	*ret_uid = getuid();
	*ret_gid = getgid();
}

void session_files_touched(struct session *s)
{
	s->touched = true;
}

/* ---- tools: one call of the last tool given waits, until it is answered ------ */

static struct {
	json_t *definitions;
	const struct tool_client_ops *ops;
	void *client;
	bool waiting, fetched;
	char answer[128];
} double_tools;

int session_set_tools(struct session *s, const json_t *definitions,
	const struct tool_client_ops *ops, void *client, struct error *e)
{
	if (!json_array_size(definitions)) {
		error_set(e, -EINVAL, "no tools");
		return error_slug(e, "invalid_tool");
	}
	json_decref(double_tools.definitions);
	double_tools.definitions = json_incref((json_t *)definitions);
	double_tools.ops = ops;
	double_tools.client = client;
	double_tools.waiting = true;
	double_tools.fetched = false;
	return 0;
}

void session_drop_tools(struct session *s, const void *client)
{
	json_decref(double_tools.definitions);
	double_tools.definitions = NULL;
}

const json_t *session_tool(const struct session *s, size_t i, uint64_t *ret_calls)
{
	*ret_calls = 5;
	return json_array_get(double_tools.definitions, i);
}

static int double_answer(const void *client, uint64_t id, const char *text, struct error *e)
{
	if (id != 1 || !double_tools.waiting || client != double_tools.client) {
		error_set(e, -ENOENT, "nobody waits for it");
		return error_slug(e, "call_not_found");
	}
	double_tools.waiting = false;
	snprintf(double_tools.answer, sizeof(double_tools.answer), "%s", text);
	return 0;
}

int session_answer_call(
	struct session *s, const void *client, uint64_t id, const json_t *value, struct error *e)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	int r = double_answer(client, id, text, e);
	free(text);
	return r;
}

int session_fail_call(struct session *s, const void *client, uint64_t id, const char *type,
	const char *message, struct error *e)
{
	char text[128];
	snprintf(text, sizeof(text), "%s: %s", type, message);
	return double_answer(client, id, text, e);
}

bool session_has_calls(const struct session *s)
{
	return double_tools.waiting && !double_tools.fetched && !double_tools.ops;
}

int session_next_call(struct session *s, struct tool_call *ret)
{
	if (!session_has_calls(s))
		return 0;
	double_tools.fetched = true;
	*ret = (struct tool_call){
		.id = 1, .tool = "t", .cell = 2, .arguments = "{\"a\":1}", .arguments_len = 7
	};
	return 1;
}

int session_wait_calls(struct session *s, struct tool_waiter *w, struct error *e)
{
	w->session = s;
	return 0;
}

void session_stop_waiting(struct tool_waiter *w)
{
	w->session = NULL;
}

static void double_init(struct sessions *t, uv_loop_t *loop, const char *base)
{
	*t = (struct sessions){ .max = 8, .max_queued = 3, .stats.limit = 8 };
	TAILQ_INIT(&t->list);
	snprintf(t->base, sizeof(t->base), "%s", base);
	uv_timer_init(loop, &t->timer);
	t->timer.data = t;
	uv_timer_start(&t->timer, double_tick, 1, 1);
}

static void double_finish(struct sessions *t)
{
	while (!TAILQ_EMPTY(&t->list))
		session_end(TAILQ_FIRST(&t->list), "the test is over");
	uv_close((uv_handle_t *)&t->timer, NULL);
}

#include "test_api_double_processes.h"
