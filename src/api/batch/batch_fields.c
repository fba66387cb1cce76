#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/batch/batch.h"
#include "api/provision.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "json/json_read.h"

const char *const compare_names[] = {
	[COMPARE_TRIMMED] = "trimmed",
	[COMPARE_EXACT] = "exact",
	[COMPARE_TOKENS] = "tokens",
	[COMPARE_NUMBERS] = "numbers",
	[COMPARE_COUNT] = NULL,
};

static const struct field batch_table[] = {
	{ "items", FIELD_LIST, FIELD_REQUIRED, .offset = offsetof(struct batch_request, items),
		.max = LIMIT_BATCH_ITEMS,
		.example =
			"[{\"id\":\"a\",\"code\":\"print(input())\",\"stdin\":\"1\\n\",\"expected_output\":\"1\"}]",
		.help = "Programs: the fields of POST /v1/run, and id, expected_output, compare (trimmed, exact, tokens, numbers), "
			"checker (Python code that sees stdout, stderr, exit_code, stdin, expected_output), fetch_files." },
	{ "concurrency", FIELD_UINT, .offset = offsetof(struct batch_request, concurrency),
		.min = 1, .max = 4096, .default_text = "the server's --max-runs",
		.help = "Programs of this batch that run at the same time." },
	{ "deduplicate", FIELD_BOOL, .offset = offsetof(struct batch_request, deduplicate),
		.default_text = "false",
		.help = "Run equal items once, and answer each of them with the same outcome." },
};
const struct fields batch_fields = FIELDS("BatchRequest", batch_table);

static const struct field grading_table[] = {
	{ "id", FIELD_ID, .offset = offsetof(struct batch_grading, id), .max = LIMIT_NAME_BYTES,
		.help = "An identifier of your choice; the result of the item has it." },
	{ "expected_output", FIELD_TEXT, FIELD_NUL_ALLOWED | FIELD_HAS_FLAG,
		.offset = offsetof(struct batch_grading, expected),
		.flag_offset = offsetof(struct batch_grading, has_expected),
		.max = LIMIT_STDIN_BYTES, .help = "The text that stdout must equal." },
	{ "compare", FIELD_CHOICE, .offset = offsetof(struct batch_grading, compare),
		.choices = compare_names, .help = "How stdout and expected_output are compared." },
	{ "checker", FIELD_TEXT, .offset = offsetof(struct batch_grading, checker), .min = 1,
		.max = LIMIT_CODE_BYTES, .help = "Python code that judges the outcome." },
	{ "fetch_files", FIELD_WORDS, .offset = offsetof(struct batch_grading, fetch),
		.max = LIMIT_RUN_FILES, .max_bytes = LIMIT_PATH_BYTES,
		.help = "Files below /workspace that are returned with the result." },
};
static const struct fields grading_fields = FIELDS("BatchItem", grading_table);

static bool is_grading(const char *key)
{
	for (size_t i = 0; i < grading_fields.n; i++)
		if (text_eq(grading_fields.field[i].name, key))
			return true;
	return false;
}

/* The object in two: what describes the run, and what is done with its outcome. */
static int split(const json_t *item, json_t **ret_run, json_t **ret_grading)
{
	const char *key;
	json_t *value;
	*ret_run = json_object();
	*ret_grading = json_object();
	if (!*ret_run || !*ret_grading)
		return -ENOMEM;
	json_object_foreach((json_t *)item, key,
		value) if (json_object_set(is_grading(key) ? *ret_grading : *ret_run, key, value) <
			   0) return -ENOMEM;
	return 0;
}

int batch_item_decode(const json_t *item, size_t index, struct run_request *ret_run,
	struct batch_grading *ret_grading, struct error *e)
{
	_cleanup_json_ json_t *run = NULL, *grading = NULL;
	int r;

	if (!json_is_object(item)) {
		error_set(e, -EINVAL, "must be an object");
		r = error_slug(e, "invalid_field");
	} else if (split(item, &run, &grading) < 0) {
		r = error_set(e, -ENOMEM, "out of memory");
	} else {
		r = fields_decode(&run_fields, run, ret_run, e);
		if (!r)
			r = fields_decode(&grading_fields, grading, ret_grading, e);
	}

	if (r < 0) {
		batch_item_finish(ret_run, ret_grading);
		error_wrap(e, "$.items[%zu]", index);
	}

	return r;
}

void batch_item_finish(struct run_request *run, struct batch_grading *g)
{
	provision_finish(run);
	fields_finish(&grading_fields, g);
}

/* ---- equal items ------------------------------------------------------------------- */

struct print {
	char *text;
	size_t index;
};

static int by_text(const void *a, const void *b)
{
	const struct print *x = a, *y = b;
	int order = strcmp(x->text, y->text);
	return order ? order : x->index < y->index ? -1 : 1;
}

static char *print_item(const json_t *item)
{
	_cleanup_json_ json_t *copy = json_copy((json_t *)item);
	if (!copy)
		return NULL;
	json_object_del(copy, "id");
	return json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
}

int batch_find_equal(const json_t *items, size_t *same_as)
{
	size_t n = json_array_size(items), have = 0;
	int r = 0;
	struct print *all = calloc(n ? n : 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (; !r && have < n; have++) {
		all[have] = (struct print){ print_item(json_array_get(items, have)), have };
		if (!all[have].text)
			r = -ENOMEM;
	}

	if (!r && n)
		qsort(all, n, sizeof(*all), by_text);
	for (size_t i = 0; !r && i < n; i++) {
		bool same = i && !strcmp(all[i].text, all[i - 1].text);
		same_as[all[i].index] = same ? same_as[all[i - 1].index] : all[i].index;
	}

	for (size_t i = 0; i < have; i++)
		free(all[i].text);
	free(all);
	return r;
}
