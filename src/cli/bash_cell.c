#include "cli/bash_cell.h"

#include <string.h>

#include "base/text.h"

/* The quote that is open at the end, '\\' for a backslash before the last newline, or 0. */
static char open_quote(const char *text, size_t len)
{
	char quote = 0;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (c == '\\' && quote != '\'') {
			if (i + 2 >= len && text[len - 1] == '\n')
				return '\\';
			i++;
		} else if (quote) {
			quote = c == quote ? 0 : quote;
		} else if (c == '#' && (!i || strchr(" \t\n;", text[i - 1]))) {
			while (i + 1 < len && text[i + 1] != '\n')
				i++;
		} else if (c == '\'' || c == '"') {
			quote = c;
		}
	}

	return quote;
}

/* Whether a block or a pipe is open behind the first line. */
static bool opens_block(const char *text, size_t len)
{
	static const char *const words[] = { "do", "then", "else", "{", "(", "|", "&&", "||",
		"in" };
	const char *end = memchr(text, '\n', len);
	size_t n = end ? (size_t)(end - text) : len, from;
	while (n && strchr(" \t\r", text[n - 1]))
		n--;
	for (from = n; from && !strchr(" \t", text[from - 1]);)
		from--;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i]) == n - from && !memcmp(words[i], text + from, n - from))
			return true;
	return memmem(text, n, "<<", 2) && !memmem(text, n, "<<<", 3);
}

bool bash_cell_is_complete(const char *text, size_t len)
{
	if (open_quote(text, len))
		return false;
	bool ended = len >= 2 && !memcmp(text + len - 2, "\n\n", 2);
	return ended || !opens_block(text, len);
}
