#include "guest/run/last_expression.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* ---- lines ------------------------------------------------------------------------- */

/*
 * True when a line can only be entered from another one through brackets: no text over several
 * lines, no backslash at the end of a line. What separates lines otherwise than \n does is not
 * looked into, nor what may begin a file.
 */
static bool lines_are_plain(const char *code, size_t len)
{
	return !memchr(code, '\r', len) && !memchr(code, '\f', len) && !memchr(code, '\0', len) &&
	       !memmem(code, len, "\\\n", 2) && !memmem(code, len, "'''", 3) &&
	       !memmem(code, len, "\"\"\"", 3) &&
	       !(len >= 3 && memcmp(code, "\xef\xbb\xbf", 3) == 0);
}

/*
 * The last line that begins with neither space, comment nor closing bracket: the last statement
 * begins there or, when that is in brackets, before it.
 */
static const char *last_line(const char *code, size_t len)
{
	for (const char *end = code + len; end > code;) {
		const char *newline = memrchr(code, '\n', (size_t)(end - code)),
			   *line = newline ? newline + 1 : code;
		if (line < code + len && !strchr(" \t#\n)]}", *line))
			return line;
		end = newline ? newline : code;
	}
	return NULL;
}

/* ---- words ------------------------------------------------------------------------- */

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_one_of(const char *word, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == len && memcmp(word, *list, len) == 0)
			return true;
	return false;
}

/* A line that begins with one of these is, or belongs to, a statement, unless it is in brackets. */
static const char *const keywords[] = { "assert", "async", "break", "class", "continue", "def",
	"del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
	"nonlocal", "pass", "raise", "return", "try", "while", "with", NULL };
/*
 * Words that begin a statement in some places and are names in others; or an expression that is one
 * as a statement only.
 */
static const char *const sometimes[] = { "case", "match", "type", "yield", NULL };
/* A text with one of these before it holds expressions. */
static const char formatted[] = "fFtT";

/* ---- the last statement ------------------------------------------------------------- */

enum { DEPTH_MAX = 32 };

struct scan {
	const char *at, *end;
	char open[DEPTH_MAX]; /* brackets */
	unsigned depth;
	bool compound; /* begins with a keyword */
	bool assigns;
	bool colon, over; /* outside of brackets: a colon; the end of the line */
};

/*
 * Since 3.12 a text with expressions may go on in the next line, within the braces of one: then the
 * last line begins there, and what looks like a text, or a comment, may be neither. But the brace
 * that closes is somewhere in it: so braces count wherever they are.
 */
static bool has_brace(const char *start, const char *end)
{
	return memchr(start, '}', (size_t)(end - start));
}

/* Past the text that begins at this quote; false when it does not end in its line. */
static bool find_end(struct scan *s)
{
	char quote = *s->at++;
	for (; s->at < s->end && *s->at != '\n'; s->at++) {
		if (*s->at == quote) {
			s->at++;
			return true;
		}
		if (*s->at == '\\' && s->at + 1 < s->end)
			s->at++;
	}
	return false;
}

static bool skip_text(struct scan *s)
{
	const char *start = s->at;
	return find_end(s) && !has_brace(start, s->at);
}

static bool skip_comment(struct scan *s)
{
	const char *start = s->at;
	while (s->at < s->end && *s->at != '\n')
		s->at++;
	return !has_brace(start, s->at);
}

/*
 * A text with expressions. Since 3.12 these may hold its own quote: it ends with the first one
 * where none is open, which is clear when there are no other quotes, no comments and no braces that
 * stand for themselves.
 */
static bool skip_formatted(struct scan *s)
{
	const char *start = s->at + 1;
	int open = 0;
	if (!find_end(s))
		return false;
	for (const char *p = start; p < s->at - 1; p++) {
		if (strchr("'\"\\#", *p) || (strchr("{}", *p) && p[1] == *p))
			return false;
		open += (*p == '{') - (*p == '}');
	}
	return open == 0;
}

/* A word, with the text that it is a prefix of. */
static bool take_word(struct scan *s)
{
	const char *word = s->at;
	while (s->at < s->end && in_word(*s->at))
		s->at++;
	size_t len = (size_t)(s->at - word);
	if (s->at < s->end && (*s->at == '"' || *s->at == '\'')) {
		for (size_t i = 0; i < len; i++)
			if (strchr(formatted, word[i]))
				return skip_formatted(s);
		return skip_text(s);
	}
	/* its `=` would not assign */
	return s->depth || s->compound || len != 6 || memcmp(word, "lambda", 6) != 0;
}

/* An equals sign outside of brackets: part of a comparison, or does it assign? False for `:=`. */
static bool take_equals(struct scan *s)
{
	const char *p = s->at++;
	if (s->at < s->end && *s->at == '=') {
		s->at++;
		return true;
	}
	bool shift = (p[-1] == '<' || p[-1] == '>') && p[-2] == p[-1];
	if (!strchr("!<>", p[-1]) || shift)
		s->assigns = true;
	return p[-1] != ':';
}

static bool take_bracket(struct scan *s)
{
	static const char opening[] = "([{", closing[] = ")]}";
	const char *kind = strchr(opening, *s->at);
	if (kind) {
		if (s->depth == DEPTH_MAX)
			return false;
		s->open[s->depth++] = closing[kind - opening];
	} else if (s->depth == 0 || s->open[--s->depth] != *s->at) {
		return false; /* the line is in brackets itself */
	}
	s->at++;
	return true;
}

static bool take_other(struct scan *s)
{
	switch (*s->at) {
	case '\'':
	case '"':
		return skip_text(s);
	case '#':
		return skip_comment(s);
	case '(':
	case '[':
	case '{':
	case ')':
	case ']':
	case '}':
		return take_bracket(s);
	case '=':
		if (s->depth == 0 && !s->compound)
			return take_equals(s);
		break;
	case ':':
		s->colon |= s->depth == 0;
		break;
	case ';':
		return false; /* one more statement, or none, and then it means something too */
	case '\n':
		s->over |= s->depth == 0;
		break;
	case '\\':
		return false;
	default:
		break;
	}

	s->at++;
	return true;
}

/* One step; false when it becomes unclear. */
static bool take(struct scan *s)
{
	if (s->over && !s->compound && !strchr(" \t#\n", *s->at))
		return false; /* a second line, indented */
	return in_word(*s->at) ? take_word(s) : take_other(s);
}

enum closing last_expression_find(const char *code, size_t len, size_t *ret_start)
{
	const char *start = lines_are_plain(code, len) ? last_line(code, len) : NULL;
	struct scan s = { .at = start, .end = code + len };
	size_t word = 0;

	if (!start)
		return CLOSING_UNSURE;
	while (start + word < s.end && in_word(start[word]))
		word++;
	s.compound = is_one_of(start, word, keywords);
	if (is_one_of(start, word, sometimes) || (!word && !strchr("'\"([{-+~.", *start)))
		return CLOSING_UNSURE;
	while (s.at < s.end)
		if (!take(&s))
			return CLOSING_UNSURE;
	if (s.depth)
		return CLOSING_UNSURE;
	*ret_start = (size_t)(start - code);
	if (s.compound || s.assigns)
		return CLOSING_STATEMENT;
	return s.colon ? CLOSING_UNSURE : CLOSING_EXPRESSION;
}
