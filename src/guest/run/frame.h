/* Frames whose creation may run code of the cell. */
#pragma once

#include "base/buffer.h"
#include "wire/wire.h"

/*
 * A frame is made apart and goes out whole: while it is made, code of the cell's may run (a text's
 * error handler, __str__ of an exception) or another thread, and a display() there sends a frame of
 * its own. A frame that does not fit is left out.
 */
static inline void frame_put(struct buffer *out, struct buffer *frame, size_t start)
{
	wire_end(frame, start);
	buffer_append(out, frame->data, frame->len);
}
