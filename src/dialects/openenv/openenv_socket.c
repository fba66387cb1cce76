/*
 * OpenEnv over a WebSocket: one environment per connection. Messages are handled one after another,
 * as OpenEnv does: what comes while a step runs waits for its end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "dialects/dialects.h"
#include "dialects/openenv/openenv_socket.h"

struct waiting {
	STAILQ_ENTRY(waiting) next;
	size_t len;
	char text[];
};

static int send_message(void *target, const char *data, size_t len)
{
	struct env_socket *s = target;
	return http_ws_send(s->ws, data, len);
}

/* ---- one after another ------------------------------------------------------------ */

static bool is_busy(const struct env_socket *s)
{
	return s->env && (s->env->ws_steps || s->env->packages || s->env->history);
}

static void leave_when_done(struct env_socket *s)
{
	if (s->leaving && !is_busy(s) && outbox_empty(&s->out))
		http_ws_close(s->ws, 1001, "the server is shutting down");
}

static void keep_waiting(struct env_socket *s, const char *text, size_t len)
{
	struct waiting *m = NULL;
	if (s->n_waiting < LIMIT_WS_CELLS && s->waiting_bytes + len <= LIMIT_WS_MESSAGE_BYTES)
		m = malloc(sizeof(*m) + len);
	if (!m) {
		http_ws_close(s->ws, 1008, "too many messages at once");
		return;
	}
	m->len = len;
	memcpy(m->text, text, len);
	STAILQ_INSERT_TAIL(&s->waiting, m, next);
	s->n_waiting++;
	s->waiting_bytes += len;
}

static void drop_first(struct env_socket *s)
{
	struct waiting *m = STAILQ_FIRST(&s->waiting);
	STAILQ_REMOVE_HEAD(&s->waiting, next);
	s->n_waiting--;
	s->waiting_bytes -= m->len;
	free(m);
}

static void handle_waiting(struct env_socket *s)
{
	while (!STAILQ_EMPTY(&s->waiting) && s->env && !is_busy(s)) {
		struct waiting *m = STAILQ_FIRST(&s->waiting);
		STAILQ_REMOVE_HEAD(&s->waiting, next);
		s->n_waiting--;
		s->waiting_bytes -= m->len;
		env_socket_handle(s, m->text, m->len);
		free(m);
	}
	leave_when_done(s);
}

static void on_more(uv_timer_t *timer)
{
	struct openenv *o = timer->data;
	struct env_socket *s, *next;
	for (s = TAILQ_FIRST(&o->sockets); s; s = next) {
		next = TAILQ_NEXT(s, link);
		handle_waiting(s);
	}
}

void openenv_resume(struct openenv *o)
{
	uv_timer_start(&o->more, on_more, 0, 0);
}

static void on_message(struct http_ws *ws, const char *text, size_t len, void *userdata)
{
	struct env_socket *s = userdata;
	if (is_busy(s) || !STAILQ_EMPTY(&s->waiting))
		keep_waiting(s, text, len);
	else
		env_socket_handle(s, text, len);
}

/* ---- the connection ----------------------------------------------------------------- */

static void on_drained(struct http_ws *ws, void *userdata)
{
	struct env_socket *s = userdata;
	outbox_drained(&s->out);
	leave_when_done(s);
}

static bool on_shutdown(struct http_ws *ws, void *userdata)
{
	struct env_socket *s = userdata;
	s->leaving = is_busy(s) || !outbox_empty(&s->out);
	return s->leaving;
}

/* The environment goes on without its connection. */
static void detach(struct env *e)
{
	struct step *s;
	e->socket = NULL;
	env_history_orphan(e);
	TAILQ_FOREACH (s, &e->steps, link)
		s->orphaned = s->orphaned || s->target == e;
}

void env_socket_drop(struct env_socket *s, unsigned code, const char *why)
{
	if (s->env)
		detach(s->env);
	s->env = NULL;
	http_ws_close(s->ws, code, why);
}

/*
 * A named environment whose connection broke waits for its client; all others end with their
 * connection.
 */
static void let_go(struct env *e, unsigned code)
{
	bool closed = code == 1000;
	detach(e);
	if (!*e->name || closed || e->home->config.lease_s <= 0)
		env_destroy(e, closed ? "its client closed the connection" : "its client left");
	else
		e->lease_until_ns = clock_now_ns() + (uint64_t)(e->home->config.lease_s * 1e9);
}

static void on_closed(struct http_ws *ws, unsigned code, void *userdata)
{
	struct env_socket *s = userdata;
	if (s->env)
		let_go(s->env, code);
	while (!STAILQ_EMPTY(&s->waiting))
		drop_first(s);
	TAILQ_REMOVE(&s->home->sockets, s, link);
	outbox_finish(&s->out);
	free(s);
}

/* ---- connecting ------------------------------------------------------------------------ */

static bool query_flag(const struct call *c, const char *name)
{
	char text[8];
	bool on = false;
	return http_query_param(c->x, name, text, sizeof(text)) == 1 &&
	       text_parse_bool(text, &on) == 0 && on;
}

/* The environment for the connection: a new one, or the named one that is still there. */
static int attach(struct env_socket *s, uint64_t owner, const char *name, struct error *e)
{
	struct env *env = *name ? env_find(s->home, owner, name) : NULL;
	if (env && env->socket)
		env_socket_drop(env->socket, 1008, "another connection took over");
	int r = 0;
	if (!env) {
		env = env_create(s->home, owner, name);
		if (!env)
			return error_set(e, -ENOMEM, "out of memory");
		r = env_open(env, e);
	}

	if (r < 0) {
		env_destroy(env, "it could not be made");
		return r;
	}

	env->lease_until_ns = 0;
	env->socket = s;
	s->env = env;
	return 0;
}

static void greet(struct env_socket *s, uint64_t owner, const char *name)
{
	struct error e = { 0 };
	if (attach(s, owner, name, &e) >= 0)
		return;
	env_socket_refuse(s, &e);
	http_ws_close(s->ws, 1000, "");
}

void handle_openenv_socket(struct call *c)
{
	static const struct http_ws_handler handler = { on_message, on_drained, on_closed,
		on_shutdown };
	char name[ENV_NAME_MAX + 2] = "";
	int named = env_name_asked(c, name);

	if (named && (named < 0 || !env_name_is_sound(name))) {
		call_problem(c, 400, "invalid_session_name",
			"the name of the environment is invalid",
			"Use 1 to 64 letters, digits, '.', '_' and '-'.");
		return;
	}

	if (!http_wants_websocket(c->x)) {
		http_add_header(c->x, "Upgrade", "websocket");
		call_problem(c, 426, "upgrade_required", "this address supports WebSocket only",
			"Use a WebSocket client, or POST /reset and /step.");
		return;
	}

	struct env_socket *s = calloc(1, sizeof(*s));
	if (!s) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	s->home = dialect_state(c->api, &dialect_openenv);
	s->extras = query_flag(c, "extras");
	s->stream = query_flag(c, "stream");
	STAILQ_INIT(&s->waiting);
	outbox_init(&s->out, send_message, s);
	struct http_exchange *x = c->x;
	uint64_t owner = c->owner;
	call_release(c);
	s->ws = http_upgrade(x, NULL, &handler, s);
	if (!s->ws) {
		free(s);
		return;
	}

	TAILQ_INSERT_TAIL(&s->home->sockets, s, link);
	greet(s, owner, name);
}
