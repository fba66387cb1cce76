#include "api/schema/shapes.h"

#include "api/schema/shapes_console.h"
#include "base/text.h"

#define SHAPE(variable, title, table, ...)                                          \
	const struct shape variable = {                                             \
		.name = (title), .row = (table), .n = ARRAY_LEN(table), __VA_ARGS__ \
	}

static const struct shape_row problem_rows[] = {
	{ "type", "string", NULL, 0, "about:blank" },
	{ "title", "string", NULL, 0, "The status in words." },
	{ "status", "integer", NULL, 0, "The HTTP status." },
	{ "code", "string", NULL, 0, "A code for programs, such as session_not_found." },
	{ "detail", "string", NULL, 0, "What is wrong." },
	{ "remediation", "string", NULL, 0, "How to fix the problem." },
	{ "request_id", "string", NULL, 0, "Identifies the request in the server's log." },
};
SHAPE(shape_problem, "Problem", problem_rows);

static const struct shape_row limits_rows[] = {
	{ "timeout_s", "number", NULL, 0, NULL },
	{ "output_bytes", "integer", NULL, 0, NULL },
	{ "memory_bytes", "integer", NULL, 0, NULL },
	{ "processes", "integer", NULL, 0, NULL },
	{ "cpus", "number", NULL, 0, "0: no limit." },
	{ "cpu_s", "number", NULL, 0, "0: no limit besides timeout_s." },
	{ "session_cpu_s", "number", NULL, 0, "0: no limit." },
	{ "disk_bytes", "integer", NULL, 0, NULL },
	{ "inodes", "integer", NULL, 0, NULL },
	{ "file_bytes", "integer", NULL, 0, NULL },
	{ "open_files", "integer", NULL, 0, NULL },
	{ "total_output_bytes", "integer", NULL, 0, NULL },
	{ "log_bytes", "integer", NULL, 0, NULL },
};
static SHAPE(shape_limits, "EffectiveLimits", limits_rows);

static const struct shape_row package_rows[] = {
	{ "set", "string", NULL, 1,
		"Name of the installed package set in the store; null if nothing had to be installed." },
	{ "cached", "boolean", NULL, 0, "The set was already in the store." },
	{ "seconds", "number", NULL, 0, "Duration of the installation of the set." },
	{ "stdlib", "any", NULL, 0, "Requested names that are modules of the standard library." },
	{ "present", "any", NULL, 0, "Packages that the system has: name, version, module." },
	{ "corrected", "any", NULL, 0, "Requested names that were corrected: from, to." },
	{ "installed", "any", NULL, 0, "Packages of the set: name, version, requested." },
	{ "failed", "any", NULL, 0,
		"Packages that cannot be installed: name, reason, suggestion." },
};
SHAPE(shape_packages, "Packages", package_rows);
static const struct shape_row display_rows[] = {
	{ "width", "integer", NULL, 0, NULL },
	{ "height", "integer", NULL, 0, NULL },
	{ "depth", "integer", NULL, 0, NULL },
	{ "dpi", "integer", NULL, 0, NULL },
	{ "up", "boolean", NULL, 0,
		"A program has connected to the screen, so its X server runs." },
};
static SHAPE(shape_display, "DisplayState", display_rows);

static const struct shape_row session_rows[] = {
	{ "id", "string", NULL, 0, "A random id that cannot be guessed." },
	{ "name", "string", NULL, 1, NULL },
	{ "state", "string", NULL, 0, "starting, idle, busy or paused." },
	{ "created", "string", NULL, 0, "RFC 3339, UTC." },
	{ "last_used", "string", NULL, 0, "RFC 3339, UTC." },
	{ "ttl_s", "number", NULL, 0, NULL },
	{ "idle_timeout_s", "number", NULL, 0, NULL },
	{ "expires_in_s", "number", NULL, 0,
		"Seconds until the session expires if it is not used again." },
	{ "from", "string", NULL, 1, "The session from which this session was forked." },
	{ "same_numbers", "string", NULL, 1,
		"Of a fork: names of the random number generators that could not be reseeded." },
	{ "usage", "object", &shape_session_usage, 1,
		"Present resource usage; in the list only with `usage=true`." },
	{ "cells", "integer", NULL, 0, "Cells run so far." },
	{ "queued", "integer", NULL, 0, "Cells waiting." },
	{ "warm", "boolean", NULL, 0, "The session was forked from a ready guest or template." },
	{ "template", "string", NULL, 0,
		"Template of the session: default, plain, or a set of packages." },
	{ "left_running", "integer", NULL, 0, "Cells that on_block left running in a main loop." },
	{ "exec", "string", NULL, 0, "Which programs code may start: system, none or any." },
	{ "network", "any", NULL, 0,
		"What the session may reach: \"none\", \"loopback\", or {\"allow\": [rules]}." },
	{ "mounts", "any", NULL, 0,
		"Directories of the server that the session sees: {name: place}." },
	{ "volumes", "any", NULL, 0, "Its volumes: {name: place}, with `:ro` when it only reads." },
	{ "profile", "string", NULL, 0, "The name of its executor profile." },
	{ "pid", "integer", NULL, 0, "Process id of the guest on the server; 0 while starting." },
	{ "display", "object", &shape_display, 1, "Its screen; null when it has none." },
	{ "limits", "object", &shape_limits, 0, NULL },
	{ "limits_not_enforced", "array", NULL, 0,
		"Names of limits that this server cannot keep, because it has no control groups." },
	{ "packages", "object", &shape_packages, 1,
		"The result for each of the requested packages." },
	{ "metadata", "any", NULL, 1, "As it was given." },
};
SHAPE(shape_session, "Session", session_rows);

