#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

char *clock_format(uint64_t wall_ns, char buf[CLOCK_TEXT_MAX])
{
	time_t s = (time_t)(wall_ns / NSEC_PER_SEC);
	struct tm tm;
	char day[24];
	gmtime_r(&s, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf, CLOCK_TEXT_MAX, "%s.%03uZ", day, (unsigned)(wall_ns / NSEC_PER_MSEC % 1000));
	return buf;
}
