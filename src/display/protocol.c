#include "display/protocol.h"

#include "wire/wire.h"

const char *const film_names[FILM_FORMATS + 1] = { "apng", "webm", "mp4", "gif", NULL };
const char *const film_media_types[FILM_FORMATS] = { "image/apng", "video/webm", "video/mp4",
	"image/gif" };

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