static const struct shape_row session_list_rows[] = {
	{ "sessions", "array", &shape_session, 0, NULL },
	{ "next", "integer", NULL, 1, "The cursor of the next page; null on the last page." },
};
SHAPE(shape_session_list, "SessionList", session_list_rows);

static const struct shape shape_bundle = { .name = "Bundle",
	.open_help =
		"The forms of one value, by media type: text/plain as text, application/json as JSON, "
		"images in base64." };

static const struct shape_row error_rows[] = {
	{ "type", "string", NULL, 0, "The exception's class." },
	{ "message", "string", NULL, 0, NULL },
	{ "traceback", "string", NULL, 0, "As CPython prints it." },
	{ "line", "integer", NULL, 1, "Line number in the cell's own source." },
	{ "code", "string", NULL, 1, "A code for programs." },
	{ "remediation", "string", NULL, 1, "How to fix the problem." },
};
static SHAPE(shape_error, "CellError", error_rows);

static const struct shape_row change_rows[] = {
	{ "path", "string", NULL, 0, "Below /workspace." },
	{ "size", "integer", NULL, 0, NULL },
	{ "change", "string", NULL, 0, "created, modified or deleted." },
};
SHAPE(shape_file, "FileChange", change_rows);

static const struct shape_row truncated_rows[] = {
	{ "stdout", "integer", NULL, 0, "Bytes omitted." },
	{ "stderr", "integer", NULL, 0, "Bytes omitted." },
	{ "displays", "integer", NULL, 0, "Displays omitted." },
	{ "files", "boolean", NULL, 0, "More files changed than are listed." },
	{ "server_memory", "boolean", NULL, 0,
		"Output was also omitted because the server reached its limit on memory held for clients." },
};
static SHAPE(shape_truncated, "Truncated", truncated_rows);

static const struct shape_row usage_rows[] = {
	{ "wall_ms", "number", NULL, 0, NULL },
	{ "cpu_ms", "number", NULL, 0, NULL },
	{ "peak_memory_bytes", "integer", NULL, 0, NULL },
};
static SHAPE(shape_usage, "Usage", usage_rows);

static const struct shape_row window_rows[] = {
	{ "id", "integer", NULL, 0, "Id of the window, for screenshots of this window alone." },
	{ "title", "string", NULL, 0, NULL },
	{ "class", "string", NULL, 0, "WM_CLASS." },
	{ "pid", "integer", NULL, 0,
		"Process id of its program inside the session; 0 if unknown." },
	{ "x", "integer", NULL, 0, NULL },
	{ "y", "integer", NULL, 0, NULL },
	{ "width", "integer", NULL, 0, NULL },
	{ "height", "integer", NULL, 0, NULL },
	{ "focused", "boolean", NULL, 0, "The window has the keyboard focus." },
	{ "dialog", "boolean", NULL, 0, "The window is a dialog of another window." },
};
static SHAPE(shape_window, "Window", window_rows);

static const struct shape_row window_list_rows[] = {
	{ "windows", "array", &shape_window, 0, "In stacking order, bottom window first." },
};
SHAPE(shape_window_list, "WindowList", window_list_rows);

static const struct shape_row picture_error_rows[] = {
	{ "code", "string", NULL, 0, "A code for programs." },
	{ "message", "string", NULL, 0, "What is wrong." },
	{ "remediation", "string", NULL, 0, "How to fix the problem." },
};
static SHAPE(shape_picture_error, "ScreenshotError", picture_error_rows);

