#include "dialects/common/python_json.h"

#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "base/utf8.h"

/* ---- errors -------------------------------------------------------------- */

struct scan {
	const char *text;
	size_t len, at, depth;
	const char *message; /* of the first error, at `where` */
	size_t where;
};

static bool wrong(struct scan *s, const char *message, size_t where)
{
	s->message = message;
	s->where = where;
	return false;
}

static int peek(const struct scan *s)
{
	return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

static void skip_space(struct scan *s)
{
	while (s->at < s->len && memchr(" \t\n\r", s->text[s->at], 4))
		s->at++;
}

static bool take_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);
	if (s->len - s->at < n || memcmp(s->text + s->at, word, n))
		return false;
	s->at += n;
	return true;
}

static size_t take_digits(struct scan *s)
{
	size_t begin = s->at;
	while (s->at < s->len && s->text[s->at] >= '0' && s->text[s->at] <= '9')
		s->at++;
	return s->at - begin;
}

/* As far as it is a number: "1." is 1, and the point is somebody else's error. */
static bool take_number(struct scan *s)
{
	s->at += peek(s) == '-';
	if (peek(s) == '0')
		s->at++;
	else if (!take_digits(s))
		return false;
	size_t whole = s->at;
	if (peek(s) == '.') {
		s->at++;
		if (!take_digits(s)) {
			s->at = whole;
			return true;
		}
	}

	size_t plain = s->at;
	if (peek(s) == 'e' || peek(s) == 'E') {
		s->at++;
		s->at += peek(s) == '+' || peek(s) == '-';
		if (!take_digits(s))
			s->at = plain;
	}

	return true;
}

static bool take_escape(struct scan *s, size_t begin)
{
	size_t slash = s->at++;
	int c = peek(s);

	if (c < 0)
		return wrong(s, "Unterminated string starting at", begin);
	s->at++;
	if (strchr("\"\\/bfnrt", c))
		return true;
	if (c != 'u')
		return wrong(s, "Invalid \\escape", slash);
	for (int i = 0; i < 4; i++, s->at++) {
		c = peek(s);
		if (c < 0 || !strchr("0123456789abcdefABCDEF", c))
			return wrong(s, "Invalid \\uXXXX escape", slash + 1);
	}

	return true;
}

static bool take_string(struct scan *s)
{
	size_t begin = s->at++;
	for (;;) {
		int c = peek(s);
		if (c < 0)
			return wrong(s, "Unterminated string starting at", begin);
		if (c == '"') {
			s->at++;
			return true;
		}
		if (c < 0x20)
			return wrong(s, "Invalid control character at", s->at);
		if (c != '\\')
			s->at++;
		else if (!take_escape(s, begin))
			return false;
	}
}

static bool take_value(struct scan *s);

/* After a value inside brackets: 1 at the end, 0 when another follows, -1 for an error. */
static int take_separator(struct scan *s, char end)
{
	skip_space(s);
	int c = peek(s);
	if (c != end && c != ',') {
		wrong(s, "Expecting ',' delimiter", s->at);
		return -1;
	}
	s->at++;
	return c == end;
}

static bool take_object(struct scan *s)
{
	int end;
	s->at++;
	skip_space(s);
	if (peek(s) == '}') {
		s->at++;
		return true;
	}

	do {
		skip_space(s);
		if (peek(s) != '"')
			return wrong(s, "Expecting property name enclosed in double quotes", s->at);
		if (!take_string(s))
			return false;
		skip_space(s);
		if (peek(s) != ':')
			return wrong(s, "Expecting ':' delimiter", s->at);
		s->at++;
		if (!take_value(s))
			return false;
		end = take_separator(s, '}');
	} while (!end);
	return end > 0;
}

static bool take_array(struct scan *s)
{
	int end;
	s->at++;
	skip_space(s);
	if (peek(s) == ']') {
		s->at++;
		return true;
	}
	do {
		if (!take_value(s))
			return false;
		end = take_separator(s, ']');
	} while (!end);
	return end > 0;
}

/* Recursion is bounded: what is deeper than our own reader allows is not looked at. */
static bool take_value(struct scan *s)
{
	static const char *const words[] = { "null", "true", "false", "NaN", "Infinity",
		"-Infinity" };
	bool sound;

	skip_space(s);
	int c = peek(s);
	if (c == '"')
		return take_string(s);
	if (c == '{' || c == '[') {
		if (++s->depth > LIMIT_JSON_DEPTH)
			return false;
		sound = c == '{' ? take_object(s) : take_array(s);
		s->depth--;
		return sound;
	}

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (take_word(s, words[i]))
			return true;
	size_t begin = s->at;
	return take_number(s) || wrong(s, "Expecting value", begin);
}

/* Python counts characters, we have counted bytes. */
static void locate(const struct scan *s, struct python_json_error *ret)
{
	*ret = (struct python_json_error){ .message = s->message, .line = 1, .column = 1 };
	for (size_t i = 0; i < s->where; i++) {
		if (((unsigned char)s->text[i] & 0xc0) == 0x80)
			continue;
		ret->position++;
		ret->column++;
		if (s->text[i] == '\n') {
			ret->line++;
			ret->column = 1;
		}
	}
}

bool python_json_error(const char *text, size_t len, struct python_json_error *ret)
{
	struct scan s = { .text = text, .len = len };
	if (take_value(&s)) {
		skip_space(&s);
		if (s.at == len)
			return false;
		wrong(&s, "Extra data", s.at);
	}
	if (!s.message)
		return false;
	locate(&s, ret);
	return true;
}

/* ---- spelling ------------------------------------------------------------ */

static uint32_t code_point(const unsigned char *s, size_t len)
{
	uint32_t c = len == 2 ? s[0] & 0x1f : len == 3 ? s[0] & 0x0f : s[0] & 0x07;
	for (size_t i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

static int put_escaped(struct buffer *out, uint32_t c)
{
	if (c < 0x10000)
		return buffer_printf(out, "\\u%04x", c);
	c -= 0x10000;
	return buffer_printf(out, "\\u%04x\\u%04x", 0xd800 + (c >> 10), 0xdc00 + (c & 0x3ff));
}

int python_json_dumps(struct buffer *out, const char *json, size_t len)
{
	bool in_string = false;
	int r = 0;

	for (size_t i = 0, n; i < len && r >= 0; i += n) {
		unsigned char c = (unsigned char)json[i];
		n = 1;
		if (c >= 0x80) {
			enum utf8 kind = utf8_step((const unsigned char *)json + i, len - i, &n);
			r = put_escaped(out,
				kind == UTF8_VALID ? code_point((const unsigned char *)json + i, n)
						   : 0xfffd);
			continue;
		}
		if (!in_string && (c == ' ' || c == '\n' || c == '\t' || c == '\r'))
			continue;
		if (in_string && c == '\\' && i + 1 < len) {
			n = 2;
			r = buffer_append(out, json + i, 2);
			continue;
		}
		in_string = c == '"' ? !in_string : in_string;
		r = buffer_append_char(out, (char)c);
		if (r >= 0 && !in_string && (c == ',' || c == ':'))
			r = buffer_append_char(out, ' ');
	}

	return r;
}
