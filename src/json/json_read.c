#include "json/json_read.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "json/json_scan.h"
#include "json/json_tree.h"

int json_validate(const char *text, size_t len, struct error *e)
{
	struct json_scan s = { .text = text, .len = len, .max_values = SIZE_MAX, .e = e };
	return json_scan_on(&s, len);
}

/* ---- reading in steps --------------------------------------------------- */

struct json_reader {
	struct json_scan scan;
	struct json_tree tree;
};

static void init_reader(struct json_reader *r, const char *text, size_t len)
{
	r->scan = (struct json_scan){ .text = text, .len = len, .max_values = LIMIT_JSON_VALUES };
	buffer_init(&r->scan.decoded, 0);
	json_tree_init(&r->tree);
	r->scan.tree = &r->tree;
}

static void finish_reader(struct json_reader *r)
{
	buffer_finish(&r->scan.decoded);
	json_tree_finish(&r->tree);
}

struct json_reader *json_reader_create(const char *text, size_t len)
{
	struct json_reader *r = malloc(sizeof(*r));
	if (r)
		init_reader(r, text, len);
	return r;
}

void json_reader_destroy(struct json_reader *r)
{
	if (r)
		finish_reader(r);
	free(r);
}

int json_reader_step(struct json_reader *r, size_t bytes, struct error *e)
{
	r->scan.e = e;
	return json_scan_on(&r->scan, bytes);
}

json_t *json_reader_take(struct json_reader *r)
{
	return json_tree_take(&r->tree);
}

static struct {
	const char *text;
	size_t len;
	json_t *tree;
	struct error e;
} kept;

void json_read_keep(const char *text, size_t len, json_t *tree, const struct error *e)
{
	json_read_forget();
	kept.text = text;
	kept.len = len;
	kept.tree = tree;
	if (!tree)
		kept.e = *e;
}

void json_read_forget(void)
{
	json_discard(kept.tree);
	kept.tree = NULL;
	kept.text = NULL;
}

/* The tree goes to the first who reads; an error is told to everybody. */
static int take_kept(struct error *e, json_t **ret)
{
	if (!kept.tree) {
		if (e)
			*e = kept.e;
		return kept.e.err;
	}
	*ret = kept.tree;
	kept.tree = NULL;
	kept.text = NULL;
	return 0;
}

int json_read(const char *text, size_t len, struct error *e, json_t **ret)
{
	struct json_reader reader;
	if (kept.text == text && kept.len == len && text)
		return take_kept(e, ret);
	init_reader(&reader, text, len);
	int r = json_reader_step(&reader, len, e);
	if (r == 0)
		*ret = json_reader_take(&reader);
	finish_reader(&reader);
	return r;
}
