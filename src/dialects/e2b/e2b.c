#include "dialects/e2b/e2b.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/api.h"
#include "api/dialect.h"
#include "api/ports/port_host.h"
#include "api/ports/port_proxy.h"
#include "api/routes.h"
#include "base/text.h"
#include "dialects/common/dialect_words.h"
#include "dialects/dialects.h"
#include "dialects/e2b/e2b_control.h"
#include "session/pause.h"
#include "json/json_read.h"
#include "json/json_write.h"

struct e2b *e2b_of(const struct call *c)
{
	return dialect_state(c->api, &dialect_e2b);
}

/* ---- ids and tokens ------------------------------------------------------------------------ */

const char *e2b_sandbox_id(const char *session_id)
{
	return session_id + 2;
}

void e2b_session_id(const char *sandbox_id, char ret[SESSION_ID_LEN + 1])
{
	snprintf(ret, SESSION_ID_LEN + 1, "s_%s", sandbox_id);
}

void e2b_token(
	const struct e2b *e, const char *purpose, const char *session_id, char ret[SHA256_HEX + 1])
{
	struct sha256 s;
	sha256_init(&s);
	sha256_add(&s, e->secret, sizeof(e->secret));
	sha256_add(&s, purpose, strlen(purpose) + 1);
	sha256_add(&s, session_id, strlen(session_id));
	sha256_add(&s, e->secret, sizeof(e->secret));
	sha256_end(&s, ret);
}

static bool token_fits(
	const struct call *c, const char *header, const char *purpose, const char *id)
{
	char want[SHA256_HEX + 1];
	const char *given = http_header(c->x, header);
	e2b_token(e2b_of(c), purpose, id, want);
	return given && text_eq_secret(given, strlen(given), want, SHA256_HEX);
}

/* ---- errors ---------------------------------------------------------------------------------- */

void e2b_error(struct call *c, int status, const char *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_int(&w, "code", status);
	json_field_cstr(&w, "message", message);
	json_close(&w);
	call_respond(c, status, &w, &b);
}

void e2b_fail(struct call *c, const struct error *e)
{
	char remedy[EDGE_TEXT_MAX], text[ERROR_TEXT_MAX + EDGE_TEXT_MAX + 4];
	edge_expand(&dialect_words, e->remedy, remedy, sizeof(remedy));
	snprintf(text, sizeof(text), "%s%s%s", e->text, *remedy ? ". " : "", remedy);
	if (e2b_is_connect(c->x))
		e2b_connect_error(c, e2b_connect_code(e), text);
	else
		e2b_error(c, e->err == -ENOSYS ? 501 : call_status_of(e), text);
}

/* ---- requests to a sandbox ---------------------------------------------------------- */

/* A sandbox with autoResume goes on when something is asked of it. */
static bool resumes(struct session *s, const struct session_info *i)
{
	struct error e = { 0 };
	_cleanup_json_ json_t *kept = e2b_kept(i);
	return json_is_true(json_object_get(kept, E2B_KEY_RESUME)) &&
	       !json_object_get(kept, E2B_KEY_SNAPSHOT) &&
	       session_resume(s, E2B_TIMEOUT_S, &e) == 0;
}

static bool resume_for_port(struct session *s)
{
	struct session_info i;
	session_info(s, &i);
	return resumes(s, &i);
}

/* By the headers of a request; NULL when it was answered. */
static struct session *addressed(struct call *c, const char *id)
{
	struct session *s;
	char full[SESSION_ID_LEN + 1];

	e2b_session_id(id, full);
	if (session_find(c->api->sessions, full, NULL, &s) < 0) {
		e2b_error(c, 502, "The sandbox was not found: it has ended, or it never existed");
		return NULL;
	}

	if (!token_fits(c, "X-Access-Token", "envd", full) &&
		!port_key_fits(c->api, full, http_header(c->x, "E2B-Traffic-Access-Token"))) {
		e2b_error(c, 401,
			"The access token of the sandbox is missing or wrong: connect to the sandbox to get it");
		return NULL;
	}

	return s;
}

