/*
 * Keeps the CPUs of a virtual machine awake while cells arrive. A small cell is four messages, each
 * to a process that sleeps, and a virtual CPU without work is given back to the host: getting it
 * back takes longer than the work itself. The kernel can be asked to let idle CPUs poll for work
 * instead (PM QoS, /dev/cpu_dma_latency; any process that is ready has the CPU at once). Polling
 * uses CPU time of the host, so it is requested only while cells follow each other closely, and
 * cancelled milliseconds after the last cell.
 *
 * Only where it helps and is allowed: Linux as a guest with the haltpoll driver, and a daemon that
 * may open the device. Elsewhere there is no struct idle_latency, and the functions take NULL. The
 * kernel cancels the request when the daemon dies.
 */
#pragma once

#include <uv.h>

struct idle_latency;

/* Where the kernel names its driver for idle CPUs, and takes wishes. */
#define IDLE_LATENCY_DRIVER "/sys/devices/system/cpu/cpuidle/current_driver"
#define IDLE_LATENCY_DEVICE "/dev/cpu_dma_latency"

/* NULL where it would not help or is not allowed. Destroying ends with the loop's next turn. */
struct idle_latency *idle_latency_create(uv_loop_t *loop, const char *driver, const char *device);
void idle_latency_destroy(struct idle_latency *a);

/* Somebody waits for an answer. */
void idle_latency_touch(struct idle_latency *a);
