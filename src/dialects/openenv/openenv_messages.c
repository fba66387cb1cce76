/*
 * What is said over an OpenEnv WebSocket. A member `id` of a message, which OpenEnv itself does not
 * know, is given back in all that is said about it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/common/dialect_words.h"
#include "dialects/common/python_json.h"
#include "dialects/openenv/openenv_socket.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* ---- writing ----------------------------------------------------------------- */

void message_begin(struct json_writer *w, struct buffer *b, const char *type)
{
	json_writer_init(w, b);
	json_open_object(w);
	json_field_cstr(w, "type", type);
	json_key(w, "data");
}

void message_finish(struct env_socket *s, struct json_writer *w, struct buffer *b, const char *id)
{
	if (id)
		json_field_raw(w, "id", id, strlen(id));
	json_close(w);
	if (json_writer_end(w) >= 0 && outbox_send(&s->out, b) == -ENOBUFS)
		http_ws_close(s->ws, 1008, "too slow");
}

static void begin_error(
	struct json_writer *w, struct buffer *b, const char *message, const char *code)
{
	message_begin(w, b, "error");
	json_open_object(w);
	json_field_cstr(w, "message", message);
	json_field_cstr(w, "code", code);
}

void message_send_error(
	struct env_socket *s, const struct message *m, const char *message, const char *code)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	begin_error(&w, &b, message, code);
	json_close(&w);
	message_finish(s, &w, &b, m ? m->id : NULL);
}

void message_send_errors(struct env_socket *s, const struct message *m, const struct pydantic *p)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	_cleanup_free_ char *errors = pydantic_text(p);
	struct json_writer w;
	begin_error(&w, &b, "Invalid message", "VALIDATION_ERROR");
	if (errors)
		json_field_raw(&w, "errors", errors, strlen(errors));
	json_close(&w);
	message_finish(s, &w, &b, m->id);
}

static void send_capacity(struct env_socket *s, const char *id)
{
	const struct sessions_stats *stats = sessions_stats(s->home->api->sessions);
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	char text[128];
	snprintf(text, sizeof(text),
		"Server at capacity: %llu/%llu sessions active. Cannot accept new connections.",
		(unsigned long long)stats->live, (unsigned long long)stats->limit);
	begin_error(&w, &b, text, "CAPACITY_REACHED");
	json_field_uint(&w, "active_sessions", stats->live);
	json_field_uint(&w, "max_sessions", stats->limit);
	json_close(&w);
	message_finish(s, &w, &b, id);
}

/* What kept a session from being made or a step from being run. */
void message_send_failure(struct env_socket *s, const struct message *m, const struct error *e)
{
	char text[ERROR_TEXT_MAX + EDGE_TEXT_MAX + 2], remedy[EDGE_TEXT_MAX];
	bool session = (e->err == -ENOENT || e->err == -EIDRM) &&
		       !text_eq(e->slug, "checkpoint_not_found") &&
		       !text_eq(e->slug, "nothing_to_undo");
	if (openenv_is_full(e)) {
		send_capacity(s, m->id);
		return;
	}
	snprintf(text, sizeof(text), "%s%s%s", e->text, *e->remedy ? ". " : "",
		edge_expand(&dialect_words, e->remedy, remedy, sizeof(remedy)));
	message_send_error(s, m, text, session ? "SESSION_ERROR" : "EXECUTION_ERROR");
}

/* ---- steps --------------------------------------------------------------------- */

static void on_output(struct step *s, enum stream stream, const char *data, size_t len)
{
	struct env *e = s->target;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (!e->socket || s->orphaned)
		return;
	message_begin(&w, &b, "output");
	json_open_object(&w);
	json_field_cstr(&w, "stream", stream == STREAM_STDOUT ? "stdout" : "stderr");
	json_field_text(&w, "text", data, len);
	json_close(&w);
	message_finish(e->socket, &w, &b, s->id);
}

/* An answer with an id is kept, so that a client that lost its connection can ask for it again. */
static void keep_answer(struct env *e, const struct step *s, const struct buffer *b)
{
	free(e->answered_id);
	e->answered_id = NULL;
	buffer_finish(&e->answer);
	if (*e->name && s->id && buffer_append(&e->answer, b->data, b->len) >= 0)
		e->answered_id = strdup(s->id);
}

