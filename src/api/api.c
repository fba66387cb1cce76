#include "api/api.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "api/cell_packages.h"
#include "api/event_hub.h"
#include "api/idempotency.h"
#include "api/link_check.h"
#include "api/logged_target.h"
#include "api/login.h"
#include "api/metrics.h"
#include "api/ports/port_host.h"
#include "api/routes.h"
#include "api/run_jobs.h"
#include "api/schema/requests.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "json/json_read.h"

/* ---- life ---------------------------------------------------------------- */

static void free_api(uv_handle_t *timer)
{
	struct api *a = timer->data;
	guard_finish(&a->guard);
	routes_finish(&a->routes);
	free(a->openapi);
	free(a->docs);
	free(a);
}

static int create_dialects(struct api *a, const struct api_config *config, struct error *e)
{
	for (size_t i = 0; config->dialects && config->dialects[i]; i++) {
		assert(i < DIALECTS_MAX);
		a->dialects[i] = config->dialects[i];
		int r = a->dialects[i]->create(a, config, e, &a->dialect_states[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

void *dialect_state(const struct api *a, const struct dialect *d)
{
	for (size_t i = 0; i < DIALECTS_MAX; i++)
		if (a->dialects[i] == d)
			return a->dialect_states[i];
	return NULL;
}

static int create_runs(struct api *a, const struct api_config *config, struct error *e)
{
	if (jobs_create(a, config->loop, config->max_runs, &a->jobs) < 0 ||
		idempotency_create(&a->idempotency) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

int api_create(const struct api_config *config, struct error *e, struct api **ret)
{
	struct api *a = calloc(1, sizeof(*a));
	if (!a)
		return error_set(e, -ENOMEM, "out of memory");
	if (port_keys_init(a, e) < 0) {
		free(a);
		return -EIO;
	}
	TAILQ_INIT(&a->waiting);
	SLIST_INIT(&a->endings);
	int r = guard_init(&a->guard, config->hosts, config->origins, config->tokens, e);
	if (!r && (routes_init(&a->routes, config->dialects) < 0 ||
			  !(a->metrics = metrics_create(a->routes.n, config->metrics_token))))
		r = error_set(e, -ENOMEM, "out of memory");
	if (r < 0) {
		guard_finish(&a->guard);
		routes_finish(&a->routes);
		free(a);
		return r;
	}
	a->sessions = config->sessions;
	a->packages = config->packages;
	a->profiles = config->profiles;
	cell_packages_start(a);
	a->max_upload_bytes = config->max_upload_bytes ? config->max_upload_bytes
						       : API_UPLOAD_BYTES;
	a->layers = config->layers;
	a->max_sessions_per_token = config->max_sessions_per_token;
	a->log_requests = config->log_requests;
	a->no_live_control = config->no_live_control;
	metrics_watch(a->metrics, config->loop);
	uv_timer_init(config->loop, &a->timer);
	a->timer.data = a;
	api_run_deferred(a);
	r = event_hub_create(a, config->loop, &a->hub);
	if (r < 0)
		error_set(e, r, "out of memory");
	if (!r)
		r = create_runs(a, config, e);
	if (!r)
		r = create_dialects(a, config, e);
	if (r < 0)
		api_destroy(a);
	else
		*ret = a;
	return r;
}

void api_tell_packages(struct api *a, bool installing, const char *failed)
{
	free(a->packages_failed);
	a->installing = installing;
	a->packages_failed = failed ? strdup(failed) : NULL;
}

void api_destroy(struct api *a)
{
	if (!a)
		return;
	free(a->packages_failed);
	a->packages_failed = NULL;
	cell_packages_stop(a);
	while (!SLIST_EMPTY(&a->endings)) {
		struct ending *ending = SLIST_FIRST(&a->endings);
		SLIST_REMOVE_HEAD(&a->endings, next);
		free(ending);
	}
	for (size_t i = 0; i < DIALECTS_MAX; i++)
		if (a->dialect_states[i])
			a->dialects[i]->destroy(a->dialect_states[i]);
	event_hub_destroy(a->hub);
	a->hub = NULL;
	metrics_destroy(a->metrics);
	a->metrics = NULL;
	jobs_destroy(a->jobs);
	idempotency_destroy(a->idempotency);
	api_run_deferred(NULL);
	uv_close((uv_handle_t *)&a->timer, free_api);
}

void api_set_server(struct api *a, struct http_server *server)
{
	a->server = server;
}

void api_drain(struct api *a)
{
	a->draining = true;
	event_hub_drain(a->hub);
	for (size_t i = 0; i < DIALECTS_MAX && a->dialects[i]; i++)
		if (a->dialect_states[i] && a->dialects[i]->drain)
			a->dialects[i]->drain(a->dialect_states[i]);
}

/* ---- before the body ----------------------------------------------------- */

static struct call *call_create(struct api *a, struct http_exchange *x)
{
	struct call *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->api = a;
	c->x = x;
	a->in_flight++;
	http_set_userdata(x, c);
	return c;
}

/* Tells a page of an allowed origin that it may read the answer. */
static void admit_origin(struct http_exchange *x, const char *origin)
{
	http_add_header(x, "Access-Control-Allow-Origin", origin);
	http_add_header(x, "Access-Control-Expose-Headers",
		"X-Request-Id, Location, Retry-After, X-Next-After");
	http_add_header(x, "Vary", "Origin");
}

/* Host and Origin. A page must not even learn which addresses exist, so this comes before routing. */
static int check_source(const struct call *c, bool harmless, struct error *e)
{
	const struct guard *g = &c->api->guard;
	const char *host = http_header(c->x, "Host"), *origin = http_header(c->x, "Origin");
	const char *site = http_header(c->x, "Sec-Fetch-Site");
	bool foreign = false;
	/* A unix socket is out of any browser's reach, and HTTP/1.0 without a Host is no browser. */
	int r = host && !text_eq(http_remote(c->x), "unix") ? guard_host(g, host, e) : 0;
	if (r < 0)
		return r;
	/* A link to /docs on another site's page is fine: it carries no Origin and changes nothing. */
	r = guard_origin(g, host, origin, harmless && !origin ? NULL : site, e, &foreign);
	if (!r && foreign)
		admit_origin(c->x, origin);
	return r;
}

static void answer_options(struct call *c, const struct route_match *m)
{
	char allow[64];
	if (!m->path_known) {
		call_problem(c, 404, "route_not_found", "no such address", NULL);
		return;
	}
	routes_allow(&c->api->routes, http_path(c->x), allow, sizeof(allow));
	http_add_header(c->x, "Allow", allow);
	/* Only what an allowed origin asks is answered here: all others were refused before. */
	if (http_header(c->x, "Origin") && http_header(c->x, "Access-Control-Request-Method")) {
		http_add_header(c->x, "Access-Control-Allow-Methods", allow);
		http_add_header(c->x, "Access-Control-Allow-Headers",
			"Authorization, Content-Type, Accept");
		http_add_header(c->x, "Access-Control-Max-Age", "600");
	}
	call_respond_as(c, 204, NULL, NULL);
}

static void answer_unmatched(struct call *c, int r)
{
	char text[192], remedy[192], allow[64];
	const char *path = http_path(c->x), *near = routes_nearest(&c->api->routes, path);
	if (r == -EOPNOTSUPP) {
		routes_allow(&c->api->routes, path, allow, sizeof(allow));
		http_add_header(c->x, "Allow", allow);
		snprintf(text, sizeof(text), "%s is not allowed on this address",
			http_method_name(http_method(c->x)));
		snprintf(remedy, sizeof(remedy), "Use one of: %s.", allow);
		call_problem(c, 405, "method_not_allowed", text, remedy);
		return;
	}
	if (r == -EINVAL) {
		call_problem(c, 400, "invalid_path",
			"the address is too long, wrongly percent-encoded, or not UTF-8",
			"Percent-encode the path as UTF-8.");
		return;
	}
	if (near)
		snprintf(remedy, sizeof(remedy),
			"Did you mean %s? All addresses are in /docs and /openapi.json.", near);
	else
		snprintf(remedy, sizeof(remedy), "All addresses are in /docs and /openapi.json.");
	call_problem(c, 404, "route_not_found", "no such address", remedy);
}

/* "application/json", alone or with parameters. */
static bool is_json_type(const char *type)
{
	static const char json[] = "application/json";
	size_t n = sizeof(json) - 1;
	if (!type || strncasecmp(type, json, n))
		return false;
	type += n + strspn(type + n, " \t");
	return !*type || *type == ';';
}

bool call_accepts(const struct call *c, const char *media_type)
{
	const char *accept = http_header(c->x, "Accept");
	size_t n = strlen(media_type);
	while (accept && *accept) {
		accept += strspn(accept, " \t,");
		if (!strncasecmp(accept, media_type, n) &&
			(!accept[n] || strchr(" \t,;", accept[n])))
			return true;
		accept += strcspn(accept, ",");
	}
	return false;
}

/* A form of a foreign page can post text/plain and such, but never application/json without being asked
 * first. */
static int check_body_type(const struct call *c, struct error *e)
{
	const char *encoding = http_header(c->x, "Content-Encoding");
	bool has_body = http_content_length(c->x) != 0;
	if (encoding && strcasecmp(encoding, "identity") &&
		!(c->route->flags & ROUTE_FOREIGN_BODY)) {
		error_set(e, -EINVAL, "compressed requests are not accepted");
		error_remedy(e, "Send the body uncompressed, without Content-Encoding.");
		error_slug(e, "unsupported_encoding");
		return -EINVAL;
	}
	if (!has_body || c->route->flags & (ROUTE_RAW_BODY | ROUTE_ANY_TYPE) ||
		is_json_type(http_header(c->x, "Content-Type")))
		return 0;
	error_set(e, -EINVAL, "the body must be sent as application/json");
	error_remedy(e, "Send the header: Content-Type: application/json");
	error_slug(e, "unsupported_media_type");
	return -EINVAL;
}

/* Routes without query parameters refuse any, so that a misspelt address does not pass for a working one. */
static int check_query(const struct call *c, struct error *e)
{
	return c->route->query || c->route->flags & ROUTE_ANY_QUERY
		       ? 0
		       : fields_decode_query(&no_fields, http_query(c->x), NULL, e);
}

static enum http_body_mode refuse(struct call *c, const struct error *e)
{
	if (text_eq(e->slug, "unauthorized"))
		http_add_header(c->x, "WWW-Authenticate", "Bearer realm=\"glovebox\"");
	call_error(c, e);
	return HTTP_BODY_ANSWERED;
}

/* Jupyter's clients give the token in the address when they can set no header. */
static int check_token(struct call *c, struct error *e)
{
	const char *authorization = http_header(c->x, "Authorization");
	if (link_is_share(authorization))
		return link_check_share(c, authorization, e);
	char bearer[LIMIT_TOKEN_BYTES + 8] = "Bearer ", key[LIVE_KEY_LEN + 1];
	if (c->route && c->route->flags & ROUTE_LIVE_KEY &&
		http_query_param(c->x, "key", key, sizeof(key)) == 1)
		return link_check_live(c, key, e);
	if (!authorization && c->route && c->route->flags & ROUTE_QUERY_TOKEN &&
		http_query_param(c->x, "token", bearer + 7, sizeof(bearer) - 7) == 1)
		authorization = bearer;
	if (c->route && c->route->handle == handle_metrics &&
		metrics_is_operator(c->api->metrics, authorization))
		return 0; /* of no owner */
	const char *api_key = http_header(c->x, "X-API-Key");
	if (!authorization && c->route && c->route->flags & ROUTE_API_KEY && api_key &&
		strlen(api_key) <= LIMIT_TOKEN_BYTES) {
		snprintf(bearer, sizeof(bearer), "Bearer %s", api_key);
		authorization = bearer;
	}
	if (!authorization && c->route && c->route->flags & ROUTE_LOGIN &&
		login_token(c, bearer + 7, sizeof(bearer) - 7))
		authorization = bearer;
	int r = guard_token(&c->api->guard, authorization, e, &c->owner);
	explicit_bzero(bearer, sizeof(bearer));
	return r;
}

static const struct route *claimed(const struct api *a, const struct http_exchange *x)
{
	const struct route *r = port_host_claim(x);
	for (size_t i = 0; !r && i < DIALECTS_MAX && a->dialects[i]; i++)
		r = a->dialects[i]->claim ? a->dialects[i]->claim(x) : NULL;
	return r;
}

/* A dialect may refuse an unknown address in its own form. */
static const struct route *strayed(const struct api *a, const struct http_exchange *x)
{
	const struct route *r = NULL;
	for (size_t i = 0; !r && i < DIALECTS_MAX && a->dialects[i]; i++)
		r = a->dialects[i]->stray ? a->dialects[i]->stray(x) : NULL;
	return r;
}

static enum http_body_mode on_headers(struct http_exchange *x, void *userdata)
{
	struct error e = { 0 };
	struct call *c = call_create(userdata, x);
	if (!c) {
		http_respond_problem(x, 503, "no_memory", "out of memory", "Try again later.");
		return HTTP_BODY_ANSWERED;
	}
	struct route_match m = {
		.id = c->id, .id_size = sizeof(c->id), .path = c->path, .path_size = sizeof(c->path)
	};
	m.route = claimed(c->api, x);
	int matched = m.route ? 0 : routes_match(&c->api->routes, http_method(x), http_path(x), &m);
	if (matched < 0 && http_method(x) != HTTP_METHOD_OPTIONS && (m.route = strayed(c->api, x)))
		matched = 0;
	c->route = m.route;
	http_set_problem_form(x, m.route ? m.route->problem_form : NULL);
	if (m.route && (m.route->flags & ROUTE_FOREIGN) == ROUTE_FOREIGN)
		return m.route->begin(c);
	bool open = m.route && m.route->flags & ROUTE_PUBLIC;
	if (check_source(c, open, &e) < 0)
		return refuse(c, &e);
	if (http_method(x) == HTTP_METHOD_OPTIONS) {
		answer_options(c, &m);
		return HTTP_BODY_ANSWERED;
	}
	if (!open && check_token(c, &e) < 0)
		return refuse(c, &e);
	if (matched < 0) {
		answer_unmatched(c, matched);
		return HTTP_BODY_ANSWERED;
	}
	if (check_query(c, &e) < 0 || check_body_type(c, &e) < 0)
		return refuse(c, &e);
	return c->route->begin ? c->route->begin(c) : HTTP_BODY_BUFFER;
}

/* ---- the other callbacks of the server ----------------------------------- */

static void on_body(struct http_exchange *x, const char *data, size_t len, void *userdata)
{
	struct call *c = http_userdata(x);
	if (c->ops && c->ops->on_body)
		c->ops->on_body(c, data, len);
}

/* A large body is read in steps before its handler is called, so that others do not wait for it. */
enum { READ_AT_ONCE = 128 * 1024, READ_STEP = 16 * 1024, READ_STEP_NS = 1000 * 1000 };

static void read_more(struct call *c)
{
	struct error e = { 0 };
	size_t len;
	const char *body = http_body(c->x, &len);
	uint64_t began = clock_now_ns();
	int r;
	do
		r = json_reader_step(c->reader, READ_STEP, &e);
	while (r > 0 && clock_now_ns() - began < READ_STEP_NS);
	if (r > 0) {
		call_later(c, read_more);
		return;
	}

	json_read_keep(body, len, r == 0 ? json_reader_take(c->reader) : NULL, &e);
	json_reader_destroy(c->reader);
	c->reader = NULL;
	hold_set(&c->held, 0);
	c->route->handle(c);
	json_read_forget();
}

static void on_request(struct http_exchange *x, void *userdata)
{
	struct call *c = http_userdata(x);
	size_t len;
	const char *body = http_body(x, &len);
	if (c->route->flags & ROUTE_IDEMPOTENT && call_answer_again(c))
		return;
	if (len <= READ_AT_ONCE || c->route->flags & ROUTE_RAW_BODY) {
		c->route->handle(c);
		return;
	}

	/* the tree is about as large as the text */
	c->reader = hold_set(&c->held, len) == 0 ? json_reader_create(body, len) : NULL;
	if (c->reader)
		read_more(c);
	else
		call_no_memory(c);
}

static void on_drained(struct http_exchange *x, void *userdata)
{
	struct call *c = http_userdata(x);
	if (c->ops && c->ops->on_drained)
		c->ops->on_drained(c);
}

static void on_gone(struct http_exchange *x, void *userdata)
{
	struct call *c = http_userdata(x);
	if (c->ops && c->ops->on_gone)
		c->ops->on_gone(c);
	call_release(c);
}

static void on_log(const struct http_log_entry *entry, void *userdata)
{
	struct api *a = userdata;
	char target[LIMIT_LOGGED_TARGET_BYTES];
	metrics_count_request(a, entry);
	if (a->log_requests)
		log_info("request %s %s %s %s %d in=%llu out=%llu ms=%.3f", entry->request_id,
			entry->remote, entry->method, logged_target(entry->target, target),
			entry->status, (unsigned long long)entry->body_bytes_in,
			(unsigned long long)entry->bytes_out, (double)entry->duration_ns / 1e6);
}

const struct http_handler *api_handler(void)
{
	static const struct http_handler handler = {
		.on_headers = on_headers,
		.on_body = on_body,
		.on_request = on_request,
		.on_drained = on_drained,
		.on_gone = on_gone,
		.on_log = on_log,
	};
	return &handler;
}
