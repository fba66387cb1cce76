/* MCP requests: their life and the methods. Transports are in mcp_http.c and mcp_stream.c. */
#include "dialects/mcp/mcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/common/reset_packages.h"
#include "dialects/dialects.h"
#include "dialects/mcp/mcp_routes.h"
#include "json/json_dump.h"
#include "json/json_read.h"

enum {
	TICK_MS = 100,
	VERSION_SHOWN = 64,    /* bytes of an unknown version in its error */
	CACHE_MS = 300 * 1000, /* for which clients may keep the list of tools */
};

static const char instructions[] =
	"Glovebox runs Python and shell commands in sandboxed sessions. Call run_python without session_id to start a session; the "
	"result says its id. Pass that id to later calls: variables, imports and files in /workspace are kept. The value of the last "
	"expression and matplotlib figures are returned. Use rollback to undo a call, fork_session to try alternatives, read_file to "
	"page through long output that was written to a file, and close_session when a session is not needed any more.";

/* ---- the dialect ------------------------------------------------------------------- */

static void on_tick(uv_timer_t *timer);

static int create(struct api *a, const struct api_config *config, struct error *e, void **ret_state)
{
	struct mcp *m = calloc(1, sizeof(*m));
	if (!m)
		return error_set(e, -ENOMEM, "out of memory");

	m->api = a;
	m->configs = config->mcp;
	m->n_configs = config->n_mcp;
	TAILQ_INIT(&m->clients);
	TAILQ_INIT(&m->requests);
	TAILQ_INIT(&m->tasks);
	uv_timer_init(config->loop, &m->tick);
	m->tick.data = m;
	*ret_state = m;
	return 0;
}

static void free_home(uv_handle_t *timer)
{
	free(timer->data);
}

static void destroy(void *state)
{
	struct mcp *m = state;
	struct mcp_request *r;
	struct mcp_client *c;

	while ((r = TAILQ_FIRST(&m->requests)))
		mcp_cancel(r);
	while ((c = TAILQ_FIRST(&m->clients)))
		mcp_client_destroy(c);
	mcp_tasks_free(m);
	uv_close((uv_handle_t *)&m->tick, free_home);
}

static void drain(void *state)
{
	mcp_clients_drain(state);
}

const struct dialect dialect_mcp = {
	.name = "mcp",
	.routes = mcp_routes,
	.create = create,
	.drain = drain,
	.destroy = destroy,
};

struct mcp *mcp_home(const struct api *a)
{
	return dialect_state(a, &dialect_mcp);
}

const struct mcp_config *mcp_config_of(const struct mcp_request *r)
{
	static const struct mcp_config plain = { .timeout_s = 30,
		.max_timeout_s = 3600,
		.idle_timeout_s = 3600,
		.memory_bytes = 2ULL << 30 };
	return r->owner < r->home->n_configs ? &r->home->configs[r->owner] : &plain;
}

/* ---- the life of a request ---------------------------------------------------------- */

struct mcp_request *mcp_request_create(
	struct mcp *home, json_t *message, const struct mcp_sink *sink, void *target)
{
	struct mcp_request *r = calloc(1, sizeof(*r));
	if (!r) {
		json_decref(message);
		return NULL;
	}

	r->home = home;
	r->message = message;
	r->sink = sink;
	r->target = target;
	r->id = json_object_get(message, "id");
	r->params = json_object_get(message, "params");
	r->meta = json_object_get(r->params, "_meta");
	r->modern = json_object_get(r->meta, MCP_META "protocolVersion") != NULL;
	const json_t *token = json_object_get(r->meta, "progressToken");
	if (json_is_string(token) || json_is_integer(token))
		r->progress_token = token;
	r->started_ns = r->told_ns = clock_now_ns();
	buffer_init(&r->output, MCP_PROGRESS_BYTES);

	TAILQ_INSERT_TAIL(&home->requests, r, link);
	if (!uv_is_active((uv_handle_t *)&home->tick))
		uv_timer_start(&home->tick, on_tick, TICK_MS, TICK_MS);
	return r;
}

static void request_free(struct mcp_request *r)
{
	if (r->executing) { /* inside session_execute(), whose caller frees it */
		r->over = true;
		return;
	}

	TAILQ_REMOVE(&r->home->requests, r, link);
	hold_set(&r->held, 0);
	if (r->arguments)
		fields_finish(&mcp_all_fields, r->arguments);
	free(r->arguments);
	buffer_finish(&r->output);
	json_discard(r->message);
	free(r);
}

void mcp_request_finish(struct mcp_request *r)
{
	request_free(r);
}

/* Lets go of what the request does. */
static void stop_work(struct mcp_request *r)
{
	if (r->cell)
		cell_abandon(r->cell);
	r->cell = NULL;
	reset_packages_forget(r->packages);
	r->packages = NULL;
	if (r->release)
		r->release(r);
	r->release = NULL;
}

void mcp_cancel(struct mcp_request *r)
{
	stop_work(r);
	if (r->sink->cancelled)
		r->sink->cancelled(r);
	request_free(r);
}

