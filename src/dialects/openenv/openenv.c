/* Environments: their life, their names, their episodes. */
#include "dialects/openenv/openenv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/schema/requests.h"
#include "base/clock.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/common/reset_packages.h"
#include "dialects/dialects.h"
#include "dialects/openenv/openenv_routes.h"
#include "dialects/openenv/openenv_web.h"
#include "json/json_write.h"

enum { SWEEP_MS = 1000 };

/* ---- the dialect --------------------------------------------------------- */

static void on_sweep(uv_timer_t *timer);

static int create(struct api *a, const struct api_config *config, struct error *e, void **ret_state)
{
	struct openenv *o = calloc(1, sizeof(*o));
	if (!o)
		return error_set(e, -ENOMEM, "out of memory");
	o->api = a;
	o->config = config->openenv;
	TAILQ_INIT(&o->envs);
	TAILQ_INIT(&o->sockets);
	TAILQ_INIT(&o->views);
	uv_timer_init(config->loop, &o->sweep);
	uv_timer_init(config->loop, &o->more);
	/* They only serve what others keep alive: the loop may end with them running. */
	uv_unref((uv_handle_t *)&o->sweep);
	uv_unref((uv_handle_t *)&o->more);
	o->sweep.data = o->more.data = o;
	o->handles = 2;
	*ret_state = o;
	return 0;
}

static void on_handle_closed(uv_handle_t *h)
{
	struct openenv *o = h->data;
	if (!--o->handles)
		free(o);
}

static void env_free(struct env *e)
{
	TAILQ_REMOVE(&e->home->envs, e, link);
	env_packages_destroy(e->packages);
	env_history_free(e);
	free(e->reset_id);
	free(e->answered_id);
	buffer_finish(&e->answer);
	web_log_destroy(e->log);
	free(e);
}

static void destroy(void *state)
{
	struct openenv *o = state;
	struct env *e;
	/* The session table is gone: only our own memory is left. */
	while ((e = TAILQ_FIRST(&o->envs)))
		env_free(e);
	uv_close((uv_handle_t *)&o->sweep, on_handle_closed);
	uv_close((uv_handle_t *)&o->more, on_handle_closed);
}

const struct dialect dialect_openenv = {
	.name = "openenv",
	.routes = openenv_routes,
	.create = create,
	.destroy = destroy,
};

/* ---- life of an env -------------------------------------------------------- */

struct env *env_create(struct openenv *o, uint64_t owner, const char *name)
{
	struct env *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->home = o;
	e->owner = owner;
	e->rewards = o->config.rewards;
	snprintf(e->name, sizeof(e->name), "%s", name);
	TAILQ_INIT(&e->steps);
	TAILQ_INSERT_TAIL(&o->envs, e, link);
	if (*name && !uv_is_active((uv_handle_t *)&o->sweep))
		uv_timer_start(&o->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	return e;
}

struct env *env_find(struct openenv *o, uint64_t owner, const char *name)
{
	struct env *e;
	TAILQ_FOREACH (e, &o->envs, link)
		if (e->owner == owner && text_eq(e->name, name))
			return e;
	return NULL;
}

static void end_session(struct env *e, const char *why)
{
	struct session *s;
	/* The drain ends every session, and then the table itself. */
	bool ours = *e->session && !e->home->api->draining;
	if (ours && !session_find(e->home->api->sessions, e->session, NULL, &s))
		session_end(s, why);
	e->session[0] = '\0';
}

void env_destroy(struct env *e, const char *why)
{
	struct step *s;
	if (!e || e->ending)
		return;
	e->ending = true;
	if (e->socket)
		env_socket_drop(e->socket, 1000, why);
	/*
	 * Those of requests are answered by the end of the session, those of sockets have nobody
	 * who listens.
	 */
	for (struct step *next = TAILQ_FIRST(&e->steps); (s = next);) {
		next = TAILQ_NEXT(s, link);
		if (s->target == e)
			step_abandon(s);
	}

	env_history_forget(e);
	end_session(e, why);
	env_packages_cancel(e, why);
	while ((s = TAILQ_FIRST(&e->steps)))
		step_abandon(s);
	env_free(e);
}

/* Envs nobody holds any more: their lease is over, or their session ended by its own limits. */
static void on_sweep(uv_timer_t *timer)
{
	struct openenv *o = timer->data;
	uint64_t now = clock_now_ns();
	bool named = false;
	struct session *s;

	if (o->api->draining)
		return; /* sessions end with the server */
	for (struct env *e = TAILQ_FIRST(&o->envs), *next; e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (!*e->name)
			continue;
		bool left = !e->socket && e->lease_until_ns && now > e->lease_until_ns;
		bool gone = !e->socket && !e->packages && TAILQ_EMPTY(&e->steps) &&
			    (!*e->session ||
				    session_find(o->api->sessions, e->session, NULL, &s) < 0);
		if (left || gone)
			env_destroy(e, "no client reconnected to its environment");
		else
			named = true;
	}

	if (!named)
		uv_timer_stop(timer);
}

int env_name_asked(const struct call *c, char out[ENV_NAME_MAX + 2])
{
	int r = http_query_param(c->x, "session", out, ENV_NAME_MAX + 2);
	return r ? r : http_query_param(c->x, "session_id", out, ENV_NAME_MAX + 2);
}

bool env_name_is_sound(const char *name)
{
	size_t n = strlen(name);
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
			return false;
	return n > 0 && n <= ENV_NAME_MAX;
}

/* ---- episodes ---------------------------------------------------------------- */

/* Those that describe a session. */
static json_t *session_members(json_t *data)
{
	json_t *taken = NULL;
	for (size_t i = 0; i < session_fields.n; i++) {
		const char *name = session_fields.field[i].name;
		json_t *v = json_object_get(data, name);
		if (!v || text_eq(name, "seed"))
			continue;
		if (!taken && !(taken = json_object()))
			return NULL;
		json_object_set(taken, name, v);
	}
	return taken;
}

void reset_read(json_t *data, struct pydantic *p, struct reset_request *ret)
{
	*ret = (struct reset_request){ 0 };
	if (!data)
		return;
	ret->has_seed = pydantic_seed(p, data, "seed", &ret->seed);
	json_t *episode = pydantic_string(p, data, "episode_id", true, 255);
	if (episode && *json_string_value(episode))
		ret->episode = json_string_value(episode);
	json_t *rewards = json_object_get(data, "rewards");
	ret->has_rewards = json_is_boolean(rewards);
	ret->rewards = json_is_true(rewards);
	ret->session = session_members(data);
	reset_check_names(data, p);
}

void reset_finish(struct reset_request *r)
{
	json_decref(r->session);
	r->session = NULL;
}

void openenv_add_field_error(struct pydantic *p, json_t *fields, const struct error *err)
{
	char field[64] = "";
	const char *text = text_starts(err->text, "$.") ? err->text + 2 : NULL;
	if (text)
		snprintf(field, sizeof(field), "%.*s", (int)strcspn(text, ".[:"), text);
	pydantic_add(p, "value_error", *field ? field : NULL, err->text,
		json_object_get(fields, field), NULL);
}

/*
 * coding_env's X server always runs: so every environment has a screen, whose X server starts when
 * something connects to it.
 */
static void give_screen(const struct reset_request *r, struct session_params *params)
{
	bool refused = r && json_is_false(json_object_get(r->session, "display"));
	if (!params->has_display && !refused)
		params->has_display = params->display.lazy = true;
}

int reset_read_params(const struct reset_request *r, struct pydantic *p, struct error *err,
	struct session_params *params)
{
	int result = 0;
	if (r && r->given) {
		*params = *r->given;
		*r->given = (struct session_params){ 0 };
	} else if (r && r->session) {
		result = fields_decode(&session_fields, r->session, params, err);
	}

