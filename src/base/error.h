/*
 * One error for people and models: what is wrong, and what to do about it.
 *
 * Functions return 0 or a negative errno; those whose failure somebody will read also take a
 * `struct error *` (last but for outputs, may be NULL) and fill it on failure only. Callers add
 * context with error_wrap(); only the edge (an HTTP answer, the CLI, the log) shows it. Texts are
 * cut at their maximum, never allocated.
 */
#pragma once

enum { ERROR_TEXT_MAX = 512, ERROR_REMEDY_MAX = 384, ERROR_SLUG_MAX = 48 };

struct error {
	int err; /* negative errno, 0 when nothing failed */
	/* a word a program can match, such as "session_not_found"; may be empty */
	char slug[ERROR_SLUG_MAX];
	char text[ERROR_TEXT_MAX];     /* what is wrong */
	char remedy[ERROR_REMEDY_MAX]; /* what to do; may be empty */
};

/* Sets the error and returns err (negative errno), so that callers can `return error_set(…)`. */
int error_set(struct error *e, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As error_set, with ": " and the errno's own words behind the text. */
int error_set_errno(struct error *e, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Names the error for programs. Returns e->err (or -EINVAL without e). */
int error_slug(struct error *e, const char *slug);

/* Says what to do about it. Returns e->err (or -EINVAL without e). */
int error_remedy(struct error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the text. Returns e->err (or -EINVAL without e). */
int error_wrap(struct error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
