/*
 * The watchdog of the pool: every wait for a helper process or for a copy of a guest has a limit.
 *
 * A jailer or zygote that does not answer is killed and replaced. /readyz says 503 from that moment until the new one serves. A sandbox whose
 * nested jail or whose copy does not come fails alone: code of a session may cause that.
 *
 * Limits are counted in ticks of a timer of the loop, not in time: a daemon that was stopped itself has not given its helpers a chance.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct sandbox_pool;

struct watchdog {
	uv_timer_t timer;
	unsigned unanswered; /* ticks since a request for a sign of life was sent to the jailer and not answered; 0 for none */
	unsigned until_ping; /* ticks before the next one */
	unsigned warming;    /* ticks since the zygote runs and is not warm */
	unsigned starting;   /* ticks since the jailer was started and did not say that it is able to serve */
};

void watchdog_start(struct sandbox_pool *n);
void watchdog_stop(struct sandbox_pool *n, uv_close_cb closed); /* the timer is closed; its data is the pool */
void watchdog_answered(struct sandbox_pool *n);  /* the jailer has answered something */
void watchdog_jailer_new(struct sandbox_pool *n); /* another jailer was started */

/* What is being replaced, for /readyz; NULL when all is well. */
const char *watchdog_complaint(const struct sandbox_pool *n);

/* A serial that no sandbox has: of a request for a sign of life. */
enum { WATCHDOG_SERIAL = 0x7fffffff };
