#include "session/idle_latency.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

enum { AWAKE_MS = 3 }; /* what comes within it is one series */

struct idle_latency {
	uv_timer_t timer; /* runs while CPUs are kept */
	uint64_t until_ms;
	int fd;
};

/* Microseconds a CPU may take to come back: 0 keeps it, -1 takes the wish back. */
static void wish(struct idle_latency *a, int32_t latency_us)
{
	if (write(a->fd, &latency_us, sizeof(latency_us)) != sizeof(latency_us))
		log_debug("the kernel refused the request to keep idle CPUs polling");
}

/*
 * Other drivers choose a light sleep by themselves when work keeps coming; with 0 they would burn
 * power for nothing.
 */
static bool is_haltpoll(const char *driver)
{
	char name[32] = "";
	_cleanup_fd_ int fd = open(driver, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 &&
	       strncmp(name, "haltpoll\n", sizeof("haltpoll\n") - 1) == 0;
}

struct idle_latency *idle_latency_create(uv_loop_t *loop, const char *driver, const char *device)
{
	if (!is_haltpoll(driver))
		return NULL;

	_cleanup_fd_ int fd = open(device, O_WRONLY | O_CLOEXEC);
	struct idle_latency *a = fd >= 0 ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return NULL;

	a->fd = TAKE_FD(fd);
	uv_timer_init(loop, &a->timer);
	return a;
}

static void on_time(uv_timer_t *timer)
{
	struct idle_latency *a = (struct idle_latency *)timer;
	uint64_t now = uv_now(timer->loop);
	if (now < a->until_ms)
		uv_timer_start(timer, on_time, a->until_ms - now, 0);
	else
		wish(a, -1);
}

void idle_latency_touch(struct idle_latency *a)
{
	if (!a)
		return;

	uint64_t now = uv_now(a->timer.loop);
	/* what comes now and then does not pay for CPUs that wait */
	bool first = now > a->until_ms;
	a->until_ms = now + AWAKE_MS;
	if (first || uv_is_active((uv_handle_t *)&a->timer))
		return;

	wish(a, 0);
	uv_timer_start(&a->timer, on_time, AWAKE_MS, 0);
}

static void closed(uv_handle_t *h)
{
	free(h);
}

void idle_latency_destroy(struct idle_latency *a)
{
	if (!a)
		return;
	close(a->fd);
	uv_close((uv_handle_t *)&a->timer, closed);
}
