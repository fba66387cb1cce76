#include "cli/cli_words.h"

static const struct edge_word words[] = {
	/* verbs */
	{ "create_volume", "Create it with `glovebox volumes create NAME`" },
	{ "new_session", "Start again" },
	{ "find_session", "`glovebox ps` lists the sessions of a server" },
	{ "look_at_session", "Look at the session with `glovebox ps`" },
	{ "end_sessions", "End sessions that are no longer needed with `glovebox kill`" },
	{ "list_checkpoints", "`glovebox tree` lists the checkpoints" },
	{ "list_contexts", "The list of contexts shows all contexts" },
	{ "list_processes",
		"The list of processes shows the running processes and the last that ended" },
	{ "list_recordings", "A recording is made with --record" },
	{ "list_windows", "Omit the window to capture the whole screen" },
	{ "list_profiles", "`glovebox profiles` lists what the profile refuses" },
	{ "resume", "Resume the session with `glovebox resume`" },
	{ "reset", "A new run" },
	{ "undo", "`glovebox rollback`" },
	/* options of `glovebox run` and `glovebox shell` */
	{ "display", "--display" },
	{ "timeout_s", "--timeout" },
	{ "output_bytes", "less output" },
	{ "memory_bytes", "--memory" },
	{ "cpu_s", "--cpu-time" },
	{ "total_output_bytes", "--total-output" },
	{ "disk_bytes", "--disk" },
	{ "inodes", "--inodes" },
	{ "file_bytes", "--file-size" },
	{ "open_files", "--open-files" },
	{ "processes", "--processes" },
	/* settings */
	{ "setting", "--%" },
	{ "raise", "raise --%" },
	{ "start", "use a server that was started with --%" },
	{ "start_larger", "use a larger --%" },
	{ "allow_network", "name it with --network or --allow" },
	{ "debootstrap", "debootstrap --include=%" },
	{ NULL, NULL },
};

const struct edge cli_words = { .words = words };
