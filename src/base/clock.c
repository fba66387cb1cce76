#include "base/clock.h"

#include <errno.h>
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

/* The fraction behind `at` in nanoseconds; returns what follows it. */
static const char *read_fraction(const char *at, uint64_t *ret_ns)
{
	uint64_t unit = NSEC_PER_SEC / 10;
	*ret_ns = 0;
	if (*at != '.')
		return at;
	for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10)
		*ret_ns += (uint64_t)(*at - '0') * unit;
	return at;
}

/* Seconds east of Greenwich; -EINVAL when this is no zone. */
static int read_zone(const char *at, int64_t *ret_s)
{
	struct tm zone = { 0 };
	if (!strcmp(at, "Z")) {
		*ret_s = 0;
		return 0;
	}
	const char *end = *at == '+' || *at == '-' ? strptime(at + 1, "%H:%M", &zone) : NULL;
	if (!end || *end)
		return -EINVAL;
	*ret_s = (*at == '-' ? -1 : 1) * (zone.tm_hour * 3600 + zone.tm_min * 60);
	return 0;
}

int clock_parse(const char *text, uint64_t *ret_wall_ns)
{
	struct tm when = { 0 };
	uint64_t fraction;
	int64_t east, seconds;
	const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &when);
	if (!at || read_zone(read_fraction(at, &fraction), &east) < 0)
		return -EINVAL;
	seconds = timegm(&when) - east;
	if (seconds < 0 || (uint64_t)seconds > UINT64_MAX / NSEC_PER_SEC - 1)
		return -EINVAL;
	*ret_wall_ns = (uint64_t)seconds * NSEC_PER_SEC + fraction;
	return 0;
}
