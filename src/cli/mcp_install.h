/* The configuration that makes an assistant start `glovebox mcp`. */
#pragma once

#include <stdbool.h>

/*
 * Prints it, or merges it into the host's file. `url` and `token` may be NULL. Returns the exit
 * code.
 */
int mcp_install(const char *host, bool write, const char *url, const char *token);
