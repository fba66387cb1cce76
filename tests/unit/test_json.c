#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/deferred.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "tap.h"
#include "json/json_dump.h"
#include "json/json_read.h"
#include "json/json_scan.h"
#include "json/json_stream.h"
#include "json/json_write.h"

/* ---- reader ----------------------------------------------------------- */

static void reads_values(void)
{
	static const char *const good[] = { "{}", "[]", " [ ] ", "0", "-0", "-1.5e+10", "1E3",
		"\"\"", "true", "false", "null",
		"{\"a\":[1,2,{\"b\":null}],\"c\":\"\\u00e9\\ud83d\\ude00\\n\\/\"}",
		"\t\r\n[1 , 2]\n", "\"aé€😀\"", "[[],{},[{}]]" };
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		_cleanup_json_ json_t *tree = NULL;
		struct error e = { 0 };
		int r = json_read(good[i], strlen(good[i]), &e, &tree);
		OK(r == 0 && tree && json_validate(good[i], strlen(good[i]), NULL) == 0);
		if (r < 0)
			printf("# %s: %s\n", good[i], e.text);
	}
	_cleanup_json_ json_t *tree = NULL;
	static const char with_nul[] = "{\"code\":\"a\\u0000b\"}";
	OK(json_read(with_nul, sizeof(with_nul) - 1, NULL, &tree) == 0);
	json_t *code = json_object_get(tree, "code");
	OK(json_string_length(code) == 3 && !memcmp(json_string_value(code), "a\0b", 3));
}

static void refuses(void)
{
	static const struct {
		const char *text, *slug, *says;
	} bad[] = {
		{ "", "malformed_json", "line 1, column 1: the text ends too early" },
		{ "  ", "malformed_json", "the text ends too early" },
		{ "{\n \"a\": 1,\n \"b\" 2}", "malformed_json", "line 3, column 6: expected ':'" },
		{ "{\"é\": x}", "malformed_json", "line 1, column 7: expected a value" },
		{ "[1,]", "malformed_json", "column 4: a comma before ']'" },
		{ "{\"a\":1,}", "malformed_json", "column 8: a comma before '}'" },
		{ "{,}", "malformed_json", "expected a name" },
		{ "[1 2]", "malformed_json", "expected ',' or ']'" },
		{ "{\"a\":1 \"b\":2}", "malformed_json", "expected ',' or '}'" },
		{ "[1}", "malformed_json", "expected ',' or ']'" },
		{ "01", "malformed_json", "may not start with 0" },
		{ "-", "malformed_json", "ends too early" },
		{ "+1", "malformed_json", "expected a value" },
		{ "1.", "malformed_json", "ends too early" },
		{ "1.x", "malformed_json", "after the decimal point" },
		{ "1e+x", "malformed_json", "exponent" },
		{ "NaN", "malformed_json", "expected a value" },
		{ "tru", "malformed_json", "expected a value" },
		{ "'a'", "malformed_json", "double quotes" },
		{ "{a:1}", "malformed_json", "name in double quotes" },
		{ "[1] x", "malformed_json", "column 5: there is text after" },
		{ "\"a\nb\"", "malformed_json", "line break inside a string" },
		{ "\"a\tb\"", "malformed_json", "control character" },
		{ "\"\\x\"", "malformed_json", "unknown escape" },
		{ "\"\\u12g4\"", "malformed_json", "four hexadecimal" },
		{ "\"\\u12", "malformed_json", "four hexadecimal" },
		{ "\"\\", "malformed_json", "ends too early" },
		{ "\"\\ud800\"", "malformed_json", "unpaired surrogate" },
		{ "\"\\ud800\\u0041\"", "malformed_json", "unpaired surrogate" },
		{ "\"\\udc00\"", "malformed_json", "unpaired surrogate" },
		{ "\"abc", "malformed_json", "ends too early" },
		{ "\xef\xbb\xbf{}", "malformed_json", "byte order mark" },
		{ "\"\xff\"", "invalid_utf8", "not valid UTF-8" },
		{ "\"\xed\xa0\x80\"", "invalid_utf8", "not valid UTF-8" },
		{ "\"\xc0\x80\"", "invalid_utf8", "not valid UTF-8" },
		{ "\"\xf4\x90\x80\x80\"", "invalid_utf8", "not valid UTF-8" },
		{ "\xff", "invalid_utf8", "not valid UTF-8" },
		{ "[\"\xe2\x82", "invalid_utf8", "not valid UTF-8" },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_t *tree = NULL;
		struct error e = { 0 };
		OK(json_read(bad[i].text, strlen(bad[i].text), &e, &tree) == -EINVAL && !tree);
		OK(!strcmp(e.slug, bad[i].slug) && strstr(e.text, bad[i].says));
		if (strcmp(e.slug, bad[i].slug) || !strstr(e.text, bad[i].says))
			printf("# case %zu: %s: %s\n", i, e.slug, e.text);
		OK(json_validate(bad[i].text, strlen(bad[i].text), NULL) == -EINVAL);
	}
}

