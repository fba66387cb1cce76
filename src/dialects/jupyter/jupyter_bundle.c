/* Values and displays of cells by ipykernel's rules for media types. */
#include <string.h>

#include "base/text.h"
#include "dialects/jupyter/jupyter.h"
#include "json/json_read.h"

/*
 * What a display is, beside its content: {"display_id", "update"} or {"clear", "wait"}; from the
 * guest (support/values.py).
 */
static const char control_type[] = "application/vnd.glovebox.display+json";

static const struct bundle_item *find(const struct bundle *b, const char *mime)
{
	for (unsigned i = 0; i < b->n; i++)
		if (text_eq(b->item[i].mime, mime))
			return &b->item[i];
	return NULL;
}

/*
 * JSON of plain values is for programs: JupyterLab would show a tree instead of 42. Objects that
 * are JSON say so by a repr in angle brackets.
 */
static bool is_extra(const struct bundle *b, const char *mime)
{
	const struct bundle_item *plain = find(b, "text/plain");
	if (text_eq(mime, "application/json"))
		return b->n <= 3 && plain && plain->len && plain->data[0] != '<' &&
		       !find(b, "text/html");
	return text_eq(mime, control_type) || text_eq(mime, "application/vnd.python.json");
}

void bundle_for_notebooks(const struct bundle *b, struct bundle *ret)
{
	ret->n = 0;
	for (unsigned i = 0; i < b->n; i++)
		if (!is_extra(b, b->item[i].mime))
			ret->item[ret->n++] = b->item[i];
}

json_t *bundle_control(const struct bundle *b)
{
	const struct bundle_item *item = find(b, control_type);
	json_t *control = NULL;
	if (item && item->is_json && json_read(item->data, item->len, NULL, &control) < 0)
		control = NULL;
	return control;
}
