/* Sessions over HTTP: create, list, look, end, interrupt, reset. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/provision.h"
#include "api/schema/requests.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "session/cells/session_cells.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum { PAGE_DEFAULT = 100 };

/* ---- writing one --------------------------------------------------------- */

static void put_time(struct json_writer *w, const char *key, uint64_t wall_ns)
{
	char text[CLOCK_TEXT_MAX];
	json_field_cstr(w, key, clock_format(wall_ns, text));
}

static void put_limits(struct json_writer *w, const struct session_limits *l)
{
	json_key(w, "limits");
	json_open_object(w);
	json_field_double(w, "timeout_s", l->timeout_s);
	json_field_uint(w, "output_bytes", l->output_bytes);
	json_field_uint(w, "memory_bytes", l->memory_bytes);
	json_field_uint(w, "processes", l->processes);
	json_field_double(w, "cpus", l->cpus);
	json_field_double(w, "cpu_s", l->cpu_s);
	json_field_double(w, "session_cpu_s", l->session_cpu_s);
	json_field_uint(w, "disk_bytes", l->disk_bytes);
	json_field_uint(w, "inodes", l->inodes);
	json_field_uint(w, "file_bytes", l->file_bytes);
	json_field_uint(w, "open_files", l->open_files);
	json_field_uint(w, "total_output_bytes", l->total_output_bytes);
	json_field_uint(w, "log_bytes", l->log_bytes);
	json_close(w);
}

static void put_mounts(struct json_writer *w, const char *key, char *const *mounts)
{
	char name[JAIL_MOUNT_NAME];
	json_key(w, key);
	json_open_object(w);
	for (; mounts && *mounts; mounts++) {
		size_t len = strcspn(*mounts, "=");
		snprintf(name, sizeof(name), "%.*s", (int)len, *mounts);
		json_field_cstr(w, name, *mounts + len + 1);
	}
	json_close(w);
}

static void put_network(struct json_writer *w, const struct network_policy *p)
{
	if (p->net != JAIL_NET_ALLOW) {
		json_field_cstr(w, "network", jail_net_name(p->net));
		return;
	}
	json_key(w, "network");
	json_open_object(w);
	json_key(w, "allow");
	json_open_array(w);
	for (char *const *rule = p->allow; *rule; rule++)
		json_put_cstr(w, *rule);
	json_close(w);
	json_close(w);
}

static void put_display(struct json_writer *w, const struct session_info *info)
{
	json_key(w, "display");
	if (!info->has_display) {
		json_put_null(w);
		return;
	}
	json_open_object(w);
	json_field_uint(w, "width", info->display.width);
	json_field_uint(w, "height", info->display.height);
	json_field_uint(w, "depth", info->display.depth);
	json_field_uint(w, "dpi", info->display.dpi);
	json_field_bool(w, "up", info->display_up);
	json_close(w);
}

static void put_usage(struct json_writer *w, struct session *s)
{
	struct session_figures now;
	session_figures(s, &now);
	json_key(w, "usage");
	json_open_object(w);
	json_field_uint(w, "memory_bytes", now.memory_bytes);
	json_field_double(w, "cpu_s", round(now.cpu_s * 1000) / 1000);
	json_close(w);
}

static void put_session(struct json_writer *w, const struct session *s)
{
	struct session_info info;
	session_info(s, &info);
	json_field_cstr(w, "id", info.id);
	json_field_cstr(w, "name", info.name);
	json_field_cstr(w, "state", session_state_name(info.state));
	put_time(w, "created", info.created_wall_ns);
	put_time(w, "last_used", info.used_wall_ns);
	json_field_double(w, "ttl_s", info.ttl_s);
	json_field_double(w, "idle_timeout_s", info.idle_timeout_s);
	json_field_double(w, "expires_in_s", round(info.expires_in_s * 1000) / 1000);
	json_field_cstr(w, "from", info.from);
	json_field_cstr(w, "same_numbers", info.from ? info.same_numbers : NULL);
	json_field_uint(w, "cells", info.cells);
	json_field_uint(w, "queued", info.queued);
	json_field_uint(w, "left_running", info.left_running);
	json_field_bool(w, "warm", info.warm);
	json_field_cstr(w, "template", info.template);
	json_field_int(w, "pid", info.pid);
	json_field_cstr(w, "exec", jail_exec_name(info.exec));
	put_network(w, info.network);
	put_mounts(w, "mounts", info.mounts);
	put_mounts(w, "volumes", info.volumes);
	put_display(w, &info);
	json_field_cstr(w, "profile", info.profile);
	put_limits(w, &info.limits);
	answer_put_words(w, "limits_not_enforced", info.not_enforced);
	if (info.packages)
		json_field_raw(w, "packages", info.packages, strlen(info.packages));
	else
		json_field_null(w, "packages");
	if (info.metadata)
		json_field_raw(w, "metadata", info.metadata, strlen(info.metadata));
	else
		json_field_null(w, "metadata");
}

