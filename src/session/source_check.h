/*
 * A question to the interpreter whether a source is complete. At most one is open; cells wait for
 * its answer, which always comes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct session;
struct wire_frame;

struct source_check {
	uint32_t serial;
	void (*answer)(void *userdata, const char *verdict); /* NULL: no question is open */
	void *userdata;
	uint64_t asked_ns;
};

/* Handles the guest's answer; false when the frame is not one. */
bool source_check_frame(struct session *s, const struct wire_frame *f);
void source_check_drop(struct session *s);   /* the interpreter died: the answer is "unknown" */
void source_check_expire(struct session *s); /* the same, when the answer takes too long */
