/*
 * Requests about the history and the contents of a session: cells, events, variables, changes of a
 * session.
 */
#pragma once

#include "api/schema/fields.h"
#include "session/cells/session_cells.h"

struct cells_query {
	uint64_t after, limit, last;
};

struct events_query {
	char *session, *after;
	bool has_output, output;
};

struct archive_query {
	char *path;
};

struct volume_request {
	char *name;
	uint64_t quota_bytes; /* 0: not said */
};

struct export_query {
	char *format;
};

struct resume_request {
	double ttl_s; /* 0: not said */
};

struct drain_request {
	double deadline_s; /* 0: none */
};

struct introspect_request {
	struct field_text code;
	bool has_cursor;
	uint64_t cursor;
};

extern const struct fields cells_query_fields;    /* struct cells_query */
extern const struct fields events_query_fields;   /* struct events_query */
extern const struct fields archive_query_fields;  /* struct archive_query */
extern const struct fields volume_fields;         /* struct volume_request */
extern const struct fields export_query_fields;   /* struct export_query */
extern const struct fields session_update_fields; /* struct session_update */
extern const struct fields resume_fields;         /* struct resume_request */
extern const struct fields drain_fields;          /* struct drain_request */
extern const struct fields introspect_fields;     /* struct introspect_request */
