/*
 * OpenEnv over HTTP. As OpenEnv does it, each request is an environment of its own: nothing is
 * kept. Requests that carry the name of an environment (header, cookie or query) share that one
 * instead.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "base/cleanup.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/common/python_json.h"
#include "dialects/dialects.h"
#include "dialects/openenv/openenv.h"
#include "dialects/openenv/openenv_web.h"
#include "json/json_read.h"
#include "json/json_write.h"

static const char cookie_name[] = "openenv_session";
static const char header_name[] = "X-Session-Id", openenv_header_name[] = "X-OpenEnv-Session-Id";

static struct openenv *home(const struct call *c)
{
	return dialect_state(c->api, &dialect_openenv);
}

/* ---- errors as FastAPI gives them ------------------------------------------ */

static void respond_errors(struct call *c, const struct pydantic *p)
{
	_cleanup_free_ char *errors = pydantic_text(p);
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	if (errors)
		json_field_raw(&w, "detail", errors, strlen(errors));
	json_close(&w);
	call_respond(c, 422, &w, &b);
}

static void respond_bad_json(struct call *c, const char *text, size_t len, const struct error *e)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct python_json_error at = { .message = e->text };
	struct json_writer w;

	if (!text_is_utf8(text, len)) {
		static const char body[] = "{\"detail\":\"There was an error parsing the body\"}";
		call_respond_static(c, 400, "application/json", body, sizeof(body) - 1);
		return;
	}

	python_json_error(text, len, &at);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "detail");
	json_open_array(&w);
	json_open_object(&w);
	json_field_cstr(&w, "type", "json_invalid");
	json_key(&w, "loc");
	json_open_array(&w);
	json_put_cstr(&w, "body");
	json_put_uint(&w, at.position);
	json_close(&w);
	json_field_cstr(&w, "msg", "JSON decode error");
	json_field_raw(&w, "input", "{}", 2);
	json_key(&w, "ctx");
	json_open_object(&w);
	json_field_cstr(&w, "error", at.message);
	json_close(&w);
	json_close(&w);
	json_close(&w);
	json_close(&w);
	call_respond(c, 422, &w, &b);
}

/* The body's tree, NULL when there is none. False: it was no JSON, and that has been answered. */
static bool read_body(struct call *c, json_t **ret)
{
	struct error e = { 0 };
	size_t len;
	const char *body = http_body(c->x, &len);
	if (!len)
		return true;
	if (json_read(body, len, &e, ret) >= 0)
		return true;
	respond_bad_json(c, body, len, &e);
	return false;
}

/* A model is read from an object; nothing else will do. */
static bool is_model(json_t *body, struct pydantic *p)
{
	if (json_is_object(body))
		return true;
	pydantic_add(p, "model_attributes_type", NULL,
		"Input should be a valid dictionary or object to extract fields from", body, NULL);
	return false;
}

/* ---- whose environment -------------------------------------------------------- */

/* The name the request carries, "" for none; -EINVAL when it cannot be one. */
static int asked_name(const struct call *c, char out[ENV_NAME_MAX + 2])
{
	size_t size = ENV_NAME_MAX + 2;
	const char *header = http_header(c->x, header_name);

	if (!header)
		header = http_header(c->x, openenv_header_name);
	/* OpenEnv's web interface has one environment for all its pages. */
	bool web = openenv_is_web(c);
	int r = web ? 0 : env_name_asked(c, out);
	if (web) {
		snprintf(out, size, "web");
	} else if (!r && header) {
		snprintf(out, size, "%s", header);
	} else if (!r && !http_cookie(c->x, cookie_name, out, size)) {
		out[0] = '\0';
		return 0;
	}

	return r < 0 || !env_name_is_sound(out) ? -EINVAL : 0;
}

/* "new" asks for a name of the server's making; the client hears it by header and cookie. */
static void tell_name(struct call *c, const char *name, bool made)
{
	char cookie[160];
	http_add_header(c->x, header_name, name);
	if (!made)
		return;
	snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Strict", cookie_name,
		name);
	http_add_header(c->x, "Set-Cookie", cookie);
}

/*
 * The environment of the request: *ret stays NULL for one that keeps nothing. False: answered
 * already.
 */
