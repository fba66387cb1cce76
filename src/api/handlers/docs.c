/* /docs: the tables as a page for people. */
#include "api/handlers/docs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/routes.h"
#include "api/schema/fields.h"
#include "api/schema/requests.h"
#include "api/schema/shapes.h"
#include "base/text.h"
#include "pages_source.h"

/* In the order of meson.build. */
enum { PAGE_DOCS_CSS, PAGE_DOCS_INTRO, PAGE_DOCS_HELP };

/* Text of ours, but tables hold < and & like any prose. */
static void put_char(struct buffer *b, char c)
{
	if (c == '<')
		buffer_append_str(b, "&lt;");
	else if (c == '>')
		buffer_append_str(b, "&gt;");
	else if (c == '&')
		buffer_append_str(b, "&amp;");
	else if (c == '"')
		buffer_append_str(b, "&quot;");
	else
		buffer_append_char(b, c);
}

static void put(struct buffer *b, const char *text)
{
	for (; *text; text++)
		put_char(b, *text);
}

/* Prose: text between two backticks is code. */
static void put_prose(struct buffer *b, const char *text)
{
	bool code = false;
	for (; *text; text++) {
		if (*text == '`' && (code || strchr(text + 1, '`'))) {
			buffer_append_str(b, code ? "</code>" : "<code>");
			code = !code;
		} else {
			put_char(b, *text);
		}
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
		put_prose(b, field->help ? field->help : "");
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
		buffer_printf(b, "<tr><td><code>%s%s</code><td>%s%s<td>", prefix, row->name,
			row->type, row->nullable ? " or null" : "");
		const char *of = row->of && row->of->open_help ? row->of->open_help : "";
		put_prose(b, row->help ? row->help : of);
		buffer_append_str(b, "\n");
		if (row->of && depth < 2) {
			char inner[96];
			snprintf(inner, sizeof(inner), "%s%s%s.", prefix, row->name,
				strcmp(row->type, "array") ? "" : "[]");
			put_shape_rows(b, row->of, inner, depth + 1);
		}
	}
}

/* The sections of the page; a route is in the first one whose text its address or summary has. */
static const struct {
	const char *name;
	const char *in[14];
} groups[] = {
	{ "Run once", { "/v1/run", "/v1/batch" } },
	{ "E2B", { "E2B", "/sandboxes", "/snapshots", "/templates", "/volumes", "/secrets" } },
	{ "Jupyter", { "Jupyter" } },
	{ "OpenEnv", { "OpenEnv" } },
	{ "MCP", { "/mcp", "/sse", "/messages" } },
	{ "Trainers and other tools",
		{ "/run_code", "/run_jupyter", "/v1/ping", "/execute\n", "/sessions/{id}\n",
			"/v1/sandbox", "/v1/exec", "/v1/upload", "/v1/files", "/v1/download" } },
	{ "Checkpoints and forks", { "/checkpoints", "/rollback", "/fork" } },
	{ "Screen", { "/screenshot", "/windows", "/input", "/live", "/recording" } },
	{ "Files", { "/files", "/archive" } },
	{ "Processes and ports", { "/processes", "/ports" } },
	{ "Tools of the client", { "/tools" } },
	{ "History and events", { "/cells", "/export", "/variables", "/complete", "/inspect",
					"/network", "/share", "/events", "/logs" } },
	{ "Cells", { "/execute", "/interrupt", "/reset", "/packages", "/contexts", "/ws" } },
	{ "Sessions", { "/v1/sessions" } },
	{ "Server", { "" } },
};

/* The order in which the sections are shown. */
static const char *const order[] = { "Run once", "Sessions", "Cells", "Checkpoints and forks",
	"Files", "Screen", "History and events", "Processes and ports", "Tools of the client",
	"Server", "MCP", "OpenEnv", "Jupyter", "E2B", "Trainers and other tools" };

static bool in_group(const struct route *r, size_t g)
{
	char address[256];
	/* a line feed in the table means the end of the address, and "/execute" its beginning too */
	snprintf(address, sizeof(address), "%s\n", r->pattern);
	for (size_t i = 0; i < sizeof(groups[g].in) / sizeof(groups[g].in[0]); i++) {
		const char *text = groups[g].in[i];
		if (!text)
			return false;
		bool whole = strchr(text, '\n') != NULL;
		if (whole ? text_eq(address, text)
			  : strstr(address, text) != NULL || text_starts(r->summary, text))
			return true;
	}
	return false;
}