	if (result < 0 && p)
		openenv_add_field_error(p, r->session, err);
	give_screen(r, params);
	if (r && r->has_seed) {
		params->has_seed = true;
		params->seed = r->seed;
	}

	return result;
}

bool openenv_is_full(const struct error *e)
{
	return text_eq(e->slug, "too_many_sessions") || text_eq(e->slug, "server_full");
}

int openenv_session(struct openenv *o, uint64_t owner, const char *name,
	const struct reset_request *r, struct pydantic *p, struct error *err,
	char ret_id[SESSION_ID_LEN + 1])
{
	struct session_params params = { 0 };
	struct session_info info;
	struct session *s;
	int result = api_check_open(o->api, err);

	if (!result)
		result = reset_read_params(r, p, err, &params);
	if (!result)
		result = api_check_quota(o->api, owner, err);
	if (!result && !params.profile && o->config.profile)
		params.profile = strdup(o->config.profile);
	if (!result)
		result = openenv_add_imports(&params);
	if (!result && !params.name)
		params.name = strdup(*name ? name : "openenv");
	if (!result) {
		params.owner = owner;
		params.dialect = "openenv";
		result = session_create(o->api->sessions, &params, err, &s);
		if (!result)
			params = (struct session_params){ 0 };
	}

	reset_packages_release(&params);
	if (result < 0)
		return result;
	session_info(s, &info);
	snprintf(ret_id, SESSION_ID_LEN + 1, "%s", info.id);
	return 0;
}

int env_make_session(
	struct env *e, const struct reset_request *r, struct pydantic *p, struct error *err)
{
	char id[SESSION_ID_LEN + 1];
	/* The old session is ended first, because the server may have room for only one session. */
	end_session(e, "its environment was reset");
	int result = openenv_session(e->home, e->owner, e->name, r, p, err, id);
	if (result < 0)
		return result;
	snprintf(e->session, sizeof(e->session), "%s", id);
	e->plain = !(r && (r->session || r->has_seed));
	e->ran = false;
	return 0;
}

int env_open(struct env *e, struct error *err)
{
	return env_make_session(e, NULL, NULL, err);
}

static bool session_is_there(const struct env *e)
{
	struct session *s;
	return *e->session && !session_find(e->home->api->sessions, e->session, NULL, &s);
}

int env_reset(struct env *e, const struct reset_request *r, struct pydantic *p, struct error *err)
{
	bool plain = !r->session && !r->has_seed && !r->given;
	if (!plain || !e->plain || e->ran || !session_is_there(e)) {
		/* Looked at before the old episode is given up. */
		int result = openenv_check_reset(e->home, r, p, err);
		if (!result)
			result = env_make_session(e, r, p, err);
		if (result < 0)
			return result;
	}

	if (r->episode)
		snprintf(e->episode, sizeof(e->episode), "%s", r->episode);
	else
		node_make_uuid(e->episode);
	if (r->has_rewards)
		e->rewards = r->rewards;
	e->step_count = 0;
	e->last_exit_code = 0;
	return 0;
}

void env_put_state(struct json_writer *w, const struct env *e)
{
	json_open_object(w);
	json_field_cstr(w, "episode_id", *e->episode ? e->episode : NULL);
	json_field_uint(w, "step_count", e->step_count);
	json_field_int(w, "last_exit_code", e->last_exit_code);
	json_close(w);
}
