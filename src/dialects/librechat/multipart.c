#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "dialects/librechat/librechat.h"

enum { BOUNDARY_MAX = 70 };

/* "--" and the boundary of the type; false without a sound one. */
static bool delimiter_of(const char *type, char out[BOUNDARY_MAX + 3])
{
	const char *at = type ? strcasestr(type, "boundary=") : NULL;
	if (!at)
		return false;
	at += strlen("boundary=");
	size_t n = *at == '"' ? strcspn(++at, "\"") : strcspn(at, "; \t");
	if (!n || n > BOUNDARY_MAX)
		return false;
	snprintf(out, BOUNDARY_MAX + 3, "--%.*s", (int)n, at);
	return true;
}

/* The value of name="…" in a header. */
static void parameter(const char *head, size_t len, const char *name, char *out, size_t size)
{
	char key[32];
	int n = snprintf(key, sizeof(key), "%s=\"", name);
	const char *at = memmem(head, len, key, (size_t)n);

	/* filename="…" ends with name="…", too */
	while (at && at > head && at[-1] != ' ' && at[-1] != ';')
		at = memmem(at + 1, len - (size_t)(at + 1 - head), key, (size_t)n);
	out[0] = '\0';
	if (!at)
		return;
	at += n;
	const char *end = memchr(at, '"', len - (size_t)(at - head));
	size_t got = end ? (size_t)(end - at) : 0;
	if (got && got < size) {
		memcpy(out, at, got);
		out[got] = '\0';
	}
}

/* Where a delimiter begins that is a whole line or the last one ("--" behind it); NULL: nowhere. */
static const char *find_delimiter(const char *at, const char *end, const char *text, size_t n)
{
	while (at < end && (at = memmem(at, (size_t)(end - at), text, n))) {
		if (end - at >= (ptrdiff_t)n + 2 &&
			(!memcmp(at + n, "\r\n", 2) || !memcmp(at + n, "--", 2)))
			return at;
		at++;
	}
	return NULL;
}

int multipart_next(
	const char *content_type, const char *body, size_t len, size_t *at, struct form_part *ret)
{
	/* the first one may stand at the very beginning, the others end a line */
	char closing[BOUNDARY_MAX + 5] = "\r\n", *delimiter = closing + 2;
	if (!delimiter_of(content_type, delimiter))
		return -EINVAL;
	size_t n = strlen(delimiter);
	const char *end = body + len, *begin = find_delimiter(body + *at, end, delimiter, n);
	if (!begin)
		return -EINVAL;
	begin += n;
	if (!memcmp(begin, "--", 2))
		return 0;
	const char *head = begin + 2, *blank = memmem(begin, (size_t)(end - begin), "\r\n\r\n", 4);
	if (!blank)
		return -EINVAL;
	const char *data = blank + 4, *stop = find_delimiter(data, end, closing, n + 2);
	if (!stop)
		return -EINVAL;
	size_t head_len = blank > head ? (size_t)(blank - head) : 0;
	parameter(head, head_len, "name", ret->name, sizeof(ret->name));
	parameter(head, head_len, "filename", ret->filename, sizeof(ret->filename));
	ret->data = data;
	ret->len = (size_t)(stop - data);
	*at = (size_t)(stop + 2 - body);
	return 1;
}
