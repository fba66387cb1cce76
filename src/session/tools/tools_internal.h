/*
 * What sessions need of their tools: frames of the guest, definitions for the guest, deadlines of
 * calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct session;
struct wire_frame;

/* Handles TOOL_CALL and TOOL_CANCEL; -EPROTO for an invalid frame. */
int tools_take(struct session *s, const struct wire_frame *f);
/* Sends the definitions, when the guest does not have them. */
void tools_send(struct session *s, bool fresh_guest);
/* The next deadline of the calls that wait; UINT64_MAX for none. */
uint64_t tools_next_deadline(const struct session *s);
void tools_expire(struct session *s, uint64_t now_ns);
void tools_end_cell(struct session *s);
void tools_finish(struct session *s);
