/*
 * WebSocket frames: no bytes bring the engine down, and messages are valid UTF-8 within the limit
 * however the bytes are cut.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "base/text.h"
#include "http/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct buffer out;
	struct ws *ws;
	size_t messages, bytes;
};

static void on_message(const char *text, size_t len, void *userdata)
{
	struct run *r = userdata;
	assert(text_is_utf8(text, len) && len <= LIMIT_WS_MESSAGE_BYTES && !ws_is_closing(r->ws));
	r->messages++;
	r->bytes += len;
	ws_send(r->ws, text, len);
}

static struct run run(const uint8_t *data, size_t size, size_t step)
{
	struct run r = { .out = BUFFER_INIT(0) };
	r.ws = ws_create(&r.out, on_message, &r);
	for (size_t at = 0; at < size && !ws_is_over(r.ws); at += step) {
		assert(ws_feed(r.ws, (const char *)data + at,
			       size - at < step ? size - at : step) == 0);
		assert(ws_queued(r.ws) == 0 || ws_is_closing(r.ws));
	}
	ws_close(r.ws, WS_CLOSE_NORMAL, NULL);
	assert(ws_is_closing(r.ws) && ws_send(r.ws, "x", 1) < 0);
	ws_destroy(r.ws);
	buffer_finish(&r.out);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct run whole = run(data + 1, size - 1, size),
		   cut = run(data + 1, size - 1, 1 + data[0] % 16);
	assert(whole.messages == cut.messages && whole.bytes == cut.bytes);
	return 0;
}