static void refuses_in_the_tree(void)
{
	static const struct {
		const char *text, *slug, *says;
	} bad[] = {
		{ "{\"a\":1,\"a\":2}", "duplicate_field", "twice" },
		{ "{\"a\\u0000\":1}", "malformed_json", "NUL inside a name" },
		{ "99999999999999999999", "malformed_json", "out of range" },
		{ "1e999", "malformed_json", "out of range" },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_t *tree = NULL;
		struct error e = { 0 };
		OK(json_read(bad[i].text, strlen(bad[i].text), &e, &tree) == -EINVAL && !tree);
		OK_STR(e.slug, bad[i].slug);
		OK(strstr(e.text, bad[i].says) != NULL);
		OK(json_validate(bad[i].text, strlen(bad[i].text), NULL) == 0);
	}
}

/* What a text comes to when it is read in steps of so many bytes. */
static int read_in_steps(const char *text, size_t bytes, struct error *e, json_t **ret)
{
	struct json_reader *reader = json_reader_create(text, strlen(text));
	int r;
	while ((r = json_reader_step(reader, bytes, e)) > 0)
		;
	if (r == 0)
		*ret = json_reader_take(reader);
	json_reader_destroy(reader);
	return r;
}

static void reads_in_steps(void)
{
	static const char *const texts[] = {
		"{\"a\": [1, -2.5e3, \"x\\n\\u00e9\\ud83d\\ude00é\"] }  ", "   [ ]   ", "\"\"",
		"[true , false,null]", "{\"a\":1,\"a\":2}", "[1,]", "{\"a\" 1}", "\"abc",
		"[\"\xff\"]", "[1e999]", "", "   "
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		for (size_t bytes = 1; bytes < 9; bytes++) {
			_cleanup_json_ json_t *whole = NULL, *pieces = NULL;
			struct error one = { 0 }, other = { 0 };
			int r = json_read(texts[i], strlen(texts[i]), &one, &whole);
			OK(read_in_steps(texts[i], bytes, &other, &pieces) == r);
			OK(r < 0 ? !strcmp(one.text, other.text) : json_equal(whole, pieces));
		}
	}
}

/* Strings that the tree does not copy at their end, with and without escapes. */
static void reads_long_strings(void)
{
	enum { LONG = 3 * JSON_LONG_STRING + 17 };
	static const char *const units[] = { "a", "\\n", "\xe2\x82\xac", "b\\u00e9" };
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
		_cleanup_json_ json_t *whole = NULL, *pieces = NULL;
		struct error e = { 0 };
		buffer_append_str(&b, "{\"s\":[\"");
		while (b.len < LONG)
			buffer_append_str(&b, units[i]);
		buffer_append_str(&b, "\"]}");
		OK(json_read(buffer_cstr(&b), b.len, &e, &whole) == 0);
		OK(read_in_steps(buffer_cstr(&b), 4099, &e, &pieces) == 0);
		OK(json_equal(whole, pieces));

		char *text = NULL;
		size_t len;
		OK(json_dump(whole, 2 * LONG, &text, &len) == 0 && len == strlen(text));
		json_t *again = json_loads(text, 0, NULL); /* by jansson's own reader */
		OK(json_equal(whole, again));
		json_decref(again);
		free(text);
		OK(json_dump(whole, JSON_LONG_STRING, &text, &len) == -ENOBUFS);
	}
}

static void bounds_names(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	_cleanup_json_ json_t *tree = NULL;
	struct error e = { 0 };
	buffer_append_str(&b, "{\"");
	while (b.len < LIMIT_JSON_NAME_BYTES + 3)
		buffer_append_char(&b, 'n');
	buffer_append_str(&b, "\":1}");
	OK(json_read(buffer_cstr(&b), b.len, &e, &tree) == -EINVAL);
	OK_STR(e.slug, "json_too_large");

	for (int many = 0; many < 2; many++) {
		b.len = 0;
		for (int i = 0; i < LIMIT_JSON_NAMES + many; i++)
			buffer_printf(&b, "%s\"%d\":%d", i ? "," : "{", i, i);
		buffer_append_char(&b, '}');
		OK(json_read(buffer_cstr(&b), b.len, &e, &tree) == (many ? -EINVAL : 0));
	}
	OK_STR(e.slug, "json_too_large");
}

