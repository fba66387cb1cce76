/* Tools that run code: the session that they need, and the cell. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/provision.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/common/reset_packages.h"
#include "dialects/mcp/mcp.h"

/* ---- the session ------------------------------------------------------------------------- */

static char **copy_words(char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	char **copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		if (!(copy[i] = strdup(list[i])))
			break;
	return copy;
}

/* The operator's choice for sessions that MCP makes, and the packages that this call names. */
static void fill_params(struct mcp_request *r, struct session_params *p)
{
	/* figures are pictures; a window would prevent a snapshot */
	static char pictures[] = "MPLBACKEND=agg";
	const struct mcp_config *c = mcp_config_of(r);
	p->owner = r->owner;
	p->name = strdup("mcp");
	p->profile = c->profile ? strdup(c->profile) : NULL;
	p->has_display = c->display;
	p->display.lazy = true; /* most sessions open no window */
	if (c->display)
		p->env = copy_words((char *const[]){ pictures, NULL });
	if (r->arguments->packages)
		p->want_packages = copy_words(r->arguments->packages);
	else if (c->packages)
		p->want_packages = copy_words(c->packages);
	if (c->network)
		network_policy_copy(c->network, &p->network);
	p->idle_timeout_s = c->idle_timeout_s;
	p->limits.timeout_s = c->timeout_s;
	p->limits.memory_bytes = c->memory_bytes;
	p->limits.cpus = c->cpus;
	p->limits.processes = c->processes;
}

static void go_on(struct mcp_request *r, struct session *s,
	void (*then)(struct mcp_request *r, struct session *s), bool files)
{
	if (files && session_workspace_fd(s) < 0)
		r->then = then, r->files_ns = clock_now_ns(); /* the tick calls it */
	else
		then(r, s);
}

/* Which step follows once a new session is there. */
struct start {
	void (*then)(struct mcp_request *r, struct session *s);
	bool files;
};

static int make_session(
	struct mcp_request *r, struct session_params *params, struct error *e, struct session **ret)
{
	struct session_info info;
	int err = api_check_quota(r->home->api, r->owner, e);
	params->dialect = "mcp";
	if (!err)
		err = session_create(r->home->api->sessions, params, e, ret);
	if (err < 0)
		return err;

	*params = (struct session_params){ 0 };
	session_info(*ret, &info);
	snprintf(r->session, sizeof(r->session), "%s", info.id);
	r->new_session = true;
	if (r->client && r->client->lease)
		mcp_client_own(r->client, r->session);
	return 0;
}

static void free_start(struct mcp_request *r)
{
	free(r->work);
	r->work = NULL;
}

static void on_packages(void *userdata, struct session_params *params, const struct error *e)
{
	struct mcp_request *r = userdata;
	struct start start = *(struct start *)r->work;
	struct error err = { 0 };
	struct session *s;

	r->packages = NULL;
	r->release = NULL;
	free_start(r);
	if (e)
		mcp_tool_error_of(r, e);
	else if (make_session(r, params, &err, &s) < 0)
		mcp_tool_error_of(r, &err);
	else
		go_on(r, s, start.then, start.files);
}

static void start_session(
	struct mcp_request *r, bool files, void (*then)(struct mcp_request *r, struct session *s))
{
	struct session_params params = { 0 };
	struct error e = { 0 };
	struct session *s;

	fill_params(r, &params);
	if (reset_packages_needed(r->home->api, &params)) {
		struct start *start = calloc(1, sizeof(*start));
		if (!start) {
			reset_packages_release(&params);
			mcp_tool_error(r, "out of memory", "Try again later.");
			return;
		}
		*start = (struct start){ then, files };
		r->work = start;
		r->release = free_start;
		reset_packages_begin(r->home->api, &params, on_packages, r, &r->packages);
		return;
	}

	if (params.want_packages && params.want_packages[0]) {
		reset_packages_release(&params);
		mcp_tool_error(r, "this server installs no packages",
			"Leave packages out, or use what is installed.");
		return;
	}

