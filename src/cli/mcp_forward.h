/*
 * One JSON-RPC message of `glovebox mcp`: from stdin to the server's POST /mcp, and the answer to
 * stdout. Private to mcp_*.c.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/queue.h>

struct mcp_bridge_config;

/* A line of stdin. */
struct mcp_message {
	TAILQ_ENTRY(mcp_message) link;
	json_t *tree;
	char *line;
	size_t len;
	int cancel_fd;         /* an eventfd that ends the call; -1 while no thread has it */
	atomic_bool cancelled; /* the host wants no answer */
};

struct mcp_message *mcp_message_create(
	json_t *tree, const char *line, size_t len); /* takes the tree over; NULL: no memory */
void mcp_message_destroy(struct mcp_message *m);

/* For the lock's owner: a thread takes the message, or the host wants no answer any more. */
void mcp_message_start(struct mcp_message *m);
void mcp_message_cancel(struct mcp_message *m);

/*
 * Sends the message and writes its answers. Blocks until the last one, or until it is cancelled,
 * which closes the connection.
 */
void mcp_forward(const struct mcp_bridge_config *config, struct mcp_message *m);

/* Closes connections that no request uses, which a server that ends would wait for. */
void mcp_forward_end(void);

/* A JSON-RPC error on stdout; id may be NULL. */
void mcp_write_error(const json_t *id, int code, const char *text);

/* ---- mcp_lease.c -------------------------------------------------------------------- */

enum { MCP_LEASE_ID = 40 };

/* Opens GET /mcp/lease in a thread of its own and waits for its first answer. */
int mcp_lease_start(const struct mcp_bridge_config *config, struct error *e);
/* "" when there is none; one that was lost is waited for, for a second at most. */
void mcp_lease_id(char ret[MCP_LEASE_ID]);
void mcp_lease_end(void); /* closes it: the server ends the sessions */

/* A detached thread with a small stack. */
int mcp_thread_start(void *(*run)(void *), void *argument);