static void dumps(void)
{
	static const char *const texts[] = {
		"{\"a\":[1,-2,1.0,0.1,1e+300,true,false,null,\"\\u0000é\"],\"b\":{}}", "[]",
		"\"x\"", "123456789012345678"
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_json_ json_t *tree = NULL, *again = NULL;
		char *text = NULL;
		OK(json_read(texts[i], strlen(texts[i]), NULL, &tree) == 0);
		OK(json_dump(tree, 1000, &text, NULL) == 0);
		OK_STR(text, texts[i]);
		OK(json_read(text, strlen(text), NULL, &again) == 0 && json_equal(tree, again));
		free(text);
	}
}

static int to_do;

static void count_work(void *userdata)
{
	(void)userdata;
	to_do++;
}

/* A large tree is freed in slices; what somebody else holds stays. */
static void discards(void)
{
	enum { MANY = 10000 };
	json_t *tree = json_array(), *kept = json_object();
	json_object_set_new(kept, "name", json_string("value"));
	for (int i = 0; i < MANY; i++)
		json_array_append_new(tree, json_pack("{s:[i,s]}", "a", i, "b"));
	json_array_append(tree, kept);
	deferred_set_wake(count_work, NULL);
	json_discard(NULL);
	json_discard(json_integer(1));
	OK(!to_do);
	json_discard(tree);
	OK(to_do == 1 && deferred_run(0));
	while (deferred_run(0))
		;
	deferred_set_wake(NULL, NULL);
	OK(kept->refcount == 1 && json_object_size(kept) == 1);
	json_discard(kept);
}

static void bounds_depth_and_count(void)
{
	struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	json_t *tree = NULL;
	for (int levels = LIMIT_JSON_DEPTH; levels <= LIMIT_JSON_DEPTH + 1; levels++) {
		b.len = 0;
		for (int i = 0; i < levels; i++)
			buffer_append_str(&b, i % 2 ? "[" : "{\"a\":");
		buffer_append_str(&b, "1");
		for (int i = levels; i-- > 0;)
			buffer_append_str(&b, i % 2 ? "]" : "}");
		int r = json_read(b.data, b.len, &e, &tree);
		OK(levels == LIMIT_JSON_DEPTH ? r == 0
					      : r == -EINVAL && !strcmp(e.slug, "json_too_deep"));
		if (r == 0)
			json_decref(tree);
	}
	b.len = 0;
	for (int i = 0; i < 100000; i++)
		buffer_append_char(&b, '[');
	OK(json_validate(b.data, b.len, &e) == -EINVAL && !strcmp(e.slug, "json_too_deep"));
	b.len = 0;
	buffer_append_char(&b, '[');
	for (int i = 0; i < LIMIT_JSON_VALUES; i++)
		buffer_append_str(&b, "1,");
	buffer_append_str(&b, "1]");
	OK(json_read(b.data, b.len, &e, &tree) == -EINVAL && !strcmp(e.slug, "json_too_large"));
	OK(json_validate(b.data, b.len, NULL) == 0);
	buffer_finish(&b);
}

/*
 * No prefix of a text that does not end in a number is a text, and none reads beyond its end (ASan
 * sees to that).
 */
static void refuses_every_prefix(void)
{
	static const char text[] =
		"{\"a\":[1.5e-3,true,{\"b\":null,\"é\":\"\\u00e9\\ud83d\\ude00\\\\\"}],\"c\":false}";
	bool all = true;
	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		char *copy = malloc(len ? len : 1);
		memcpy(copy, text, len);
		all &= json_validate(copy, len, NULL) == -EINVAL;
		free(copy);
	}
	OK(all);
	OK(json_validate(text, sizeof(text) - 1, NULL) == 0);
}

/* ---- writer ----------------------------------------------------------- */