struct session *e2b_session(struct call *c)
{
	const char *id = http_header(c->x, "E2b-Sandbox-Id");
	struct session *s = id ? addressed(c, id) : e2b_signed_session(c);
	struct session_info info;
	if (!s) {
		if (!id)
			e2b_error(c, 401,
				"The signature of the link is wrong, or the link has expired: ask the sandbox for a new one");
		return NULL;
	}

	session_info(s, &info);
	if (info.state == SESSION_PAUSED && !resumes(s, &info)) {
		e2b_error(c, 502, "The sandbox is paused: connect to it to resume it");
		return NULL;
	}
	snprintf(c->id, sizeof(c->id), "%s", info.id);
	c->owner = info.owner;
	return s;
}

/* The one message of a stream request, or the whole body of a unary one. */
static json_t *read_message(struct call *c, bool stream)
{
	size_t len;
	const char *body = http_body(c->x, &len);
	json_t *tree = NULL;

	if (stream) {
		const unsigned char *u = (const unsigned char *)body;
		size_t n = len < 5 ? 0
				   : (size_t)u[1] << 24 | (size_t)u[2] << 16 | (size_t)u[3] << 8 |
					     u[4];
		if (len < 5 || n > len - 5 || u[0])
			return NULL;
		body += 5;
		len = n;
	}

	if (!len)
		return json_object();
	return json_read(body, len, NULL, &tree) == 0 && json_is_object(tree) ? tree : NULL;
}

static bool is_stream(const struct call *c)
{
	const char *type = http_header(c->x, "Content-Type");
	return type && !strncmp(type, "application/connect+json", 24);
}

static void envd(struct call *c, struct session *s, const char *path)
{
	static const char process[] = E2B_PROCESS, files[] = E2B_FILESYSTEM;
	bool stream = is_stream(c), is_process = !strncmp(path, process, sizeof(process) - 1);

	if (text_eq(path, "/health")) {
		call_respond_as(c, 204, NULL, NULL);
		return;
	}

	if (text_eq(path, "/files")) {
		e2b_files_get(c);
		return;
	}

	if (!is_process && strncmp(path, files, sizeof(files) - 1)) {
		e2b_error(c, 404, "envd has nothing at this address");
		return;
	}

	_cleanup_json_ json_t *request = read_message(c, stream);
	http_drop_body(c->x);
	if (!request)
		e2b_connect_error(c, "invalid_argument", "the request is not a JSON message");
	else if (is_process && stream)
		e2b_process_stream(c, s, path + sizeof(process) - 1, request);
	else if (is_process)
		e2b_process(c, s, path + sizeof(process) - 1, request);
	else if (stream)
		e2b_watch_stream(c, s, request);
	else if (!e2b_watch(c, s, path + sizeof(files) - 1, request))
		e2b_filesystem(c, s, path + sizeof(files) - 1, request);
}

static void interpreter(struct call *c, struct session *s, const char *path)
{
	if (text_eq(path, "/health"))
		call_respond_static(c, 200, "application/json", "\"OK\"", 4);
	else if (text_eq(path, "/execute") && http_method(c->x) == HTTP_METHOD_POST)
		e2b_execute(c, s);
	else if (!strncmp(path, "/contexts", 9))
		e2b_contexts(c, s);
	else
		e2b_error(c, 404, "the interpreter has nothing at this address");
}

/* The sandbox may have been made a moment ago: commands and files wait for its jail. */
static void envd_ready(struct call *c)
{
	struct session *s;
	if (session_find(c->api->sessions, c->id, NULL, &s) < 0)
		e2b_error(c, 502, "The sandbox has ended");
	else
		envd(c, s, http_path(c->x));
}

static void handle_data(struct call *c)
{
	const char *port = http_header(c->x, "E2b-Sandbox-Port");
	uint64_t number = E2B_PORT_ENVD;
	struct session *s = e2b_session(c);
	if (!s)
		return;
	if (port)
		text_parse_u64(port, 1, 65535, &number); /* claim() knows it as one of the two */
	if (number == E2B_PORT_INTERPRETER)
		interpreter(c, s, http_path(c->x));
	else if (text_eq(http_path(c->x), "/health"))
		envd(c, s, http_path(c->x));
	else
		call_when_files(c, envd_ready);
}

