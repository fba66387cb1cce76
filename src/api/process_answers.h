/* Processes as JSON, and the events of one as they are sent to a client. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "session/processes/processes.h"

struct http_exchange;
struct json_writer;

/* The members of a process that runs or has ended; with `output` also what it printed. */
void answer_put_process(struct json_writer *w, struct session_process *p, bool output);

/* One client that follows a process by server-sent events. */
struct process_events {
	struct http_exchange *x;
	struct process_reader reader;
	bool base64, told_start, full, over;
	struct buffer held[2]; /* the start of a character that the next piece completes */
};
void process_events_finish(struct process_events *f);
/* Sends what there is. True when the process has ended and all of it was sent. */
bool process_events_pump(struct process_events *f);
