#include "api/schema/shapes.h"

#include "base/buffer.h"
#include "base/text.h"
#include "json/json_write.h"

#define SHAPE(variable, title, table, ...) \
	const struct shape variable = { .name = (title), .row = (table), .n = ARRAY_LEN(table), __VA_ARGS__ }

static const struct shape_row problem_rows[] = {
	{ "type", "string", NULL, 0, "about:blank" },
	{ "title", "string", NULL, 0, "The status in words." },
	{ "status", "integer", NULL, 0, "The HTTP status." },
	{ "code", "string", NULL, 0, "A word for programs, such as session_not_found." },
	{ "detail", "string", NULL, 0, "What is wrong." },
	{ "remediation", "string", NULL, 0, "What to do about it." },
	{ "request_id", "string", NULL, 0, "Names the request in the server's log." },
};
SHAPE(shape_problem, "Problem", problem_rows);

static const struct shape_row limits_rows[] = {
	{ "timeout_s", "number", NULL, 0, NULL },
	{ "output_bytes", "integer", NULL, 0, NULL },
	{ "memory_bytes", "integer", NULL, 0, NULL },
	{ "processes", "integer", NULL, 0, NULL },
	{ "cpus", "number", NULL, 0, "0: as much as there is." },
	{ "cpu_s", "number", NULL, 0, "0: as much as the time of a cell allows." },
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
	{ "set", "string", NULL, 1, "What was installed, by its name in the store; null when nothing had to be." },
	{ "cached", "boolean", NULL, 0, "It was in the store." },
	{ "seconds", "number", NULL, 0, "What the installation took, when it was made." },
	{ "stdlib", "any", NULL, 0, "Names of the standard library." },
	{ "present", "any", NULL, 0, "Packages that the system has: name, version, module." },
	{ "corrected", "any", NULL, 0, "Names that were written differently: from, to." },
	{ "installed", "any", NULL, 0, "Packages of the set: name, version, requested." },
	{ "failed", "any", NULL, 0, "What cannot be had: name, reason, suggestion." },
};
SHAPE(shape_packages, "Packages", package_rows);
static const struct shape_row display_rows[] = {
	{ "width", "integer", NULL, 0, NULL },
	{ "height", "integer", NULL, 0, NULL },
	{ "depth", "integer", NULL, 0, NULL },
	{ "dpi", "integer", NULL, 0, NULL },
	{ "up", "boolean", NULL, 0, "Something connected to it, so its X server runs." },
};
static SHAPE(shape_display, "DisplayState", display_rows);

static const struct shape_row session_rows[] = {
	{ "id", "string", NULL, 0, "Unguessable." },
	{ "name", "string", NULL, 1, NULL },
	{ "state", "string", NULL, 0, "starting, idle or busy." },
	{ "created", "string", NULL, 0, "RFC 3339, UTC." },
	{ "last_used", "string", NULL, 0, "RFC 3339, UTC." },
	{ "ttl_s", "number", NULL, 0, NULL },
	{ "idle_timeout_s", "number", NULL, 0, NULL },
	{ "expires_in_s", "number", NULL, 0, "When nothing more happens." },
	{ "from", "string", NULL, 1, "The session it was forked from." },
	{ "same_numbers", "string", NULL, 1, "Of a fork: what kept the seed of its parent." },
	{ "cells", "integer", NULL, 0, "Cells run so far." },
	{ "queued", "integer", NULL, 0, "Cells waiting." },
	{ "warm", "boolean", NULL, 0, "It came from a guest, or a template, that was ready." },
	{ "template", "string", NULL, 0, "What it was forked from: default, plain, or a set of packages." },
	{ "left_running", "integer", NULL, 0, "Cells left in a main loop by on_block." },
	{ "exec", "string", NULL, 0, "Which programs code may start: system, none or any." },
	{ "network", "any", NULL, 0, "What it may reach: \"none\", \"loopback\", or {\"allow\": [rules]}." },
	{ "profile", "string", NULL, 0, "The name of its executor profile." },
	{ "pid", "integer", NULL, 0, "Of the guest on the server; 0 while starting." },
	{ "display", "object", &shape_display, 1, "Its screen; null when it has none." },
	{ "limits", "object", &shape_limits, 0, NULL },
	{ "limits_not_enforced", "array", NULL, 0, "Names of limits that this server cannot keep for all processes of the session together: it has no control groups." },
	{ "packages", "object", &shape_packages, 1, "What became of the packages it was asked for." },
	{ "metadata", "any", NULL, 1, "As it was given." },
};
SHAPE(shape_session, "Session", session_rows);

