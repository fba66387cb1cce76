/*
 * The JSON reader and writer: what the scan accepts jansson accepts too (but for what only a tree
 * shows), and whatever bytes go into a string, what comes out is JSON that reads back as the same
 * text.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_text(const char *text, size_t len)
{
	struct error e = { 0 };
	json_t *tree = NULL;
	int valid = json_validate(text, len, NULL), r = json_read(text, len, &e, &tree);
	if (r == 0) {
		assert(valid == 0 && tree);
		json_decref(tree);
		return;
	}
	assert(e.slug[0] && e.text[0]);
	if (valid == 0)
		assert(strstr(e.text, "twice") || strstr(e.text, "out of range") ||
			strstr(e.text, "NUL") || !strcmp(e.slug, "json_too_large"));
}

/* Read in steps, a text is the same tree or the same error. */
static void read_steps(const char *text, size_t len, size_t bytes)
{
	_cleanup_json_ json_t *tree = NULL, *pieces = NULL;
	struct json_reader *reader = json_reader_create(text, len);
	struct error e = { 0 }, other = { 0 };
	int r = json_read(text, len, &e, &tree), step;
	while ((step = json_reader_step(reader, bytes, &other)) > 0)
		;
	assert(r == step);
	if (r == 0)
		pieces = json_reader_take(reader);
	assert(r == 0 ? json_equal(tree, pieces) : !strcmp(e.text, other.text));
	json_reader_destroy(reader);
}

static void write_text(const char *s, size_t len, size_t cut)
{
	_cleanup_buffer_ struct buffer whole = BUFFER_INIT(0), split = BUFFER_INIT(0);
	_cleanup_json_ json_t *tree = NULL;
	struct json_writer w;
	json_writer_init(&w, &whole);
	json_put_text(&w, s, len);
	assert(json_writer_end(&w) == 0);
	json_writer_init(&w, &split);
	json_string_begin(&w);
	json_string_append(&w, s, cut);
	json_string_append(&w, s + cut, len - cut);
	json_string_end(&w);
	assert(split.len == whole.len && !memcmp(split.data, whole.data, whole.len));
	assert(json_read(whole.data, whole.len, NULL, &tree) == 0);
	if (text_is_utf8(s, len))
		assert(json_string_length(tree) == len && !memcmp(json_string_value(tree), s, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	memcpy(copy, data, size);
	read_text(copy, size);
	read_steps(copy, size, size ? data[0] % 16 + 1 : 1);
	write_text(copy, size, size ? data[0] % (size + 1) : 0);
	free(copy);
	return 0;
}
