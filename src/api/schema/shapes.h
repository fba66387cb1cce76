/*
 * The fields of answers, for /openapi.json and /docs: tables beside the code that writes the
 * answers.
 */
#pragma once

#include <stddef.h>

struct json_writer;
struct shape;

struct shape_row {
	const char *name;
	/* "string", "integer", "number", "boolean", "object", "array", "any" */
	const char *type;
	const struct shape *of; /* of an object, or of an array's items */
	int nullable;
	const char *help;
};

struct shape {
	const char *name;
	const struct shape_row *row;
	size_t n;
	const char *open_help; /* members have names of their own (a map); what they are */
};

extern const struct shape shape_problem, shape_session, shape_session_list, shape_observation,
	shape_log, shape_file_list, shape_file, shape_tool_list, shape_call_list, shape_interrupted,
	shape_status, shape_version;
extern const struct shape shape_checkpoint_answer, shape_checkpoint_list, shape_rollback_answer,
	shape_forks;
extern const struct shape shape_packages, shape_window_list, shape_input, shape_recording,
	shape_recording_list, shape_profile_list, shape_live_link, shape_batch_line, shape_verdict;

extern const struct shape shape_process, shape_process_list, shape_context, shape_context_list,
	shape_port, shape_port_list; /* shapes_processes.c */

extern const struct shape *const shapes[]; /* those with a schema of their own; NULL at the end */

void shape_write_schema(const struct shape *s, struct json_writer *w);
