/*
 * What a hostile guest may send: bytes into the reader, frames into an outcome, in two pieces cut
 * anywhere.
 */
#include <stdint.h>
#include <string.h>

#include "session/outcome.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct wire_reader *r, struct outcome *o, const uint8_t *data, size_t len)
{
	char *at;
	size_t room;
	struct wire_frame f;
	const struct bundle *display;
	if (wire_reader_room(r, len, &at, &room) < 0)
		return;
	memcpy(at, data, len);
	wire_reader_filled(r, len);
	while (wire_reader_next(r, &f) == 1)
		if (outcome_take(o, &f, &display) < 0)
			return;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_reader r;
	struct outcome o;
	if (!size)
		return 0;
	size_t cut = data[0] % size;
	wire_reader_init(&r, 1 << 16);
	outcome_init(&o);
	feed(&r, &o, data + 1, cut);
	feed(&r, &o, data + 1 + cut, size - 1 - cut);
	outcome_finish(&o);
	wire_reader_finish(&r);
	return 0;
}