static void on_done(struct step *s, const struct observation *o)
{
	struct env *e = s->target;
	struct env_socket *socket = e->socket;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	message_begin(&w, &b, "observation");
	step_put_observation(&w, s, o);
	if (s->id)
		json_field_raw(&w, "id", s->id, strlen(s->id));
	json_close(&w);
	if (json_writer_end(&w) < 0)
		return;
	keep_answer(e, s, &b);
	if (!socket)
		return;
	/* Whoever came back does not wait for this one until it asks again. */
	if (!s->orphaned && outbox_send(&socket->out, &b) == -ENOBUFS)
		http_ws_close(socket->ws, 1008, "too slow");
	/* The step still counts until we return: what follows is for another turn. */
	if (socket->leaving || !STAILQ_EMPTY(&socket->waiting))
		openenv_resume(e->home);
}

static const struct step_sink quiet_sink = { .on_done = on_done };
static const struct step_sink streaming_sink = { .on_output = on_output, .on_done = on_done };

/* ---- messages ------------------------------------------------------------------- */

bool message_check(struct env_socket *s, const struct message *m, const char *const *known,
	bool needs_data, json_t **ret_data)
{
	struct pydantic p;
	pydantic_init(&p, NULL, true);
	if (ret_data)
		*ret_data = pydantic_dict(&p, m->tree, "data", needs_data);
	pydantic_forbid_extra(&p, m->tree, known);
	bool sound = !pydantic_count(&p);
	if (!sound)
		message_send_errors(s, m, &p);
	pydantic_finish(&p);
	return sound;
}

static void on_reset(
	struct env *e, void *userdata, int result, struct pydantic *p, const struct error *err)
{
	const struct message m = { .id = e->reset_id };
	struct env_socket *s = e->socket;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	if (!s)
		return; /* it broke meanwhile, and whoever comes back starts anew */
	if (!result) {
		message_begin(&w, &b, "observation");
		openenv_put_first(&w, e, e->rewards);
		message_finish(s, &w, &b, m.id);
	} else if (pydantic_count(p)) {
		message_send_errors(s, &m, p);
	} else {
		message_send_failure(s, &m, err);
	}

	if (s->leaving || !STAILQ_EMPTY(&s->waiting))
		openenv_resume(e->home);
}

static void reset(struct env_socket *s, const struct message *m)
{
	static const char *const known[] = { "type", "data", "id", NULL };
	struct reset_request r;
	struct pydantic p;
	json_t *data;

	if (!message_check(s, m, known, false, &data))
		return;
	pydantic_init(&p, NULL, true);
	reset_read(data, &p, &r);
	if (pydantic_count(&p)) {
		message_send_errors(s, m, &p);
	} else {
		free(s->env->reset_id);
		s->env->reset_id = m->id ? strdup(m->id) : NULL;
		env_reset_with_packages(s->env, &r, &p, on_reset, NULL);
	}

	reset_finish(&r);
	pydantic_finish(&p);
}

/* The client asks again for what it may have lost. True when that has been seen to. */
static bool repeat_answer(struct env_socket *s, const struct message *m)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	if (!m->id || !text_eq(s->env->answered_id, m->id))
		return false;
	if (buffer_append(&b, s->env->answer.data, s->env->answer.len) >= 0)
		outbox_send(&s->out, &b);
	return true;
}