static bool same_id(const json_t *a, const json_t *b)
{
	return a && b && json_equal(a, b);
}

void mcp_cancel_id(struct mcp *home, const struct mcp_client *c, const json_t *id)
{
	struct mcp_request *r;
	TAILQ_FOREACH (r, &home->requests, link) {
		if (r->client == c && same_id(r->id, id)) {
			mcp_cancel(r);
			return;
		}
	}
}

/* ---- messages ------------------------------------------------------------------------- */

void mcp_put_value(struct json_writer *w, const json_t *value)
{
	if (value)
		json_put_tree(w, value);
	else
		json_put_null(w);
}

static void put_id(struct json_writer *w, const json_t *id)
{
	json_key(w, "id");
	mcp_put_value(w, json_is_string(id) || json_is_integer(id) ? id : NULL);
}

void mcp_put_error(
	struct json_writer *w, const json_t *id, int code, const char *text, const char *data)
{
	json_open_object(w);
	json_field_cstr(w, "jsonrpc", "2.0");
	put_id(w, id);
	json_key(w, "error");
	json_open_object(w);
	json_field_int(w, "code", code);
	json_field_text(w, "message", text, strlen(text));
	if (data)
		json_field_raw(w, "data", data, strlen(data));
	json_close(w);
	json_close(w);
}

static const char *server_name(const struct mcp_request *r)
{
	return r->client && r->client->python_tool ? "python" : "glovebox";
}

static void put_server_info(struct json_writer *w, const char *key, const struct mcp_request *r)
{
	json_key(w, key);
	json_open_object(w);
	json_field_cstr(w, "name", server_name(r));
	json_field_cstr(w, "title", "Glovebox");
	json_field_cstr(w, "version", GLOVEBOX_VERSION);
	json_close(w);
}

void mcp_begin_result(const struct mcp_request *r, struct json_writer *w, struct buffer *b)
{
	json_writer_init(w, b);
	json_open_object(w);
	json_field_cstr(w, "jsonrpc", "2.0");
	put_id(w, r->id);
	json_key(w, "result");
	json_open_object(w);
	if (!r->modern)
		return;

	json_field_cstr(w, "resultType", "complete");
	json_key(w, "_meta");
	json_open_object(w);
	put_server_info(w, MCP_META "serverInfo", r);
	json_close(w);
}

static void send_last(struct mcp_request *r, struct buffer *b, int status)
{
	stop_work(r);
	r->sink->send(r, b, true, status);
	request_free(r);
}

void mcp_respond(struct mcp_request *r, struct json_writer *w, struct buffer *b)
{
	json_close(w);
	json_close(w);
	if (json_writer_end(w) < 0) {
		buffer_finish(b);
		mcp_fail(r, MCP_INTERNAL, 503, "out of memory", NULL);
		return;
	}
	send_last(r, b, 200);
}

void mcp_fail(struct mcp_request *r, int code, int status, const char *text, const char *data)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	mcp_put_error(&w, r->id, code, text, data);
	send_last(r, &b, r->modern ? status : 200);
}

/* ---- the tick ----------------------------------------------------------------------------- */

static void wait_for_files(struct mcp_request *r)
{
	enum { FILES_MS = 10000 };
	struct error e = { 0 };
	struct session *s;
	if (api_session(r->home->api, r->session, r->owner, &e, &s) < 0) {
		mcp_tool_error_of(r, &e);
	} else if (session_workspace_fd(s) >= 0) {
		void (*then)(struct mcp_request *, struct session *) = r->then;
		r->then = NULL;
		then(r, s);
	} else if (clock_now_ns() - r->files_ns > (uint64_t)FILES_MS * 1000000) {
		mcp_tool_error(r, "the session did not start in time", "Try again.");
	}
}

static void on_tick(uv_timer_t *timer)
{
	struct mcp *m = timer->data;
	struct mcp_request *r, *next;
	uint64_t now_ns = clock_now_ns();

	for (r = TAILQ_FIRST(&m->requests); r; r = next) {
		next = TAILQ_NEXT(r, link);
		uint64_t age_ms = (now_ns - r->started_ns) / 1000000;
		if (r->progress_token)
			mcp_tell_progress(r, now_ns);
		if (r->sink->tick)
			r->sink->tick(r, age_ms);
		if (r->then)
			wait_for_files(r); /* may free it */
	}
	if (m->api->draining)
		mcp_clients_drain(m);
	if (TAILQ_EMPTY(&m->requests))
		uv_timer_stop(&m->tick);
}

/* ---- methods ------------------------------------------------------------------------------ */

static void put_capabilities(struct json_writer *w, const struct mcp_request *r)
{
	json_key(w, "capabilities");
	json_open_object(w);
	json_field_raw(w, "tools", "{}", 2);
	if (!r->client || !r->client->python_tool)
		json_field_raw(w, "resources", "{}", 2);
	if (r->modern)
		json_field_raw(w, "extensions", "{\"" MCP_META "tasks\":{}}",
			strlen("{\"" MCP_META "tasks\":{}}"));
	json_close(w);
}