static const struct shape_row picture_rows[] = {
	{ "format", "string", NULL, 0, "png or jpeg." },
	{ "width", "integer", NULL, 0, NULL },
	{ "height", "integer", NULL, 0, NULL },
	{ "settled", "boolean", NULL, 0, "The screen had stopped changing." },
	{ "after_ms", "number", NULL, 0, "Time from the first window to the screenshot." },
	{ "since_paint_ms", "number", NULL, 1,
		"Time from the last paint to the screenshot; null if nothing was painted." },
	{ "windows", "array", &shape_window, 0,
		"The visible windows in stacking order, bottom window first." },
	{ "note", "string", NULL, 1, "A remark about the screenshot." },
	{ "data", "string", NULL, 1, "The file in base64." },
	{ "error", "object", &shape_picture_error, 1, "Why there is no screenshot." },
	{ "end", "any", NULL, 1,
		"The screenshot at the end of the cell, if screenshot.end was set." },
};
static SHAPE(shape_picture, "Picture", picture_rows);

static const struct shape_row film_rows[] = {
	{ "format", "string", NULL, 0, "apng, webm, mp4 or gif." },
	{ "frames", "integer", NULL, 0, NULL },
	{ "duration_ms", "integer", NULL, 0, NULL },
	{ "data", "string", NULL, 1, "The file, in base64." },
	{ "error", "object", &shape_picture_error, 1,
		"Why there is no recording, and how to fix it." },
};
static SHAPE(shape_film, "Film", film_rows);

static const struct shape_row death_rows[] = {
	{ "at", "string", NULL, 0, "RFC 3339, UTC." },
	{ "why", "string", NULL, 0, NULL },
	{ "state_lost", "boolean", NULL, 0,
		"There was no snapshot to roll back to: the variables were lost before this cell." },
	{ "rolled_back_to", "integer", NULL, 1,
		"Number of the cell after which the restored variables were saved; null if the state was lost." },
	{ "files_rolled_back", "boolean", NULL, 0, "The files were restored too." },
	{ "files_lost", "boolean", NULL, 0,
		"The session's jail ended with the interpreter: /workspace is empty." },
	{ "remediation", "string", NULL, 0, "How to continue." },
};
static SHAPE(shape_death, "InterpreterDeath", death_rows);

static const struct shape_row observation_rows[] = {
	{ "id", "string", NULL, 0, "Id of the request." },
	{ "session", "string", NULL, 0, NULL },
	{ "cell", "integer", NULL, 0, "Number of the cell in the session, from 1." },
	{ "status", "string", NULL, 0,
		"ok, error, timeout, interrupted, out_of_memory, killed, refused or running (left in its main loop)." },
	{ "exit_code", "integer", NULL, 0, "0 on success; otherwise the argument of sys.exit()." },
	{ "stdout", "string", NULL, 0,
		"Only head and tail if the output was longer than limits.output_bytes." },
	{ "stderr", "string", NULL, 0, NULL },
	{ "result", "object", &shape_bundle, 1, "The value of the last expression." },
	{ "displays", "array", &shape_bundle, 0, "Objects shown by display(), and figures." },
	{ "error", "object", &shape_error, 1, NULL },
	{ "is_final_answer", "boolean", NULL, 0,
		"The code called final_answer(), FINAL() or FINAL_VAR(), or set a ready `answer`." },
	{ "final_answer", "any", NULL, 1,
		"The value passed to final_answer(): as JSON if possible, else its repr. Then "
		"`final_answer_encoded` has the value in smolagents' safe encoding, if the encoding supports it." },
	{ "screenshot", "object", &shape_picture, 1, "The screenshot, if it was requested." },
	{ "recording", "integer", NULL, 1,
		"Id of the recording, if `record` was set: GET …/recording/{id}." },
	{ "film", "object", &shape_film, 1,
		"The recording itself, of POST /v1/run with `record`." },
	{ "files", "array", &shape_file, 0,
		"Files that the cell created, changed or deleted below /workspace." },
	{ "state_lost", "boolean", NULL, 0,
		"The interpreter had to be replaced, during this cell or before it (`interpreter_died`), and the variables are lost." },
	{ "packages", "object", &shape_packages, 1,
		"Outcome of packages requested since the previous cell." },
	{ "checkpoints_evicted", "any", NULL, 1,
		"Ids of checkpoints evicted since the last answer, because of their number or memory." },
	{ "rolled_back", "boolean", NULL, 0,
		"The interpreter had to be replaced; the variables were restored to the state before the cell, or before the cell started (`interpreter_died`)." },
	{ "files_rolled_back", "boolean", NULL, 0,
		"The files under /workspace, /tmp and /dev/shm were restored too." },
	{ "files_lost", "boolean", NULL, 0,
		"The session's jail had to be replaced too: /workspace is empty." },
	{ "interpreter_died", "object", &shape_death, 1,
		"Set if the interpreter died between the previous cell and this cell." },
	{ "replayed", "integer", NULL, 0,
		"Number of cells that were run again, without output, to restore this state." },
	{ "may_differ", "array", NULL, 0,
		"Numbers of the replayed cells whose effects may differ from the first run: they used clocks, random "
		"numbers, files, programs or threads, or followed such a cell." },
	{ "truncated", "object", &shape_truncated, 0, NULL },
	{ "usage", "object", &shape_usage, 0, "Measured resource usage of the cell." },
};
SHAPE(shape_observation, "Observation", observation_rows);

