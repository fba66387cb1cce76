/*
 * The structs into which requests are decoded, and the tables that describe the decoding. Release
 * with fields_finish() and the same table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/schema/fields.h"
#include "api/schema/requests_display.h"
#include "api/script.h"
#include "session/session.h"

struct execute_request {
	struct field_text code, input;
	double timeout_s;
	bool detach;
	char *variables; /* JSON text of an object, or NULL */
	bool typed_result, data_forms, printed_answer;
	bool capture_screenshot, has_screenshot, has_render_timeout;
	double render_timeout;
	struct screenshot_request screenshot;
	enum on_block on_block;
	bool record;
	struct recording_params recording;
	bool has_transaction, transaction;
	char *context; /* or NULL: the default one */
};

struct run_request {
	struct session_params session;
	struct execute_request execute;
	struct field_files files;
	enum script_language language;
	char **arguments; /* NULL at the end; or NULL */
};

struct tools_request {
	json_t *tools; /* an array */
};

struct tool_error {
	char *type;
	struct field_text message;
};

/* How a call of a tool went: an error when that has a type, else the value (NULL: null). */
struct tool_answer {
	uint64_t call; /* WebSocket only: over HTTP the address says it */
	json_t *value;
	struct tool_error error;
};

/* A WebSocket message; each of the parts is there for its own type only. */
struct socket_request {
	char *id; /* JSON text */
	char *type;
	struct execute_request execute;
	struct tools_request tools;
	struct tool_answer answer;
};

struct calls_query {
	double wait_s;
};

/* A checkpoint to take, or one to go back to. */
struct checkpoint_request {
	char *name, *checkpoint;
	bool undo;
};

/* A session to make, of its own or (from) from another one's state. */
struct create_request {
	struct session_params session;
	char *from;
	bool has_reseed, reseed;
};

struct fork_body {
	char *at;
	uint64_t count; /* 0: one */
	bool has_reseed, reseed;
};

struct session_query {
	char *name, *state;
	struct field_match metadata;
	uint64_t limit, cursor;
	bool usage;
};

struct log_query {
	bool has_cell;
	uint64_t cell, after, limit;
	char *stream;
};

struct list_query {
	char *path;
	bool recursive, watch;
	uint64_t limit;
};

extern const struct fields create_fields;  /* struct create_request */
extern const struct fields session_fields; /* struct session_params; what dialects take */
/* struct session_params, its want_packages alone */
extern const struct fields packages_fields;
extern const struct fields execute_fields;        /* struct execute_request */
extern const struct fields run_fields;            /* struct run_request */
extern const struct fields socket_execute_fields; /* struct socket_request */
/* struct socket_request without the execute part */
extern const struct fields socket_plain_fields;
extern const struct fields socket_tools_fields;                /* struct socket_request */
extern const struct fields socket_answer_fields;               /* struct socket_request */
extern const struct fields tools_fields;                       /* struct tools_request */
extern const struct fields tool_answer_fields;                 /* struct tool_answer */
extern const struct fields fork_fields;                        /* struct fork_body */
extern const struct fields checkpoint_fields, rollback_fields; /* struct checkpoint_request */
extern const struct fields no_fields;                          /* an empty object */

/* A rollback says where to, once. -EINVAL. */
int rollback_check(const struct checkpoint_request *q, struct error *e);

/* The cell that a request asks for; texts stay the request's. */
void execute_cell_request(const struct execute_request *q, struct cell_request *ret);

extern const struct fields session_query_fields;
extern const struct fields log_query_fields;
extern const struct fields list_query_fields;
extern const struct fields calls_query_fields; /* struct calls_query */

extern const char *const socket_types[]; /* NULL at the end */
