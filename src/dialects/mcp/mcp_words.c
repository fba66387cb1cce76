/*
 * The words of MCP clients for what the lower layers leave open in a remedy (base/edge_words.h).
 * Words about settings of the server are the API's.
 */
#include "api/api_words.h"
#include "dialects/mcp/mcp.h"

static const struct edge_word words[] = {
	/* tools */
	{ "new_session", "Leave session_id out to start a new session" },
	{ "find_session", "Leave session_id out to start a new session" },
	{ "look_at_session", "Run a cell in the session to see its state" },
	{ "end_sessions", "End sessions that are no longer needed with close_session" },
	{ "list_checkpoints", "Call rollback without `to` to undo the last cell" },
	{ "list_contexts", "The list of contexts has all of them" },
	{ "list_processes", "The list of processes has those that run and those that ended last" },
	{ "list_recordings", "Start a recording first" },
	{ "list_windows", "Take a screenshot to see the windows" },
	{ "list_profiles", "The operator of the server chooses the profile" },
	{ "resume", "Resume it over HTTP: POST /v1/sessions/ID/resume" },
	{ "reset", "A new session" },
	{ "undo", "The tool rollback without `to`" },
	/* arguments of tools, and limits that only the operator of the server sets */
	{ "display", "a screen, which the operator of the server allows" },
	{ "output_bytes", "output" },
	{ "memory_bytes", "a larger memory limit (set by the operator of the server)" },
	{ "cpu_s", "a larger limit of CPU time (set by the operator of the server)" },
	{ "total_output_bytes", "a larger limit of output (set by the operator of the server)" },
	{ "disk_bytes", "a larger disk limit (set by the operator of the server)" },
	{ "inodes", "a larger limit of files (set by the operator of the server)" },
	{ "file_bytes", "a larger limit of file size (set by the operator of the server)" },
	{ "open_files", "a larger limit of open files (set by the operator of the server)" },
	{ "processes", "a larger limit of processes (set by the operator of the server)" },
	{ NULL, NULL },
};

const struct edge mcp_words = { .words = words, .otherwise = &api_words };
