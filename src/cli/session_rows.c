#include "cli/session_rows.h"

#include <stdio.h>
#include <time.h>

const char *session_word(const json_t *session, const char *key)
{
	const char *s = json_string_value(json_object_get(session, key));
	return s ? s : "-";
}

/* From a time such as 2026-11-15T22:07:47.123Z. */
double session_age(const json_t *session)
{
	struct tm when = { 0 };
	if (!strptime(session_word(session, "created"), "%Y-%m-%dT%H:%M:%S", &when))
		return 0;
	return difftime(time(NULL), timegm(&when));
}

void session_print_plain(const char *s, int width)
{
	int n = 0;
	for (; *s && n < width; s++, n++)
		putchar((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
	printf("%*s  ", width > n ? width - n : 0, "");
}