	int err = make_session(r, &params, &e, &s);
	reset_packages_release(&params);
	if (err < 0)
		mcp_tool_error_of(r, &e);
	else
		go_on(r, s, then, files);
}

void mcp_with_session(
	struct mcp_request *r, bool files, void (*then)(struct mcp_request *r, struct session *s))
{
	struct error e = { 0 };
	struct session *s;
	if (!r->arguments->session_id) {
		start_session(r, files, then);
		return;
	}
	if (api_session(r->home->api, r->arguments->session_id, r->owner, &e, &s) < 0) {
		mcp_tool_error_of(r, &e);
		return;
	}
	snprintf(r->session, sizeof(r->session), "%s", r->arguments->session_id);
	go_on(r, s, then, files);
}

/* ---- the cell ------------------------------------------------------------------------------- */

static void on_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	(void)stream;
	mcp_tell_output(userdata, data, len);
}

static void on_done(void *userdata, const struct observation *o)
{
	struct mcp_request *r = userdata;
	r->cell = NULL;
	r->done = true;
	mcp_run_done(r, o);
}

static void execute(struct mcp_request *r, struct session *s, const struct cell_request *q)
{
	static const struct cell_observer telling = { .on_output = on_output, .on_done = on_done };
	static const struct cell_observer quiet = { .on_done = on_done };
	struct error e = { 0 };
	struct cell *cell = NULL;

	r->executing = true;
	int err = session_execute(s, NULL, q, r->progress_token ? &telling : &quiet, r, &e, &cell);
	r->executing = false;
	if (r->over) /* answered inside */
		mcp_request_finish(r);
	else if (err < 0)
		mcp_tool_error_of(r, &e);
	else if (!r->done)
		r->cell = cell;
}

/* ---- run_python --------------------------------------------------------------------- */

static void run_code(struct mcp_request *r, struct session *s)
{
	const struct mcp_arguments *a = r->arguments;
	struct session_info info;

	session_info(s, &info);
	struct cell_request q = {
		.dialect = "mcp",
		.code = a->code.data,
		.code_len = a->code.len,
		.timeout_s = a->timeout_s,
		.has_screenshot = a->screenshot,
		/*
		 * an open window must not hold the call until its limit; it stays for the tool
		 * computer
		 */
		.on_block = info.has_display ? ON_BLOCK_LEAVE : ON_BLOCK_AUTO,
	};
	execute(r, s, &q);
}

/* Packages for a session that exists: a cell of its own installs them. */
static void install_first(struct mcp_request *r, struct session *s)
{
	_cleanup_buffer_ struct buffer code = BUFFER_INIT(0);
	buffer_append_str(&code, "%pip install");
	for (char **p = r->arguments->packages; *p; p++)
		buffer_printf(&code, " \"%s\"", *p);
	buffer_append_char(&code, '\n');
	buffer_append(&code, r->arguments->code.data, r->arguments->code.len);
	char *joined = strndup(code.data ? code.data : "", code.len);
	if (!joined) {
		mcp_tool_error(r, "out of memory", "Try again later.");
		return;
	}

	field_text_finish(&r->arguments->code);
	r->arguments->code = (struct field_text){ .data = joined, .len = strlen(joined) };
	run_code(r, s);
}

static void run_in(struct mcp_request *r, struct session *s)
{
	char *const *packages = r->arguments->packages;
	if (packages && *packages && !r->new_session)
		install_first(r, s);
	else
		run_code(r, s);
}

/* The operator's most; a session's own limit is checked by the session. */
static bool check_timeout(struct mcp_request *r)
{
	double most = mcp_config_of(r)->max_timeout_s;
	char text[96];
	if (r->arguments->timeout_s <= most)
		return true;
	snprintf(text, sizeof(text), "$.timeout_s: must be at most %g", most);
	mcp_tool_error(r, text, "Ask for less, and split the work over several calls.");
	return false;
}