static bool flag(const struct message *m, const char *name, bool otherwise)
{
	json_t *v = json_object_get(m->tree, name);
	return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

static int run(
	struct env_socket *s, const struct message *m, const struct action *a, struct error *err)
{
	const struct step_sink *sink = flag(m, "stream", s->stream) ? &streaming_sink : &quiet_sink;
	struct env *e = s->env;
	struct step *started;
	int r = api_check_open(s->home->api, err);
	return r < 0 ? r
		     : step_start(s->home, e, e->session, a, m->id, flag(m, "extras", s->extras),
			       *e->name != '\0', sink, e, err, &started);
}

static void step(struct env_socket *s, const struct message *m)
{
	static const char *const known[] = { "type", "data", "id", "timeout_s", "stream", "extras",
		NULL };
	struct action a;
	struct error err = { 0 };
	struct pydantic p;
	json_t *data;

	if (!message_check(s, m, known, true, &data) || repeat_answer(s, m))
		return;
	pydantic_init(&p, NULL, true);
	action_read(data, &p, &a);
	pydantic_positive(&p, m->tree, "timeout_s", &a.timeout_s);
	if (pydantic_count(&p))
		message_send_errors(s, m, &p);
	else if (run(s, m, &a, &err) < 0)
		message_send_failure(s, m, &err);
	action_finish(&a);
	pydantic_finish(&p);
}

static void state(struct env_socket *s, const struct message *m)
{
	static const char *const known[] = { "type", "id", NULL };
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (!message_check(s, m, known, false, NULL))
		return;
	message_begin(&w, &b, "state");
	env_put_state(&w, s->env);
	message_finish(s, &w, &b, m->id);
}

static void leave(struct env_socket *s, const struct message *m)
{
	static const char *const known[] = { "type", "id", NULL };
	if (message_check(s, m, known, false, NULL))
		env_destroy(s->env, "its environment was closed");
}

static void mcp(struct env_socket *s, const struct message *m)
{
	static const char *const known[] = { "type", "data", "id", NULL };
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_t *data;
	if (!message_check(s, m, known, true, &data))
		return;
	message_begin(&w, &b, "mcp");
	openenv_put_rpc(&w, &(struct rpc){ s->home, s->env->owner, s->env, data });
	message_finish(s, &w, &b, m->id);
}

static const struct {
	const char *type;
	void (*handle)(struct env_socket *s, const struct message *m);
} kinds[] = { { "reset", reset }, { "step", step }, { "state", state }, { "close", leave },
	{ "mcp", mcp }, { "checkpoint", openenv_checkpoint },
	{ "checkpoints", openenv_checkpoints }, { "rollback", openenv_rollback },
	{ "undo", openenv_undo }, { "fork", openenv_fork } };

static void handle_typed(struct env_socket *s, const struct message *m)
{
	json_t *type = json_object_get(m->tree, "type");
	const char *word = json_is_string(type) ? json_string_value(type) : "";
	char text[160];

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (text_eq(kinds[i].type, word)) {
			kinds[i].handle(s, m);
			return;
		}
	}

	_cleanup_free_ char *other = type && !json_is_string(type)
					     ? json_dumps(type,
						       JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))
					     : NULL;
	snprintf(text, sizeof(text), "Unknown message type: %.100s", other ? other : word);
	message_send_error(s, m, text, "UNKNOWN_TYPE");
}

static void refuse_json(struct env_socket *s, const char *text, size_t len, const struct error *e)
{
	struct python_json_error at;
	char message[ERROR_TEXT_MAX + 16];
	if (python_json_error(text, len, &at))
		snprintf(message, sizeof(message),
			"Invalid JSON: %s: line %zu column %zu (char %zu)", at.message, at.line,
			at.column, at.position);
	else
		snprintf(message, sizeof(message), "Invalid JSON: %s", e->text);
	message_send_error(s, NULL, message, "INVALID_JSON");
}

/* OpenEnv's server stumbles over what is no object, says so in Python's words, and hangs up. */
static void refuse_value(struct env_socket *s, const json_t *value)
{
	static const char *const names[] = { [JSON_OBJECT] = "dict",
		[JSON_ARRAY] = "list",
		[JSON_STRING] = "str",
		[JSON_INTEGER] = "int",
		[JSON_REAL] = "float",
		[JSON_TRUE] = "bool",
		[JSON_FALSE] = "bool",
		[JSON_NULL] = "NoneType" };
	char text[64];
	snprintf(text, sizeof(text), "'%s' object has no attribute 'get'",
		names[json_typeof(value)]);
	message_send_error(s, NULL, text, "SESSION_ERROR");
	env_destroy(s->env, "its client sent no messages");
}

void env_socket_handle(struct env_socket *s, const char *text, size_t len)
{
	struct error e = { 0 };
	struct message m = { 0 };

	if (!s->env)
		return;
	if (json_read(text, len, &e, &m.tree) < 0) {
		refuse_json(s, text, len, &e);
		return;
	}

	json_t *id = json_object_get(m.tree, "id");
	if (json_is_integer(id) ||
		(json_is_string(id) && json_string_length(id) <= LIMIT_NAME_BYTES))
		m.id = json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY);
	if (json_is_object(m.tree))
		handle_typed(s, &m);
	else
		refuse_value(s, m.tree);
	free(m.id);
	json_decref(m.tree);
}

void env_socket_refuse(struct env_socket *s, const struct error *e)
{
	if (openenv_is_full(e))
		send_capacity(s, NULL);
	else
		message_send_error(s, NULL, e->text, "FACTORY_ERROR");
}
