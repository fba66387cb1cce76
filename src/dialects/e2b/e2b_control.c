/* The control plane: sandboxes are made, listed, kept alive and ended. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/ports/port_host.h"
#include "api/schema/requests.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/e2b/e2b_control.h"
#include "session/cells/session_cells.h"
#include "session/pause.h"
#include "json/json_read.h"

#define YEAR_SECONDS 31536000.0

/* ---- answers -------------------------------------------------------------------------------- */

json_t *e2b_kept(const struct session_info *i)
{
	json_t *tree = NULL;
	if (!i->metadata || json_read(i->metadata, strlen(i->metadata), NULL, &tree) < 0)
		return NULL;
	if (json_is_string(json_object_get(tree, E2B_KEY_TEMPLATE)))
		return tree;
	json_decref(tree);
	return NULL; /* a session of another client */
}

void e2b_put_sandbox(struct call *c, struct json_writer *w, const struct session_info *i)
{
	char token[SHA256_HEX + 1];
	_cleanup_json_ json_t *kept = e2b_kept(i);
	const char *template = json_string_value(json_object_get(kept, E2B_KEY_TEMPLATE));
	char domain[PORT_DOMAIN_BYTES];

	json_field_cstr(w, "templateID", template ? template : "base");
	json_field_cstr(w, "alias", template ? template : "base");
	json_field_cstr(w, "sandboxID", e2b_sandbox_id(i->id));
	json_field_cstr(w, "clientID", "glovebox");
	json_field_cstr(w, "envdVersion", E2B_ENVD_VERSION);
	e2b_token(e2b_of(c), "envd", i->id, token);
	json_field_cstr(w, "envdAccessToken", token);
	port_key(c->api, i->id, token);
	json_field_cstr(w, "trafficAccessToken", token);
	json_field_cstr(w, "domain", *port_domain(c, domain) ? domain : NULL);
}

static unsigned cpu_count(const struct session_info *i)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	double n = i->limits.cpus > 0 ? ceil(i->limits.cpus) : (double)online;
	return n < 1 ? 1 : (unsigned)n;
}

static void put_times(struct json_writer *w, const struct session_info *i)
{
	char text[CLOCK_TEXT_MAX];
	json_field_cstr(w, "startedAt", clock_format(i->created_wall_ns, text));
	json_field_cstr(
		w, "endAt", clock_format(i->created_wall_ns + (uint64_t)(i->ttl_s * 1e9), text));
}

void e2b_put_info(struct call *c, struct json_writer *w, const struct session_info *i)
{
	_cleanup_json_ json_t *kept = e2b_kept(i);
	char *own = json_dumps(
		json_object_get(kept, E2B_KEY_METADATA), JSON_COMPACT | JSON_ENCODE_ANY);

	json_open_object(w);
	e2b_put_sandbox(c, w, i);
	put_times(w, i);
	json_field_cstr(w, "state", i->state == SESSION_PAUSED ? "paused" : "running");
	json_key(w, "lifecycle");
	json_open_object(w);
	json_field_cstr(w, "onTimeout", i->pause_on_expiry ? "pause" : "kill");
	json_field_bool(w, "autoResume", json_is_true(json_object_get(kept, E2B_KEY_RESUME)));
	json_close(w);
	json_field_uint(w, "cpuCount", cpu_count(i));
	json_field_uint(
		w, "memoryMB", i->limits.memory_bytes ? (i->limits.memory_bytes >> 20) + 1 : 1024);
	json_field_uint(
		w, "diskSizeMB", i->limits.disk_bytes ? (i->limits.disk_bytes >> 20) + 1 : 1024);
	if (own && *own == '{')
		json_field_raw(w, "metadata", own, strlen(own));
	else
		json_field_raw(w, "metadata", "{}", 2);
	e2b_put_network(w, i, kept);
	json_field_raw(w, "volumeMounts", "[]", 2);
	json_close(w);
	free(own);
}

