#include "dialects/openenv/openenv_web.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/outbox.h"
#include "api/routes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/text.h"
#include "dialects/dialects.h"
#include "openenv_web_source.h"
#include "json/json_write.h"

static const char web_name[] = "web";

/* One step, as JSON text. */
struct web_entry {
	STAILQ_ENTRY(web_entry) next;
	size_t len;
	char text[];
};

struct web_log {
	STAILQ_HEAD(, web_entry) entries; /* oldest first */
	unsigned n;
	size_t bytes;
	bool stepped;       /* since the reset */
	struct buffer seen; /* the last observation as JSON, empty before the first reset */
};

/* Somebody who watches. */
struct web_view {
	struct openenv *home;
	struct http_ws *ws;
	uint64_t owner;
	struct outbox out;
	TAILQ_ENTRY(web_view) link;
};

bool openenv_is_web(const struct call *c)
{
	return text_starts(c->route->pattern, "/web/");
}

/* ---- the log -------------------------------------------------------------------- */

static void forget_first(struct web_log *l)
{
	struct web_entry *e = STAILQ_FIRST(&l->entries);
	STAILQ_REMOVE_HEAD(&l->entries, next);
	l->n--;
	l->bytes -= e->len;
	free(e);
}

static void forget_all(struct web_log *l)
{
	while (!STAILQ_EMPTY(&l->entries))
		forget_first(l);
	buffer_finish(&l->seen);
}

void web_log_destroy(struct web_log *l)
{
	if (!l)
		return;
	forget_all(l);
	free(l);
}

static struct web_log *log_of(struct env *e)
{
	if (e->log)
		return e->log;
	e->log = calloc(1, sizeof(*e->log));
	if (e->log) {
		STAILQ_INIT(&e->log->entries);
		buffer_init(&e->log->seen, 0);
	}
	return e->log;
}

/* What is too long for the log is left out of it: the answer of the step has it all. */
static void remember(struct web_log *l, const struct buffer *text)
{
	struct web_entry *e = text->len <= LIMIT_WEB_LOG_BYTES ? malloc(sizeof(*e) + text->len)
							       : NULL;
	if (!e)
		return;
	e->len = text->len;
	memcpy(e->text, text->data, text->len);
	while (l->n >= LIMIT_WEB_LOG_STEPS || l->bytes + e->len > LIMIT_WEB_LOG_BYTES)
		forget_first(l);
	STAILQ_INSERT_TAIL(&l->entries, e, next);
	l->n++;
	l->bytes += e->len;
}

/* ---- telling --------------------------------------------------------------------- */

static void put_entries(struct json_writer *w, const struct web_log *l)
{
	const struct web_entry *e;
	json_key(w, "action_logs");
	json_open_array(w);
	if (l)
		STAILQ_FOREACH(e, &l->entries, next)
	json_put_raw(w, e->text, e->len);
	json_close(w);
}

static void put_episode(struct json_writer *w, const struct env *e)
{
	const struct web_log *l = e ? e->log : NULL;
	json_open_object(w);
	json_field_cstr(w, "type", "state_update");
	json_key(w, "episode_state");
	json_open_object(w);
	json_field_cstr(w, "episode_id", e && *e->episode ? e->episode : NULL);
	json_field_uint(w, "step_count", e ? e->step_count : 0);
	if (l && l->seen.len)
		json_field_raw(w, "current_observation", l->seen.data, l->seen.len);
	else
		json_field_null(w, "current_observation");
	put_entries(w, l);
	json_field_bool(w, "is_reset", !l || !l->stepped);
	json_close(w);
	json_close(w);
}

static void tell(struct web_view *v, const struct env *e)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	put_episode(&w, e);
	if (json_writer_end(&w) >= 0 && outbox_send(&v->out, &b) == -ENOBUFS)
		http_ws_close(v->ws, 1008, "too slow");
}

static void tell_all(const struct env *e)
{
	struct web_view *v;
	TAILQ_FOREACH (v, &e->home->views, link)
		if (v->owner == e->owner)
			tell(v, e);
}

void web_note_reset(struct env *e)
{
	static const char first[] = "{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":0}";
	struct web_log *l = log_of(e);
	if (!l)
		return;
	forget_all(l);
	l->stepped = false;
	buffer_append(&l->seen, first, sizeof(first) - 1);
	tell_all(e);
}

static void put_entry(struct json_writer *w, const struct env *e, const char *code, size_t len,
	const struct step *s, const struct observation *o)
{
	char date[CLOCK_TEXT_MAX];
	json_open_object(w);
	json_field_cstr(w, "timestamp", clock_format(clock_wall_ns(), date));
	json_key(w, "action");
	json_open_object(w);
	json_field_text(w, "code", code, len);
	json_close(w);
	step_put_outcome(w, s, o);
	json_field_uint(w, "step_count", e->step_count);
	json_close(w);
}

void web_note_step(struct env *e, const char *code, size_t len, const struct step *s,
	const struct observation *o)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct web_log *l = log_of(e);
	struct json_writer w;

	if (!l)
		return;
	json_writer_init(&w, &b);
	put_entry(&w, e, code, len, s, o);
	if (json_writer_end(&w) >= 0)
		remember(l, &b);
	l->seen.len = 0;
	json_writer_init(&w, &l->seen);
	step_put_seen(&w, s, o);
	if (json_writer_end(&w) < 0)
		l->seen.len = 0;
	l->stepped = true;
	tell_all(e);
}

/* ---- watching ----------------------------------------------------------------------- */

static int send_message(void *target, const char *data, size_t len)
{
	struct web_view *v = target;
	return http_ws_send(v->ws, data, len);
}

static void on_message(struct http_ws *ws, const char *text, size_t len, void *userdata)
{
	(void)ws, (void)text, (void)len, (void)userdata; /* it is for listening */
}

static void on_drained(struct http_ws *ws, void *userdata)
{
	struct web_view *v = userdata;
	outbox_drained(&v->out);
}

static void on_closed(struct http_ws *ws, unsigned code, void *userdata)
{
	struct web_view *v = userdata;
	TAILQ_REMOVE(&v->home->views, v, link);
	outbox_finish(&v->out);
	free(v);
}

void handle_openenv_web_socket(struct call *c)
{
	static const struct http_ws_handler handler = {
		.on_message = on_message, .on_drained = on_drained, .on_closed = on_closed
	};
	if (!http_wants_websocket(c->x)) {
		http_add_header(c->x, "Upgrade", "websocket");
		call_problem(c, 426, "upgrade_required", "this address supports WebSocket only",
			"Open /web/ in a browser, or GET /web/state.");
		return;
	}

	struct web_view *v = calloc(1, sizeof(*v));
	if (!v) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	v->home = dialect_state(c->api, &dialect_openenv);
	v->owner = c->owner;
	outbox_init(&v->out, send_message, v);
	struct http_exchange *x = c->x;
	call_release(c);
	v->ws = http_upgrade(x, NULL, &handler, v);
	if (!v->ws) {
		free(v);
		return;
	}

	TAILQ_INSERT_TAIL(&v->home->views, v, link);
	tell(v, env_find(v->home, v->owner, web_name));
}

/* ---- the page ------------------------------------------------------------------------- */

void handle_openenv_web_page(struct call *c)
{
	http_add_header(c->x, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
		"frame-ancestors 'none'");
	call_respond_static(c, 200, "text/html; charset=utf-8", openenv_web_sources[0].text,
		strlen(openenv_web_sources[0].text));
}

void handle_openenv_web_address(struct call *c)
{
	http_add_header(c->x, "Location", "/web/");
	call_respond_as(c, 307, NULL, NULL);
}
