/* /health, /readyz, /version, /metrics, /v1/profiles. */
#include <errno.h>
#include <string.h>

#include "api/answers.h"
#include "api/api.h"
#include "api/call.h"
#include "api/metrics.h"
#include "jail/layers.h"
#include "profile/profiles.h"
#include "json/json_write.h"

static void put_failed(struct json_writer *w, const struct api *a)
{
	if (a->packages_failed)
		json_field_raw(
			w, "packages_failed", a->packages_failed, strlen(a->packages_failed));
}

/*
 * 503 while modules are installed: OpenEnv's clients wait for this address, where a server of
 * coding_env would not even listen yet.
 */
void handle_health(struct call *c)
{
	static const char body[] = "{\"status\":\"healthy\"}\n";
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (!c->api->installing && !c->api->packages_failed) {
		call_respond_static(c, 200, "application/json", body, sizeof(body) - 1);
		return;
	}
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "status", c->api->installing ? "installing" : "healthy");
	put_failed(&w, c->api);
	json_close(&w);
	call_respond(c, c->api->installing ? 503 : 200, &w, &b);
}

/* "name: why" lines as a list. */
static void put_lines(struct json_writer *w, const char *lines)
{
	json_open_array(w);
	while (lines && *lines) {
		size_t len = strcspn(lines, "\n");
		if (len)
			json_put_text(w, lines, len);
		lines += len + (lines[len] == '\n');
	}
	json_close(w);
}

static int check_started(const struct api *a, struct error *e)
{
	if (!a->installing && sessions_ready(a->sessions))
		return 0;
	error_set(e, -EAGAIN, "%s",
		a->installing ? "the modules of additional-imports are being installed"
			      : sessions_complaint(a->sessions));
	error_remedy(e, "Sessions created now work, but start only when this is done.");
	return error_slug(e, "starting");
}

static int check_shortage(const struct api *a, struct error *e)
{
	const char *shortage = sessions_shortage(a->sessions);
	if (!shortage)
		return 0;
	error_set(e, -EAGAIN, "no session can be created now: %s", shortage);
	error_remedy(e,
		"Existing sessions continue. The server is ready again when resources are available.");
	return error_slug(e, "no_resources");
}

int api_room(const struct api *a, struct error *e)
{
	const struct sessions_stats *stats = sessions_stats(a->sessions);
	int r = api_check_open(a, e);

	if (r == 0)
		r = sessions_check_drain(a->sessions, e);
	if (r == 0)
		r = check_started(a, e);
	if (r == 0 && stats->live >= stats->limit) {
		error_set(e, -ENOSPC, "all %llu sessions this server allows are in use",
			(unsigned long long)stats->limit);
		error_remedy(e,
			"{end_sessions}, wait for idle ones to expire, or {raise:max-sessions}.");
		r = error_slug(e, "server_full");
	}
	if (r == 0)
		r = check_shortage(a, e);
	return r < 0 ? r : (int)((stats->limit - stats->live) * 100 / stats->limit);
}

void handle_ready(struct call *c)
{
	struct error e = { 0 };
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	if (api_room(c->api, &e) < 0) {
		call_error(c, &e);
		return;
	}

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "status", "ready");
	json_key(&w, "not_preloaded");
	put_lines(&w, sessions_preload_report(c->api->sessions));
	put_failed(&w, c->api);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/* What each layer of the wall is on this machine; "waived" or "none" for one that is missing. */
static void put_layers(struct json_writer *w, const struct layer_state *layers)
{
	json_open_object(w);
	for (int i = 0; layers && i < LAYER_COUNT; i++)
		json_field_cstr(w, layer_name((enum layer)i),
			layers[i].there    ? layers[i].detail
			: layers[i].waived ? "waived"
					   : "none");
	json_close(w);
}

void handle_version(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "name", "glovebox");
	json_field_cstr(&w, "version", GLOVEBOX_VERSION);
	json_field_cstr(&w, "api", "v1");
	json_key(&w, "layers");
	put_layers(&w, c->api->layers);
	answer_put_words(&w, "limits_not_enforced", sessions_not_enforced(c->api->sessions));
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_profiles(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "profiles");
	profiles_write(c->api->profiles, &w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_metrics(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	char *const *tokens = c->api->guard.tokens;

	/*
	 * The figures of the whole server tell a token what the others do, so only the operator
	 * sees them: who has the token for them, or the only one there is.
	 */
	bool whole = !c->owner || !tokens[1];
	if ((whole ? metrics_write(c->api, &b) : metrics_write_own(c->api, c->owner, &b)) < 0)
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
	else
		call_respond_as(c, 200, "text/plain; version=0.0.4; charset=utf-8", &b);
}