static void ping(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	mcp_begin_result(r, &w, &b);
	mcp_respond(r, &w, &b);
}

static const char *negotiate(const json_t *params)
{
	static const char *const known[] = { "2025-11-25", "2025-06-18", "2025-03-26",
		"2024-11-05" };
	const char *asked = json_string_value(json_object_get(params, "protocolVersion"));
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (text_eq(asked, known[i]))
			return known[i];
	return MCP_NEWEST_LEGACY;
}

static void initialize(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	mcp_begin_result(r, &w, &b);
	json_field_cstr(&w, "protocolVersion", negotiate(r->params));
	put_capabilities(&w, r);
	put_server_info(&w, "serverInfo", r);
	json_field_cstr(&w, "instructions", instructions);
	mcp_respond(r, &w, &b);
}

static void discover(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	mcp_begin_result(r, &w, &b);
	json_key(&w, "supportedVersions");
	json_open_array(&w);
	json_put_cstr(&w, MCP_MODERN_VERSION);
	json_close(&w);
	put_capabilities(&w, r);
	json_field_cstr(&w, "instructions", instructions);
	json_field_uint(&w, "ttlMs", CACHE_MS);
	json_field_cstr(&w, "cacheScope", "public");
	mcp_respond(r, &w, &b);
}

enum { ERA_LEGACY = 1, ERA_MODERN = 2, ERA_BOTH = 3 };

static const struct method {
	const char *name;
	unsigned eras;
	void (*answer)(struct mcp_request *r);
} methods[] = {
	{ .name = "initialize", .eras = ERA_LEGACY, .answer = initialize },
	{ .name = "ping", .eras = ERA_LEGACY, .answer = ping },
	{ .name = "server/discover", .eras = ERA_BOTH, .answer = discover },
	{ .name = "tools/list", .eras = ERA_BOTH, .answer = mcp_tools_list },
	{ .name = "tools/call", .eras = ERA_BOTH, .answer = mcp_tools_call },
	{ .name = "resources/list", .eras = ERA_BOTH, .answer = mcp_resources_list },
	{ .name = "resources/templates/list", .eras = ERA_BOTH, .answer = mcp_resources_templates },
	{ .name = "resources/read", .eras = ERA_BOTH, .answer = mcp_resources_read },
	{ .name = "tasks/get", .eras = ERA_MODERN, .answer = mcp_tasks_get },
	{ .name = "tasks/cancel", .eras = ERA_MODERN, .answer = mcp_tasks_cancel },
	{ .name = "tasks/update", .eras = ERA_MODERN, .answer = mcp_tasks_update },
};

static const struct method *find_method(const struct mcp_request *r, const char *name)
{
	unsigned era = r->modern ? ERA_MODERN : ERA_LEGACY;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (methods[i].eras & era && text_eq(methods[i].name, name))
			return &methods[i];
	return NULL;
}

static void refuse_version(struct mcp_request *r, const char *version)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_raw(&w, "supported", "[\"" MCP_MODERN_VERSION "\"]",
		strlen("[\"" MCP_MODERN_VERSION "\"]"));
	json_field_text(&w, "requested", version, strnlen(version, VERSION_SHOWN));
	json_close(&w);
	mcp_fail(r, MCP_UNKNOWN_VERSION, 400, "unsupported protocol version", buffer_cstr(&b));
}

/*
 * Checks `_meta` of a request in the newer protocol versions. Returns false if the request was
 * answered with an error.
 */
static bool check_meta(struct mcp_request *r)
{
	const char *version = json_string_value(
		json_object_get(r->meta, MCP_META "protocolVersion"));
	const json_t *token = json_object_get(r->meta, "progressToken");

	if (!version) {
		mcp_fail(r, MCP_INVALID_PARAMS, 400,
			"_meta[\"" MCP_META "protocolVersion\"] must be a string", NULL);
		return false;
	}
	if (!text_eq(version, MCP_MODERN_VERSION)) {
		refuse_version(r, version);
		return false;
	}
	if (!json_is_object(json_object_get(r->meta, MCP_META "clientCapabilities"))) {
		mcp_fail(r, MCP_INVALID_PARAMS, 400,
			"_meta[\"" MCP_META "clientCapabilities\"] must be an object", NULL);
		return false;
	}
	if (token && !r->progress_token) {
		mcp_fail(r, MCP_INVALID_REQUEST, 400,
			"_meta.progressToken must be a string or an integer", NULL);
		return false;
	}
	return true;
}

void mcp_dispatch(struct mcp_request *r)
{
	char text[160];
	const char *name = json_string_value(json_object_get(r->message, "method"));
	const struct method *m;

	if (r->modern && !check_meta(r))
		return;
	if (r->params && !json_is_object(r->params)) {
		mcp_fail(r, MCP_INVALID_PARAMS, 400, "params must be an object", NULL);
		return;
	}

	m = find_method(r, name);
	if (m) {
		m->answer(r);
		return;
	}
	snprintf(text, sizeof(text), "unknown method: %.100s", name);
	mcp_fail(r, MCP_UNKNOWN_METHOD, 404, text, NULL);
}
