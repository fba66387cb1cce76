#include "dialects/common/dialect_words.h"

#include "api/api_words.h"

static const struct edge_word words[] = {
	{ "create_volume", "Create it with POST /v1/volumes" },
	{ "new_session", "Make a new session" },
	{ "find_session", "Make a new session" },
	{ "look_at_session", "Look at the session" },
	{ "end_sessions", "End sessions that are no longer needed" },
	{ "list_checkpoints", "The session's list of checkpoints shows the existing checkpoints" },
	{ "list_contexts", "The list of contexts shows all contexts" },
	{ "list_processes",
		"The list of processes shows the running processes and the last that ended" },
	{ "list_recordings", "The session's list of recordings shows the existing recordings" },
	{ "list_windows", "Omit the window to capture the whole screen" },
	{ "list_profiles", "The list of profiles says what each of them refuses" },
	{ "resume", "Resume it" },
	{ "reset", "A reset of the session" },
	{ "undo", "An undo" },
	{ NULL, NULL },
};

const struct edge dialect_words = { .words = words, .otherwise = &api_words };