static const struct shape_row session_list_rows[] = {
	{ "sessions", "array", &shape_session, 0, NULL },
	{ "next", "integer", NULL, 1, "The cursor of the next page; null on the last." },
};
SHAPE(shape_session_list, "SessionList", session_list_rows);

static const struct shape shape_bundle = { .name = "Bundle",
	.open_help = "One value in its forms, by media type: text/plain as text, application/json as JSON, "
		     "images in base64." };

static const struct shape_row error_rows[] = {
	{ "type", "string", NULL, 0, "The exception's class." },
	{ "message", "string", NULL, 0, NULL },
	{ "traceback", "string", NULL, 0, "As CPython prints it." },
	{ "line", "integer", NULL, 1, "In the cell's own source." },
	{ "code", "string", NULL, 1, "A word for programs." },
	{ "remediation", "string", NULL, 1, "What to do about it." },
};
static SHAPE(shape_error, "CellError", error_rows);

static const struct shape_row change_rows[] = {
	{ "path", "string", NULL, 0, "Below /workspace." },
	{ "size", "integer", NULL, 0, NULL },
	{ "change", "string", NULL, 0, "created, modified or deleted." },
};
SHAPE(shape_file, "FileChange", change_rows);

static const struct shape_row truncated_rows[] = {
	{ "stdout", "integer", NULL, 0, "Bytes left out." },
	{ "stderr", "integer", NULL, 0, "Bytes left out." },
	{ "displays", "integer", NULL, 0, "Displays left out." },
	{ "files", "boolean", NULL, 0, "More files changed than are listed." },
	{ "server_memory", "boolean", NULL, 0, "Some of it because the server held too much for its clients." },
};
static SHAPE(shape_truncated, "Truncated", truncated_rows);

static const struct shape_row usage_rows[] = {
	{ "wall_ms", "number", NULL, 0, NULL },
	{ "cpu_ms", "number", NULL, 0, NULL },
	{ "peak_memory_bytes", "integer", NULL, 0, NULL },
};
static SHAPE(shape_usage, "Usage", usage_rows);

static const struct shape_row window_rows[] = {
	{ "id", "integer", NULL, 0, "For screenshots of this window alone." },
	{ "title", "string", NULL, 0, NULL },
	{ "class", "string", NULL, 0, "WM_CLASS." },
	{ "pid", "integer", NULL, 0, "Of its program, inside the session; 0 when unknown." },
	{ "x", "integer", NULL, 0, NULL },
	{ "y", "integer", NULL, 0, NULL },
	{ "width", "integer", NULL, 0, NULL },
	{ "height", "integer", NULL, 0, NULL },
	{ "focused", "boolean", NULL, 0, "It has the keyboard." },
	{ "dialog", "boolean", NULL, 0, "It belongs to another window." },
};
static SHAPE(shape_window, "Window", window_rows);

static const struct shape_row window_list_rows[] = {
	{ "windows", "array", &shape_window, 0, "From the bottom up." },
};
SHAPE(shape_window_list, "WindowList", window_list_rows);

static const struct shape_row picture_error_rows[] = {
	{ "code", "string", NULL, 0, "A word for programs." },
	{ "message", "string", NULL, 0, "What is wrong." },
	{ "remediation", "string", NULL, 0, "What to do about it." },
};
static SHAPE(shape_picture_error, "ScreenshotError", picture_error_rows);

