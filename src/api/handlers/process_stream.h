/* Clients that wait for a process or follow it (private to the handlers of processes). */
#pragma once

struct call;
struct process_body;
struct process_request;

/* The texts stay the body's. */
void process_request_of(const struct process_body *q, struct process_request *ret);

/*
 * Starts what the body says and answers: at once in the background, else at its end or by events.
 */
void process_stream_start(struct call *c, const struct process_body *q);
