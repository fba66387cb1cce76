/* The target of a request as the log shows it. */
#pragma once

#include "base/limits.h"

/*
 * Writes the target into buf and returns buf. The values of all parameters that may be a token or a
 * key are hidden, since people read the log who have none; a long target is cut, since anybody may
 * send one.
 */
const char *logged_target(const char *target, char buf[LIMIT_LOGGED_TARGET_BYTES]);