static const struct shape_row log_entry_rows[] = {
	{ "position", "integer", NULL, 0, NULL },
	{ "cell", "integer", NULL, 0, "Number of the cell; 0: output before the first cell." },
	{ "stream", "string", NULL, 0, "stdout or stderr." },
	{ "time", "string", NULL, 0, "RFC 3339, UTC." },
	{ "text", "string", NULL, 0, NULL },
};
static SHAPE(shape_log_entry, "LogEntry", log_entry_rows);

static const struct shape_row log_rows[] = {
	{ "entries", "array", &shape_log_entry, 0, NULL },
	{ "next", "integer", NULL, 0, "`after` of the next page." },
	{ "end", "boolean", NULL, 0, "There are no further entries at present." },
	{ "dropped_bytes", "integer", NULL, 0,
		"Output beyond limits.log_bytes that was not kept." },
};
SHAPE(shape_log, "LogPage", log_rows);

static const struct shape_row file_rows[] = {
	{ "path", "string", NULL, 0, "Below /workspace." },
	{ "type", "string", NULL, 0, "file, directory, symlink or other." },
	{ "size", "integer", NULL, 0, NULL },
	{ "modified", "string", NULL, 0, "RFC 3339, UTC." },
};
static SHAPE(shape_file_entry, "FileEntry", file_rows);

static const struct shape_row file_list_rows[] = {
	{ "files", "array", &shape_file_entry, 0, NULL },
	{ "truncated", "boolean", NULL, 0, "The list is incomplete." },
};
SHAPE(shape_file_list, "FileList", file_list_rows);

static const struct shape_row tool_rows[] = {
	{ "name", "string", NULL, 0, NULL },
	{ "calls", "integer", NULL, 0, "Number of calls so far." },
	{ "definition", "any", NULL, 0, "The definition from the request." },
};
static SHAPE(shape_tool, "Tool", tool_rows);

static const struct shape_row tool_list_rows[] = {
	{ "tools", "array", &shape_tool, 0, NULL },
};
SHAPE(shape_tool_list, "ToolList", tool_list_rows);

static const struct shape_row tool_call_rows[] = {
	{ "call", "integer", NULL, 0, "Number of the call, to be used in the answer." },
	{ "tool", "string", NULL, 0, NULL },
	{ "cell", "integer", NULL, 0, "The cell that waits for the answer." },
	{ "arguments", "any", NULL, 0, "An object; typed values are objects with a `__type__`." },
};
static SHAPE(shape_tool_call, "ToolCall", tool_call_rows);

static const struct shape_row call_list_rows[] = {
	{ "calls", "array", &shape_tool_call, 0, NULL },
};
SHAPE(shape_call_list, "ToolCallList", call_list_rows);

static const struct shape_row interrupted_rows[] = {
	{ "interrupted", "boolean", NULL, 0, "False when no cell was running." },
};
SHAPE(shape_interrupted, "Interrupted", interrupted_rows);

static const struct shape_row status_rows[] = {
	{ "status", "string", NULL, 0,
		"healthy, or ready; installing with 503 while modules of additional-imports are installed." },
	{ "packages_failed", "array", NULL, 1,
		"Modules of additional-imports that could not be installed, with name and reason; omitted if there are none." },
};
SHAPE(shape_status, "Status", status_rows);

