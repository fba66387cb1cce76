/*
 * Server-sent events as text: writing them, and reading them from a stream of bytes. No I/O.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/*
 * Appends one event. event and id may be NULL (line breaks in them become spaces). Every line of
 * data gets its own "data:" line, with CR, LF and CRLF each counting as a line break, so the reader
 * sees them all as LF.
 */
int sse_write(struct buffer *out, const char *event, const char *id, const char *data, size_t len);

/*
 * Reads events from bytes in pieces of any size. An event that is not complete when the stream ends
 * is dropped, as the standard says.
 */
struct sse_reader {
	/*
	 * Called for each event; texts are valid during the call. event is "message" when it was
	 * not named. A value other than 0 ends sse_feed() with it.
	 */
	int (*on_event)(
		const char *event, const char *id, const char *data, size_t len, void *userdata);
	void *userdata;
	/* private */
	struct buffer line, data;
	char event[64], id[96];
	bool after_cr, has_data;
};

void sse_reader_init(struct sse_reader *r, size_t max_event_bytes,
	int (*on_event)(
		const char *event, const char *id, const char *data, size_t len, void *userdata),
	void *userdata);
void sse_reader_finish(struct sse_reader *r);
/* 0, -ENOBUFS (an event is longer than allowed), -ENOMEM, or what on_event returned. */
int sse_feed(struct sse_reader *r, const char *data, size_t len);
