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

int batch_item_check(
	const json_t *item, size_t index, struct run_files_step *files, struct error *e)
{
	struct run_request run = { 0 };
	struct batch_grading grading = { 0 };
	int r = batch_item_decode(item, index, &run, &grading, e);
	if (r < 0)
		return r;

	r = run_files_check(&run.files, files, e);
	if (r < 0)
		error_wrap(e, "$.items[%zu]", index);
	batch_item_finish(&run, &grading);
	return r;
}

/* ---- equal items ------------------------------------------------------------------- */

struct print {
	const json_t *item;
	uint64_t hash;
	size_t index;
};

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 1099511628211ULL;
	return h ^ h >> 29;
}

/* Of a long text only both ends: texts that differ elsewhere are told apart by json_equal(). */
static uint64_t hash_text(const char *s, size_t len)
{
	enum { END = 256 };
	uint64_t h = mix(14695981039346656037ULL, len);
	for (size_t i = 0; i < len; i++) {
		if (i == END && len > 2 * END)
			i = len - END;
		h = mix(h, (unsigned char)s[i]);
	}
	return h;
}

/* The same for equal values, in whatever order objects have their members. */
static uint64_t hash_value(const json_t *v)
{
	const char *key;
	json_t *member;
	uint64_t h = mix(7, (uint64_t)json_typeof(v));

	if (json_is_string(v))
		return hash_text(json_string_value(v), json_string_length(v));
	if (json_is_integer(v))
		return mix(h, (uint64_t)json_integer_value(v));
	for (size_t i = 0; i < json_array_size(v); i++)
		h = mix(h, hash_value(json_array_get(v, i)));
	json_object_foreach((json_t *)v, key, member)
		h += mix(hash_text(key, strlen(key)), hash_value(member));
	return h;
}

static int by_hash(const void *a, const void *b)
{
	const struct print *x = a, *y = b;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* Equal but for the id, which is not part of the program. */
static bool equal_items(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *member;
	size_t n = json_object_size(a) - (json_object_get(a, "id") != NULL);
	if (n != json_object_size(b) - (json_object_get(b, "id") != NULL))
		return false;
	json_object_foreach((json_t *)a, key, member)
	{
		if (!text_eq(key, "id") && !json_equal(member, json_object_get(b, key)))
			return false;
	}
	return true;
}

static uint64_t hash_item(const json_t *item)
{
	const char *key;
	json_t *member;
	uint64_t h = 0;
	json_object_foreach((json_t *)item, key, member)
	{
		if (!text_eq(key, "id"))
			h += mix(hash_text(key, strlen(key)), hash_value(member));
	}
	return h;
}

int batch_find_equal(const json_t *items, size_t *same_as)
{
	size_t n = json_array_size(items);
	struct print *all = calloc(n ? n : 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(items, i);
		all[i] = (struct print){ item, hash_item(item), i };
	}

	qsort(all, n, sizeof(*all), by_hash);
	for (size_t i = 0; i < n; i++) {
		/* two different items with one hash run both, which is no harm */
		bool same = i && all[i].hash == all[i - 1].hash &&
			    equal_items(all[i].item, all[i - 1].item);
		same_as[all[i].index] = same ? same_as[all[i - 1].index] : all[i].index;
	}
	free(all);
	return 0;
}