static const struct shape_row picture_rows[] = {
	{ "format", "string", NULL, 0, "png or jpeg." },
	{ "width", "integer", NULL, 0, NULL },
	{ "height", "integer", NULL, 0, NULL },
	{ "settled", "boolean", NULL, 0, "Nothing was about to change any more." },
	{ "after_ms", "number", NULL, 0, "From the first window to the picture." },
	{ "since_paint_ms", "number", NULL, 1, "From the last paint to the picture; null when nothing was painted." },
	{ "windows", "array", &shape_window, 0, "What could be seen, from the bottom up." },
	{ "note", "string", NULL, 1, "What there is to know about it." },
	{ "data", "string", NULL, 1, "The file in base64." },
	{ "error", "object", &shape_picture_error, 1, "Why there is none." },
	{ "end", "any", NULL, 1, "The same when the cell was over, if screenshot.end asked for it." },
};
static SHAPE(shape_picture, "Picture", picture_rows);

static const struct shape_row film_rows[] = {
	{ "format", "string", NULL, 0, "apng, webm, mp4 or gif." },
	{ "frames", "integer", NULL, 0, NULL },
	{ "duration_ms", "integer", NULL, 0, NULL },
	{ "data", "string", NULL, 1, "The file, in base64." },
	{ "error", "object", &shape_picture_error, 1, "Why there is none, and what to do." },
};
static SHAPE(shape_film, "Film", film_rows);

static const struct shape_row death_rows[] = {
	{ "at", "string", NULL, 0, "RFC 3339, UTC." },
	{ "why", "string", NULL, 0, NULL },
	{ "state_lost", "boolean", NULL, 0, "There was no snapshot to go back to: variables were gone before this cell." },
	{ "rolled_back_to", "integer", NULL, 1, "Else variables are as they were after this cell." },
	{ "files_rolled_back", "boolean", NULL, 0, "And so are the files." },
	{ "files_lost", "boolean", NULL, 0, "The session's jail ended with it: /workspace is empty." },
	{ "remediation", "string", NULL, 0, "What to do." },
};
static SHAPE(shape_death, "InterpreterDeath", death_rows);

static const struct shape_row observation_rows[] = {
	{ "id", "string", NULL, 0, "Of the request." },
	{ "session", "string", NULL, 0, NULL },
	{ "cell", "integer", NULL, 0, "Counts the session's cells from 1." },
	{ "status", "string", NULL, 0, "ok, error, timeout, interrupted, out_of_memory, killed, refused or running (left in its main loop)." },
	{ "exit_code", "integer", NULL, 0, "0 when all went well; what sys.exit() said." },
	{ "stdout", "string", NULL, 0, "Head and tail when it was longer than limits.output_bytes." },
	{ "stderr", "string", NULL, 0, NULL },
	{ "result", "object", &shape_bundle, 1, "The value of the last expression." },
	{ "displays", "array", &shape_bundle, 0, "What display() and figures showed." },
	{ "error", "object", &shape_error, 1, NULL },
	{ "is_final_answer", "boolean", NULL, 0, "The code called final_answer(), FINAL() or FINAL_VAR(), or set a ready `answer`." },
	{ "final_answer", "any", NULL, 1, "What the code gave to final_answer(): JSON where it can, else its repr. Then "
		"`final_answer_encoded` has it in smolagents' safe encoding, where it has one." },
	{ "screenshot", "object", &shape_picture, 1, "When it was asked for." },
	{ "recording", "integer", NULL, 1, "Id of the recording, when `record` was asked for: GET …/recording/{id}." },
	{ "film", "object", &shape_film, 1, "The recording itself, of POST /v1/run with `record`." },
	{ "files", "array", &shape_file, 0, "What the cell created, changed or deleted below /workspace." },
	{ "state_lost", "boolean", NULL, 0, "The interpreter had to be replaced, by this cell or before it (`interpreter_died`): variables are gone." },
	{ "packages", "object", &shape_packages, 1, "What became of packages since the cell before." },
	{ "checkpoints_evicted", "any", NULL, 1, "Ids of checkpoints that had to go since the last answer, for their number or memory." },
	{ "rolled_back", "boolean", NULL, 0, "The interpreter had to be replaced: variables are as they were before the cell, or were put back before it (`interpreter_died`)." },
	{ "files_rolled_back", "boolean", NULL, 0, "And so are the files under /workspace, /tmp and /dev/shm." },
	{ "files_lost", "boolean", NULL, 0, "The session's jail had to be replaced, too: /workspace is empty." },
	{ "interpreter_died", "object", &shape_death, 1, "The interpreter died between the cell before and this one." },
	{ "replayed", "integer", NULL, 0, "So many cells were run again, silently, to get back to this state; 0: none." },
	{ "may_differ", "array", NULL, 0, "Numbers of those cells that may have left another state behind than the first time: they used clocks, random "
		"numbers, files, programs or threads, or follow one that did." },
	{ "truncated", "object", &shape_truncated, 0, NULL },
	{ "usage", "object", &shape_usage, 0, "Measured, not guessed." },
};
SHAPE(shape_observation, "Observation", observation_rows);