static bool find_env(struct call *c, bool make, struct env **ret)
{
	char name[ENV_NAME_MAX + 2];
	bool made = false;

	if (asked_name(c, name) < 0) {
		call_problem(c, 400, "invalid_session_name",
			"the name of the environment is invalid",
			"Use 1 to 64 letters, digits, '.', '_' and '-', or `new` to get a new name.");
		return false;
	}

	if (!*name)
		return true;
	if (text_eq(name, "new") && make) {
		made = true;
		node_make_id(name, 26);
	}

	*ret = env_find(home(c), c->owner, name);
	if (!*ret && make && !(*ret = env_create(home(c), c->owner, name))) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return false;
	}

	tell_name(c, name, made);
	return true;
}

/* ---- /reset --------------------------------------------------------------------- */

static void respond_first(struct call *c, const struct env *e, bool rewards)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	openenv_put_first(&w, e, rewards);
	call_respond(c, 200, &w, &b);
}

static void on_reset(
	struct env *e, void *userdata, int result, struct pydantic *p, const struct error *err)
{
	struct call *c = userdata;
	bool rewards = e->rewards;

	c->work = NULL;
	c->ops = NULL;
	if (result < 0 && !*e->session)
		env_destroy(e, "it could not be reset");
	if (!result && openenv_is_web(c))
		web_note_reset(e);
	if (!result)
		respond_first(c, e, rewards);
	else if (pydantic_count(p))
		respond_errors(c, p);
	else
		call_error(c, err);
}

static void on_reset_gone(struct call *c)
{
	env_packages_forget(c->work);
	c->work = NULL;
	c->ops = NULL;
}

static const struct call_ops reset_ops = { .on_gone = on_reset_gone };

static void reset_env(
	struct call *c, struct env *e, const struct reset_request *r, struct pydantic *p)
{
	c->work = e;
	c->ops = &reset_ops;
	env_reset_with_packages(e, r, p, on_reset, c);
}

/* Nothing is kept: what would be made and thrown away need not be made. */
static void reset_nothing(struct call *c, const struct reset_request *r, struct pydantic *p)
{
	struct error err = { 0 };
	int result = openenv_check_reset(home(c), r, p, &err);
	if (pydantic_count(p))
		respond_errors(c, p);
	else if (result < 0)
		call_error(c, &err);
	else
		respond_first(c, NULL, r->has_rewards ? r->rewards : home(c)->config.rewards);
}

static void reset_with(struct call *c, json_t *body)
{
	struct pydantic p;
	struct reset_request r = { 0 };
	struct env *e = NULL;

	pydantic_init(&p, "body", false);
	if (!body || is_model(body, &p))
		reset_read(body, &p, &r);
	if (pydantic_count(&p))
		respond_errors(c, &p);
	else if (find_env(c, true, &e)) {
		if (e)
			reset_env(c, e, &r, &p);
		else
			reset_nothing(c, &r, &p);
	}

	reset_finish(&r);
	pydantic_finish(&p);
}

void handle_openenv_reset(struct call *c)
{
	_cleanup_json_ json_t *body = NULL;
	if (read_body(c, &body))
		reset_with(c, body);
}

/* ---- /step ------------------------------------------------------------------------ */

/* A request that waits for its step. */
struct http_step {
	struct call *call;
	struct step *step;
	bool single; /* in a session made for it */
	char *code;  /* of the web interface, which shows it again; or NULL */
	size_t code_len;
	char session[SESSION_ID_LEN + 1];
};

static void http_step_free(struct http_step *h)
{
	free(h->code);
	free(h);
}

static void on_done(struct step *s, const struct observation *o)
{
	struct http_step *h = s->target;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	step_put_observation(&w, s, o);
	if (h->single)
		api_end_later(h->call->api, h->session);
	if (h->code && s->env)
		web_note_step(s->env, h->code, h->code_len, s, o);
	call_respond(h->call, 200, &w, &b);
	http_step_free(h);
}

static const struct step_sink sink = { .on_done = on_done };