void e2b_answer_sandbox(struct call *c, int status, const struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct session_info i;
	struct json_writer w;
	session_info(s, &i);
	json_writer_init(&w, &b);
	json_open_object(&w);
	e2b_put_sandbox(c, &w, &i);
	json_close(&w);
	call_respond(c, status, &w, &b);
}

/* ---- requests ----------------------------------------------------------------------- */

json_t *e2b_body(struct call *c)
{
	size_t len;
	const char *body = http_body(c->x, &len);
	json_t *tree = NULL;
	struct error e = { 0 };
	if (!len)
		return json_object();
	if (json_read(body, len, &e, &tree) == 0 && json_is_object(tree))
		return tree;
	json_decref(tree);
	e2b_error(c, 400, *e.text ? e.text : "the body must be a JSON object");
	return NULL;
}

/* A paused copy, which is no sandbox. */
static bool is_snapshot(const struct session *s)
{
	struct session_info i;
	session_info(s, &i);
	_cleanup_json_ json_t *kept = e2b_kept(&i);
	return json_object_get(kept, E2B_KEY_SNAPSHOT) != NULL;
}

struct session *e2b_named(struct call *c)
{
	struct error e = { 0 };
	char id[SESSION_ID_LEN + 1], text[128];
	struct session *s;
	e2b_session_id(c->id, id);
	if (api_session(c->api, id, c->owner, &e, &s) == 0 && !is_snapshot(s))
		return s;
	snprintf(text, sizeof(text), "sandbox %.40s was not found", c->id);
	e2b_error(c, 404, text);
	return NULL;
}

double e2b_timeout_of(const json_t *body, double otherwise)
{
	const json_t *t = json_object_get(body, "timeout");
	double s = json_is_number(t) ? json_number_value(t) : otherwise;
	return s < 1 ? 1 : s > YEAR_SECONDS ? YEAR_SECONDS : s;
}

void e2b_set_end(struct session *s, double seconds, bool extend)
{
	struct session_info i;
	session_info(s, &i);
	double age = (double)(clock_wall_ns() - i.created_wall_ns) / 1e9;
	struct session_update u = { .ttl_s = age + seconds };
	if (!extend || u.ttl_s > i.ttl_s)
		session_update(s, &u);
}

/* ---- making ------------------------------------------------------------------------- */

int e2b_environment(const json_t *variables, const char *const *fixed, struct session_params *p)
{
	const char *name;
	json_t *value;
	size_t n = 0, room = json_object_size(variables) + 1;

	for (size_t i = 0; fixed && fixed[i]; i++)
		room++;
	p->env = calloc(room, sizeof(*p->env));
	if (!p->env)
		return -ENOMEM;
	for (size_t i = 0; fixed && fixed[i]; i++)
		if (!(p->env[n++] = strdup(fixed[i])))
			return -ENOMEM;
	json_object_foreach((json_t *)(uintptr_t)variables, name, value)
	{
		char *text = NULL;
		if (!json_is_string(value) ||
			asprintf(&text, "%s=%s", name, json_string_value(value)) < 0)
			continue;
		p->env[n++] = text;
	}

	return 0;
}

static int fill_params(
	const json_t *body, const char *template, struct session_params *p, struct error *e)
{
	json_t *own = json_object_get(body, "metadata");
	_cleanup_json_ json_t *kept = json_pack("{s:s, s:b}", E2B_KEY_TEMPLATE, template,
		E2B_KEY_RESUME,
		json_is_true(json_object_get(json_object_get(body, "autoResume"), "enabled")));

	json_object_set_new(
		kept, E2B_KEY_METADATA, json_is_object(own) ? json_incref(own) : json_object());
	e2b_keep_network(kept, body);
	int r = e2b_keep(kept, p, e);
	if (r < 0)
		return r;
	p->ttl_s = e2b_timeout_of(body, E2B_TIMEOUT_S);
	p->idle_timeout_s = YEAR_SECONDS;
	p->pause_on_expiry = json_is_true(json_object_get(body, "autoPause"));
	p->has_display = text_eq(template, "desktop");
	p->private_ports = json_is_false(
		json_object_get(json_object_get(body, "network"), "allowPublicTraffic"));
	p->wants_loopback = true;
	static const char *const fixed[] = { "HOME=" E2B_HOME, "USER=user", "LOGNAME=user",
		"PATH=/usr/local/bin:/usr/bin:/bin:/home/bin", NULL };
	r = e2b_environment(json_object_get(body, "envVars"), fixed, p);
	return r < 0 ? error_set(e, r, "out of memory") : 0;
}

