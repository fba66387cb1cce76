#include "api/schema/shapes_console.h"

#include "base/text.h"

#define SHAPE(variable, title, table, ...)                                          \
	const struct shape variable = {                                             \
		.name = (title), .row = (table), .n = ARRAY_LEN(table), __VA_ARGS__ \
	}

static const struct shape_row reference_rows[] = {
	{ "types", "object", NULL, 0, "The available media types, each with its size in bytes." },
	{ "data", "object", NULL, 0, "The small forms, by media type." },
	{ "href", "string", NULL, 0, "Address of all forms: an object of media types." },
};
SHAPE(shape_value_reference, "ValueReference", reference_rows);

static const struct shape_row cell_rows[] = {
	{ "number", "integer", NULL, 0, "Number of this entry; numbers are never reused." },
	{ "kind", "string", NULL, 0,
		"cell, or an event between cells: checkpoint, rollback, reset." },
	{ "cell", "integer", NULL, 0,
		"The number of the cell; of other entries: the number of the last cell before." },
	{ "time", "string", NULL, 0, "Start time: RFC 3339, UTC." },
	{ "name", "string", NULL, 1, "Of a checkpoint or rollback: the checkpoint's name." },
	{ "back_to", "integer", NULL, 1,
		"Of a rollback: the number of the cell after which the restored state was saved." },
	{ "id", "string", NULL, 1, "Id of the request." },
	{ "dialect", "string", NULL, 1,
		"Protocol of the client that sent the cell: native, mcp, jupyter, openenv, e2b …" },
	{ "code", "string", NULL, 1, NULL },
	{ "code_left_out", "integer", NULL, 1, "Bytes of the code that are not kept." },
	{ "done", "boolean", NULL, 1,
		"False while the cell runs; the other fields then have their values so far." },
	{ "status", "string", NULL, 1, "As in an observation; `running` while the cell runs." },
	{ "exit_code", "integer", NULL, 1, NULL },
	{ "stdout", "string", NULL, 1,
		"At most 64 KiB, head and tail; GET …/logs?cell= returns the whole output." },
	{ "stderr", "string", NULL, 1, "As stdout." },
	{ "result", "object", &shape_value_reference, 1,
		"The value of the last expression of the cell." },
	{ "displays", "array", &shape_value_reference, 0, "The displayed values of the cell." },
	{ "screenshot", "string", NULL, 1, "Address of the screenshot of the cell." },
	{ "error", "any", NULL, 1, "As in an observation." },
	{ "files", "any", NULL, 1, "As in an observation." },
	{ "state_lost", "boolean", NULL, 1, NULL },
	{ "rolled_back", "boolean", NULL, 1, NULL },
	{ "files_rolled_back", "boolean", NULL, 1, NULL },
	{ "truncated", "any", NULL, 1, "As in an observation." },
	{ "usage", "any", NULL, 1, "As in an observation." },
};
SHAPE(shape_cell, "CellRecord", cell_rows);

static const struct shape_row cell_list_rows[] = {
	{ "cells", "array", &shape_cell, 0, "Oldest first." },
	{ "next", "integer", NULL, 1, "`after` of the next page; null on the last page." },
	{ "total", "integer", NULL, 0, "Number of entries since the session was created." },
	{ "dropped", "integer", NULL, 0, "Number of entries that are no longer kept." },
};
SHAPE(shape_cell_list, "CellList", cell_list_rows);

static const struct shape_row variable_rows[] = {
	{ "name", "string", NULL, 0, NULL },
	{ "type", "string", NULL, 0, "The class, with its module." },
	{ "shape", "array", NULL, 1, "Shape of an array or a table; the length of a container." },
	{ "size", "integer", NULL, 1,
		"Size in bytes, if it is known without running code of the session." },
	{ "repr", "string", NULL, 1, "The beginning of its repr, for types whose repr is safe." },
};
SHAPE(shape_variable, "Variable", variable_rows);

static const struct shape_row variable_list_rows[] = {
	{ "variables", "array", &shape_variable, 0, "In order of definition." },
	{ "left_out", "integer", NULL, 0,
		"Number of variables beyond the first thousand, which are omitted." },
};
SHAPE(shape_variable_list, "VariableList", variable_list_rows);

static const struct shape_row completion_rows[] = {
	{ "start", "integer", NULL, 0, "Start of the text that a match replaces." },
	{ "end", "integer", NULL, 0, "End of the text that a match replaces: the cursor." },
	{ "matches", "any", NULL, 0, "Objects with text, kind and type." },
};
SHAPE(shape_completion, "Completion", completion_rows);