static const char *group_of(const struct route *r)
{
	size_t g = 0;
	while (!in_group(r, g))
		g++; /* the last one takes every route */
	return groups[g].name;
}

static void open_table(struct buffer *b, const char *title)
{
	buffer_printf(b, "<h4>%s</h4>\n<table>\n", title);
}

static void put_route(struct buffer *b, const struct route *r)
{
	buffer_printf(b,
		"<section id=\"%s\"><h3><b>%s</b> <code>%s</code></h3>\n<p><strong>%s.</strong> ",
		r->operation, http_method_name(r->method), r->pattern, r->summary);
	if (r->description)
		put_prose(b, r->description);
	if (r->flags & ROUTE_PUBLIC)
		buffer_append_str(b, " Needs no token.");
	buffer_append_str(b, "</p>\n");
	if (r->example) {
		buffer_append_str(b, "<pre class=example>");
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
		buffer_printf(b, "<p>Answers %d with a <a href=\"#schema-%s\">%s</a>.</p>\n",
			r->status, r->shape->name, r->shape->name);
	} else {
		buffer_printf(b, "<p>Answers %d.</p>\n", r->status);
	}
	buffer_append_str(b, "</section>\n");
}

static void put_answers(struct buffer *b)
{
	static const struct shape *const shown[] = { &shape_observation, &shape_session,
		&shape_session_list, &shape_log, &shape_file_list, &shape_file, &shape_interrupted,
		&shape_status, &shape_version, &shape_problem };
	buffer_append_str(b, "<h2 id=answers>Answers</h2>\n");
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		buffer_printf(b, "<h3 id=\"schema-%s\">%s</h3>\n<table>\n", shown[i]->name,
			shown[i]->name);
		put_shape_rows(b, shown[i], "", 0);
		buffer_append_str(b, "</table>\n");
	}
}

/* The top of the page, up to the list of links. */
static void put_intro(struct buffer *b)
{
	const char *text = pages_sources[PAGE_DOCS_INTRO].text, *mark;
	while ((mark = strchr(text, '{'))) {
		buffer_append(b, text, (size_t)(mark - text));
		buffer_append_str(b, text_starts(mark, "{style}")
					     ? pages_sources[PAGE_DOCS_CSS].text
					     : GLOVEBOX_VERSION);
		text = strchr(mark, '}') + 1;
	}
	buffer_append_str(b, text);
}

/* The sidebar. */
static void put_links(const struct route_table *t, struct buffer *b)
{
	buffer_append_str(b, "<nav aria-label=Calls>\n");
	for (size_t g = 0; g < sizeof(order) / sizeof(order[0]); g++) {
		buffer_printf(
			b, "<details%s><summary>%s</summary>\n", g < 3 ? " open" : "", order[g]);
		for (size_t i = 0; i < t->n; i++)
			if (text_eq(group_of(t->rows[i]), order[g]))
				buffer_printf(b, "<a href=\"#%s\">%s</a>\n", t->rows[i]->operation,
					t->rows[i]->summary);
		buffer_append_str(b, "</details>\n");
	}
	buffer_append_str(b, "<a href=#answers>Answers</a>\n</nav>\n<main>\n");
	buffer_append_str(b, pages_sources[PAGE_DOCS_HELP].text);
}

static void put_sections(const struct route_table *t, struct buffer *b)
{
	for (size_t g = 0; g < sizeof(order) / sizeof(order[0]); g++) {
		buffer_printf(b, "<h2>%s</h2>\n", order[g]);
		for (size_t i = 0; i < t->n; i++)
			if (text_eq(group_of(t->rows[i]), order[g]))
				put_route(b, t->rows[i]);
	}
}

int docs_write(const struct route_table *t, struct buffer *b)
{
	put_intro(b);
	put_links(t, b);
	put_sections(t, b);
	put_answers(b);
	return buffer_append_str(b, "</main></body></html>\n");
}

void handle_docs(struct call *c)
{
	struct api *a = c->api;
	if (!a->docs) {
		_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
		if (docs_write(&a->routes, &b) < 0) {
			call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
			return;
		}
		a->docs = buffer_take(&b, &a->docs_len);
	}
	http_add_header(c->x, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
		"img-src 'self' blob:; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'");
	call_respond_static(c, 200, "text/html; charset=utf-8", a->docs, a->docs_len);
}