static const struct shape_row log_entry_rows[] = {
	{ "position", "integer", NULL, 0, NULL },
	{ "cell", "integer", NULL, 0, "0: before the first cell." },
	{ "stream", "string", NULL, 0, "stdout or stderr." },
	{ "time", "string", NULL, 0, "RFC 3339, UTC." },
	{ "text", "string", NULL, 0, NULL },
};
static SHAPE(shape_log_entry, "LogEntry", log_entry_rows);

static const struct shape_row log_rows[] = {
	{ "entries", "array", &shape_log_entry, 0, NULL },
	{ "next", "integer", NULL, 0, "`after` of the next page." },
	{ "end", "boolean", NULL, 0, "There is no more for now." },
	{ "dropped_bytes", "integer", NULL, 0, "Output beyond limits.log_bytes that was not kept." },
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
	{ "truncated", "boolean", NULL, 0, "There is more than is listed." },
};
SHAPE(shape_file_list, "FileList", file_list_rows);

static const struct shape_row tool_rows[] = {
	{ "name", "string", NULL, 0, NULL },
	{ "calls", "integer", NULL, 0, "How often it was called." },
	{ "definition", "any", NULL, 0, "As it was given." },
};
static SHAPE(shape_tool, "Tool", tool_rows);

static const struct shape_row tool_list_rows[] = {
	{ "tools", "array", &shape_tool, 0, NULL },
};
SHAPE(shape_tool_list, "ToolList", tool_list_rows);

static const struct shape_row tool_call_rows[] = {
	{ "call", "integer", NULL, 0, "Names the call in its answer." },
	{ "tool", "string", NULL, 0, NULL },
	{ "cell", "integer", NULL, 0, "The cell that waits." },
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
	{ "status", "string", NULL, 0, "healthy, or ready; installing with 503 while modules of additional-imports are installed." },
	{ "packages_failed", "array", NULL, 1, "Modules of additional-imports that could not be had, with name and reason; left out when there are none." },
};
SHAPE(shape_status, "Status", status_rows);

static const struct shape_row version_rows[] = {
	{ "name", "string", NULL, 0, "glovebox" },
	{ "version", "string", NULL, 0, NULL },
	{ "api", "string", NULL, 0, "v1" },
	{ "layers", "any", NULL, 0, "The layers of the wall around sessions and what each is here: namespaces, mounts, seccomp, landlock, cgroup (v2, v1); \"waived\" for one that is missing." },
	{ "limits_not_enforced", "array", NULL, 0, "Names of limits that this server cannot keep." },
};
SHAPE(shape_version, "Version", version_rows);

static const struct shape_row profile_rows[] = {
	{ "name", "string", NULL, 0, NULL },
	{ "base", "string", NULL, 0, "The built-in profile it is made of." },
	{ "own", "boolean", NULL, 0, "It comes from the server's configuration directory." },
	{ "stands_for", "string", NULL, 0, NULL },
	{ "summary", "string", NULL, 0, NULL },
	{ "imports", "array", NULL, 0, "Modules that may be imported; * for all." },
	{ "builtins", "array", NULL, 0, "Empty: all of them." },
	{ "refuses", "array", NULL, 0, "What it says no to." },
	{ "max_operations", "integer", NULL, 0, "0: no limit." },
	{ "max_while_iterations", "integer", NULL, 0, "0: no limit." },
	{ "print_chars", "integer", NULL, 0, "0: no limit but that of the output." },
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
	{ "name", "string", NULL, 1, "Null for one that was kept by itself." },
	{ "parent", "string", NULL, 1, "The one its state came from." },
	{ "cell", "integer", NULL, 0, "The last cell it has seen." },
	{ "created", "string", NULL, 0, "RFC 3339, UTC." },
	{ "age_s", "number", NULL, 0, NULL },
	{ "size_bytes", "integer", NULL, 0, "Its share of memory (PSS), in lists; 0: not looked at." },
	{ "current", "boolean", NULL, 0, "The session's state is this one's or came from it." },
	{ "files", "boolean", NULL, 0, "It holds the files too." },
};
static SHAPE(shape_checkpoint, "Checkpoint", checkpoint_rows);

