/* A part of a file of a session, for tools and resources of MCP. */
#pragma once

#include "dialects/mcp/mcp.h"

struct mcp_file {
	struct buffer data;
	uint64_t size, offset;
	bool truncated, is_text;
	const char *mime; /* of a whole picture, else NULL */
};

/*
 * Reads at most `limit` bytes (0: a default) from a path below /workspace. End it with
 * mcp_file_finish(), also after an error.
 */
int mcp_file_read(struct session *s, const char *path, uint64_t offset, uint64_t limit,
	struct mcp_file *ret, struct error *e);
void mcp_file_finish(struct mcp_file *f);

/* "glovebox://SESSION/PATH" with the path percent-encoded. */
#define MCP_SCHEME "glovebox://"
int mcp_file_uri(struct buffer *b, const char *session, const char *path);
