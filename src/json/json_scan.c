#include "json/json_scan.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "json/json_fail.h"
#include "json/json_text.h"
#include "json/json_tree.h"

static int fail(struct json_scan *s, const char *slug, const char *what)
{
	return json_fail(s->text, s->at < s->len ? s->at : s->len, slug, what, s->e);
}

static int bad(struct json_scan *s, const char *what)
{
	return fail(s, "malformed_json", s->at >= s->len ? "the text ends too early" : what);
}

/*
 * True at something else than a blank, or at the end of the text; false: the scan stops here for
 * now.
 */
static bool skip_space(struct json_scan *s)
{
	while (s->at < s->len && memchr(" \t\n\r", s->text[s->at], 4)) {
		if (s->at >= s->until)
			return false;
		s->at++;
	}
	return true;
}

static int peek(const struct json_scan *s)
{
	return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

/* What the tree says about a piece. */
static int check_tree(struct json_scan *s, int r)
{
	switch (r) {
	case 0:
		return 0;
	case -EEXIST:
		return fail(s, "duplicate_field", "a name appears twice in one object");
	case -EINVAL:
		return fail(s, "malformed_json", "NUL inside a name");
	case -E2BIG:
		return fail(s, "json_too_large", "an object has too many names");
	case -ERANGE:
		return fail(s, "malformed_json", "the number is out of range");
	default:
		return error_set(s->e, -ENOMEM, "out of memory while reading JSON");
	}
}

/* ---- strings ------------------------------------------------------------ */

/* Four hex digits at `at`, or -1. */
static int hex4(const struct json_scan *s, size_t at)
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

static int scan_unicode_escape(struct json_scan *s, uint32_t *ret)
{
	int unit = hex4(s, s->at + 2);
	if (unit < 0)
		return fail(s, "malformed_json", "\\u needs four hexadecimal digits");
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return fail(s, "malformed_json", "unpaired surrogate in a \\u escape");
	*ret = (uint32_t)unit;
	if (unit >= 0xd800 && unit <= 0xdbff) {
		bool pair = s->len - s->at >= 12 && s->text[s->at + 6] == '\\' &&
			    s->text[s->at + 7] == 'u';
		int second = pair ? hex4(s, s->at + 8) : -1;
		if (second < 0xdc00 || second > 0xdfff)
			return fail(s, "malformed_json", "unpaired surrogate in a \\u escape");
		*ret = 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(second - 0xdc00);
		s->at += 6;
	}

	s->at += 6;
	return 0;
}

static int append_utf8(struct buffer *b, uint32_t c)
{
	char out[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (size_t i = n; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(lead[n] | c);
	return buffer_append(b, out, n);
}

/* The bytes since the last escape, and what the escape stands for. */
static int keep_escape(struct json_scan *s, size_t escape, uint32_t c)
{
	int r = 0;
	if (s->tree) {
		r = buffer_append(&s->decoded, s->text + s->run, escape - s->run);
		if (r == 0)
			r = append_utf8(&s->decoded, c);
	}
	s->escaped = true;
	s->run = s->at;
	return r < 0 ? check_tree(s, -ENOMEM) : 0;
}

static int scan_escape(struct json_scan *s)
{
	if (s->at + 1 >= s->len) {
		s->at = s->len;
		return bad(s, "");
	}
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	size_t escape = s->at;
	char c = s->text[s->at + 1];
	if (c == 'u') {
		uint32_t unit = 0;
		int r = scan_unicode_escape(s, &unit);
		return r < 0 ? r : keep_escape(s, escape, unit);
	}

	const char *known = c ? strchr(names, c) : NULL;
	if (!known)
		return bad(s, "unknown escape in a string (write \\\\ for a backslash)");
	s->at += 2;
	return keep_escape(s, escape, (unsigned char)meant[known - names]);
}

/*
 * A long string is copied while it is scanned: at its end there is only a little left to do.
 */
static int keep_long_run(struct json_scan *s)
{
	if (!s->tree || s->at - s->run < JSON_LONG_STRING)
		return 0;
	int r = buffer_append(&s->decoded, s->text + s->run, s->at - s->run);
	s->escaped = true;
	s->run = s->at;
	return r < 0 ? check_tree(s, -ENOMEM) : 0;
}

static void begin_string(struct json_scan *s, enum json_scan_state state)
{
	s->run = ++s->at;
	s->escaped = false;
	s->decoded.len = 0;
	s->state = state;
}

/* Behind the closing quote. */
static int end_string(struct json_scan *s)
{
	bool name = s->state == SCAN_IN_NAME;
	const char *text = s->text + s->run;
	size_t len = s->at - 1 - s->run;
	s->state = name ? SCAN_WANT_COLON : SCAN_AFTER_VALUE;
	if (!s->tree)
		return 0;

	if (s->escaped) {
		if (buffer_append(&s->decoded, text, len) < 0)
			return check_tree(s, -ENOMEM);
		if (!name && s->decoded.len >= JSON_LONG_STRING)
			return check_tree(s, json_tree_take_string(s->tree, &s->decoded));
		text = s->decoded.data ? s->decoded.data : "";
		len = s->decoded.len;
	}
	return check_tree(s,
		name ? json_tree_name(s->tree, text, len) : json_tree_string(s->tree, text, len));
}

static int scan_character(struct json_scan *s, int c)
{
	size_t step;
	if (c == '\\')
		return scan_escape(s);
	if (c < 0x80)
		return bad(
			s, c == '\n' ? "line break inside a string (write \\n)"
				     : "control character inside a string (write it as an escape)");
	if (utf8_step((const unsigned char *)s->text + s->at, s->len - s->at, &step) != UTF8_VALID)
		return fail(s, "invalid_utf8", "the bytes are not valid UTF-8");
	s->at += step;
	return 0;
}

static int check_name(struct json_scan *s)
{
	if (s->state != SCAN_IN_NAME || s->decoded.len + (s->at - s->run) <= LIMIT_JSON_NAME_BYTES)
		return 0;
	return fail(s, "json_too_large", "a name is too long");
}

static int scan_string(struct json_scan *s)
{
	while (s->at < s->len && s->at < s->until) {
		size_t end = s->until < s->len ? s->until : s->len;
		s->at += json_plain_run(s->text + s->at, end - s->at);
		int c = s->at == end ? -1 : peek(s);
		int r = check_name(s);
		if (r == 0 && c == '"') {
			s->at++;
			return end_string(s);
		}
		if (r == 0 && c >= 0)
			r = scan_character(s, c);
		if (r == 0)
			r = keep_long_run(s);
		if (r < 0)
			return r;
	}

	return s->at >= s->len ? bad(s, "") : 0;
}

/* ---- other values ------------------------------------------------------- */

static bool skip_digits(struct json_scan *s)
{
	size_t start = s->at;
	while (peek(s) >= '0' && peek(s) <= '9' && s->at - start <= JSON_NUMBER_MAX)
		s->at++;
	return s->at > start;
}

static int scan_digits(struct json_scan *s)
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
			return bad(s, "expected a digit after the decimal point");
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

static int scan_number(struct json_scan *s)
{
	size_t start = s->at;
	int r = scan_digits(s);
	if (r < 0)
		return r;
	if (s->at - start > JSON_NUMBER_MAX)
		return fail(s, "malformed_json", "the number is out of range: too many digits");
	return s->tree ? check_tree(s, json_tree_number(s->tree, s->text + start, s->at - start))
		       : 0;
}

static int scan_word(struct json_scan *s)
{
	static const char *const words[] = { "true", "false", "null" };
	for (size_t i = 0; i < 3; i++) {
		size_t n = strlen(words[i]);
		if (s->len - s->at >= n && !memcmp(s->text + s->at, words[i], n)) {
			s->at += n;
			return s->tree ? check_tree(s, json_tree_word(s->tree, *words[i])) : 0;
		}
	}

	if (peek(s) == '\'')
		return bad(s, "strings must be in double quotes");
	if (s->at == 0 && s->len >= 3 && !memcmp(s->text, "\xef\xbb\xbf", 3))
		return bad(s, "the text starts with a byte order mark; leave it out");
	size_t step;
	if (s->at < s->len && utf8_step((const unsigned char *)s->text + s->at, s->len - s->at,
				      &step) != UTF8_VALID)
		return fail(s, "invalid_utf8", "the bytes are not valid UTF-8");
	return bad(s, "expected a value");
}

/* ---- the scan ----------------------------------------------------------- */

static int open_container(struct json_scan *s, bool object)
{
	if (s->depth == LIMIT_JSON_DEPTH)
		return fail(s, "json_too_deep", "nested too deeply");
	uint64_t bit = 1ULL << s->depth++;
	s->is_object = object ? s->is_object | bit : s->is_object & ~bit;
	s->at++;
	s->state = object ? SCAN_WANT_FIRST_NAME : SCAN_WANT_FIRST;
	return s->tree ? check_tree(s, json_tree_open(s->tree, object)) : 0;
}

static void close_container(struct json_scan *s)
{
	s->depth--;
	s->at++;
	s->state = SCAN_AFTER_VALUE;
	if (s->tree)
		json_tree_close(s->tree);
}

/* One value, or the start of one. */
static int scan_value(struct json_scan *s)
{
	if (++s->values > s->max_values)
		return fail(s, "json_too_large", "too many values");
	s->state = SCAN_AFTER_VALUE;
	switch (peek(s)) {
	case '{':
	case '[':
		return open_container(s, peek(s) == '{');
	case '"':
		begin_string(s, SCAN_IN_STRING);
		return 0;
	case '-':
	case '0' ... '9':
		return scan_number(s);
	default:
		return scan_word(s);
	}
}

static int scan_name(struct json_scan *s)
{
	if (peek(s) == '}')
		return bad(s, "a comma before '}'");
	if (peek(s) != '"')
		return bad(s, "expected a name in double quotes");
	begin_string(s, SCAN_IN_NAME);
	return 0;
}

static int scan_after_value(struct json_scan *s)
{
	bool object = s->depth && s->is_object >> (s->depth - 1) & 1;
	int c = peek(s);

	if (!s->depth) {
		s->state = SCAN_ENDED;
		return s->at < s->len ? bad(s, "there is text after the end of the value") : 0;
	}

	if (c == ',') {
		s->at++;
		s->state = object ? SCAN_WANT_NAME : SCAN_WANT_VALUE;
		return 0;
	}

	if (c != (object ? '}' : ']'))
		return bad(s, object ? "expected ',' or '}' after the value"
				     : "expected ',' or ']' after the value");
	close_container(s);
	return 0;
}

static int scan_token(struct json_scan *s)
{
	switch (s->state) {
	case SCAN_WANT_FIRST:
	case SCAN_WANT_FIRST_NAME:
		if (peek(s) == (s->state == SCAN_WANT_FIRST ? ']' : '}')) {
			close_container(s);
			return 0;
		}
		return s->state == SCAN_WANT_FIRST ? scan_value(s) : scan_name(s);
	case SCAN_WANT_VALUE:
		/* an array may not end behind a comma; behind a colon scan_word() complains */
		if (peek(s) == ']' && s->depth && !(s->is_object >> (s->depth - 1) & 1))
			return bad(s, "a comma before ']'");
		return scan_value(s);
	case SCAN_WANT_NAME:
		return scan_name(s);
	case SCAN_WANT_COLON:
		if (peek(s) != ':')
			return bad(s, "expected ':' after the name");
		s->at++;
		s->state = SCAN_WANT_VALUE;
		return 0;
	default:
		return scan_after_value(s);
	}
}

int json_scan_on(struct json_scan *s, size_t bytes)
{
	int r = 0;
	s->until = bytes < s->len - s->at ? s->at + bytes : s->len;
	while (r == 0 && s->state != SCAN_ENDED) {
		if (s->state == SCAN_IN_NAME || s->state == SCAN_IN_STRING)
			r = scan_string(s);
		else if (skip_space(s))
			r = scan_token(s);
		if (s->at >= s->until && s->until < s->len)
			break;
	}
	return r < 0 ? r : s->state != SCAN_ENDED;
}