static void on_gone(struct call *c)
{
	struct http_step *h = c->work;
	struct session *s;
	if (h->step)
		step_abandon(h->step);
	if (h->single && !session_find(c->api->sessions, h->session, NULL, &s))
		session_end(s, "its client left");
	c->work = NULL;
	c->ops = NULL;
	http_step_free(h);
}

static const struct call_ops step_ops = { .on_gone = on_gone };

static int choose_session(struct call *c, struct env *e, const struct action *a,
	struct http_step *h, struct error *err)
{
	struct reset_request fresh = { 0 };
	if (!e) {
		h->single = true;
		return openenv_session(home(c), c->owner, "", &fresh, NULL, err, h->session);
	}
	int r = *e->session ? 0 : env_reset(e, &fresh, NULL, err);
	snprintf(h->session, sizeof(h->session), "%s", e->session);
	return r;
}

static void start(struct call *c, struct env *e, const struct action *a, bool extras)
{
	struct error err = { 0 };
	struct http_step *h = calloc(1, sizeof(*h));

	if (!h) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	h->call = c;
	if (openenv_is_web(c) && (h->code = strndup(a->code, a->code_len)))
		h->code_len = a->code_len;
	c->work = h;
	c->ops = &step_ops;
	int r = api_check_open(c->api, &err);
	if (!r)
		r = choose_session(c, e, a, h, &err);
	if (!r)
		r = step_start(
			home(c), e, h->session, a, NULL, extras, false, &sink, h, &err, &h->step);
	if (!r)
		return;
	h->step = NULL;
	if (h->single && *h->session)
		api_end_later(c->api, h->session);
	http_step_free(h);
	c->work = NULL;
	c->ops = NULL;
	if (e && !*e->session)
		env_destroy(e, "its session could not be made");
	call_error(c, &err);
}

/* StepRequest: {"action": {…}, "timeout_s": …, "request_id": …, whatever else}. */
static bool read_request(json_t *body, struct pydantic *p, json_t **ret_action, double *ret_timeout)
{
	if (!body) {
		pydantic_missing(p, NULL, NULL);
		return false;
	}
	if (!is_model(body, p))
		return false;
	*ret_action = pydantic_dict(p, body, "action", true);
	pydantic_positive(p, body, "timeout_s", ret_timeout);
	pydantic_string(p, body, "request_id", true, 255);
	return !pydantic_count(p);
}

static void step_with(struct call *c, json_t *body, struct pydantic *p)
{
	json_t *data = NULL;
	struct action a;
	struct env *e = NULL;
	double timeout_s = 0;

	if (!read_request(body, p, &data, &timeout_s)) {
		respond_errors(c, p);
		return;
	}

	/* The action is the environment's to check, and pydantic's own words are answered. */
	p->root = NULL;
	p->urls = true;
	action_read(data, p, &a);
	if (timeout_s > 0)
		a.timeout_s = timeout_s;
	if (pydantic_count(p))
		respond_errors(c, p);
	else if (find_env(c, true, &e))
		start(c, e, &a, json_is_true(json_object_get(body, "extras")));
	action_finish(&a);
}

void handle_openenv_step(struct call *c)
{
	_cleanup_json_ json_t *body = NULL;
	struct pydantic p;
	if (!read_body(c, &body))
		return;
	pydantic_init(&p, "body", false);
	step_with(c, body, &p);
	pydantic_finish(&p);
}

/* ---- /state, /close ------------------------------------------------------------------ */

void handle_openenv_state(struct call *c)
{
	static const char nothing[] = "{\"episode_id\":null,\"step_count\":0}";
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct env *e = NULL;
	if (!find_env(c, false, &e))
		return;
	if (!e) {
		call_respond_static(c, 200, "application/json", nothing, sizeof(nothing) - 1);
		return;
	}
	json_writer_init(&w, &b);
	env_put_state(&w, e);
	call_respond(c, 200, &w, &b);
}

void handle_openenv_close(struct call *c)
{
	struct env *e = NULL;
	if (!find_env(c, false, &e))
		return;
	bool closed = e != NULL;
	env_destroy(e, "it was closed");
	static const char yes[] = "{\"closed\":true}", no[] = "{\"closed\":false}";
	call_respond_static(c, 200, "application/json", closed ? yes : no,
		closed ? sizeof(yes) - 1 : sizeof(no) - 1);
}
