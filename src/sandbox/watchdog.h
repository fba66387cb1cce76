/*
 * The watchdog of the pool: every wait for a helper process or for a copy of a guest has a limit.
 *
 * A jailer or zygote that does not answer is killed and replaced. /readyz says 503 from that moment
 * until the new one serves. If a nested jail or a copy of a guest is not ready in time, only its
 * sandbox fails: code of a session can cause such a delay.
 *
 * Limits are counted in ticks of a timer of the loop, not in time: helpers cannot answer while the
 * daemon itself is stopped.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct sandbox_pool;

struct watchdog {
	uv_timer_t timer;
	/* ticks since a request for a sign of life was sent to the jailer and not answered; 0 for
	 * none */
	unsigned unanswered;
	unsigned until_ping; /* ticks before the next one */
	unsigned warming;    /* ticks since the zygote runs and is not warm */
	/* ticks since the jailer was started and did not say that it is able to serve */
	unsigned starting;
};

void watchdog_start(struct sandbox_pool *n);
/* the timer is closed; its data is the pool */
void watchdog_stop(struct sandbox_pool *n, uv_close_cb closed);
void watchdog_answered(struct sandbox_pool *n);   /* the jailer has answered something */
void watchdog_jailer_new(struct sandbox_pool *n); /* another jailer was started */

/* What is being replaced, for /readyz; NULL when all is well. */
const char *watchdog_complaint(const struct sandbox_pool *n);

/* A serial that no sandbox has: of a request for a sign of life. */
enum { WATCHDOG_SERIAL = 0x7fffffff };
