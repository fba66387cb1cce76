#include "cli/config_merge.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* ---- comments ------------------------------------------------------------------------------ */

/* The end of the string, comment or character at p. */
static const char *past(const char *p, const char *end)
{
	const char *q;
	if (*p == '"') {
		for (p++; p < end && *p != '"'; p++)
			p += *p == '\\' && p + 1 < end;
		return p < end ? p + 1 : end;
	}

	if (end - p > 1 && p[0] == '/' && p[1] == '/') {
		q = memchr(p, '\n', (size_t)(end - p));
		return q ? q : end;
	}

	if (end - p > 1 && p[0] == '/' && p[1] == '*') {
		q = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);
		return q ? q + 2 : end;
	}

	return p + 1;
}

static bool is_comment(const char *p, const char *end)
{
	return end - p > 1 && p[0] == '/' && (p[1] == '/' || p[1] == '*');
}

static const char *skip_blank(const char *p, const char *end)
{
	while (p < end && (strchr(" \t\r\n", *p) || is_comment(p, end)))
		p = past(p, end);
	return p;
}

/*
 * The same text with spaces for comments and for commas before a closing bracket, as long as
 * before. NULL without memory.
 */
static char *plain_json(const char *text, size_t len)
{
	const char *end = text + len;
	char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	for (const char *p = text, *next; p < end; p = next) {
		next = past(p, end);
		const char *after = skip_blank(next, end);
		if (is_comment(p, end))
			memset(copy + (p - text), ' ', (size_t)(next - p));
		else if (*p == ',' && after < end && (*after == '}' || *after == ']'))
			copy[p - text] = ' ';
	}

	return copy;
}

static json_t *parse(const char *text, size_t len, struct error *e)
{
	_cleanup_free_ char *plain = plain_json(text, len);
	json_error_t wrong = { 0 };
	json_t *tree = plain ? json_loadb(plain, len, JSON_REJECT_DUPLICATES, &wrong) : NULL;
	if (json_is_object(tree))
		return tree;
	error_set(e, -EINVAL, "the file is not JSON with comments (line %d: %s)", wrong.line,
		tree ? "an object is expected" : wrong.text);
	json_decref(tree);
	return NULL;
}

/* ---- places in a text that has been parsed -------------------------------------------------- */

static const char *past_value(const char *p, const char *end)
{
	int depth = 0;
	if (*p == '"')
		return past(p, end);
	for (; p < end; p = past(p, end)) {
		if (*p == '{' || *p == '[')
			depth++;
		else if (*p == '}' || *p == ']')
			depth--;
		if (depth < 0 || (!depth && (*p == ',' || strchr(" \t\r\n", *p))) ||
			(!depth && is_comment(p, end)))
			return p;
		if (!depth && (*p == '}' || *p == ']'))
			return p + 1;
	}

	return end;
}

/*
 * The value of the object's member that has this name: its begin and its end. False: there is none.
 */
static bool find_value(const char *object, const char *end, const char *name, const char **ret,
	const char **ret_end)
{
	const char *p = skip_blank(object + 1, end);
	size_t n = strlen(name);

	while (p < end && *p == '"') {
		const char *key = p + 1;
		p = past(p, end);
		bool found = (size_t)(p - key) == n + 1 && !memcmp(key, name, n);
		p = skip_blank(p, end);                     /* the colon */
		p = skip_blank(p < end ? p + 1 : end, end); /* the value */
		const char *after = past_value(p, end);
		if (found) {
			*ret = p;
			*ret_end = after;
			return true;
		}
		p = skip_blank(after, end);
		if (p < end && *p == ',')
			p = skip_blank(p + 1, end);
	}

	return false;
}

/* ---- the new text --------------------------------------------------------------------------- */

/* Lines behind the first are moved to the right. */
static int append_indented(struct buffer *b, const char *value, const char *indent)
{
	int r = 0;
	for (; !r && *value; value++) {
		r = buffer_append_char(b, *value);
		if (!r && *value == '\n')
			r = buffer_append_str(b, indent);
	}
	return r;
}

static int append_member(
	struct buffer *b, const char *indent, const char *name, const char *value, bool more)
{
	int r = buffer_printf(b, "\n%s\"%s\": ", indent, name);
	if (!r)
		r = append_indented(b, value, indent);
	return r ? r : buffer_append_str(b, more ? "," : "\n");
}

/* Where the text is replaced, from `at` to `until`, and by which member. */
static int put_member(struct buffer *b, const char *text, const char *end, const char *member,
	const char *name, const char *value)
{
	_cleanup_buffer_ struct buffer servers = BUFFER_INIT(0);
	const char *top = skip_blank(text, end), *at, *until;
	bool inside = find_value(top, end, member, &at, &until), replaces = false;
	const char *object = inside ? at : top;

	if (inside)
		replaces = find_value(object, end, name, &at, &until);
	if (!replaces)
		at = until = object + 1;
	int r = buffer_append(b, text, (size_t)(at - text));
	bool more = !replaces && *skip_blank(until, end) != '}';
	if (!r && replaces) {
		r = append_indented(b, value, "    ");
	} else if (!r && inside) {
		r = append_member(b, "    ", name, value, more);
	} else if (!r) {
		r = buffer_append_char(&servers, '{');
		if (!r)
			r = append_member(&servers, "  ", name, value, false);
		if (!r)
			r = buffer_append_str(&servers, "}");
		const char *whole = r ? NULL : buffer_cstr(&servers);
		r = whole ? append_member(b, "  ", member, whole, more) : -ENOMEM;
	}
	return r ? r : buffer_append(b, until, (size_t)(end - until));
}

int config_merge(const char *text, size_t len, const char *member, const char *name,
	const char *value, struct error *e, struct buffer *ret)
{
	static const char empty[] = "{}\n";
	if (strspn(text, " \t\r\n") >= len) {
		text = empty;
		len = sizeof(empty) - 1;
	}
	json_t *before = parse(text, len, e);
	const json_t *servers = json_object_get(before, member);
	bool usable = before && (!servers || json_is_object(servers));
	if (before && !usable)
		error_set(e, -EINVAL, "the member \"%s\" of the file is not an object", member);
	json_decref(before);
	if (!usable)
		return -EINVAL;

	size_t start = ret->len;
	if (put_member(ret, text, text + len, member, name, value) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	json_t *after = parse(ret->data + start, ret->len - start, e); /* our own work, checked */
	json_t *wanted = json_loads(value, 0, NULL);
	bool good = json_equal(json_object_get(json_object_get(after, member), name), wanted);
	json_decref(after);
	json_decref(wanted);
	return good ? 0 : error_set(e, -EINVAL, "the file could not be changed safely");
}
