/* What requests decode to, and the tables that say how. Release with fields_finish() and the same table. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/fields.h"
#include "session/session.h"

struct execute_request {
	struct field_text code, input;
	double timeout_s;
	bool detach;
};

struct run_request {
	struct session_params session;
	struct execute_request execute;
	struct field_files files;
};

/* A WebSocket message; the execute part is there for type "execute" only. */
struct socket_request {
	char *id; /* JSON text */
	char *type;
	struct execute_request execute;
};

struct session_query {
	char *name, *state;
	struct field_match metadata;
	uint64_t limit, cursor;
};

struct log_query {
	bool has_cell;
	uint64_t cell, after, limit;
	char *stream;
};

struct list_query {
	char *path;
	bool recursive;
	uint64_t limit;
};

extern const struct fields session_fields;        /* struct session_params */
extern const struct fields execute_fields;        /* struct execute_request */
extern const struct fields run_fields;            /* struct run_request */
extern const struct fields socket_execute_fields; /* struct socket_request */
extern const struct fields socket_plain_fields;   /* struct socket_request without the execute part */
extern const struct fields no_fields;             /* an empty object */

extern const struct fields session_query_fields;
extern const struct fields log_query_fields;
extern const struct fields list_query_fields;

extern const char *const socket_types[]; /* NULL at the end */