static const char *refused_field(const json_t *body)
{
	static const char *const fields[] = { "mcp", "iam", "volumeMounts" };
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const json_t *v = json_object_get(body, fields[i]);
		if (v && !json_is_null(v) && !(json_is_array(v) && !json_array_size(v)))
			return fields[i];
	}
	return NULL;
}

void e2b_create(struct call *c)
{
	struct error e = { 0 };
	struct session_params p = { 0 };
	struct session *s;
	char text[256];
	_cleanup_json_ json_t *body = e2b_body(c);

	if (!body)
		return;
	const char *template = json_string_value(json_object_get(body, "templateID"));
	const char *refused = refused_field(body);
	if (refused) {
		snprintf(text, sizeof(text),
			"%s is not served by Glovebox. Leave it out when the sandbox is created",
			refused);
		e2b_error(c, 501, text);
		return;
	}

	enum e2b_template kind = e2b_template(c, template);
	struct session *snapshot = template && kind == E2B_TEMPLATE_UNKNOWN
					   ? e2b_find_snapshot(c, template)
					   : NULL;
	if (snapshot) {
		e2b_create_from(c, snapshot, body);
		return;
	}

	if (kind == E2B_TEMPLATE_UNKNOWN) {
		snprintf(text, sizeof(text),
			"template '%.80s' was not found; Glovebox has base, code-interpreter-v1, desktop, the server's profiles and snapshots",
			template ? template : "");
		e2b_error(c, 404, text);
		return;
	}

	int r = e2b_network(body, &p.network, &e);
	if (r == 0)
		r = api_check_open(c->api, &e);
	if (r == 0)
		r = api_check_quota(c->api, c->owner, &e);
	if (r == 0)
		r = fill_params(body, template, &p, &e);
	p.owner = c->owner;
	p.dialect = "e2b";
	if (r == 0 && kind == E2B_TEMPLATE_PROFILE && !(p.profile = strdup(template)))
		r = error_set(&e, -ENOMEM, "out of memory");
	if (r == 0)
		r = session_create(c->api->sessions, &p, &e, &s);
	fields_finish(&session_fields, &p);
	if (r < 0)
		e2b_fail(c, &e);
	else
		e2b_answer_sandbox(c, 201, s);
}

/* ---- the others --------------------------------------------------------------------- */

void e2b_get(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct session *s = e2b_named(c);
	struct session_info i;
	struct json_writer w;
	if (!s)
		return;
	session_info(s, &i);
	json_writer_init(&w, &b);
	e2b_put_info(c, &w, &i);
	call_respond(c, 200, &w, &b);
}

void e2b_kill(struct call *c)
{
	struct session *s = e2b_named(c);
	if (!s)
		return;
	session_end(s, "it was killed by its E2B client");
	call_respond_as(c, 204, NULL, NULL);
}

void e2b_timeout(struct call *c)
{
	_cleanup_json_ json_t *body = e2b_body(c);
	struct session *s = body ? e2b_named(c) : NULL;
	if (!s)
		return;
	e2b_set_end(s, e2b_timeout_of(body, E2B_TIMEOUT_S), false);
	call_respond_as(c, 204, NULL, NULL);
}

void e2b_refresh(struct call *c)
{
	_cleanup_json_ json_t *body = e2b_body(c);
	struct session *s = body ? e2b_named(c) : NULL;
	if (!s)
		return;
	const json_t *duration = json_object_get(body, "duration");
	e2b_set_end(
		s, json_is_number(duration) ? json_number_value(duration) : E2B_TIMEOUT_S, true);
	call_respond_as(c, 204, NULL, NULL);
}