/* A package's name must stay one word of the line that installs it. */
static bool sane_packages(char *const *packages)
{
	for (; packages && *packages; packages++)
		if (strpbrk(*packages, "\"'\\\n\r`$;&|"))
			return false;
	return true;
}

void mcp_call_run_python(struct mcp_request *r, struct session *s)
{
	(void)s;
	if (!sane_packages(r->arguments->packages)) {
		mcp_tool_error(r, "packages: a name has a character that no package has",
			"Name packages such as \"rich\" or \"pandas>=2\".");
		return;
	}

	if (r->arguments->screenshot && !mcp_config_of(r)->display) {
		mcp_tool_error(r, "sessions of this server have no screen",
			"Leave screenshot out; matplotlib figures are returned without it.");
		return;
	}

	if (r->arguments->detach && r->modern && !mcp_wants_task(r)) {
		mcp_fail(r, MCP_MISSING_CAPABILITY, 400,
			"detach needs a client that declares the extension " MCP_META "tasks",
			"{\"requiredCapabilities\":{\"extensions\":{\"" MCP_META "tasks\":{}}}}");
		return;
	}

	if (r->arguments->detach && !mcp_wants_task(r)) {
		mcp_tool_error(r,
			"detach needs a client that declares the extension " MCP_META "tasks",
			"Leave detach out and wait for the result.");
		return;
	}

	if (!check_timeout(r) || (r->arguments->detach && !mcp_task_begin(r)))
		return;
	mcp_with_session(r, false, run_in);
}

/* ---- run_shell ---------------------------------------------------------------------- */

/* Text as a Python string literal of ASCII characters. */
static void append_literal(struct buffer *b, const char *s, size_t len)
{
	buffer_append_str(b, "b'");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c >= 32 && c < 127 && c != '\'' && c != '\\')
			buffer_append_char(b, (char)c);
		else
			buffer_printf(b, "\\x%02x", c);
	}
	buffer_append_str(b, "'");
}

/*
 * The command as a cell that defines no name: the interpreter waits for bash and takes over its
 * exit code (128 + N for the signal N).
 */
static void run_command(struct mcp_request *r, struct session *s)
{
	const struct mcp_arguments *a = r->arguments;
	_cleanup_buffer_ struct buffer code = BUFFER_INIT(0);
	const char *cwd = a->cwd && *a->cwd ? a->cwd : "/workspace";

	buffer_append_str(&code,
		"raise SystemExit((lambda n: n if n >= 0 else 128 - n)(__import__('subprocess').call([b'/bin/bash', b'-c', ");
	append_literal(&code, a->command.data, a->command.len);
	buffer_append_str(&code, "], stdin=-3, cwd=");
	append_literal(&code, cwd, strlen(cwd));
	if (buffer_append_str(&code, ")))\n") < 0) {
		mcp_tool_error(r, "out of memory", "Try again later.");
		return;
	}
	execute(r, s,
		&(struct cell_request){ .dialect = "mcp",
			.code = code.data,
			.code_len = code.len,
			.timeout_s = a->timeout_s });
}

void mcp_call_run_shell(struct mcp_request *r, struct session *s)
{
	(void)s;
	if (check_timeout(r))
		mcp_with_session(r, false, run_command);
}

/* ---- python, for GET /sse ----------------------------------------------------------- */

static void run_in_own(struct mcp_request *r, struct session *s)
{
	if (r->client && *r->client->session && !text_eq(r->client->session, r->session))
		/* made at the same time by another call: one is enough */
		api_end_later(r->home->api, r->client->session);
	if (r->client)
		snprintf(r->client->session, sizeof(r->client->session), "%s", r->session);
	run_code(r, s);
}

void mcp_call_python(struct mcp_request *r, struct session *s)
{
	struct error e = { 0 };
	if (*r->client->session &&
		api_session(r->home->api, r->client->session, r->owner, &e, &s) == 0)
		r->arguments->session_id = strdup(r->client->session);
	mcp_with_session(r, false, run_in_own);
}