static const struct shape_row checkpoint_answer_rows[] = {
	{ "session", "string", NULL, 0, NULL },
	{ "checkpoint", "object", &shape_checkpoint, 0, NULL },
	{ "evicted", "array", NULL, 0, "Ids of those that had to go since the last answer." },
};
SHAPE(shape_checkpoint_answer, "CheckpointAnswer", checkpoint_answer_rows);

static const struct shape_row checkpoint_list_rows[] = { { "checkpoints", "array", &shape_checkpoint, 0, NULL } };
SHAPE(shape_checkpoint_list, "CheckpointList", checkpoint_list_rows);

static const struct shape_row rollback_answer_rows[] = {
	{ "session", "string", NULL, 0, NULL },
	{ "checkpoint", "object", &shape_checkpoint, 1, "Where the session is now; null: before its first cells." },
	{ "evicted", "array", NULL, 0, "Ids of those that had to go since the last answer." },
	{ "replayed", "integer", NULL, 0, "So many cells were run again, silently, to get to this state; 0: none." },
	{ "may_differ", "array", NULL, 0, "Numbers of those cells that may have left another state behind than the first time: they used clocks, random "
		"numbers, files, programs or threads, or follow one that did." },
};
SHAPE(shape_rollback_answer, "RollbackAnswer", rollback_answer_rows);

static const struct shape_row fork_rows[] = {
	{ "sessions", "array", &shape_session, 0, NULL },
	{ "same_numbers", "string", NULL, 0, "What kept the seed of its parent: names of variables and modules." },
};
SHAPE(shape_forks, "Forks", fork_rows);

static const struct shape_row recording_cell_rows[] = {
	{ "cell", "integer", NULL, 0, NULL },
	{ "from_ms", "integer", NULL, 0, "Its first frame, from the start of the recording." },
	{ "to_ms", "integer", NULL, 0, "Its last frame." },
	{ "first_frame", "integer", NULL, 0, "Number of its first frame, from 0." },
	{ "frames", "integer", NULL, 0, NULL },
};
static SHAPE(shape_recording_cell, "RecordingCell", recording_cell_rows);

static const struct shape_row recording_rows[] = {
	{ "id", "integer", NULL, 0, NULL },
	{ "state", "string", NULL, 0, "recording, finishing or done." },
	{ "ended", "string", NULL, 1, "Why: stopped, cell, max_seconds, frames, bytes, display_gone, no_space." },
	{ "format", "string", NULL, 0, "What it is fetched as unless another is asked for: apng, webm, mp4 or gif." },
	{ "width", "integer", NULL, 0, "0 before the first frame." },
	{ "height", "integer", NULL, 0, NULL },
	{ "frames", "integer", NULL, 0, "Only changes make frames." },
	{ "bytes", "integer", NULL, 0, NULL },
	{ "duration_ms", "integer", NULL, 0, "From the first frame." },
	{ "started", "string", NULL, 0, "RFC 3339, UTC." },
	{ "cells", "array", &shape_recording_cell, 0, "Cells that ran meanwhile and changed the screen." },
};
SHAPE(shape_recording, "Recording", recording_rows);

static const struct shape_row recording_list_rows[] = { { "recordings", "array", &shape_recording, 0, NULL } };
SHAPE(shape_recording_list, "RecordingList", recording_list_rows);

