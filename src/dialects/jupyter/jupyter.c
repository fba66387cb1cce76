/* Kernels: their life, and the calls about them. */
#include "dialects/jupyter/jupyter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/provision.h"
#include "api/schema/requests.h"
#include "base/clock.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/dialects.h"
#include "dialects/jupyter/jupyter_routes.h"
#include "json/json_read.h"
#include "json/json_write.h"

static const char spec_name[] = "python3";
static const char spec[] =
	"{\"name\":\"python3\",\"spec\":{\"argv\":[],\"env\":{},\"display_name\":\"Python 3 (Glovebox)\","
	"\"language\":\"python\",\"interrupt_mode\":\"message\",\"metadata\":{}},\"resources\":{}}";

/* ---- the dialect --------------------------------------------------------------- */

static int create(struct api *a, const struct api_config *config, struct error *e, void **ret_state)
{
	struct jupyter *j = calloc(1, sizeof(*j));
	if (!j)
		return error_set(e, -ENOMEM, "out of memory");
	j->api = a;
	j->timeout_s = config->jupyter_timeout_s;
	TAILQ_INIT(&j->kernels);
	*ret_state = j;
	return 0;
}

static void kernel_free(struct kernel *k)
{
	TAILQ_REMOVE(&k->home->kernels, k, link);
	session_unlisten(&k->deaths);
	kernel_drop_inputs(k);
	kernel_drop_lines(k);
	free(k);
}

static void destroy(void *state)
{
	struct jupyter *j = state;
	struct kernel *k;
	/* Connections and the session table are gone: only our own memory is left. */
	while ((k = TAILQ_FIRST(&j->kernels)))
		kernel_free(k);
	free(j);
}

const struct dialect dialect_jupyter = {
	.name = "jupyter",
	.routes = jupyter_routes,
	.create = create,
	.destroy = destroy,
};

/* ---- kernels --------------------------------------------------------------------- */

int kernel_session(const struct kernel *k, struct error *e, struct session **ret)
{
	return session_find(k->home->api->sessions, k->session, e, ret);
}

void kernel_end(struct kernel *k, const char *why)
{
	struct channels *c;
	struct kernel_request *r;
	struct session *s;
	kernel_stop_input(k);
	/* Who waits for a cell hears how it ended, then the connections go. */
	if (!k->home->api->draining && kernel_session(k, NULL, &s) >= 0)
		session_end(s, why);
	while ((r = TAILQ_FIRST(&k->requests)))
		kernel_request_destroy(r);
	while ((c = TAILQ_FIRST(&k->listeners)))
		channels_close(c, why);
	kernel_free(k);
}

struct kernel *kernel_find(struct jupyter *j, uint64_t owner, const char *id)
{
	struct session *s;
	struct kernel *k;
	TAILQ_FOREACH (k, &j->kernels, link) {
		if (k->owner != owner || !text_eq(k->id, id))
			continue;
		if (kernel_session(k, NULL, &s) >= 0)
			return k;
		kernel_end(k, "its session ended");
		return NULL;
	}
	return NULL;
}

int kernel_restart(struct kernel *k, struct error *e)
{
	struct session *s;
	int r = api_check_open(k->home->api, e);
	if (!r)
		r = kernel_session(k, e, &s);
	if (!r)
		r = session_reset(s, e);
	if (r < 0)
		return r;
	k->execution_count = 0;
	kernel_publish_status(k, NULL, "restarting");
	return 0;
}

static void on_death(void *userdata, const struct session_death *d)
{
	if (d->state_lost)
		kernel_publish_status(userdata, NULL, "restarting");
}

static int kernel_create(struct jupyter *j, uint64_t owner, struct session_params *params,
	struct error *e, struct kernel **ret)
{
	struct session_info info;
	struct session *s;
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return error_set(e, -ENOMEM, "out of memory");
	int r = api_check_open(j->api, e);
	if (!r)
		r = api_check_quota(j->api, owner, e);
	if (!r) {
		params->owner = owner;
		params->dialect = "jupyter";
		if (!params->name)
			params->name = strdup("jupyter");
		r = session_create(j->api->sessions, params, e, &s);
	}

	if (r < 0) {
		free(k);
		return r;
	}

	*params = (struct session_params){ 0 };
	session_info(s, &info);
	snprintf(k->session, sizeof(k->session), "%s", info.id);
	node_make_uuid(k->id);
	k->home = j;
	k->owner = owner;
	k->used_wall_ns = clock_wall_ns();
	TAILQ_INIT(&k->listeners);
	TAILQ_INIT(&k->requests);
	STAILQ_INIT(&k->inputs);
	STAILQ_INIT(&k->lines);
	TAILQ_INSERT_TAIL(&j->kernels, k, link);
	k->deaths = (struct session_listener){ .on_death = on_death, .userdata = k };
	session_listen(s, &k->deaths);
	*ret = k;
	return 0;
}

/* ---- answers ------------------------------------------------------------------------ */

static struct jupyter *home(const struct call *c)
{
	return dialect_state(c->api, &dialect_jupyter);
}

/* Errors as Jupyter's servers give them. */
static void respond_error(struct call *c, int status, const char *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "reason", http_status_text(status));
	json_field_cstr(&w, "message", message);
	json_close(&w);
	call_respond(c, status, &w, &b);
}

