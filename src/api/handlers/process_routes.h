/* The handlers of processes and contexts. */
#pragma once

struct call;

void handle_context_create(struct call *c);
void handle_context_list(struct call *c);
void handle_context_delete(struct call *c);
void handle_context_restart(struct call *c);
void handle_process_start(struct call *c);
void handle_process_list(struct call *c);
void handle_process_get(struct call *c);
void handle_process_stream(struct call *c);
void handle_process_stdin(struct call *c);
void handle_process_signal(struct call *c);
void handle_process_resize(struct call *c);
void handle_process_delete(struct call *c);
