#include "json/json_read.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "json/json_text.h"

/*
 * A scan over the whole text decides before jansson sees it: jansson recurses up to 2,048 levels and its
 * messages are for C programmers. The scan keeps one bit per level, so hostile nesting costs nothing.
 */
struct scan {
	const char *text;
	size_t len, at;
	unsigned depth;
	uint64_t is_object; /* a bit per level; LIMIT_JSON_DEPTH must fit */
	size_t values, max_values;
	struct error *e;
};

_Static_assert(LIMIT_JSON_DEPTH <= 64, "one bit per level");

static void locate(const char *text, size_t at, size_t *ret_line, size_t *ret_column)
{
	size_t line = 1, column = 1;
	for (size_t i = 0; i < at; i++) {
		if (text[i] == '\n') {
			line++;
			column = 1;
		} else if (((unsigned char)text[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	*ret_line = line;
	*ret_column = column;
}

/* What to do about it; the reader is often a program that wrote the text by hand. */
static int set_slug(struct error *e, const char *slug)
{
	static const char *const remedies[][2] = {
		{ "malformed_json", "Send the text that json.dumps() or JSON.stringify() makes." },
		{ "invalid_utf8", "Encode the text as UTF-8." },
		{ "duplicate_field", "Give every name once." },
		{ "json_too_deep", "Nest lists and objects less deeply." },
		{ "json_too_large", "Send fewer values, or large data as a file." },
	};
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (!strcmp(remedies[i][0], slug))
			error_remedy(e, "%s", remedies[i][1]);
	return error_slug(e, slug);
}

static int fail(struct scan *s, const char *slug, const char *what)
{
	size_t line, column;
	locate(s->text, s->at < s->len ? s->at : s->len, &line, &column);
	error_set(s->e, -EINVAL, "malformed JSON at line %zu, column %zu: %s", line, column, what);
	set_slug(s->e, slug);
	return -EINVAL;
}

static int bad(struct scan *s, const char *what)
{
	return fail(s, "malformed_json", s->at >= s->len ? "the text ends too early" : what);
}

static void skip_space(struct scan *s)
{
	while (s->at < s->len && memchr(" \t\n\r", s->text[s->at], 4))
		s->at++;
}

static int peek(const struct scan *s)
{
	return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

/* Four hex digits at `at`, or -1. */
static int hex4(const struct scan *s, size_t at)
{
	int v = 0;
	if (s->len - at < 4)
		return -1;
	for (size_t i = at; i < at + 4; i++) {
		unsigned char c = (unsigned char)s->text[i];
		if (!isxdigit(c))
			return -1;
		v = v * 16 + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
	}
	return v;
}

static int scan_unicode_escape(struct scan *s)
{
	int unit = hex4(s, s->at + 2);
	if (unit < 0)
		return fail(s, "malformed_json", "\\u needs four hexadecimal digits");
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return fail(s, "malformed_json", "unpaired surrogate in a \\u escape");
	if (unit >= 0xd800 && unit <= 0xdbff) {
		bool pair = s->len - s->at >= 12 && s->text[s->at + 6] == '\\' && s->text[s->at + 7] == 'u';
		int second = pair ? hex4(s, s->at + 8) : -1;
		if (second < 0xdc00 || second > 0xdfff)
			return fail(s, "malformed_json", "unpaired surrogate in a \\u escape");
		s->at += 6;
	}
	s->at += 6;
	return 0;
}

static int scan_escape(struct scan *s)
{
	if (s->at + 1 >= s->len) {
		s->at = s->len;
		return bad(s, "");
	}
	char c = s->text[s->at + 1];
	if (c == 'u')
		return scan_unicode_escape(s);
	if (!c || !strchr("\"\\/bfnrt", c))
		return bad(s, "unknown escape in a string (write \\\\ for a backslash)");
	s->at += 2;
	return 0;
}

static int scan_string(struct scan *s)
{
	s->at++;
	while (s->at < s->len) {
		s->at += json_plain_run(s->text + s->at, s->len - s->at);
		int c = peek(s), r;
		size_t step;
		if (c == '"') {
			s->at++;
			return 0;
		}
		if (c == '\\') {
			r = scan_escape(s);
			if (r < 0)
				return r;
		} else if (c >= 0x80) {
			if (utf8_step((const unsigned char *)s->text + s->at, s->len - s->at, &step) !=
				UTF8_VALID)
				return fail(s, "invalid_utf8", "the bytes are not valid UTF-8");
			s->at += step;
		} else if (c >= 0) {
			return bad(s, c == '\n'
					      ? "line break inside a string (write \\n)"
					      : "control character inside a string (write it as an escape)");
		}
	}
	return bad(s, "");
}

static bool skip_digits(struct scan *s)
{
	size_t start = s->at;
	while (peek(s) >= '0' && peek(s) <= '9')
		s->at++;
	return s->at > start;
}

static int scan_number(struct scan *s)
{
	if (peek(s) == '-')
		s->at++;
	if (peek(s) == '0') {
		s->at++;
		if (peek(s) >= '0' && peek(s) <= '9')
			return bad(s, "a number may not start with 0");
	} else if (!skip_digits(s)) {
		return bad(s, "expected a digit");
	}
	if (peek(s) == '.') {
		s->at++;
		if (!skip_digits(s))
			return bad(s, "expected a digit behind the decimal point");
	}
	if (peek(s) == 'e' || peek(s) == 'E') {
		s->at++;
		if (peek(s) == '+' || peek(s) == '-')
			s->at++;
		if (!skip_digits(s))
			return bad(s, "expected a digit in the exponent");
	}
	return 0;
}

static int scan_word(struct scan *s)
{
	static const char *const words[] = { "true", "false", "null" };
	for (size_t i = 0; i < 3; i++) {
		size_t n = strlen(words[i]);
		if (s->len - s->at >= n && !memcmp(s->text + s->at, words[i], n)) {
			s->at += n;
			return 0;
		}
	}
	if (peek(s) == '\'')
		return bad(s, "strings are written in double quotes");
	if (s->at == 0 && s->len >= 3 && !memcmp(s->text, "\xef\xbb\xbf", 3))
		return bad(s, "the text starts with a byte order mark; leave it out");
	size_t step;
	if (s->at < s->len && utf8_step((const unsigned char *)s->text + s->at, s->len - s->at, &step) !=
				      UTF8_VALID)
		return fail(s, "invalid_utf8", "the bytes are not valid UTF-8");
	return bad(s, "expected a value");
}

static int push(struct scan *s, bool object)
{
	if (s->depth == LIMIT_JSON_DEPTH)
		return fail(s, "json_too_deep", "nested too deeply");
	uint64_t bit = 1ULL << s->depth++;
	s->is_object = object ? s->is_object | bit : s->is_object & ~bit;
	s->at++;
	return 0;
}

/* A name and its colon, up to where the value starts. */
static int scan_name(struct scan *s)
{
	int r;
	skip_space(s);
	if (peek(s) == '}')
		return bad(s, "a comma before '}'");
	if (peek(s) != '"')
		return bad(s, "expected a name in double quotes");
	r = scan_string(s);
	if (r < 0)
		return r;
	skip_space(s);
	if (peek(s) != ':')
		return bad(s, "expected ':' behind the name");
	s->at++;
	return 0;
}

/* Opens a container. Returns 1 when it is empty and so closed already, 0 when its first value is next. */
static int scan_open(struct scan *s)
{
	bool object = peek(s) == '{';
	int r = push(s, object);
	if (r < 0)
		return r;
	skip_space(s);
	if (peek(s) == (object ? '}' : ']')) {
		s->depth--;
		s->at++;
		return 1;
	}
	return object ? scan_name(s) : 0;
}

/* One value, or the start of one. Returns 1 when the value is complete, 0 when a nested one is next. */
static int scan_value(struct scan *s)
{
	int r;
	skip_space(s);
	if (++s->values > s->max_values)
		return fail(s, "json_too_large", "too many values");
	switch (peek(s)) {
	case '{':
	case '[':
		return scan_open(s);
	case '"':
		r = scan_string(s);
		break;
	case '-':
	case '0' ... '9':
		r = scan_number(s);
		break;
	default:
		r = scan_word(s);
	}
	return r < 0 ? r : 1;
}

/* Behind a complete value: closes what ends here. Returns 1 at the end of the outermost, 0 when another value
 * is next. */
static int scan_after_value(struct scan *s)
{
	while (s->depth) {
		bool object = s->is_object >> (s->depth - 1) & 1;
		skip_space(s);
		int c = peek(s);
		if (c == ',') {
			s->at++;
			if (object)
				return scan_name(s);
			skip_space(s);
			return peek(s) == ']' ? bad(s, "a comma before ']'") : 0;
		}
		if (c != (object ? '}' : ']'))
			return bad(s, object ? "expected ',' or '}' behind the value"
					     : "expected ',' or ']' behind the value");
		s->depth--;
		s->at++;
	}
	return 1;
}

static int scan_text(struct scan *s)
{
	int r;
	do {
		r = scan_value(s);
		if (r == 1)
			r = scan_after_value(s);
	} while (r == 0);
	if (r < 0)
		return r;
	skip_space(s);
	if (s->at < s->len)
		return bad(s, "something follows the end of the value");
	return 0;
}

int json_validate(const char *text, size_t len, struct error *e)
{
	struct scan s = { .text = text, .len = len, .max_values = SIZE_MAX, .e = e };
	return scan_text(&s);
}

/* What only the tree builder sees: duplicate names, NUL in a name, numbers out of range. */
static int tree_error(const json_error_t *j, struct error *e)
{
	const char *slug = "malformed_json", *what;
	switch (json_error_code(j)) {
	case json_error_out_of_memory:
		return error_set(e, -ENOMEM, "out of memory while reading JSON");
	case json_error_duplicate_key:
		slug = "duplicate_field";
		what = "a name appears twice in one object";
		break;
	case json_error_null_byte_in_key:
		what = "NUL inside a name";
		break;
	case json_error_numeric_overflow:
		what = "the number is out of range";
		break;
	default:
		what = j->text;
	}
	error_set(e, -EINVAL, "malformed JSON at line %d, column %d: %s", j->line, j->column, what);
	set_slug(e, slug);
	return -EINVAL;
}

int json_read(const char *text, size_t len, struct error *e, json_t **ret)
{
	struct scan s = { .text = text, .len = len, .max_values = LIMIT_JSON_VALUES, .e = e };
	json_error_t j;
	int r = scan_text(&s);
	if (r < 0)
		return r;
	json_t *tree = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &j);
	if (!tree)
		return tree_error(&j, e);
	*ret = tree;
	return 0;
}
