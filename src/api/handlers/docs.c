/* /docs: the tables as a page for people. */
#include "api/handlers/docs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/schema/fields.h"
#include "api/schema/requests.h"
#include "api/routes.h"
#include "api/schema/shapes.h"

static const char style[] =
	"body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 "
	"1rem;color:#1c1e21;background:#fff}"
	"h1{margin-bottom:0}h2{margin-top:2.5rem;border-bottom:1px solid #d0d4da;padding-bottom:.3rem}"
	"h2 b{display:inline-block;min-width:4.5rem;color:#0b5cad}code,pre{font:14px/1.45 "
	"ui-monospace,monospace}"
	"pre{background:#f3f5f7;padding:.7rem;overflow-x:auto;border-radius:4px}table{border-collapse:"
	"collapse;width:100%}"
	"td,th{text-align:left;vertical-align:top;padding:.25rem .6rem;border-bottom:1px solid #e4e7eb}"
	"nav a{display:inline-block;margin-right:1rem}a{color:#0b5cad}"
	"@media(prefers-color-scheme:dark){body{color:#e4e6ea;background:#16181c}pre{background:#22252b}"
	"td,th,h2{border-color:#363b43}a,h2 b{color:#7ab8ff}}";

/* Text of ours, but tables hold < and & like any prose. */
static void put(struct buffer *b, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			buffer_append_str(b, "&lt;");
		else if (*text == '>')
			buffer_append_str(b, "&gt;");
		else if (*text == '&')
			buffer_append_str(b, "&amp;");
		else if (*text == '"')
			buffer_append_str(b, "&quot;");
		else
			buffer_append_char(b, *text);
	}
}

static void put_fields(struct buffer *b, const struct fields *f, const char *prefix)
{
	char shape[128];
	for (size_t i = 0; i < f->n; i++) {
		const struct field *field = &f->field[i];
		buffer_printf(b, "<tr><td><code>%s%s</code>%s<td>", prefix, field->name,
			field->flags & FIELD_REQUIRED ? " (required)" : "");
		put(b, fields_describe(field, shape, sizeof(shape)));
		if (field->default_text) {
			buffer_append_str(b, "; default ");
			put(b, field->default_text);
		}
		buffer_append_str(b, "<td>");
		put(b, field->help ? field->help : "");
		buffer_append_str(b, "\n");
		if (field->type == FIELD_OBJECT) {
			char inner[64];
			snprintf(inner, sizeof(inner), "%s%s.", prefix, field->name);
			put_fields(b, field->object, inner);
		}
	}
}

static void put_shape_rows(struct buffer *b, const struct shape *s, const char *prefix, int depth)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct shape_row *row = &s->row[i];
		buffer_printf(b, "<tr><td><code>%s%s</code><td>%s%s<td>", prefix, row->name, row->type,
			row->nullable ? " or null" : "");
		put(b, row->help ? row->help : row->of && row->of->open_help ? row->of->open_help : "");
		buffer_append_str(b, "\n");
		if (row->of && depth < 2) {
			char inner[96];
			snprintf(inner, sizeof(inner), "%s%s%s.", prefix, row->name,
				strcmp(row->type, "array") ? "" : "[]");
			put_shape_rows(b, row->of, inner, depth + 1);
		}
	}
}

static void open_table(struct buffer *b, const char *title)
{
	buffer_printf(b, "<h3>%s</h3>\n<table>\n", title);
}

static void put_route(struct buffer *b, const struct route *r)
{
	buffer_printf(b, "<h2 id=\"%s\"><b>%s</b> <code>%s</code></h2>\n<p><strong>%s.</strong> ",
		r->operation, http_method_name(r->method), r->pattern, r->summary);
	if (r->description)
		put(b, r->description);
	if (r->flags & ROUTE_PUBLIC)
		buffer_append_str(b, " Needs no token.");
	buffer_append_str(b, "</p>\n");
	if (r->example) {
		buffer_append_str(b, "<pre>");
		put(b, r->example);
		buffer_append_str(b, "</pre>\n");
	}
	if (r->query) {
		open_table(b, "Query");
		put_fields(b, r->query, "");
		buffer_append_str(b, "</table>\n");
	}
	if (r->request && r->request->n) {
		open_table(b, "Body");
		put_fields(b, r->request, "");
		buffer_append_str(b, "</table>\n");
	}
	if (r->shape) {
		buffer_printf(b, "<p>Answers %d with a <a href=\"#schema-%s\">%s</a>.</p>\n", r->status,
			r->shape->name, r->shape->name);
	} else {
		buffer_printf(b, "<p>Answers %d.</p>\n", r->status);
	}
}

static void put_answers(struct buffer *b)
{
	static const struct shape *const shown[] = { &shape_observation, &shape_session, &shape_session_list,
		&shape_log, &shape_file_list, &shape_file, &shape_interrupted, &shape_status, &shape_version,
		&shape_problem };
	buffer_append_str(b, "<h2>Answers</h2>\n");
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		buffer_printf(b, "<h3 id=\"schema-%s\">%s</h3>\n<table>\n", shown[i]->name, shown[i]->name);
		put_shape_rows(b, shown[i], "", 0);
		buffer_append_str(b, "</table>\n");
	}
}

int docs_write(struct buffer *b)
{
	buffer_printf(b,
		"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Glovebox "
		"API</title>\n"
		"<meta name=\"viewport\" "
		"content=\"width=device-width,initial-scale=1\">\n<style>%s</style></head>\n<body>\n"
		"<h1>Glovebox</h1>\n<p>Version %s. Runs Python that a language model wrote, in sealed "
		"sessions. "
		"As a document for programs: <a href=\"/openapi.json\">/openapi.json</a>.</p>\n"
		"<p>In the commands, <code>URL</code> is this server "
		"(<code>URL=http://127.0.0.1:8000</code>) and "
		"<code>ID</code> a session's id. When the server asks for a token, add "
		"<code>-H \"Authorization: Bearer $TOKEN\"</code>.</p>\n<nav>",
		style, GLOVEBOX_VERSION);
	for (size_t i = 0; i < routes_count; i++)
		buffer_printf(b, "<a href=\"#%s\">%s</a>\n", routes[i].operation, routes[i].summary);
	buffer_append_str(b, "</nav>\n");
	for (size_t i = 0; i < routes_count; i++)
		put_route(b, &routes[i]);
	put_answers(b);
	return buffer_append_str(b, "</body></html>\n");
}

void handle_docs(struct call *c)
{
	struct api *a = c->api;
	if (!a->docs) {
		_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
		if (docs_write(&b) < 0) {
			call_problem(
				c, 503, "no_memory", "the server is short of memory", "Try again later.");
			return;
		}
		a->docs = buffer_take(&b, &a->docs_len);
	}
	http_add_header(c->x, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'");
	call_respond_static(c, 200, "text/html; charset=utf-8", a->docs, a->docs_len);
}