static void put_kernel(struct json_writer *w, const struct kernel *k)
{
	char date[CLOCK_TEXT_MAX];
	struct session_info info = { .state = SESSION_IDLE };
	struct session *s;
	if (kernel_session(k, NULL, &s) >= 0)
		session_info(s, &info);
	json_open_object(w);
	json_field_cstr(w, "id", k->id);
	json_field_cstr(w, "name", spec_name);
	json_field_cstr(w, "last_activity", clock_format(k->used_wall_ns, date));
	json_field_cstr(w, "execution_state", session_state_name(info.state));
	json_field_uint(w, "connections", k->connections);
	json_close(w);
}

static void respond_kernel(struct call *c, int status, const struct kernel *k)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	put_kernel(&w, k);
	call_respond(c, status, &w, &b);
}

/* The kernel of the address; NULL: answered already. */
static struct kernel *asked_kernel(struct call *c)
{
	char text[128];
	struct kernel *k = kernel_find(home(c), c->owner, c->id);
	if (k)
		return k;
	snprintf(text, sizeof(text), "Kernel does not exist: %.60s", c->id);
	respond_error(c, 404, text);
	return NULL;
}

/* ---- calls ---------------------------------------------------------------------------- */

void handle_jupyter_api(struct call *c)
{
	/* of the API that clients look for */
	static const char version[] = "{\"version\":\"2.0.0\"}";
	call_respond_static(c, 200, "application/json", version, sizeof(version) - 1);
}

void handle_jupyter_specs(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "default", spec_name);
	json_key(&w, "kernelspecs");
	json_open_object(&w);
	json_field_raw(&w, spec_name, spec, sizeof(spec) - 1);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_jupyter_spec(struct call *c)
{
	char text[128];
	snprintf(text, sizeof(text), "Kernel spec %.60s not found", c->id);
	if (text_eq(c->id, spec_name))
		call_respond_static(c, 200, "application/json", spec, sizeof(spec) - 1);
	else
		respond_error(c, 404, text);
}

/* Sessions end by limits of their own; their kernels are found out when somebody asks. */
static void drop_ended(struct jupyter *j)
{
	struct session *s;
	for (struct kernel *k = TAILQ_FIRST(&j->kernels), *next; k; k = next) {
		next = TAILQ_NEXT(k, link);
		if (kernel_session(k, NULL, &s) < 0)
			kernel_end(k, "its session ended");
	}
}

void handle_jupyter_list(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct kernel *k;
	drop_ended(home(c));
	json_writer_init(&w, &b);
	json_open_array(&w);
	TAILQ_FOREACH (k, &home(c)->kernels, link)
		if (k->owner == c->owner)
			put_kernel(&w, k);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/*
 * {"name": "python3", "env": {…}}: all of it may be left out. Other members of a session's fields
 * count too.
 */
static int read_params(const char *body, size_t len, struct session_params *params, struct error *e)
{
	_cleanup_json_ json_t *tree = NULL, *fields = json_object();
	int r = len ? json_read(body, len, e, &tree) : 0;

	if (r < 0 || !tree || !fields)
		return r;
	if (!json_is_object(tree))
		return error_set(e, -EINVAL, "the body must be an object");
	const char *name = json_string_value(json_object_get(tree, "name"));
	if (name && !text_eq(name, spec_name))
		return error_set(
			e, -EINVAL, "there is no kernel spec %.60s, only %s", name, spec_name);
	for (size_t i = 0; i < session_fields.n; i++) {
		json_t *v = json_object_get(tree, session_fields.field[i].name);
		if (v && !text_eq(session_fields.field[i].name, "name"))
			json_object_set(fields, session_fields.field[i].name, v);
	}

	return fields_decode(&session_fields, fields, params, e);
}

/* The packages are there, or none were asked for. */
static void start(struct call *c, struct run_request *run, bool begun)
{
	struct error e = { 0 };
	struct kernel *k = NULL;
	char location[64];
	drop_ended(home(c));
	int r = kernel_create(home(c), c->owner, &run->session, &e, &k);
	provision_finish(run);
	if (r < 0) {
		respond_error(c, call_status_of(&e), e.text);
		return;
	}
	snprintf(location, sizeof(location), "/api/kernels/%s", k->id);
	http_add_header(c->x, "Location", location);
	respond_kernel(c, 201, k);
}

void handle_jupyter_start(struct call *c)
{
	struct run_request run = { 0 };
	struct error e = { 0 };
	size_t len;
	const char *body = http_body(c->x, &len);
	if (read_params(body, len, &run.session, &e) < 0) {
		provision_finish(&run);
		respond_error(c, call_status_of(&e), e.text);
	} else if (provision_needed(c, &run.session)) {
		provision(c, &run, start);
	} else {
		start(c, &run, false);
	}
}

void handle_jupyter_get(struct call *c)
{
	struct kernel *k = asked_kernel(c);
	if (k)
		respond_kernel(c, 200, k);
}

void handle_jupyter_delete(struct call *c)
{
	struct kernel *k = asked_kernel(c);
	if (!k)
		return;
	kernel_end(k, "its kernel was deleted");
	call_respond_as(c, 204, NULL, NULL);
}

void handle_jupyter_interrupt(struct call *c)
{
	struct session *s;
	struct kernel *k = asked_kernel(c);
	if (!k)
		return;
	if (kernel_session(k, NULL, &s) >= 0)
		session_interrupt(s);
	call_respond_as(c, 204, NULL, NULL);
}

void handle_jupyter_restart(struct call *c)
{
	struct error e = { 0 };
	struct kernel *k = asked_kernel(c);
	if (!k)
		return;
	if (kernel_restart(k, &e) < 0)
		respond_error(c, call_status_of(&e), e.text);
	else
		respond_kernel(c, 200, k);
}
