/*
 * Limits that a process of a session sets for itself: the only ones on machines without control
 * groups.
 */
#pragma once

#include <stdbool.h>

#include "wire/wire.h"

/*
 * Applies a field that is a limit (processes, file size, open files, CPU seconds); false when it is
 * none.
 */
bool own_limits_apply(const struct wire_field *f);
