#include "api/api_words.h"

static const struct edge_word words[] = {
	/* routes */
	{ "new_session", "Create a new session with POST /v1/sessions" },
	{ "find_session",
		"GET /v1/sessions lists the sessions; POST /v1/sessions creates a session" },
	{ "look_at_session", "Look at the session with GET /v1/sessions/ID" },
	{ "create_volume", "Create it with POST /v1/volumes; GET /v1/volumes lists the volumes" },
	{ "end_sessions", "DELETE sessions that are no longer needed" },
	{ "list_checkpoints", "GET …/checkpoints lists the checkpoints" },
	{ "list_contexts", "GET …/contexts lists the contexts" },
	{ "list_processes", "GET …/processes lists the running processes and the last that ended" },
	{ "list_recordings", "GET …/recording lists the recordings" },
	{ "list_windows", "GET …/windows lists the windows" },
	{ "list_profiles", "GET /v1/profiles lists what the profile refuses" },
	{ "reset", "POST …/reset" },
	{ "resume", "Resume the session with POST …/resume" },
	{ "undo", "{\"undo\": true}" },
	/* fields of requests */
	{ "display", "\"display\": true (or a size: {\"width\": 1280, \"height\": 800})" },
	{ "timeout_s", "timeout_s" },
	{ "output_bytes", "limits.output_bytes" },
	{ "memory_bytes", "limits.memory_bytes" },
	{ "cpu_s", "limits.cpu_s" },
	{ "total_output_bytes", "limits.total_output_bytes" },
	{ "disk_bytes", "limits.disk_bytes" },
	{ "inodes", "limits.inodes" },
	{ "file_bytes", "limits.file_bytes" },
	{ "open_files", "limits.open_files" },
	{ "processes", "limits.processes" },
	/* settings of the server */
	{ "setting", "--%" },
	{ "raise", "raise --%" },
	{ "start", "start the server with --%" },
	{ "start_larger", "start the server with a larger --%" },
	{ "allow_network",
		"start the server with --network naming it (--network loopback, --network 'example.org:443')" },
	{ "debootstrap", "debootstrap --include=%" },
	{ NULL, NULL },
};

const struct edge api_words = { .words = words };