/* Any other port is that of a server in the sandbox. */
static enum http_body_mode begin_other_port(struct call *c)
{
	struct port_request q = {
		.form = PORT_BY_HOST, .target = http_target(c->x), .hide_credentials = true
	};
	uint64_t number;
	struct session *s = e2b_session(c);
	if (!s)
		return HTTP_BODY_ANSWERED;
	if (text_parse_u64(http_header(c->x, "E2b-Sandbox-Port"), 1, 65535, &number) < 0) {
		e2b_error(c, 400, "E2b-Sandbox-Port is not a port");
		return HTTP_BODY_ANSWERED;
	}
	q.port = (unsigned)number;
	return port_proxy_begin(c, s, &q);
}

static const struct route port_route = { .method = HTTP_METHOD_POST,
	.pattern = "/",
	.flags = ROUTE_PUBLIC | ROUTE_RAW_BODY | ROUTE_ANY_QUERY | ROUTE_FOREIGN_BODY,
	.begin = begin_other_port,
	.problem_form = &e2b_problem_form,
	.handle = port_proxy_body_end,
	.operation = "e2bPort",
	.summary = "E2B: a request to a server in a sandbox" };

static const struct route data_route = { .method = HTTP_METHOD_POST,
	.pattern = "/",
	.flags = ROUTE_PUBLIC | ROUTE_RAW_BODY | ROUTE_ANY_QUERY,
	.handle = handle_data,
	.problem_form = &e2b_problem_form,
	.operation = "e2bData",
	.summary = "E2B: a request to a sandbox" };

static const struct route upload_route = { .method = HTTP_METHOD_POST,
	.pattern = "/files",
	.flags = ROUTE_PUBLIC | ROUTE_RAW_BODY | ROUTE_ANY_QUERY | ROUTE_FOREIGN_BODY,
	.begin = e2b_upload_begin,
	.problem_form = &e2b_problem_form,
	.handle = e2b_upload_end,
	.operation = "e2bUpload",
	.summary = "E2B: files for a sandbox" };

static bool is_upload(const struct http_exchange *x)
{
	const char *port = http_header(x, "E2b-Sandbox-Port");
	return http_method(x) == HTTP_METHOD_POST && text_eq(http_path(x), "/files") &&
	       (!port || text_eq(port, "49983"));
}

static const struct route *claim(const struct http_exchange *x)
{
	if (!http_header(x, "E2b-Sandbox-Id") && !e2b_is_signed(x))
		return NULL;
	const char *port = http_header(x, "E2b-Sandbox-Port");
	if (port && !text_eq(port, "49983") && !text_eq(port, "49999"))
		return &port_route;
	return is_upload(x) ? &upload_route : &data_route;
}

/* Errors of this API have its shape also where it serves nothing. */
static const struct route *stray(const struct http_exchange *x)
{
	return e2b_is_stray(http_path(x)) ? &e2b_stray_route : NULL;
}

/* ---- life --------------------------------------------------------------------------- */

static int create(struct api *a, const struct api_config *config, struct error *e, void **ret_state)
{
	struct e2b *d = calloc(1, sizeof(*d));
	(void)config;
	if (!d)
		return error_set(e, -ENOMEM, "out of memory");
	d->api = a;
	if (getrandom(d->secret, sizeof(d->secret), 0) != (ssize_t)sizeof(d->secret)) {
		free(d);
		return error_set(e, -EIO, "the kernel's random number generator is not available");
	}
	*ret_state = d;
	return 0;
}

static void destroy(void *state)
{
	struct e2b *d = state;
	explicit_bzero(d->secret, sizeof(d->secret));
	free(d);
}

const struct dialect dialect_e2b = { .name = "e2b",
	.routes = e2b_routes,
	.create = create,
	.destroy = destroy,
	.claim = claim,
	.stray = stray,
	.resume = resume_for_port };
