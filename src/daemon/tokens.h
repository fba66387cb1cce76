/* The tokens of a server: from the setting `token` and from the lines of the token file. */
#pragma once

#include "base/error.h"
#include "daemon/mcp_options.h"

struct config;

/* What the line of one token changes. */
struct token_options {
	bool given; /* false: the server's settings hold */
	struct mcp_options mcp;
};

/*
 * Adds the token file's tokens to config.token and fills config.token_options, one for each token
 * in the same order. Call it when all other settings are final: a token's settings start as the
 * server's.
 */
int tokens_load(struct config *c, struct error *e);
void tokens_finish(struct config *c); /* frees config.token_options */