static const struct shape_row live_link_rows[] = {
	{ "url", "string", NULL, 0, "The address, from the server's root on." },
	{ "control", "boolean", NULL, 0, "Whether it takes mouse and keyboard." },
	{ "expires", "string", NULL, 0, "RFC 3339, UTC." },
};
SHAPE(shape_live_link, "LiveLink", live_link_rows);

static const struct shape_row input_result_rows[] = {
	{ "action", "string", NULL, 0, NULL },
	{ "x", "integer", NULL, 0, "Of cursor_position." },
	{ "y", "integer", NULL, 0, "Of cursor_position." },
	{ "screenshot", "object", &shape_picture, 0, "Of screenshot and zoom." },
};
static SHAPE(shape_input_result, "InputResult", input_result_rows);

static const struct shape_row input_rows[] = {
	{ "results", "array", &shape_input_result, 0, "One for each action." },
	{ "acted_ms", "number", NULL, 0, "What the actions took, before the screen settled." },
	{ "settled", "boolean", NULL, 1, "The screen had settled; null when settle was false." },
	{ "after_ms", "number", NULL, 1, "How long it took to settle." },
	{ "screenshot", "object", &shape_picture, 1, "When it was asked for." },
};
SHAPE(shape_input, "InputAnswer", input_rows);

const struct shape *const shapes[] = { &shape_forks, &shape_checkpoint, &shape_checkpoint_answer, &shape_checkpoint_list, &shape_rollback_answer, &shape_problem, &shape_packages, &shape_profile, &shape_profile_list, &shape_session, &shape_session_list, &shape_limits,
	&shape_observation, &shape_bundle, &shape_error, &shape_file, &shape_truncated, &shape_usage,
	&shape_log, &shape_log_entry, &shape_file_list, &shape_file_entry, &shape_interrupted, &shape_status,
	&shape_version, &shape_tool, &shape_tool_list, &shape_tool_call, &shape_call_list, &shape_display, &shape_window, &shape_window_list, &shape_picture, &shape_picture_error, &shape_input, &shape_input_result, &shape_recording, &shape_recording_list, &shape_recording_cell, &shape_film, &shape_death, &shape_live_link, NULL };

/* ---- as JSON Schema ------------------------------------------------------ */

static void put_ref(struct json_writer *w, const struct shape *s)
{
	_cleanup_buffer_ struct buffer ref = BUFFER_INIT(0);
	buffer_printf(&ref, "#/components/schemas/%s", s->name);
	json_open_object(w);
	json_field_text(w, "$ref", ref.data, ref.len);
	json_close(w);
}

static void put_type(const struct shape_row *row, struct json_writer *w)
{
	if (text_eq(row->type, "any"))
		return;
	json_key(w, "type");
	if (row->nullable) {
		json_open_array(w);
		json_put_cstr(w, row->type);
		json_put_cstr(w, "null");
		json_close(w);
	} else {
		json_put_cstr(w, row->type);
	}
}

static void put_row(const struct shape_row *row, struct json_writer *w)
{
	json_key(w, row->name);
	json_open_object(w);
	if (row->of && text_eq(row->type, "object")) {
		json_key(w, "oneOf");
		json_open_array(w);
		put_ref(w, row->of);
		if (row->nullable)
			json_put_raw(w, "{\"type\":\"null\"}", sizeof("{\"type\":\"null\"}") - 1);
		json_close(w);
	} else {
		put_type(row, w);
	}
	if (row->of && text_eq(row->type, "array")) {
		json_key(w, "items");
		put_ref(w, row->of);
	}
	if (row->help)
		json_field_cstr(w, "description", row->help);
	json_close(w);
}

void shape_write_schema(const struct shape *s, struct json_writer *w)
{
	json_open_object(w);
	json_field_cstr(w, "type", "object");
	if (s->open_help) {
		json_field_cstr(w, "description", s->open_help);
		json_field_bool(w, "additionalProperties", true);
		json_close(w);
		return;
	}
	json_key(w, "properties");
	json_open_object(w);
	for (size_t i = 0; i < s->n; i++)
		put_row(&s->row[i], w);
	json_close(w);
	json_key(w, "required");
	json_open_array(w);
	for (size_t i = 0; i < s->n; i++)
		json_put_cstr(w, s->row[i].name);
	json_close(w);
	json_close(w);
}
