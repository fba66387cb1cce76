#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { LOG_LINE_MAX = 2048 };

static enum log_level threshold = LOG_INFO;
static const char *const names[] = { "debug", "info", "warning", "error", "none" };

void log_set_level(enum log_level level)
{
	threshold = level;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[LOG_LINE_MAX], when[CLOCK_TEXT_MAX];
	va_list ap;

	if (level < threshold)
		return;
	int head = snprintf(
		line, sizeof(line), "%s %s ", clock_format(clock_wall_ns(), when), names[level]);
	va_start(ap, fmt);
	int n = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	size_t len = strnlen(line, sizeof(line) - 2);
	for (size_t i = (size_t)head; i < len; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	/* a log that cannot be written has nowhere to say so */
	ssize_t w = write(STDERR_FILENO, line, len);
	(void)w;
}