void answer_put_session(struct json_writer *w, const struct session *s)
{
	json_open_object(w);
	put_session(w, s);
	json_field_null(w, "usage");
	json_close(w);
}

/* With current figures, which are read from the control group. */
static void put_session_and_usage(struct json_writer *w, struct session *s)
{
	json_open_object(w);
	put_session(w, s);
	put_usage(w, s);
	json_close(w);
}

static void respond_session(struct call *c, int status, const struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	answer_put_session(&w, s);
	call_respond(c, status, &w, &b);
}

/* ---- creating ------------------------------------------------------------ */

void answer_created(struct call *c, const struct session *s)
{
	struct session_info info;
	char location[64];
	session_info(s, &info);
	snprintf(location, sizeof(location), "/v1/sessions/%s", info.id);
	http_add_header(c->x, "Location", location);
	respond_session(c, 201, s);
}

static void respond_created(struct call *c, const struct session *s, bool begun)
{
	if (!begun) {
		answer_created(c, s);
		return;
	}
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	answer_put_session(&w, s);
	if (json_writer_end(&w) == 0)
		http_sse_event(c->x, "session", NULL, b.data, b.len);
	call_finish_stream(c);
}

/* With its packages there. */
static void create(struct call *c, struct run_request *run, bool begun)
{
	struct error e = { 0 };
	struct session *s;
	int r = api_check_open(c->api, &e);

	if (!r)
		r = api_check_quota(c->api, c->owner, &e);
	run->session.owner = c->owner;
	if (!r)
		r = session_create(c->api->sessions, &run->session, &e, &s);
	if (!r)
		run->session = (struct session_params){ 0 }; /* the session has it all now */
	provision_finish(run);
	if (!r)
		respond_created(c, s, begun);
	else
		provision_answer_error(c, &e, begun);
}

/* Reads the body; what a session of its own has is in *ret_run then. */
static int read_create(
	struct call *c, struct create_request *q, struct run_request *ret_run, struct error *e)
{
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = api_check_open(c->api, e);

	if (!r)
		r = fields_decode_text(&create_fields, body, len, q, e);
	if (!r)
		r = api_check_quota(c->api, c->owner, e);
	if (!r && q->from)
		return create_check_from(body, len, e);
	if (!r && q->has_reseed) {
		error_set(e, -EINVAL, "$.reseed: is allowed only with from");
		error_remedy(e,
			"Omit reseed, or name with `from` the session or checkpoint to start from.");
		return error_slug(e, "invalid_field");
	}

	ret_run->session = q->session;
	q->session = (struct session_params){ 0 };
	return r;
}

void handle_session_create(struct call *c)
{
	struct error e = { 0 };
	struct create_request q = { 0 };
	struct run_request run = { 0 };
	int r = read_create(c, &q, &run, &e);

	if (!r && q.from) {
		create_from(c, &q);
		fields_finish(&create_fields, &q);
		return;
	}

	fields_finish(&create_fields, &q);
	if (r < 0) {
		provision_finish(&run);
		call_error(c, &e);
	} else if (provision_needed(c, &run.session)) {
		provision(c, &run, create);
	} else {
		create(c, &run, false);
	}
}

/* ---- packages of a live one ---------------------------------------------- */

static void respond_packages(struct call *c, const char *report, bool begun)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	buffer_append_str(&b, report ? report : "{}");
	if (!begun) {
		call_respond_as(c, 200, "application/json", &b);
		return;
	}
	http_sse_event(c->x, "done", NULL, b.data, b.len);
	call_finish_stream(c);
}

static void add_packages(struct call *c, struct run_request *run, bool begun)
{
	struct error e = { 0 };
	struct session *s;
	_cleanup_free_ char *report = run->session.packages_report
					      ? strdup(run->session.packages_report)
					      : NULL;
	int r = call_session(c, &e, &s);

	if (!r && run->session.packages_replace) {
		error_set(&e, -EBUSY,
			"the packages replace versions that the session's interpreter has already loaded");
		error_remedy(&e,
			"Make a new session with these packages: POST /v1/sessions {\"packages\": [...]}.");
		r = error_slug(&e, "package_in_use");
	}

	if (!r && !(r = session_add_package(
			    s, run->session.packages, run->session.packages_report, &e))) {
		run->session.packages = NULL;
		run->session.packages_report = NULL;
	}

	provision_finish(run);
	if (!r)
		respond_packages(c, report, begun);
	else
		provision_answer_error(c, &e, begun);
}

