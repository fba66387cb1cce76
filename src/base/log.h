/*
 * Log lines on stderr: `2026-11-15T22:07:47.123Z info message`. Only the edges log (daemon, CLI);
 * libraries return errors. Control characters in the text are shown escaped, so that nobody forges
 * a line.
 */
#pragma once

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_NONE };

void log_set_level(enum log_level level);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