static const struct shape_row version_rows[] = {
	{ "name", "string", NULL, 0, "glovebox" },
	{ "version", "string", NULL, 0, NULL },
	{ "api", "string", NULL, 0, "v1" },
	{ "layers", "any", NULL, 0,
		"The security layers around sessions, and their state on this machine: namespaces, mounts, seccomp, landlock, cgroup (v2, v1); \"waived\" for one that is missing and was waived, \"none\" for control groups that are missing." },
	{ "limits_not_enforced", "array", NULL, 0,
		"Names of limits that this server cannot enforce." },
};
SHAPE(shape_version, "Version", version_rows);

static const struct shape_row profile_rows[] = {
	{ "name", "string", NULL, 0, NULL },
	{ "base", "string", NULL, 0, "The built-in profile on which this profile is based." },
	{ "own", "boolean", NULL, 0,
		"The profile comes from the server's configuration directory." },
	{ "stands_for", "string", NULL, 0, NULL },
	{ "summary", "string", NULL, 0, NULL },
	{ "imports", "array", NULL, 0, "Modules that may be imported; * for all." },
	{ "builtins", "array", NULL, 0, "Available builtins; empty: all." },
	{ "refuses", "array", NULL, 0, "Constructs that the profile refuses." },
	{ "max_operations", "integer", NULL, 0, "0: no limit." },
	{ "max_while_iterations", "integer", NULL, 0, "0: no limit." },
	{ "print_chars", "integer", NULL, 0, "0: no limit besides limits.output_bytes." },
	{ "final_answer_stops", "boolean", NULL, 0, "final_answer() ends the cell." },
	{ "fresh_namespace", "boolean", NULL, 0, "Every cell starts without variables." },
};
static SHAPE(shape_profile, "Profile", profile_rows);

static const struct shape_row profile_list_rows[] = {
	{ "profiles", "array", &shape_profile, 0, NULL },
};
SHAPE(shape_profile_list, "ProfileList", profile_list_rows);

static const struct shape_row checkpoint_rows[] = {
	{ "id", "string", NULL, 0, NULL },
	{ "name", "string", NULL, 1, "Null for an automatic checkpoint." },
	{ "parent", "string", NULL, 1, "The checkpoint from which its state was derived." },
	{ "cell", "integer", NULL, 0, "The last cell before the checkpoint." },
	{ "created", "string", NULL, 0, "RFC 3339, UTC." },
	{ "age_s", "number", NULL, 0, NULL },
	{ "size_bytes", "integer", NULL, 0,
		"Its share of memory (PSS), measured in lists only; 0: not measured." },
	{ "current", "boolean", NULL, 0,
		"The session's state is the state of this checkpoint or was derived from it." },
	{ "files", "boolean", NULL, 0, "The checkpoint includes the files." },
};
static SHAPE(shape_checkpoint, "Checkpoint", checkpoint_rows);

static const struct shape_row checkpoint_answer_rows[] = {
	{ "session", "string", NULL, 0, NULL },
	{ "checkpoint", "object", &shape_checkpoint, 0, NULL },
	{ "evicted", "array", NULL, 0, "Ids of checkpoints evicted since the last answer." },
};
SHAPE(shape_checkpoint_answer, "CheckpointAnswer", checkpoint_answer_rows);

static const struct shape_row checkpoint_list_rows[] = { { "checkpoints", "array",
	&shape_checkpoint, 0, NULL } };
SHAPE(shape_checkpoint_list, "CheckpointList", checkpoint_list_rows);

static const struct shape_row rollback_answer_rows[] = {
	{ "session", "string", NULL, 0, NULL },
	{ "checkpoint", "object", &shape_checkpoint, 1,
		"The checkpoint that the session was rolled back to; null: the state before its first cell." },
	{ "evicted", "array", NULL, 0, "Ids of checkpoints evicted since the last answer." },
	{ "replayed", "integer", NULL, 0,
		"Number of cells that were run again, without output, to reach this state." },
	{ "may_differ", "array", NULL, 0,
		"Numbers of the replayed cells whose effects may differ from the first run: they used clocks, random "
		"numbers, files, programs or threads, or followed such a cell." },
};
SHAPE(shape_rollback_answer, "RollbackAnswer", rollback_answer_rows);

static const struct shape_row fork_rows[] = {
	{ "sessions", "array", &shape_session, 0, NULL },
	{ "same_numbers", "string", NULL, 0,
		"Names of the random number generators (variables and modules) that could not be reseeded." },
};
SHAPE(shape_forks, "Forks", fork_rows);