void handle_session_packages(struct call *c)
{
	struct error e = { 0 };
	struct run_request run = { 0 };
	struct session *s;
	int r = call_begin(c, &packages_fields, &run.session, &e, &s);

	if (!r && !c->api->packages) {
		error_set(&e, -EPERM, "this server does not offer packages");
		r = error_slug(&e, "package_refused");
	}

	if (r < 0) {
		provision_finish(&run);
		call_error(c, &e);
	} else {
		provision(c, &run, add_packages);
	}
}

/* ---- listing ------------------------------------------------------------- */

/* A value in metadata as a filter spells it: texts bare, everything else as JSON. */
static bool value_equals(const json_t *value, const char *text)
{
	if (!value)
		return false;
	if (json_is_string(value))
		return text_eq(json_string_value(value), text);
	char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	bool same = text_eq(dumped, text);
	free(dumped);
	return same;
}

static bool metadata_matches(const char *metadata, const struct field_match *m)
{
	_cleanup_json_ json_t *tree = NULL;
	if (!m->n)
		return true;
	if (!metadata || json_read(metadata, strlen(metadata), NULL, &tree) < 0)
		return false;
	for (size_t i = 0; i < m->n; i++)
		if (!value_equals(json_object_get(tree, m->pair[i].key), m->pair[i].value))
			return false;
	return true;
}

static bool matches(
	const struct call *c, const struct session_info *info, const struct session_query *q)
{
	return info->owner == c->owner && info->serial > q->cursor &&
	       (!q->name || text_eq(q->name, info->name)) &&
	       (!q->state || text_eq(q->state, session_state_name(info->state))) &&
	       metadata_matches(info->metadata, &q->metadata);
}

/* Writes one page; returns the cursor of the next, or 0. */
static uint64_t put_page(struct json_writer *w, const struct call *c, const struct session_query *q)
{
	uint64_t n = 0, last = 0;
	struct sessions *t = c->api->sessions;

	for (struct session *s = sessions_next(t, NULL); s; s = sessions_next(t, s)) {
		struct session_info info;
		session_info(s, &info);
		if (!matches(c, &info, q))
			continue;
		if (n++ == q->limit)
			return last;
		if (q->usage)
			put_session_and_usage(w, s);
		else
			answer_put_session(w, s);
		last = info.serial;
	}

	return 0;
}

void handle_session_list(struct call *c)
{
	struct error e = { 0 };
	struct session_query q = { .limit = PAGE_DEFAULT };
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	if (fields_decode_query(&session_query_fields, http_query(c->x), &q, &e) < 0) {
		fields_finish(&session_query_fields, &q);
		call_error(c, &e);
		return;
	}

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "sessions");
	json_open_array(&w);
	uint64_t next = put_page(&w, c, &q);
	json_close(&w);
	if (next)
		json_field_uint(&w, "next", next);
	else
		json_field_null(&w, "next");
	json_close(&w);
	fields_finish(&session_query_fields, &q);
	call_respond(c, 200, &w, &b);
}

/* ---- one session --------------------------------------------------------- */

void handle_session_get(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct json_writer w;
	struct session *s;
	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}
	json_writer_init(&w, &b);
	put_session_and_usage(&w, s);
	call_respond(c, 200, &w, &b);
}

void handle_session_delete(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}
	session_end(s, "it was deleted");
	call_respond_as(c, 204, NULL, NULL);
}

/* POSTs without fields take an empty object or nothing. */
static int check_empty_body(const struct call *c, struct error *e)
{
	size_t len;
	const char *body = http_body(c->x, &len);
	return fields_decode_text(&no_fields, body, len, NULL, e);
}

void handle_session_interrupt(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (check_empty_body(c, &e) < 0 || call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_bool(&w, "interrupted", session_interrupt(s));
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_session_reset(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	if (check_empty_body(c, &e) < 0 || api_check_open(c->api, &e) < 0 ||
		call_session(c, &e, &s) < 0 || session_reset(s, &e) < 0)
		call_error(c, &e);
	else
		respond_session(c, 200, s);
}