static const struct shape_row session_usage_rows[] = {
	{ "memory_bytes", "integer", NULL, 0, "Memory of all its processes and files." },
	{ "cpu_s", "number", NULL, 0, "CPU seconds since its creation." },
};
SHAPE(shape_session_usage, "SessionUsage", session_usage_rows);

static const struct shape_row unpacked_rows[] = {
	{ "files", "integer", NULL, 0, "Number of files written." },
	{ "directories", "integer", NULL, 0, "Number of directories in the archive." },
	{ "bytes", "integer", NULL, 0, "Total size of the files." },
	{ "skipped", "integer", NULL, 0,
		"Number of links, devices and other entries that were not written." },
};
SHAPE(shape_unpacked, "Unpacked", unpacked_rows);

static const struct shape_row inspection_rows[] = {
	{ "found", "boolean", NULL, 0, NULL },
	{ "name", "string", NULL, 1, "The name at the cursor." },
	{ "type", "string", NULL, 1, NULL },
	{ "signature", "string", NULL, 1, NULL },
	{ "doc", "string", NULL, 1, NULL },
	{ "repr", "string", NULL, 1, "The repr of the value, if its type has a safe repr." },
	{ "file", "string", NULL, 1, NULL },
};
SHAPE(shape_inspection, "Inspection", inspection_rows);

static const struct shape_row share_rows[] = {
	{ "url", "string", NULL, 0,
		"The path of the link on the server, beginning with /: a page that shows the session." },
	{ "key", "string", NULL, 0,
		"For programs: the header `Authorization: Share KEY` reads this session." },
	{ "expires", "string", NULL, 0, "RFC 3339, UTC." },
};
SHAPE(shape_share, "Share", share_rows);

static const struct shape_row connection_rows[] = {
	{ "number", "integer", NULL, 0, "Counts the attempts of the session, from 1." },
	{ "time", "string", NULL, 0, "RFC 3339, UTC." },
	{ "target", "string", NULL, 0, "Name or address, and port." },
	{ "verdict", "string", NULL, 0,
		"allowed, or why not: not_allowed, not_public, unknown_host, unreachable …" },
	{ "detail", "string", NULL, 0, "The address that was reached, or the reason." },
	{ "open", "boolean", NULL, 0, "The connection has not ended." },
	{ "seconds", "integer", NULL, 0, "How long the connection was open." },
	{ "sent_bytes", "integer", NULL, 0, "Bytes that the session sent; 0 while it is open." },
	{ "received_bytes", "integer", NULL, 0, NULL },
};
SHAPE(shape_connection, "Connection", connection_rows);

static const struct shape_row network_rows[] = {
	{ "connections", "array", &shape_connection, 0,
		"The last 100 attempts, oldest first. Loopback connections inside the session are not listed." },
	{ "total", "integer", NULL, 0, "Number of attempts since the session was created." },
};
SHAPE(shape_network, "NetworkAttempts", network_rows);

static const struct shape_row node_rows[] = {
	{ "node", "string", NULL, 1, "The letters of the node, with which its ids begin." },
	{ "incarnation", "string", NULL, 1,
		"The two letters that follow; others after a restart." },
	{ "state", "string", NULL, 0, "serving, or draining: the server makes no new sessions." },
	{ "sessions", "integer", NULL, 0, "Sessions alive." },
	{ "max_sessions", "integer", NULL, 0, "Sessions that may be alive at once." },
	{ "running_cells", "integer", NULL, 0, "Cells that run." },
	{ "deadline_s", "number", NULL, 1, "Seconds until the drain ends the sessions." },
};
SHAPE(shape_node, "Node", node_rows);

static const struct shape_row volume_rows[] = {
	{ "name", "string", NULL, 0, NULL },
	{ "quota_bytes", "integer", NULL, 0, "Quota of the volume in bytes." },
	{ "bytes", "integer", NULL, 0, "Size of the volume in bytes when it was last measured." },
	{ "files", "integer", NULL, 0, "Number of files and directories at that time." },
	{ "full", "boolean", NULL, 0, "It has more than its quota, or too many files." },
	{ "created", "string", NULL, 0, NULL },
	{ "writer", "string", NULL, 1, "The session that can write to it; null when none can." },
	{ "readers", "integer", NULL, 0, "Number of sessions that can read it." },
};
SHAPE(shape_volume, "Volume", volume_rows);

static const struct shape_row volume_list_rows[] = {
	{ "volumes", "array", &shape_volume, 0, "The volumes of this token, by name." },
};
SHAPE(shape_volume_list, "VolumeList", volume_list_rows);
