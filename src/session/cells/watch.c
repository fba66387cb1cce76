/* Events of sessions, and the history of their cells. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "session/cells/watch_internal.h"
#include "session/internal.h"

const char *const session_event_names[SESSION_EVENT_KINDS] = {
	[SESSION_EVENT_CREATED] = "created",
	[SESSION_EVENT_STARTED] = "started",
	[SESSION_EVENT_OUTPUT] = "output",
	[SESSION_EVENT_DISPLAY] = "display",
	[SESSION_EVENT_DONE] = "done",
	[SESSION_EVENT_LIMIT] = "limit",
	[SESSION_EVENT_CHECKPOINT] = "checkpoint",
	[SESSION_EVENT_ROLLBACK] = "rollback",
	[SESSION_EVENT_FORK] = "fork",
	[SESSION_EVENT_RESET] = "reset",
	[SESSION_EVENT_CHANGED] = "changed",
	[SESSION_EVENT_DIED] = "died",
	[SESSION_EVENT_ENDED] = "ended",
};

void sessions_watch(struct sessions *t, session_watcher watcher, void *userdata)
{
	t->watch = (struct sessions_watch){ watcher, userdata };
}

/* Fills in what every event has. */
static void tell(struct session *s, struct session_event *ev)
{
	const struct sessions_watch *w = &s->table->watch;
	if (!w->watcher)
		return;

	ev->session = s->id;
	ev->name = s->params.name;
	ev->owner = s->params.owner;
	ev->cell = ev->cell ? ev->cell : s->queue.cells;
	if (ev->text && !ev->len)
		ev->len = strlen(ev->text);
	w->watcher(w->userdata, ev);
}

/* ---- cells --------------------------------------------------------------------- */

/* CODE is the first field of the frame (build_frame() in queue.c). */
static const char *code_of(const struct cell *c, size_t *ret_len)
{
	const unsigned char *n = (const unsigned char *)c->frame.data + WIRE_HEADER + 1;
	*ret_len = n[0] | (size_t)n[1] << 8 | (size_t)n[2] << 16 | (size_t)n[3] << 24;
	return c->frame.data + WIRE_HEADER + WIRE_FIELD_HEADER;
}

void watch_cell_started(struct session *s)
{
	const struct cell *c = s->queue.running;
	size_t len;
	const char *code = code_of(c, &len);

	/* the session of a one-shot ends with it: nobody could ask for its history */
	if (!c->options.program) {
		struct cell_record *r = cell_record_create(RECORD_CELL, s->queue.cells, code, len);
		if (r)
			r->dialect = c->dialect;
		cell_history_add(&s->cell_history, r);
	}

	/* in a frame the code has no NUL at its end: empty code must not be measured by tell() */
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_STARTED,
			.text = len ? code : "",
			.len = len,
			.record = s->cell_history.running ? s->cell_history.last : 0,
			.dialect = c->dialect });
}

/* Limits that a cell can meet, by the code of its error. */
static bool is_limit(const char *code)
{
	static const char *const codes[] = { "cell_timeout", "out_of_memory", "cpu_limit",
		"output_limit", "disk_full", "file_too_large", "too_many_processes",
		"too_many_files", NULL };
	for (const char *const *c = codes; code && *c; c++)
		if (text_eq(*c, code))
			return true;
	return false;
}

void watch_cell_done(struct session *s, const struct cell *c, const struct observation *o)
{
	uint64_t record = s->cell_history.running ? s->cell_history.running->number : 0;
	if (!c->started)
		return;

	cell_history_end(&s->cell_history, o);
	if (o->error && is_limit(o->error->code))
		tell(s, &(struct session_event){ .kind = SESSION_EVENT_LIMIT,
				.record = record,
				.text = o->error->code });
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_DONE,
			.record = record,
			.dialect = c->dialect,
			.outcome = o });
}

void watch_output(struct session *s, enum stream stream, const char *data, size_t len)
{
	if (len)
		tell(s, &(struct session_event){ .kind = SESSION_EVENT_OUTPUT,
				.record = s->cell_history.running ? s->cell_history.last : 0,
				.stream = stream,
				.text = data,
				.len = len });
}

void watch_display(struct session *s)
{
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_DISPLAY,
			.record = s->cell_history.running ? s->cell_history.last : 0,
			.number = s->outcome.n_displays ? s->outcome.n_displays - 1 : 0 });
}

const struct cell_history *session_cell_history(const struct session *s)
{
	return &s->cell_history;
}

bool session_cell_so_far(struct session *s, struct observation *ret)
{
	if (!s->queue.running)
		return false;

	*ret = (struct observation){ .id = s->queue.running->id,
		.session = s->id,
		.cell = s->queue.cells,
		.status = CELL_RUNNING,
		.displays = s->outcome.displays,
		.n_displays = s->outcome.n_displays,
		.displays_left_out = s->outcome.displays_left_out };
	output_view(&s->output.stream[STREAM_STDOUT], &ret->out);
	output_view(&s->output.stream[STREAM_STDERR], &ret->err);
	return true;
}

/* ---- the session --------------------------------------------------------------- */

static void mark(struct session *s, enum cell_record_kind kind, const char *name, unsigned back_to)
{
	struct cell_record *r = cell_record_create(
		kind, s->queue.cells, name, name ? strlen(name) : 0);
	if (r)
		r->back_to = back_to;
	cell_history_add(&s->cell_history, r);
}

void watch_created(struct session *s)
{
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_CREATED,
			.id = *s->origin.from ? s->origin.from : NULL });
}

void watch_reset(struct session *s)
{
	mark(s, RECORD_RESET, NULL, 0);
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_RESET });
}

void watch_died(struct session *s, const char *why)
{
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_DIED, .text = why });
}

void watch_ended(struct session *s, const char *why)
{
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_ENDED, .text = why });
}

void watch_checkpoint(struct session *s, const struct checkpoint_info *c)
{
	mark(s, RECORD_CHECKPOINT, c->name, 0);
	tell(s, &(struct session_event){
			.kind = SESSION_EVENT_CHECKPOINT, .id = c->id, .text = c->name });
}

void watch_rollback(struct session *s, const struct checkpoint_info *c)
{
	unsigned cell = c ? c->cell : 0;
	mark(s, RECORD_ROLLBACK, c ? c->name : NULL, cell);
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_ROLLBACK,
			.id = c ? c->id : NULL,
			.text = c ? c->name : NULL,
			.number = cell });
}

void watch_fork(struct session *s, const struct session *child)
{
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_FORK, .id = child->id });
}

void session_figures(struct session *s, struct session_figures *ret)
{
	struct jail_figures f;
	*ret = (struct session_figures){ 0 };
	if (!s->sandbox)
		return;
	sandbox_figures(s->sandbox, &f);
	ret->memory_bytes = f.used_bytes - f.cached_bytes;
	ret->cache_bytes = f.cached_bytes;
	ret->disk_bytes = session_disk_used(s);
	ret->cpu_s = (double)(f.user_ns + f.system_ns) / 1e9;
}

void session_update(struct session *s, struct session_update *u)
{
	struct session_params *p = &s->params;
	if (u->has_name) {
		free(p->name);
		p->name = u->name;
		u->name = NULL;
	}

	if (u->has_metadata) {
		free(p->metadata);
		p->metadata = u->metadata;
		u->metadata = NULL;
	}

	if (u->ttl_s > 0)
		p->ttl_s = u->ttl_s;
	if (u->idle_timeout_s > 0)
		p->idle_timeout_s = u->idle_timeout_s;
	tell(s, &(struct session_event){ .kind = SESSION_EVENT_CHANGED });
}
