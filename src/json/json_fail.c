#include "json/json_fail.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

/*
 * Beyond so many bytes an error tells no line and column: counting them takes longer than reading
 * the text.
 */
enum { LOCATE_BYTES = 1024 * 1024 };

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

int json_fail(const char *text, size_t at, const char *slug, const char *what, struct error *e)
{
	size_t line, column;
	if (at > LOCATE_BYTES) {
		error_set(e, -EINVAL, "malformed JSON at byte %zu: %s", at, what);
	} else {
		locate(text, at, &line, &column);
		error_set(e, -EINVAL, "malformed JSON at line %zu, column %zu: %s", line, column,
			what);
	}
	set_slug(e, slug);
	return -EINVAL;
}
