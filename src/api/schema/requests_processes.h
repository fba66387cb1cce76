/*
 * The structs into which requests about processes are decoded. Release with fields_finish() and the
 * same table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/schema/fields.h"

struct terminal_size {
	uint64_t rows, columns; /* 0: the default */
};

struct process_body {
	struct field_text command, input;
	char **argv, **env;
	char *cwd, *tag, *encoding;
	double timeout_s;
	bool has_terminal, background, keep_input;
	struct terminal_size terminal;
};

struct process_input {
	struct field_text text;
	char *base64;
	bool close;
};

struct process_signal_body {
	char *name;
};

struct process_stream_query {
	uint64_t after;
	char *encoding;
};

struct context_body {
	char *cwd;
};

extern const struct fields context_fields;        /* struct context_body */
extern const struct fields process_fields;        /* struct process_body */
extern const struct fields process_input_fields;  /* struct process_input */
extern const struct fields process_signal_fields; /* struct process_signal_body */
extern const struct fields process_resize_fields; /* struct terminal_size */
extern const struct fields process_stream_query_fields;

/* The number of a signal by its name ("TERM", "SIGTERM"), or -1. */
int process_signal_number(const char *name);
