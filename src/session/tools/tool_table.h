/* The definitions of a session's tools, checked; private to src/session. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct tool_client_ops;

struct tool {
	char *name;
	json_t *definition; /* owned */
	double timeout_s;
	uint64_t max_calls, calls; /* max_calls 0: no limit */
	bool is_source;            /* runs in the session alone */
	bool is_input;             /* answers input(); at most one of a table */
	bool lost;                 /* its client left */
	const struct tool_client_ops *ops;
	void *client;
};

struct tool_table {
	struct tool *tool;
	size_t n;
};

/*
 * What `old` becomes when a client gives these definitions: its own are replaced, others of the
 * same name taken over. `old` is as before; *ret is the caller's. Errors as session_set_tools().
 */
int tool_table_merge(const struct tool_table *old, const json_t *definitions,
	const struct tool_client_ops *ops, void *client, struct tool_table *ret, struct error *e);

void tool_table_finish(struct tool_table *t);
struct tool *tool_table_find(const struct tool_table *t, const char *name); /* or NULL */
/* JSON text of all definitions; the caller frees it */
char *tool_table_dump(const struct tool_table *t);
