/*
 * The isolation layers of a jail, each tested by using it on this machine: the kernel may list a
 * feature as available and still refuse it.
 *
 * A server does not start if a layer is missing, unless the layer is optional or the operator
 * waived it by name; some layers cannot be waived. `glovebox doctor` shows the same, and /version
 * what a running server has.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum layer {
	LAYER_NAMESPACES,
	LAYER_MOUNTS,
	LAYER_SECCOMP,
	LAYER_LANDLOCK,
	LAYER_CGROUP,
	LAYER_COUNT
};

struct layer_state {
	bool there, waived;
	char detail[48];  /* "version 7", "v1" */
	struct error why; /* if the layer is missing: what failed, and how to repair it */
};

const char *layer_name(enum layer l);
bool layer_can_be_waived(enum layer l);
/* without it sessions have all they have with it, but for the consequence */
bool layer_is_optional(enum layer l);
const char *layer_consequence(enum layer l); /* of its absence */

/* Tries all of them, in children of this process that end at once. */
void layers_test(struct layer_state states[LAYER_COUNT]);

/*
 * Marks those that were waived (a list with NULL at its end, or NULL). -EINVAL for a name that is
 * none, or cannot be waived.
 */
int layers_waive(struct layer_state states[LAYER_COUNT], char *const *names, struct error *e);

/* -ENOTSUP and the first that is missing, not optional, and was not waived. */
int layers_check(const struct layer_state states[LAYER_COUNT], struct error *e);
