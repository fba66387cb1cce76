/*
 * The output of a session: what the running cell printed (capped), and the log of everything it
 * printed.
 */
#pragma once

#include "session/output.h"
#include "session/output_log.h"

struct session_output {
	struct output stream[2]; /* by enum stream */
	/* bytes of an unfinished character, told to the observer with the bytes that follow */
	size_t partial_len[2];
	char partial[2][4];
	struct output_log log;
};

/* The guest printed: counts, logs and caps the data, and tells the observer of the running cell. */
void session_guest_output(struct session *s, enum stream stream, const char *data, size_t len);
/*
 * Passes complete characters to the observer of the running cell; up to three bytes of an
 * incomplete character wait for the rest.
 */
void session_tell_output(struct session *s, enum stream stream, const char *data, size_t len);
