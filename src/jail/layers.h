/*
 * The layers of a jail's wall, each tested by doing it on this machine: what is listed as available may still be refused.
 *
 * A server does not start without one of them, unless who runs it waived that one by name; some cannot be waived. `glovebox doctor`
 * shows the same, and /version what a running server has.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum layer { LAYER_NAMESPACES, LAYER_MOUNTS, LAYER_SECCOMP, LAYER_LANDLOCK, LAYER_CGROUP, LAYER_COUNT };

struct layer_state {
	bool there, waived;
	char detail[48];  /* "version 7", "v1" */
	struct error why; /* when it is not there: what failed and what to do */
};

const char *layer_name(enum layer l);
bool layer_can_be_waived(enum layer l);
const char *layer_consequence(enum layer l); /* of its absence */

/* Tries all of them, in children of this process that end at once. */
void layers_test(struct layer_state states[LAYER_COUNT]);

/* Marks those that were waived (a list with NULL at its end, or NULL). -EINVAL for a name that is none, or cannot be waived. */
int layers_waive(struct layer_state states[LAYER_COUNT], char *const *names, struct error *e);

/* -ENOTSUP and the first that is missing and was not waived. */
int layers_check(const struct layer_state states[LAYER_COUNT], struct error *e);
