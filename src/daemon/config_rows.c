/* The table of the daemon's settings. */
#include "base/limits.h"
#include "daemon/config.h"

#define AT(member) offsetof(struct config, member)
#define AT_MCP(member) offsetof(struct config, mcp.member)

/* In the order of enum packages_mode. */
static const char *const package_modes[] = { "install", "store", "off", NULL };

/* In the order of enum jail_exec. */
static const char *const exec_names[] = { "system", "none", "any", NULL };
static const char *const log_levels[] = { "debug", "info", "warning", "error", "none", NULL };

/* as enum config_displays */
static const char *const displays_names[] = { "lazy", "ready", "plain", NULL };

/*
 * A setting with a maximum of its own: the row NAME is the default of a session, the row max-NAME
 * the most that a session may request. Where the maximum's default is "0", 0 means no limit. What
 * follows the help holds for both.
 */
#define WITH_MAX(name_, letter_, member, type_, value_, fallback_, max_fallback, help_, ...)   \
	{ .name = (name_),                                                                     \
		.letter = (letter_),                                                           \
		.type = (type_),                                                               \
		.offset = AT(member),                                                          \
		.value = (value_),                                                             \
		.fallback = (fallback_),                                                       \
		.help = (help_),                                                               \
		__VA_ARGS__ },                                                                 \
	{                                                                                      \
		.name = "max-" name_, .type = (type_), .offset = AT(max_##member),             \
		.value = (value_), .fallback = (max_fallback),                                 \
		.help = "the most that a session may request", .is_maximum = true, __VA_ARGS__ \
	}

/* clang-format off */
const struct option_row config_rows[] = {
	{ .name = "listen", .letter = 'l', .type = OPTION_TEXT, .offset = AT(listen), .value = "ADDRESS",
	  .fallback = "127.0.0.1:8000",
	  .group = "server", .help = "address of the server: HOST:PORT, [V6ADDRESS]:PORT, or unix:/path for a socket file; port 0 takes a "
		  "free port" },
	{ .name = "max-connections", .type = OPTION_COUNT, .offset = AT(max_connections), .min = 1, .max = 1000000,
	  .value = "N", .fallback = "4096",
	  .help = "connections open at once" },
	{ .name = "max-upload", .type = OPTION_SIZE, .offset = AT(max_upload), .min = 1, .value = "SIZE",
	  .fallback = "1G",
	  .help = "largest file that a client may upload" },
	{ .name = "node", .type = OPTION_TEXT, .offset = AT(node), .value = "NAME",
	  .help = "name of this server in a fleet: its ids begin with four letters of this name, so that a router finds the "
		  "server (default: no fleet)" },
	{ .name = "agent-listen", .type = OPTION_TEXT, .offset = AT(agent_listen), .value = "ADDRESS",
	  .help = "address where routers of a fleet ask for the share of sessions that are free (HAProxy's agent check): HOST:PORT "
		  "(default: none)" },
	{ .name = "drain", .type = OPTION_SECONDS, .offset = AT(drain), .max = 86400, .value = "SECONDS",
	  .fallback = "30",
	  .help = "seconds that running cells may take after SIGTERM, before they are ended" },
	{ .name = "state-dir", .type = OPTION_TEXT, .offset = AT(state_dir), .value = "DIRECTORY",
	  .help = "directory for data that is kept between runs (default /var/lib/glovebox for root, else "
		  "~/.local/state/glovebox)" },
	{ .name = "log-level", .type = OPTION_CHOICE, .offset = AT(log_level), .value = "LEVEL", .fallback = "info",
	  .choices = log_levels,
	  .help = "lowest level of log lines to write: debug, info, warning, error, none" },
	{ .name = "access-log", .type = OPTION_FLAG, .offset = AT(access_log), .fallback = "yes",
	  .help = "log one line per request (on unless --no-access-log)" },
	{ .name = "live-control", .type = OPTION_FLAG, .offset = AT(live_control), .fallback = "yes",
	  .help = "let live views of a session's screen use mouse and keyboard when they ask for it (on unless "
		  "--no-live-control)" },

	{ .name = "token", .type = OPTION_LIST, .offset = AT(token), .value = "TOKEN",
	  .group = "security", .help = "clients must send this token as `Authorization: Bearer TOKEN`; may be repeated, each token sees its "
		  "own sessions. Other users of this machine can read flags and variables: prefer --token-file." },
	{ .name = "token-file", .type = OPTION_TEXT, .offset = AT(token_file), .value = "FILE",
	  .help = "file with tokens, one per line; a token may be followed by settings of its own, such as "
		  "mcp-tools=run_python,read_file" },
	{ .name = "metrics-token", .type = OPTION_TEXT, .offset = AT(metrics_token), .value = "TOKEN",
	  .help = "token that opens /metrics of the whole server and nothing else; with several tokens, each of them "
		  "sees there only the figures of its own sessions" },
	{ .name = "allow-anonymous", .type = OPTION_FLAG, .offset = AT(allow_anonymous),
	  .help = "serve without a token even where other machines can reach the address; for containers, where the "
		  "published port decides who can connect" },
	{ .name = "allow-host", .type = OPTION_LIST, .offset = AT(allow_host), .value = "NAMES",
	  .help = "host names by which clients may call the server, besides its address and the loopback names; * for "
		  "any" },
	{ .name = "allow-origin", .type = OPTION_LIST, .offset = AT(allow_origin), .value = "ORIGINS",
	  .help = "origins whose web pages may call the server, such as https://console.example" },
	{ .name = "waive", .type = OPTION_LIST, .offset = AT(waive), .value = "LAYERS",
	  .help = "start although these layers of protection are missing on this machine: landlock, cgroup (`glovebox "
		  "doctor` lists them)" },

	{ .name = "preload", .type = OPTION_LIST, .offset = AT(preload), .value = "MODULES",
	  .group = "sessions", .help = "modules that are already imported when a session starts, or none (default: common standard library, "
		  "numpy, pandas, matplotlib, PIL)" },
	{ .name = "profile", .type = OPTION_TEXT, .offset = AT(profile), .value = "NAME",
	  .help = "executor profile of sessions that name none: python, smolagents, restricted, restrictedpython, "
		  "tinyagent, or one of your own (default python; EXECUTOR_BACKEND is read too)" },
	{ .name = "executor-backend", .type = OPTION_TEXT, .offset = AT(profile), .value = "NAME",
	  .help = "another name of --profile" },
	{ .name = "additional-imports", .type = OPTION_LIST, .offset = AT(additional_imports), .value = "MODULES",
	  .help = "modules that every session may import in addition to those of its profile (ADDITIONAL_IMPORTS is "
		  "read too)" },
	{ .name = "rootfs", .type = OPTION_TEXT, .offset = AT(rootfs), .value = "DIRECTORY",
	  .help = "system tree that sessions see, read-only, instead of this machine's own (made by debootstrap, or "
		  "copied)" },
	{ .name = "mount", .type = OPTION_LIST, .offset = AT(mount), .value = "NAME:/DIRECTORY",
	  .help = "directories of this machine that sessions see, read-only, when they ask for them by name "
		  "({\"mounts\": {\"NAME\": \"/NAME\"}}); at most 8" },
	{ .name = "max-volumes", .type = OPTION_COUNT, .offset = AT(max_volumes), .max = LIMIT_VOLUMES, .value = "N", .fallback = "32",
	  .help = "volumes of one token: directories that outlive sessions (docs/data.md); 0: none" },
	{ .name = "max-volume-bytes", .type = OPTION_SIZE, .offset = AT(max_volume_bytes), .min = 1 << 20, .value = "SIZE",
	  .fallback = "1G", .help = "largest quota of a volume, and the quota of a volume that is created without one" },
	{ .name = "displays", .type = OPTION_CHOICE, .offset = AT(displays), .value = "WHEN", .fallback = "lazy",
	  .choices = displays_names,
	  .help = "when the processes behind screens start: with the first session that needs a screen (lazy), in "
		  "advance (ready: about 60 MB), or as a new X server for each session (plain)" },
	{ .name = "ready", .type = OPTION_COUNT, .offset = AT(ready), .max = 1000, .value = "N", .fallback = "4",
	  .help = "sandboxes kept ready, so that a session starts at once" },
	{ .name = "renew", .type = OPTION_SECONDS, .offset = AT(renew), .max = 1e9, .value = "SECONDS",
	  .fallback = "3600",
	  .help = "seconds after which sessions are forked from a newly started interpreter, with another address "
		  "layout and hash seed; 0: never" },
	{ .name = "quick-start", .type = OPTION_FLAG, .offset = AT(quick_start),
	  .help = "sessions requested while the modules of --preload are being imported start at once, without these "
		  "modules" },
	{ .name = "heap-placement", .type = OPTION_FLAG, .offset = AT(heap_placement), .fallback = "yes",
	  .help = "at the first start with a list of --preload modules, record in 2 to 5 s which objects a first cell uses, and "
		  "place them on adjacent pages, so that a session needs less memory (on unless --no-heap-placement; x86-64)" },
	{ .name = "low-idle-latency", .type = OPTION_FLAG, .offset = AT(low_idle_latency), .fallback = "yes",
	  .help = "on a virtual machine, while cells follow each other closely: keep idle CPUs polling, so that small "
		  "cells take a fifth to a third less time (on unless --no-low-idle-latency)" },
	{ .name = "max-sessions", .type = OPTION_COUNT, .offset = AT(max_sessions), .min = 1, .max = 100000,
	  .value = "N", .fallback = "2000",
	  .help = "sessions alive at once" },
	{ .name = "max-sessions-per-token", .type = OPTION_COUNT, .offset = AT(max_sessions_per_token),
	  .max = 100000, .value = "N", .fallback = "0",
	  .help = "sessions of one token alive at once; 0: with several tokens an equal share of --max-sessions each" },
	{ .name = "max-runs", .type = OPTION_COUNT, .offset = AT(max_runs), .max = 10000, .value = "N",
	  .fallback = "0",
	  .help = "programs of batches and of trainers' calls that run at the same time; the others wait; 0: two per "
		  "CPU, at least four" },
	{ .name = "queue", .type = OPTION_COUNT, .offset = AT(queue), .max = 1000, .value = "N", .fallback = "16",
	  .help = "cells that may wait in one session" },
	{ .name = "ttl", .type = OPTION_SECONDS, .offset = AT(ttl), .min = 1, .value = "SECONDS", .fallback = "24h",
	  .help = "seconds after its creation at which a session ends" },
	{ .name = "idle-timeout", .type = OPTION_SECONDS, .offset = AT(idle_timeout), .min = 1, .value = "SECONDS",
	  .fallback = "1h",
	  .help = "seconds after its last cell at which a session ends" },
	{ .name = "max-paused", .type = OPTION_SECONDS, .offset = AT(max_paused), .min = 1, .value = "SECONDS",
	  .fallback = "24h",
	  .help = "seconds for which a session may be paused; then it ends" },
	WITH_MAX("log", 0, log, OPTION_SIZE, "SIZE", "16M", "256M",
		"output kept per session for `glovebox logs`",
		.min = 0),

	{ .name = "grace", .type = OPTION_SECONDS, .offset = AT(grace), .max = 3600, .value = "SECONDS",
	  .fallback = "2",
	  .group = "cells", .help = "seconds between SIGINT at the time limit and SIGKILL" },
	WITH_MAX("timeout", 't', timeout, OPTION_SECONDS, "SECONDS", "30", "1h",
		"time limit of a cell that sets none",
		.min = 0.1, .max = 3600),
	{ .name = "transactions", .type = OPTION_FLAG, .offset = AT(transactions), .fallback = "yes",
	  .help = "roll back when a cell kills its interpreter (on unless --no-transactions)" },
	{ .name = "keep-files", .type = OPTION_SIZE, .offset = AT(keep_files), .value = "SIZE", .fallback = "64M",
	  .help = "largest /workspace, /tmp and /dev/shm that a rollback restores; 0: never" },
	{ .name = "max-checkpoints", .type = OPTION_COUNT, .offset = AT(max_checkpoints), .max = LIMIT_CHECKPOINTS,
	  .value = "N", .fallback = "16",
	  .help = "checkpoints of one session; beyond this the least recently used one is evicted; 0: none" },
	{ .name = "checkpoint-memory", .type = OPTION_SIZE, .offset = AT(checkpoint_memory), .value = "SIZE",
	  .fallback = "0",
	  .help = "memory of a session's checkpoints, beyond which the least recently used one is evicted; 0: half of "
		  "the session's memory" },
	WITH_MAX("output", 0, output, OPTION_SIZE, "SIZE", "1M", "4M",
		"stdout and stderr, each, in one answer",
		.min = 1024),
	WITH_MAX("memory", 'm', memory, OPTION_SIZE, "SIZE", "2G", "0",
		"memory of a session's interpreter",
		.min = 16 << 20),
	WITH_MAX("processes", 0, processes, OPTION_COUNT, "N", "256", "4096",
		"processes and threads of a session at once",
		.min = 1, .max = 65536),
	WITH_MAX("cpus", 0, cpus, OPTION_NUMBER, "N", "0", "0",
		"CPU limit of a session in cores, such as 0.5; 0: no limit (needs control groups)",
		.max = 1024),
	WITH_MAX("cpu-time", 0, cpu_time, OPTION_SECONDS, "SECONDS", "0", "0",
		"CPU time of a cell with all its processes; 0: no limit besides --timeout",
		.min = 0),
	WITH_MAX("session-cpu-time", 0, session_cpu_time, OPTION_SECONDS, "SECONDS", "0", "0",
		"CPU time of a whole session, which ends when it is used up; 0: no limit",
		.min = 0),
	WITH_MAX("inodes", 0, inodes, OPTION_SIZE, "N", "65536", "1M",
		"files and directories in /workspace, and as many in /tmp",
		.min = 64),
	WITH_MAX("file-size", 0, file_size, OPTION_SIZE, "SIZE", "1G", "0",
		"size of one file",
		.min = 4096),
	WITH_MAX("open-files", 0, open_files, OPTION_COUNT, "N", "1024", "4096",
		"files that one process of a session may have open",
		.min = 16, .max = 4096),
	WITH_MAX("total-output", 0, total_output, OPTION_SIZE, "SIZE", "1G", "0",
		"total output of a cell, shown or not, before the cell is stopped",
		.min = 1024),
	WITH_MAX("exec", 0, exec, OPTION_CHOICE, "WHICH", "system", "any",
		"programs that code may start if the session does not set exec: those of the system, none, or any",
		.choices = exec_names),
	WITH_MAX("disk", 0, disk, OPTION_SIZE, "SIZE", "256M", "4G",
		"bytes in /workspace, and as many in /tmp",
		.min = 1 << 20),

	{ .name = "openenv-profile", .type = OPTION_TEXT, .offset = AT(openenv_profile), .value = "NAME",
	  .group = "dialects", .help = "executor profile of OpenEnv's environments (default: that of --profile, and without it smolagents, "
		  "as in coding_env)" },
	{ .name = "openenv-rewards", .type = OPTION_FLAG, .offset = AT(openenv_rewards), .fallback = "yes",
	  .help = "give OpenEnv's clients the rewards of coding_env (on unless --no-openenv-rewards)" },
	{ .name = "openenv-lease", .type = OPTION_SECONDS, .offset = AT(openenv_lease), .max = 86400,
	  .value = "SECONDS", .fallback = "60",
	  .help = "seconds that a named OpenEnv environment waits for a client whose connection broke" },
	{ .name = "jupyter-timeout", .type = OPTION_SECONDS, .offset = AT(jupyter_timeout), .min = 0.1, .max = 3600,
	  .value = "SECONDS", .fallback = "1h",
	  .help = "time limit of a cell that a Jupyter client runs (at most --max-timeout)" },
	MCP_OPTION_ROWS(AT_MCP),

	{ .name = "packages", .type = OPTION_CHOICE, .offset = AT(packages.mode), .value = "WHICH",
	  .fallback = "install", .choices = package_modes,
	  .group = "packages", .help = "packages that requests may use: install what they name, only installed ones (store), or off" },
	{ .name = "packages-index", .type = OPTION_TEXT, .offset = AT(packages.index), .value = "URL",
	  .help = "package index (default https://pypi.org/simple)" },
	{ .name = "packages-extra-index", .type = OPTION_LIST, .offset = AT(packages.extra_index), .value = "URLS",
	  .help = "further indexes" },
	{ .name = "packages-find-links", .type = OPTION_LIST, .offset = AT(packages.find_links), .value = "PLACES",
	  .help = "directories with wheels (or pages with links to them)" },
	{ .name = "packages-offline", .type = OPTION_FLAG, .offset = AT(packages.offline),
	  .help = "use no index, only packages-find-links" },
	{ .name = "packages-trusted-host", .type = OPTION_LIST, .offset = AT(packages.trusted_host),
	  .value = "HOSTS",
	  .help = "hosts whose certificates are not checked" },
	{ .name = "packages-host", .type = OPTION_LIST, .offset = AT(packages.hosts), .value = "HOSTS",
	  .help = "HOST or HOST:PORT that the installer may reach besides the indexes, for files that are stored elsewhere" },
	{ .name = "packages-proxy", .type = OPTION_TEXT, .offset = AT(packages.proxy), .value = "URL",
	  .help = "proxy through which the installer reaches the indexes" },
	{ .name = "packages-uv", .type = OPTION_TEXT, .offset = AT(packages.uv), .value = "PROGRAM",
	  .help = "program uv, which installs in place of pip; `no`: never (default: /usr/local/bin/uv or /usr/bin/uv, "
		  "if present)" },
	{ .name = "packages-constraints", .type = OPTION_TEXT, .offset = AT(packages.constraints), .value = "FILE",
	  .help = "allowed versions, as pip's --constraint" },
	{ .name = "packages-allow", .type = OPTION_LIST, .offset = AT(packages.allow), .value = "NAMES",
	  .help = "allow only these packages, dependencies included; * stands for any characters" },
	{ .name = "packages-deny", .type = OPTION_LIST, .offset = AT(packages.deny), .value = "NAMES",
	  .help = "refuse these packages" },
	{ .name = "packages-build", .type = OPTION_FLAG, .offset = AT(packages.build),
	  .help = "build source packages on request; their code runs in the installer's jail (default: wheels only)" },
	{ .name = "packages-isolate", .type = OPTION_FLAG, .offset = AT(packages.isolate), .fallback = "yes",
	  .help = "build with setuptools and other build tools from the index; --no-packages-isolate: with those of the system" },
	{ .name = "packages-require-hashes", .type = OPTION_FLAG, .offset = AT(packages.require_hashes),
	  .help = "install only packages that are requested with a hash" },
	{ .name = "packages-strict", .type = OPTION_FLAG, .offset = AT(packages.strict),
	  .help = "end the server when a module of additional-imports cannot be installed" },
	{ .name = "packages-timeout", .type = OPTION_SECONDS, .offset = AT(packages.timeout_s), .min = 1,
	  .max = 86400, .value = "SECONDS", .fallback = "300",
	  .help = "time limit of one installation" },
	{ .name = "packages-max-size", .type = OPTION_SIZE, .offset = AT(packages.max_bytes), .min = 1 << 20,
	  .value = "SIZE", .fallback = "1G",
	  .help = "unpacked size of one installation, which may need three times as much memory" },
	{ .name = "packages-store-size", .type = OPTION_SIZE, .offset = AT(packages.store_bytes), .value = "SIZE",
	  .fallback = "20G",
	  .help = "`glovebox packages gc` removes the least recently used sets beyond this size; 0: no limit" },
	{ .name = "packages-store-age", .type = OPTION_SECONDS, .offset = AT(packages.store_age_s),
	  .value = "SECONDS", .fallback = "720h",
	  .help = "`glovebox packages gc` removes sets that were not used for this long" },
	{ .name = "packages-warm", .type = OPTION_ITEMS, .offset = AT(packages.warm), .value = "PACKAGES",
	  .help = "a set of packages, separated by spaces, that is kept ready with its modules imported; may be "
		  "repeated" },
	{ .name = "packages-template-after", .type = OPTION_COUNT, .offset = AT(packages.template_after),
	  .max = 1000000, .value = "N", .fallback = "20",
	  .help = "keep a set ready in the same way after more sessions than this requested it, counted per token; 0: "
		  "never" },
	{ .name = "packages-template-memory", .type = OPTION_SIZE, .offset = AT(packages.template_bytes),
	  .value = "SIZE", .fallback = "1G",
	  .help = "memory of all sets kept ready; the least recently used ones are dropped beyond it" },

	{ .name = "network", .type = OPTION_LIST, .offset = AT(network), .value = "LIST",
	  .group = "network", .help = "the most that a session may request: none, loopback, HOST:PORT rules, any (default: any; with "
		  "tokens loopback and *:*, which is every public address)" },
	{ .name = "default-network", .type = OPTION_TEXT, .offset = AT(default_network), .value = "WHICH",
	  .fallback = "none",
	  .help = "network of a session that requests none: none, loopback, or rules separated by commas" },

	{ .name = "config", .letter = 'c', .type = OPTION_TEXT, .offset = AT(config), .value = "FILE",
	  .flag_only = true,
	  .group = "other", .help = "settings file to read instead of ~/.config/glovebox/glovebox.conf or /etc/glovebox/glovebox.conf" },
	{ .name = "check", .type = OPTION_FLAG, .offset = AT(check), .flag_only = true,
	  .help = "read all settings, print errors, and end" },
	{ .name = "help", .letter = 'h', .type = OPTION_FLAG, .offset = AT(help), .flag_only = true,
	  .help = "print this text" },

	{ .name = NULL },
};
/* clang-format on */