static const struct shape_row recording_cell_rows[] = {
	{ "cell", "integer", NULL, 0, NULL },
	{ "from_ms", "integer", NULL, 0,
		"Time of its first frame, from the start of the recording." },
	{ "to_ms", "integer", NULL, 0, "Time of its last frame." },
	{ "first_frame", "integer", NULL, 0, "Number of its first frame, from 0." },
	{ "frames", "integer", NULL, 0, NULL },
};
static SHAPE(shape_recording_cell, "RecordingCell", recording_cell_rows);

static const struct shape_row recording_rows[] = {
	{ "id", "integer", NULL, 0, NULL },
	{ "state", "string", NULL, 0, "recording, finishing or done." },
	{ "ended", "string", NULL, 1,
		"Why the recording ended: stopped, cell, max_seconds, frames, bytes, display_gone, no_space." },
	{ "format", "string", NULL, 0,
		"Default format when the recording is fetched: apng, webm, mp4 or gif." },
	{ "width", "integer", NULL, 0, "0 before the first frame." },
	{ "height", "integer", NULL, 0, NULL },
	{ "frames", "integer", NULL, 0,
		"Number of frames; frames are taken only when the screen changes." },
	{ "bytes", "integer", NULL, 0, NULL },
	{ "duration_ms", "integer", NULL, 0, "Duration from the first frame." },
	{ "started", "string", NULL, 0, "RFC 3339, UTC." },
	{ "cells", "array", &shape_recording_cell, 0,
		"Cells that changed the screen during the recording." },
};
SHAPE(shape_recording, "Recording", recording_rows);

static const struct shape_row recording_list_rows[] = { { "recordings", "array", &shape_recording,
	0, NULL } };
SHAPE(shape_recording_list, "RecordingList", recording_list_rows);

static const struct shape_row live_link_rows[] = {
	{ "url", "string", NULL, 0, "The path of the link on the server, beginning with /." },
	{ "control", "boolean", NULL, 0, "Whether the link allows the use of mouse and keyboard." },
	{ "expires", "string", NULL, 0, "RFC 3339, UTC." },
};
SHAPE(shape_live_link, "LiveLink", live_link_rows);

static const struct shape_row input_result_rows[] = {
	{ "action", "string", NULL, 0, NULL },
	{ "x", "integer", NULL, 0, "Result of cursor_position." },
	{ "y", "integer", NULL, 0, "Result of cursor_position." },
	{ "screenshot", "object", &shape_picture, 0, "Result of screenshot and zoom." },
};
static SHAPE(shape_input_result, "InputResult", input_result_rows);

static const struct shape_row input_rows[] = {
	{ "results", "array", &shape_input_result, 0, "One result for each action." },
	{ "acted_ms", "number", NULL, 0,
		"Duration of the actions, until the last one was performed." },
	{ "settled", "boolean", NULL, 1,
		"Whether the screen had settled; null if settle was false." },
	{ "after_ms", "number", NULL, 1, "Time until the screen had settled." },
	{ "screenshot", "object", &shape_picture, 1, "The screenshot, if it was requested." },
};
SHAPE(shape_input, "InputAnswer", input_rows);

const struct shape *const shapes[] = { &shape_forks, &shape_checkpoint, &shape_checkpoint_answer,
	&shape_checkpoint_list, &shape_rollback_answer, &shape_problem, &shape_packages,
	&shape_profile, &shape_profile_list, &shape_session, &shape_session_list, &shape_limits,
	&shape_observation, &shape_bundle, &shape_error, &shape_file, &shape_truncated,
	&shape_usage, &shape_log, &shape_log_entry, &shape_file_list, &shape_file_entry,
	&shape_interrupted, &shape_status, &shape_version, &shape_tool, &shape_tool_list,
	&shape_tool_call, &shape_call_list, &shape_display, &shape_window, &shape_window_list,
	&shape_picture, &shape_picture_error, &shape_input, &shape_input_result, &shape_recording,
	&shape_recording_list, &shape_recording_cell, &shape_film, &shape_death, &shape_live_link,
	&shape_value_reference, &shape_cell, &shape_cell_list, &shape_variable,
	&shape_variable_list, &shape_completion, &shape_session_usage, &shape_unpacked,
	&shape_inspection, &shape_node, &shape_share, &shape_connection, &shape_network,
	&shape_volume, &shape_volume_list, &shape_batch_line, &shape_verdict, &shape_process,
	&shape_process_list, &shape_context, &shape_context_list, &shape_port, &shape_port_list,
	NULL };
