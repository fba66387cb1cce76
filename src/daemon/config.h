/*
 * The daemon's settings. One table (config_rows) says for each its name, type, default and help; a
 * value comes from, in this order, a flag of `glovebox serve`, a GLOVEBOX_… variable, the settings
 * file, the default.
 *
 * The settings file is the one of --config (or GLOVEBOX_CONFIG); without it
 * ~/.config/glovebox/glovebox.conf when it is there, else /etc/glovebox/glovebox.conf when it is
 * there. A file that was named must exist.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/mcp_options.h"
#include "options/options.h"
#include "packages/settings.h"

struct sessions_config;
struct token_options;

enum config_displays { DISPLAYS_LAZY, DISPLAYS_READY, DISPLAYS_PLAIN };

struct config {
	/* server */
	char *config; /* the settings file that was named, or NULL */
	char *listen; /* "127.0.0.1:8000", "[::1]:8000", "unix:/path" */
	unsigned max_connections;
	uint64_t max_upload;
	char *agent_listen; /* where routers hear how much room there is, or NULL */
	char *node;         /* the name of this server in a fleet, or NULL */
	double drain;       /* seconds that running cells get at the end */
	char *state_dir;    /* never NULL after config_load() */
	int log_level;      /* enum log_level */
	bool access_log;
	bool live_control;
	/* security */
	char **token; /* after config_load(): with those of token_file; NULL when there are none */
	char *token_file;
	struct token_options *token_options; /* of the first tokens, in their order */
	unsigned n_token_options;
	char *metrics_token; /* or NULL */
	bool allow_anonymous;
	char **allow_host, **allow_origin;
	char **waive; /* layers of the wall that may be missing */
	/* sessions */
	char *rootfs;         /* NULL: the host's own system */
	char **mount;         /* NAME:/DIRECTORY, for sessions that ask */
	unsigned max_volumes; /* of one token */
	uint64_t max_volume_bytes;
	char **preload;                      /* NULL: the default list */
	int displays;                        /* enum config_displays */
	char *profile, **additional_imports; /* of every session; profile NULL: python */
	unsigned ready, max_sessions, max_sessions_per_token, max_runs, queue;
	bool quick_start, heap_placement, low_idle_latency;
	double ttl, idle_timeout, max_paused, renew;
	uint64_t log, max_log;
	/* dialects */
	char *openenv_profile; /* NULL: the server's profile, and without one smolagents */
	bool openenv_rewards;
	double openenv_lease, jupyter_timeout;
	struct mcp_options mcp;
	/* network */
	char **network;        /* the most sessions may ask for; NULL: see config_sessions() */
	char *default_network; /* what those get who ask for nothing */
	/* cells */
	double timeout, max_timeout, grace;
	bool transactions;
	uint64_t keep_files;
	unsigned max_checkpoints;
	uint64_t checkpoint_memory;
	unsigned processes, max_processes, open_files, max_open_files;
	double cpus, max_cpus, cpu_time, max_cpu_time, session_cpu_time, max_session_cpu_time;
	uint64_t inodes, max_inodes, file_size, max_file_size, total_output, max_total_output;
	int exec, max_exec; /* enum jail_exec */
	uint64_t output, max_output, memory, max_memory, disk, max_disk;
	struct packages_settings packages;
	/* only a flag */
	bool help, check;
	/* what was found out */
	char *file; /* the settings file that was read, or NULL */
};

extern const struct option_row config_rows[];

/* Variables of ours that are no settings of the daemon, NULL at the end. */
extern const char *const config_other_variables[];

/*
 * Reads all sources into *ret, which is the caller's to finish. With --help or --check among the
 * flags the values are read all the same. An error names the source of the wrong value. -EPERM:
 * what it asks for would let strangers in.
 */
int config_load(int argc, char **argv, struct error *e, struct config *ret);
void config_finish(struct config *c);

/*
 * Is the address one that only this machine reaches (a loopback literal, localhost, a unix socket)?
 */
bool config_is_local(const char *listen);

/*
 * Fills the session table's parameters: pointers into *c, which must outlive it, and guest_module,
 * which the caller frees.
 */
int config_sessions(const struct config *c, struct error *e, struct sessions_config *ret);
