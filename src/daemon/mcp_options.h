/*
 * The mcp-* settings as they are written: of the server, and of one token (a line of the token file
 * may change them for its token). MCP_OPTION_ROWS lists them once for both tables.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "options/options.h"

/* A zeroed member stands for the server's own setting, or for none. */
struct mcp_options {
	char *profile, **packages, *network, **tools;
	bool display;
	double timeout, max_timeout, idle_timeout, cpus;
	uint64_t memory;
	unsigned processes;
};

/* clang-format off */
#define MCP_OPTION_ROWS(AT)                                                                                                    \
	{ "mcp-profile", 0, OPTION_TEXT, AT(profile), .value = "NAME",                                                         \
	  .help = "executor profile of sessions that MCP clients start (default: that of --profile)" },                        \
	{ "mcp-packages", 0, OPTION_LIST, AT(packages), .value = "PACKAGES",                                                   \
	  .help = "packages that these sessions have from the start" },                                                        \
	{ "mcp-display", 0, OPTION_FLAG, AT(display), .fallback = "yes",                                                       \
	  .help = "give these sessions a screen, and MCP clients the tools screenshot and computer (on unless --no-mcp-display)" }, \
	{ "mcp-network", 0, OPTION_TEXT, AT(network), .value = "WHICH",                                                        \
	  .help = "network of these sessions: none, loopback, or rules such as pypi.org:443 (default: that of --default-network)" }, \
	{ "mcp-timeout", 0, OPTION_SECONDS, AT(timeout), 0, 3600, "SECONDS", "0",                                              \
	  .help = "time limit of a call that sets none; 0: that of --timeout" },                                               \
	{ "mcp-max-timeout", 0, OPTION_SECONDS, AT(max_timeout), 0, 3600, "SECONDS", "0",                                      \
	  .help = "the most that a call may request; 0: that of --max-timeout" },                                                   \
	{ "mcp-idle-timeout", 0, OPTION_SECONDS, AT(idle_timeout), 0, 0, "SECONDS", "0",                                       \
	  .help = "these sessions end this long after their last call; 0: that of --idle-timeout" },                           \
	{ "mcp-memory", 0, OPTION_SIZE, AT(memory), 0, 0, "SIZE", "0",                                                         \
	  .help = "memory of these sessions; 0: that of --memory" },                                                                       \
	{ "mcp-cpus", 0, OPTION_NUMBER, AT(cpus), 0, 1024, "N", "0",                                                           \
	  .help = "CPU limit of these sessions in cores; 0: that of --cpus" },                                                                    \
	{ "mcp-processes", 0, OPTION_COUNT, AT(processes), 0, 65536, "N", "0",                                                 \
	  .help = "processes and threads of these sessions at once; 0: that of --processes" },                                            \
	{ "mcp-tools", 0, OPTION_LIST, AT(tools), .value = "NAMES",                                                            \
	  .help = "tools that MCP clients are offered (default: all; docs/mcp.md lists them)" }
/* clang-format on */

/* The rows with offsets of struct mcp_options. */
extern const struct option_row mcp_option_rows[];

/* A copy that owns its texts; end it with mcp_options_finish(). -ENOMEM. */
int mcp_options_copy(const struct mcp_options *o, struct mcp_options *ret);
void mcp_options_finish(struct mcp_options *o);

/*
 * Applies the words of a token's line: NAME=VALUE with names of the rows, up to a word that begins
 * with '#'. `text` is changed. `origin` names the line in errors.
 */
int mcp_options_apply(struct mcp_options *o, char *text, const char *origin, struct error *e);
