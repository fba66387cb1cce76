/*
 * Keeps a virtual machine's CPUs at hand while cells come. A small cell is four messages, each to a process
 * that sleeps, and a virtual CPU without work is given back to the host: to have it again takes longer than
 * the work itself. The kernel can be asked to let idle CPUs look out for work instead (PM QoS,
 * /dev/cpu_dma_latency; any process that is ready has the CPU at once). That costs the host time, so it is
 * asked for only while cells follow each other closely, and taken back milliseconds after the last.
 *
 * Only where it helps and is allowed: Linux as a guest with the haltpoll driver, and a daemon that may open
 * the device. Elsewhere there is no struct idle_latency, and the functions take NULL. The kernel takes the wish back
 * when the daemon dies.
 */
#pragma once

#include <uv.h>

struct idle_latency;

/* Where the kernel names its driver for idle CPUs, and takes wishes. */
#define AWAKE_DRIVER "/sys/devices/system/cpu/cpuidle/current_driver"
#define AWAKE_DEVICE "/dev/cpu_dma_latency"

/* NULL where it would not help or is not allowed. Destroying ends with the loop's next turn. */
struct idle_latency *idle_latency_create(uv_loop_t *loop, const char *driver, const char *device);
void idle_latency_destroy(struct idle_latency *a);

/* Somebody waits for an answer. */
void idle_latency_touch(struct idle_latency *a);