void e2b_connect_sandbox(struct call *c)
{
	_cleanup_json_ json_t *body = e2b_body(c);
	struct session *s = body ? e2b_named(c) : NULL;
	if (!s)
		return;
	struct error e = { 0 };
	bool paused = session_resume(s, e2b_timeout_of(body, E2B_TIMEOUT_S), &e) == 0;
	if (!paused && json_is_number(json_object_get(body, "timeout")))
		e2b_set_end(s, e2b_timeout_of(body, E2B_TIMEOUT_S), true);
	e2b_answer_sandbox(c, paused ? 201 : 200, s);
}

/* Of one processor, on average since the sandbox was made: as top counts. */
static double cpu_percent(const struct session_info *i, const struct session_figures *now)
{
	uint64_t wall = clock_wall_ns();
	double age_s = wall > i->created_wall_ns ? (double)(wall - i->created_wall_ns) / 1e9 : 0;
	return age_s > 0 ? round(now->cpu_s / age_s * 10000) / 100 : 0;
}

void e2b_metrics(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct session_figures now;
	struct session *s = e2b_named(c);
	struct session_info i;
	struct json_writer w;
	char when[CLOCK_TEXT_MAX];

	if (!s)
		return;
	session_info(s, &i);
	session_figures(s, &now);
	json_writer_init(&w, &b);
	json_open_array(&w);
	json_open_object(&w);
	json_field_cstr(&w, "timestamp", clock_format(clock_wall_ns(), when));
	json_field_uint(&w, "timestampUnix", clock_wall_ns() / 1000000000);
	json_field_uint(&w, "cpuCount", cpu_count(&i));
	json_field_double(&w, "cpuUsedPct", cpu_percent(&i, &now));
	json_field_uint(&w, "memUsed", now.memory_bytes);
	json_field_uint(&w, "memTotal", i.limits.memory_bytes);
	json_field_uint(&w, "memCache", now.cache_bytes);
	json_field_uint(&w, "diskUsed", now.disk_bytes);
	json_field_uint(&w, "diskTotal", i.limits.disk_bytes);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/* Where a part that is not served begins, and what to do instead. */
static const struct {
	const char *path, *text;
} unserved[] = {
	{ "/volumes",
		"Glovebox has no volumes. Keep files in a snapshot, or show a directory of the server in sessions with its setting mount" },
	{ "/secrets",
		"Glovebox keeps no secrets. Give the sandbox what it needs with envs; code in the sandbox can read it" },
	{ "/templates",
		"Glovebox builds no templates. Make a sandbox, change it, and use createSnapshot(); packages come from the server's settings or from POST /v1/sessions/{id}/packages" },
	{ "/v2/templates",
		"Glovebox builds no templates. Make a sandbox, change it, and use createSnapshot()" },
	{ "/v3/templates",
		"Glovebox builds no templates. Make a sandbox, change it, and use createSnapshot(); packages come from the server's settings or from POST /v1/sessions/{id}/packages" },
	{ "/teams", "Glovebox has no teams. /metrics of the server has its figures" },
	{ "/sandboxes/metrics",
		"Glovebox has no metrics of several sandboxes at once. Ask each with getMetrics()" },
};

static bool begins(const char *path, const char *with)
{
	size_t len = strlen(with);
	return !strncmp(path, with, len) && (path[len] == '/' || !path[len]);
}

void e2b_unserved(struct call *c)
{
	for (size_t i = 0; i < ARRAY_LEN(unserved); i++) {
		if (begins(http_path(c->x), unserved[i].path)) {
			e2b_error(c, 501, unserved[i].text);
			return;
		}
	}

	e2b_error(c, 404, "E2B's API has nothing at this address, or not with this method");
}

bool e2b_is_stray(const char *path)
{
	static const char *const others[] = { "/sandboxes", "/v2/sandboxes", "/snapshots" };
	for (size_t i = 0; i < ARRAY_LEN(unserved); i++)
		if (begins(path, unserved[i].path))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (begins(path, others[i]))
			return true;
	return false;
}
