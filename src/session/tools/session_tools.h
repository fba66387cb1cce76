/*
 * Tools: functions of a client that code in a session can call.
 *
 * A client gives definitions (name, JSON schemas, time limit, …). In the session they are ordinary
 * functions; a call becomes a frame of the guest, is checked against the schema here, and is passed
 * to the client. The answer takes the same way back and is checked against the schema as well. Any
 * failure on the way becomes an exception in the cell, and never ends the session.
 *
 * A tool belongs to the client that gave it last. There are two kinds of clients: clients that get
 * calls pushed (ops; a WebSocket), and the polling client (no ops; HTTP), which all polling
 * requests share. A client that disconnects calls session_drop_tools(); the functions stay defined,
 * and calls fail with an error that no client is connected.
 *
 * The clock of a cell stands still while calls wait for their answers, up to
 * LIMIT_TOOL_PAUSE_SECONDS in all; each call has a time limit of its own.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"

struct session;

struct tool_call {
	uint64_t id; /* counts the calls of a session, from 1 */
	const char *tool;
	unsigned cell;
	/* JSON text of an object; valid during the call that hands this out */
	const char *arguments;
	size_t arguments_len;
};

/*
 * What a client that is told hears. Neither may call back into the session but
 * session_answer_call().
 */
struct tool_client_ops {
	void (*on_call)(void *client, const struct tool_call *call);
	/* The answer is no longer wanted: `why` is a clause such as "its time limit had passed". */
	void (*on_cancel)(void *client, uint64_t id, const char *why);
};

/*
 * Gives the session the tools of one client, in place of those it gave before; names of other clients' tools are taken over. The
 * functions are there from the next cell on. `definitions` is an array of objects:
 *
 *   name          a Python identifier
 *   description   its docstring
 *   parameters    a schema of type object; its properties are the parameters, in their order
 *   returns       a schema, or nothing: then anything may come back
 *   timeout_s     of one call; 60
 *   max_calls     of this tool, until tools are given again; no limit
 *   async         true: awaited in the session
 *   source        Python source that defines the function in the session itself; nothing is ever asked of the client
 *   input         true: no function; input() and getpass() of cells without a text on stdin call it with
 *                 {"prompt": string, "password": boolean}, and get a line
 *
 * -EINVAL (slug "invalid_tool" or "invalid_schema"), -E2BIG ("too_many_tools").
 */
int session_set_tools(struct session *s, const json_t *definitions,
	const struct tool_client_ops *ops, void *client, struct error *e);

/* The client disconnected: its pending calls, and later calls, fail in the cell. */
void session_drop_tools(struct session *s, const void *client);

/* The i-th definition, NULL behind the last. *ret_calls: how often it was called. */
const json_t *session_tool(const struct session *s, size_t i, uint64_t *ret_calls);

/*
 * The answer to a call: a value, or an error by the name of its class and its text. -ENOENT (slug
 * "call_not_found") when nobody waits for it: it was answered, its time was over, its cell ended,
 * or it is another client's.
 */
int session_answer_call(
	struct session *s, const void *client, uint64_t id, const json_t *value, struct error *e);
int session_fail_call(struct session *s, const void *client, uint64_t id, const char *type,
	const char *message, struct error *e);

/* ---- the client that asks ---------------------------------------------- */

bool session_has_calls(const struct session *s); /* that nobody fetched yet */

/*
 * Returns the next call that no client has fetched yet: 1 and *ret (each call is returned once), or
 * 0.
 */
int session_next_call(struct session *s, struct tool_call *ret);

/*
 * Waits for a call: on_calls comes once, when session_next_call() has something (s) or the session
 * ended (NULL).
 */
struct tool_waiter {
	void (*on_calls)(struct tool_waiter *w, struct session *s);
	TAILQ_ENTRY(tool_waiter) link;
	struct session *session; /* private; NULL when it no longer waits */
};
/* -EBUSY (slug "too_many_pollers"). */
int session_wait_calls(struct session *s, struct tool_waiter *w, struct error *e);
void session_stop_waiting(struct tool_waiter *w); /* fine at any time */