static void writes_structure(void)
{
	struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "s", "a\"b\\c\n\r\t\b\f\x01\x1f\x7f/");
	json_field_cstr(&w, "none", NULL);
	json_key(&w, "list");
	json_open_array(&w);
	json_put_int(&w, INT64_MIN);
	json_put_uint(&w, UINT64_MAX);
	json_put_bool(&w, true);
	json_put_bool(&w, false);
	json_open_array(&w);
	json_close(&w);
	json_open_object(&w);
	json_close(&w);
	json_put_null(&w);
	json_close(&w);
	json_field_raw(&w, "raw", "[1,2]", 5);
	json_field_base64(&w, "b64", "foob", 4);
	json_key_text(&w, "k\"\xff", 3);
	json_put_text(&w, "x\0y", 3);
	json_close(&w);
	OK(json_writer_end(&w) == 0);
	OK_STR(buffer_cstr(&b),
		"{\"s\":\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\x7f/\",\"none\":null,"
		"\"list\":[-9223372036854775808,18446744073709551615,true,false,[],{},null],"
		"\"raw\":[1,2],\"b64\":\"Zm9vYg==\",\"k\\\"\xef\xbf\xbd\":\"x\\u0000y\"}");
	OK(json_validate(b.data, b.len, NULL) == 0);
	buffer_finish(&b);
}

static const char *double_text(struct buffer *b, double v)
{
	struct json_writer w;
	b->len = 0;
	json_writer_init(&w, b);
	json_put_double(&w, v);
	OK(json_writer_end(&w) == 0);
	return buffer_cstr(b);
}

static void writes_doubles(void)
{
	static const double values[] = { 0.1, 1.0 / 3, 1e300, -2.5e-308, 4.9e-324, 123456.789,
		1e15 + 0.5, 1.7976931348623157e308 };
	struct buffer b = BUFFER_INIT(0);
	OK_STR(double_text(&b, 30), "30");
	OK_STR(double_text(&b, -7), "-7");
	OK_STR(double_text(&b, 0.1), "0.1");
	OK_STR(double_text(&b, 12.345), "12.345");
	OK_STR(double_text(&b, NAN), "null");
	OK_STR(double_text(&b, -INFINITY), "null");
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		double_text(&b, values[i]);
		OK(strtod(b.data, NULL) == values[i] && json_validate(b.data, b.len, NULL) == 0);
	}
	buffer_finish(&b);
}

#define FFFD "\xef\xbf\xbd"

static void replaces_bad_utf8(void)
{
	static const struct {
		const char *in, *out;
	} pairs[] = {
		{ "aé€😀", "\"aé€😀\"" },
		{ "\xff", "\"" FFFD "\"" },
		{ "a\xe2\x82z", "\"a" FFFD "z\"" }, /* one replacement for the cut character */
		{ "\xe2\x82", "\"" FFFD "\"" },
		{ "\xc0\x80", "\"" FFFD FFFD "\"" },          /* overlong */
		{ "\xed\xa0\x80", "\"" FFFD FFFD FFFD "\"" }, /* surrogate */
		{ "\xf0\x9f\x98\"", "\"" FFFD "\\\"\"" },
		{ "\xf4\x90\x80\x80", "\"" FFFD FFFD FFFD FFFD "\"" },
		{ "12345678\xc3", "\"12345678" FFFD "\"" },
	};
	struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		b.len = 0;
		json_writer_init(&w, &b);
		json_put_cstr(&w, pairs[i].in);
		json_writer_end(&w);
		OK_STR(buffer_cstr(&b), pairs[i].out);
	}
	buffer_finish(&b);
}

/* However a string is cut into pieces, it comes out the same. */
static void joins_split_strings(void)
{
	static const char text[] = "aé\n€\"😀\xff\xe2\x82z\xf0\x9f\x98\xe2\x82\xac";
	size_t len = sizeof(text) - 1;
	struct buffer whole = BUFFER_INIT(0), b = BUFFER_INIT(0);
	struct json_writer w;
	bool same = true;
	json_writer_init(&w, &whole);
	json_put_text(&w, text, len);
	for (size_t i = 0; i <= len; i++) {
		for (size_t j = i; j <= len; j++) {
			b.len = 0;
			json_writer_init(&w, &b);
			json_string_begin(&w);
			json_string_append(&w, text, i);
			json_string_append(&w, text + i, j - i);
			json_string_append(&w, text + j, len - j);
			json_string_end(&w);
			same &= json_writer_end(&w) == 0 && b.len == whole.len &&
				!memcmp(b.data, whole.data, b.len);
		}
	}
	OK(same);
	b.len = 0;
	json_writer_init(&w, &b);
	json_string_begin(&w);
	for (size_t i = 0; i < len; i++)
		json_string_append(&w, text + i, 1);
	json_string_end(&w);
	OK(b.len == whole.len && !memcmp(b.data, whole.data, b.len));
	OK(json_utf8_whole("ab\xe2\x82", 4) == 2 && json_utf8_whole("ab\xe2\x82\xac", 5) == 5);
	OK(json_utf8_whole("\xf0\x9f\x98", 3) == 0 && json_utf8_whole("\x80\x80\x80\x80", 4) == 4);
	OK(json_utf8_whole("\xe2\x28", 2) == 2 && json_utf8_whole("", 0) == 0);
	buffer_finish(&whole);
	buffer_finish(&b);
}

