/* The START frame of a process: its program, arguments, environment and limits (wire/start.h). */
#pragma once

#include "base/buffer.h"
#include "session/processes/processes.h"

/*
 * The environment of a process: names once each, the last value given counts. Owned, NULL at the
 * end; NULL without memory.
 */
char **start_environment(const struct session *s, const struct process_request *q);

/* The working directory as an absolute path; owned, NULL without memory. */
char *start_directory(const struct process_request *q);

/* What is executed; owned, NULL at the end. NULL without memory. */
char **start_arguments(const struct process_request *q);

/* -E2BIG (slug "command_too_long") when it does not fit into one message. */
int start_frame(const struct session *s, const struct process_request *q, char *const *argv,
	char *const *env, const char *cwd, struct buffer *ret, struct error *e);
