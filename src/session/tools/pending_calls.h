/*
 * The tools of a session and their calls that wait for an answer; private to this folder. A call is
 * in `pending` from when it was checked until it is answered, cancelled, or its time limit or its
 * cell is over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/limits.h"
#include "base/memory_account.h"
#include "session/tools/session_tools.h"
#include "session/tools/tool_table.h"
#include "wire/wire.h"

struct pending {
	TAILQ_ENTRY(pending) link;
	uint64_t id, number; /* ours, and the guest's */
	struct tool *tool;
	unsigned cell;
	char *arguments;
	struct hold held; /* the arguments */
	uint64_t deadline_ns;
	double timeout_s;
	bool fetched; /* by a client that asks */
};

TAILQ_HEAD(pending_list, pending);
TAILQ_HEAD(waiter_list, tool_waiter);

struct tools {
	struct tool_table table;
	struct pending_list pending;
	struct waiter_list waiters;
	unsigned n_pending, n_waiters, calls_of_cell;
	uint64_t next_id;
	bool unsent;              /* the guest does not know the definitions */
	struct hold held;         /* of the table */
	uint64_t packages_number; /* of the guest's call that waits for packages; 0: none */
};

/* A call as the guest sends it. */
struct asked {
	uint64_t number;
	char name[LIMIT_NAME_BYTES + 1];
	const char *arguments;
	size_t len;
};

/* The session's tools, made when there are none; NULL without memory. */
struct tools *tools_of(struct session *s);

/* ---- answers to the guest ---- */

void tools_send_result(struct session *s, uint64_t number, enum wire_tag tag, const char *text,
	size_t len, const char *type);
void tools_send_failure(struct session *s, uint64_t number, const char *type, const char *text);

/* ---- calls that wait ---- */

void tools_forget(struct session *s, struct pending *p);     /* frees it */
void tools_cancel(const struct pending *p, const char *why); /* tells its client */
void tools_hand_over(struct session *s, struct pending *p);  /* to its client */

/* ---- tool_packages.c ---- */

void tools_ask_packages(struct session *s, const struct asked *asked);
/*
 * The guest's call that waits for packages; 0: none does any more. The clock of the cell stands
 * still meanwhile.
 */
void tools_wait_for_packages(struct session *s, uint64_t number);