static void keeps_its_error(void)
{
	struct buffer b = BUFFER_INIT(16);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "a", "this is longer than sixteen bytes");
	json_field_int(&w, "b", 1);
	json_close(&w);
	OK(json_writer_end(&w) == -ENOBUFS);
	OK(b.len <= 16 && !memchr(b.data, 'b', b.len));
	buffer_finish(&b);
}

static double best_ms(const char *text, size_t len)
{
	double best = 1e9;
	for (int i = 0; i < 10; i++) {
		struct buffer b = BUFFER_INIT(0);
		struct json_writer w;
		uint64_t start = clock_now_ns();
		json_writer_init(&w, &b);
		json_put_text(&w, text, len);
		double ms = (double)(clock_now_ns() - start) / 1e6;
		best = ms < best ? ms : best;
		buffer_finish(&b);
	}
	return best;
}

/*
 * The writer exists for its speed; generous, so that a sanitizer build on a busy machine passes
 * too.
 */
static void is_fast(void)
{
	enum { SIZE = 700 * 1000 };
	char *text = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		text[i] = i % 80 == 79 ? '\n' : (char)('a' + i % 26);
	double ascii = best_ms(text, SIZE);
	for (size_t i = 0; i + 2 < SIZE; i += 3)
		memcpy(text + i, "€", 3);
	double wide = best_ms(text, SIZE);
	printf("# 700 kB of lines %.3f ms, of three-byte characters %.3f ms\n", ascii, wide);
	OK(ascii < 20 && wide < 60);
	free(text);
}

/* The same observation-like text, written at once and encoded in pieces. */
static void write_sample(struct json_writer *w, const char *big, size_t len)
{
	json_open_object(w);
	json_field_cstr(w, "small", "a\"b");
	json_field_text(w, "text", big, len);
	json_field_base64(w, "base64", big, len);
	json_key(w, "split");
	json_string_begin(w);
	json_string_append(w, "\xe2\x82", 2);
	json_string_append(w, big, len);
	json_string_append(w, "\xc3", 1);
	json_string_end(w);
	json_field_raw(w, "raw", "[1,\n2]", 6);
	json_close(w);
}

static void streams_what_it_writes(void)
{
	static char big[3 * JSON_STREAM_VALUE + 7];
	_cleanup_buffer_ struct buffer whole = BUFFER_INIT(0), pieces = BUFFER_INIT(0);
	struct json_writer w;
	struct json_stream s;
	int more = 1, longest = 0;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = "\xac"
			 "a\xe2\x82\xac\n\"\x01\xff\xf0\x9f\x98\x80"[i % 13];
	json_writer_init(&w, &whole);
	write_sample(&w, big, sizeof(big));
	OK(json_writer_end(&w) == 0);
	json_stream_init(&s);
	json_stream_writer(&s, &w);
	write_sample(&w, big, sizeof(big));
	OK(json_writer_end(&w) == 0 && !json_stream_is_plain(&s) && s.text.len < 256);
	while (more > 0) {
		size_t before = pieces.len;
		more = json_stream_next(&s, &pieces);
		longest = (int)(pieces.len - before) > longest ? (int)(pieces.len - before)
							       : longest;
	}
	OK(more == 0 && pieces.len == whole.len && !memcmp(pieces.data, whole.data, whole.len));
	OK(longest <= 6 * JSON_STREAM_VALUE);
	json_stream_join_lines(&s, 0);
	OK(!memchr(s.text.data, '\n', s.text.len));
	json_stream_finish(&s);
}

int main(void)
{
	streams_what_it_writes();
	reads_values();
	refuses();
	refuses_in_the_tree();
	reads_in_steps();
	reads_long_strings();
	bounds_names();
	dumps();
	discards();
	bounds_depth_and_count();
	refuses_every_prefix();
	writes_structure();
	writes_doubles();
	replaces_bad_utf8();
	joins_split_strings();
	keeps_its_error();
	is_fast();
	return tap_done();
}
