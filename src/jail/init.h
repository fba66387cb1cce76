/* Pid 1 of a jail: reaps, sweeps on request, and is the handle by which the jail is killed. */
#pragma once

#include <stdint.h>

struct jail_request;
struct jail_network;

/*
 * What a new init tells the jailer; with err 0 it brings [far end of its control socket, /workspace
 * as O_PATH, what listens …].
 */
struct init_report {
	int32_t err;
	char step[64];
};

/* In the jailer, before the first init: makes the filter they will serve under. */
int init_prepare(void);

/*
 * Everything the init does, from its birth in the new namespaces to its end. `go` is read once the
 * user map is written; `report` takes one struct init_report.
 */
void __attribute__((noreturn))
init_run(int go, int report, const struct jail_request *q, const struct jail_network *n);
