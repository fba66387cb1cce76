/*
 * A stopwatch for the steps of a start and of a cell (wire/timing.h). One at a time; each step ends
 * where the next begins.
 */
#pragma once

#include "base/buffer.h"
#include "wire/timing.h"

void steps_begin(void);
void steps_end(enum lap s); /* the time since steps_begin or the last steps_end was this step's */

/* Puts what was measured into the frame that is being written, and forgets it. */
void steps_put(struct buffer *out);
