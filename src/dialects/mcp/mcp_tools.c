/* MCP's tools: listing them, calling one, and writing its result. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"
#include "json/json_read.h"

/* ---- listing -------------------------------------------------------------------------------- */

bool mcp_tool_offered(const struct mcp_config *c, const struct mcp_tool *t)
{
	char *const *names = c->tools;
	if (t->flags & MCP_NEEDS_DISPLAY && !c->display)
		return false;
	for (; names && *names; names++)
		if (text_eq(*names, t->name))
			return true;
	return !c->tools;
}

static void put_annotations(
	struct json_writer *w, const struct mcp_config *c, const struct mcp_tool *t)
{
	json_key(w, "annotations");
	json_open_object(w);
	json_field_cstr(w, "title", t->title);
	json_field_bool(w, "readOnlyHint", t->flags & MCP_READ_ONLY);
	json_field_bool(w, "destructiveHint", t->flags & MCP_DESTRUCTIVE);
	json_field_bool(w, "idempotentHint", t->flags & MCP_IDEMPOTENT);
	json_field_bool(w, "openWorldHint", c->open_world);
	json_close(w);
}

static void append_size(struct buffer *b, uint64_t bytes)
{
	if (bytes >= 1ULL << 30)
		buffer_printf(b, "%.3g GB", (double)bytes / (1ULL << 30));
	else
		buffer_printf(b, "%.3g MB", (double)bytes / (1ULL << 20));
}

static void append_time(struct buffer *b, double seconds)
{
	if (seconds >= 3600)
		buffer_printf(b, "%g h", seconds / 3600);
	else if (seconds >= 120)
		buffer_printf(b, "%g minutes", seconds / 60);
	else
		buffer_printf(b, "%g s", seconds);
}

/* The limits that hold for this token's sessions. */
static void append_limits(struct buffer *b, const struct mcp_config *c)
{
	buffer_append_str(b, " Limits: ");
	append_time(b, c->timeout_s);
	buffer_append_str(b, " a call unless timeout_s says otherwise (at most ");
	append_time(b, c->max_timeout_s);
	buffer_append_str(b, "), ");
	append_size(b, c->memory_bytes);
	buffer_append_str(b, " of memory, ");
	if (c->open_world)
		buffer_printf(b, "network only to %.200s",
			c->network_text ? c->network_text : "allowed hosts");
	else
		buffer_append_str(b, "no network");
	buffer_append_str(b, "; a session ends after ");
	append_time(b, c->idle_timeout_s);
	buffer_append_str(b, " without calls.");
	if (!c->installs)
		buffer_append_str(b, " Packages cannot be installed.");
	if (c->profile)
		buffer_printf(b, " The rules of the profile %s hold for the code.", c->profile);
}

static void put_description(
	struct json_writer *w, const struct mcp_config *c, const struct mcp_tool *t)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	buffer_append_str(&b, t->description);
	if (t->about_windows && c->display)
		buffer_printf(&b, " %s", t->about_windows);
	if (t->flags & MCP_RUNS_CODE)
		append_limits(&b, c);
	json_field_text(w, "description", b.data, b.len);
}

static void put_tool(struct json_writer *w, const struct mcp_config *c, const struct mcp_tool *t)
{
	json_open_object(w);
	json_field_cstr(w, "name", t->name);
	json_field_cstr(w, "title", t->title);
	put_description(w, c, t);
	json_key(w, "inputSchema");
	if (t->input)
		fields_write_schema(t->input, w);
	else
		json_put_raw(w, t->input_schema, strlen(t->input_schema));
	json_field_raw(w, "outputSchema", t->output_schema, strlen(t->output_schema));
	put_annotations(w, c, t);
	json_close(w);
}

void mcp_tools_list(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (json_object_get(r->params, "cursor")) {
		mcp_fail(r, MCP_INVALID_PARAMS, 200,
			"unknown cursor: the list of tools has one page", NULL);
		return;
	}

	mcp_begin_result(r, &w, &b);
	json_key(&w, "tools");
	json_open_array(&w);
	if (r->client && r->client->python_tool)
		put_tool(&w, mcp_config_of(r), &mcp_python_tool);
	else
		for (size_t i = 0; i < mcp_tools_count; i++)
			if (mcp_tool_offered(mcp_config_of(r), &mcp_tools[i]))
				put_tool(&w, mcp_config_of(r), &mcp_tools[i]);
	json_close(&w);
	json_field_uint(&w, "ttlMs", 300000);
	/* each token may have tools and limits of its own */
	json_field_cstr(&w, "cacheScope", r->home->n_configs > 1 ? "private" : "public");
	mcp_respond(r, &w, &b);
}

/* ---- results ------------------------------------------------------------------------ */

