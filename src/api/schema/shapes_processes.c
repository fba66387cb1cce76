/* What answers about processes look like. */
#include "api/schema/shapes.h"
#include "base/text.h"

static const struct shape_row process_rows[] = {
	{ "id", "integer", NULL, 0, "Number of the process in the session; 0 while it starts." },
	{ "state", "string", NULL, 0, "starting, running, exited or failed." },
	{ "cmd", "string", NULL, 1, "The command for the shell, as it was given." },
	{ "argv", "array", NULL, 0, "The program and its arguments." },
	{ "cwd", "string", NULL, 0, "Its working directory at the start." },
	{ "tag", "string", NULL, 1, "The client's name for the process." },
	{ "pty", "boolean", NULL, 0, "The process has a terminal." },
	{ "started", "string", NULL, 0, "RFC 3339, UTC." },
	{ "exit_code", "integer", NULL, 1,
		"Null while the process runs; 128 plus the signal's number if a signal ended it." },
	{ "signal", "integer", NULL, 1, "Number of the signal that ended the process." },
	{ "timed_out", "boolean", NULL, 0, "The process was killed at its time limit." },
	{ "error", "string", NULL, 1, "Why the process could not be started." },
	{ "wall_ms", "number", NULL, 0, "Run time of the process." },
	{ "output_bytes", "integer", NULL, 0, "Bytes of output so far." },
	{ "stdout", "string", NULL, 1,
		"Head and tail of the output; in the answer of a foreground process and of GET …/processes/{part} only." },
	{ "stderr", "string", NULL, 1, "As stdout." },
};
const struct shape shape_process = {
	.name = "Process", .row = process_rows, .n = ARRAY_LEN(process_rows)
};

static const struct shape_row list_rows[] = {
	{ "processes", "array", &shape_process, 0, "Oldest first." },
};
const struct shape shape_process_list = {
	.name = "ProcessList", .row = list_rows, .n = ARRAY_LEN(list_rows)
};

static const struct shape_row context_rows[] = {
	{ "id", "string", NULL, 0, "default for the session's own interpreter." },
	{ "state", "string", NULL, 0, "starting, idle or busy." },
	{ "cwd", "string", NULL, 0, "The working directory at the start." },
	{ "cells", "integer", NULL, 0, "Cells run so far." },
	{ "queued", "integer", NULL, 0, "Cells waiting." },
};
const struct shape shape_context = {
	.name = "Context", .row = context_rows, .n = ARRAY_LEN(context_rows)
};

static const struct shape_row context_list_rows[] = {
	{ "contexts", "array", &shape_context, 0, "The default context first." },
};
const struct shape shape_context_list = {
	.name = "ContextList", .row = context_list_rows, .n = ARRAY_LEN(context_list_rows)
};

static const struct shape_row port_rows[] = {
	{ "port", "integer", NULL, 0, "Something in the session listens on it." },
	{ "url", "string", NULL, 1,
		"Where a browser reaches it, with an origin of its own; null when the server is called by an address, for which there are no such names." },
	{ "path", "string", NULL, 0, "Where a program reaches it, below the API." },
};
const struct shape shape_port = { .name = "Port", .row = port_rows, .n = ARRAY_LEN(port_rows) };

static const struct shape_row port_list_rows[] = {
	{ "ports", "array", &shape_port, 0, "In order of the numbers." },
	{ "url", "string", NULL, 1, "The address of any port, with {port} for its number." },
};
const struct shape shape_port_list = {
	.name = "PortList", .row = port_list_rows, .n = ARRAY_LEN(port_list_rows)
};
