#include "display/protocol.h"

#include "wire/wire.h"

int display_frame(struct buffer *b, unsigned type, uint32_t serial, const void *options, size_t len)
{
	size_t start;
	int r = wire_begin(b, (enum wire_type)type, serial, &start);
	if (r == 0 && len)
		r = wire_put(b, (enum wire_tag)DISPLAY_TAG_OPTIONS, options, len);
	if (r == 0)
		wire_end(b, start);
	return r;
}
