/* Time: deadlines on the monotonic clock, what people read on the wall clock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC 1000000000ULL

uint64_t clock_now_ns(void);  /* monotonic */
uint64_t clock_wall_ns(void); /* since the epoch */
enum { CLOCK_TEXT_MAX = 32 };

/* RFC 3339 in UTC with milliseconds, such as 2026-11-15T22:07:47.123Z; returns buf. */
char *clock_format(uint64_t wall_ns, char buf[CLOCK_TEXT_MAX]);
/* RFC 3339: a fraction of a second is allowed, a zone (Z or +hh:mm) is needed. -EINVAL. */
int clock_parse(const char *text, uint64_t *ret_wall_ns);
