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
enum { PAGE_DOCS_CSS, PAGE_DOCS_INTRO };

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
		buffer_printf(b, "<tr><td><code>%s%s</code><td>%s%s<td>", prefix, row->name,
			row->type, row->nullable ? " or null" : "");
		put(b, row->help                        ? row->help
			: row->of && row->of->open_help ? row->of->open_help
							: "");
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
		buffer_printf(b, "<p>Answers %d with a <a href=\"#schema-%s\">%s</a>.</p>\n",
			r->status, r->shape->name, r->shape->name);
	} else {
		buffer_printf(b, "<p>Answers %d.</p>\n", r->status);
	}
}

static void put_answers(struct buffer *b)
{
	static const struct shape *const shown[] = { &shape_observation, &shape_session,
		&shape_session_list, &shape_log, &shape_file_list, &shape_file, &shape_interrupted,
		&shape_status, &shape_version, &shape_problem };
	buffer_append_str(b, "<h2>Answers</h2>\n");
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

int docs_write(const struct route_table *t, struct buffer *b)
{
	put_intro(b);
	for (size_t i = 0; i < t->n; i++)
		buffer_printf(
			b, "<a href=\"#%s\">%s</a>\n", t->rows[i]->operation, t->rows[i]->summary);
	buffer_append_str(b, "</nav>\n");
	for (size_t i = 0; i < t->n; i++)
		put_route(b, t->rows[i]);
	put_answers(b);
	return buffer_append_str(b, "</body></html>\n");
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
		"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'");
	call_respond_static(c, 200, "text/html; charset=utf-8", a->docs, a->docs_len);
}