size_t mcp_json_fit(const char *text, size_t len, size_t max)
{
	size_t n = 0;
	for (size_t bytes = 0; n < len; n++) {
		unsigned char c = (unsigned char)text[n];
		bytes += c && strchr("\n\r\t\"\\", c) ? 2 : c < 32 ? 6 : 1;
		if (bytes > max)
			break;
	}
	while (n && n < len && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

void mcp_put_text(struct json_writer *w, const char *text, size_t len)
{
	json_open_object(w);
	json_field_cstr(w, "type", "text");
	json_field_text(w, "text", text, len);
	json_close(w);
}

void mcp_put_image(struct json_writer *w, const char *mime, const char *base64, size_t len)
{
	json_open_object(w);
	json_field_cstr(w, "type", "image");
	json_field_text(w, "data", base64, len);
	json_field_cstr(w, "mimeType", mime);
	json_close(w);
}

/* The result object of a tool, for a response or for a task. */
static void put_result(struct json_writer *w, const struct buffer *content,
	const struct buffer *structured, bool is_error)
{
	json_field_raw(w, "content", content->data, content->len);
	if (structured && structured->len)
		json_field_raw(w, "structuredContent", structured->data, structured->len);
	json_field_bool(w, "isError", is_error);
}

void mcp_send_result(
	struct mcp_request *r, struct buffer *content, struct buffer *structured, bool is_error)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	if (r->task) {
		json_writer_init(&w, &b);
		json_open_object(&w);
		put_result(&w, content, structured, is_error);
		json_close(&w);
		mcp_task_take(r, &b);
		mcp_cancel(r); /* nobody waits for a response */
		return;
	}

	mcp_begin_result(r, &w, &b);
	put_result(&w, content, structured, is_error);
	mcp_respond(r, &w, &b);
}

void mcp_tool_done(struct mcp_request *r, const struct buffer *text,
	const struct buffer *structured, bool is_error)
{
	_cleanup_buffer_ struct buffer content = BUFFER_INIT(0), copy = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &content);
	json_open_array(&w);
	mcp_put_text(&w, text->data ? text->data : "", text->len);
	json_close(&w);
	buffer_append(&copy, structured->data, structured->len);
	mcp_send_result(r, &content, &copy, is_error);
}

void mcp_tool_error(struct mcp_request *r, const char *text, const char *remedy)
{
	_cleanup_buffer_ struct buffer said = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct json_writer w;
	char expanded[EDGE_TEXT_MAX];
	remedy = edge_expand(&mcp_words, remedy ? remedy : "", expanded, sizeof(expanded));

	buffer_append_str(&said, text);
	if (*remedy)
		buffer_printf(&said, "\n%s", remedy);
	json_writer_init(&w, &structured);
	json_open_object(&w);
	json_field_cstr(&w, "session_id", *r->session ? r->session : NULL);
	json_key(&w, "error");
	json_open_object(&w);
	json_field_cstr(&w, "type", "ToolError");
	json_field_text(&w, "message", text, strlen(text));
	json_field_cstr(&w, "traceback", "");
	json_field_null(&w, "line");
	json_field_cstr(&w, "remediation", remedy);
	json_close(&w);
	json_close(&w);
	mcp_tool_done(r, &said, &structured, true);
}

void mcp_tool_error_of(struct mcp_request *r, const struct error *e)
{
	mcp_tool_error(r, e->text, mcp_remedy(r, e->slug, NULL, e->text, e->remedy));
}

/* ---- calling ------------------------------------------------------------------------ */

static const struct mcp_tool *find_tool(const struct mcp_request *r, const char *name)
{
	if (r->client && r->client->python_tool)
		return text_eq(name, mcp_python_tool.name) ? &mcp_python_tool : NULL;
	for (size_t i = 0; i < mcp_tools_count; i++)
		if (text_eq(name, mcp_tools[i].name) &&
			mcp_tool_offered(mcp_config_of(r), &mcp_tools[i]))
			return &mcp_tools[i];
	return NULL;
}

static int read_arguments(struct mcp_request *r, struct error *e)
{
	_cleanup_json_ json_t *none = NULL;
	const json_t *given = json_object_get(r->params, "arguments");
	if (!given || json_is_null(given))
		given = none = json_object();
	if (!json_is_object(given))
		return error_set(e, -EINVAL, "arguments must be an object");

	r->arguments = calloc(1, sizeof(*r->arguments));
	if (!r->arguments)
		return error_set(e, -ENOMEM, "out of memory");
	if (r->tool->input)
		return fields_decode(r->tool->input, given, r->arguments, e);
	const char *id = json_string_value(json_object_get(given, "session_id"));
	if (id)
		r->arguments->session_id = strdup(id);
	if (id)
		return 0;
	return error_set(e, -EINVAL, "$.session_id: %s",
		json_object_get(given, "session_id") ? "must be a string" : "is required");
}

void mcp_tools_call(struct mcp_request *r)
{
	struct error e = { 0 };
	struct session *s = NULL;
	char text[160];
	const char *name = json_string_value(json_object_get(r->params, "name"));

	r->tool = name ? find_tool(r, name) : NULL;
	if (!r->tool) {
		snprintf(text, sizeof(text), "unknown tool: %.100s",
			name ? name : "(params.name must be a string)");
		mcp_fail(r, MCP_INVALID_PARAMS, 200, text, NULL);
		return;
	}

	if (read_arguments(r, &e) < 0) {
		mcp_tool_error(r, e.text, "Correct the argument and call the tool again.");
		return;
	}

	if (api_check_open(r->home->api, &e) < 0) {
		mcp_tool_error_of(r, &e);
		return;
	}

	if (r->tool->flags & MCP_NEEDS_SESSION) {
		snprintf(r->session, sizeof(r->session), "%s", r->arguments->session_id);
		if (api_session(r->home->api, r->arguments->session_id, r->owner, &e, &s) < 0) {
			*r->session = '\0';
			mcp_tool_error_of(r, &e);
			return;
		}
	}

	r->tool->call(r, s);
}
