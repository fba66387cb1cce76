/* Test Anything Protocol: OK(condition) prints a line; a test ends with `return tap_done();`. */
#pragma once

#include <stdio.h>
#include <string.h>

static int tap_count_, tap_failed_;

#define OK(condition)                                                                     \
	do {                                                                              \
		int ok_ = !!(condition);                                                  \
		tap_failed_ += !ok_;                                                      \
		printf("%sok %d - %s:%d %s\n", ok_ ? "" : "not ", ++tap_count_, __func__, \
			__LINE__, #condition);                                            \
		fflush(stdout);                                                           \
	} while (0)

#define OK_STR(got, want)                                                        \
	do {                                                                     \
		const char *got_ = (got), *want_ = (want);                       \
		int same_ = got_ && want_ && !strcmp(got_, want_);               \
		OK(same_);                                                       \
		if (!same_)                                                      \
			printf("# got  %s\n# want %s\n", got_ ? got_ : "(null)", \
				want_ ? want_ : "(null)");                       \
	} while (0)

static inline int tap_done(void)
{
	printf("1..%d\n", tap_count_);
	return tap_failed_ ? 1 : 0;
}
