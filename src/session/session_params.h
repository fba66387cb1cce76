/*
 * The input for a new session: its parameters and limits, and the configuration of the table with
 * the defaults for them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "jail/jail.h"
#include "network/network_policy.h"
#include "profile/profile.h"

struct profiles;

/* A value of 0 means "the server's default". */
struct session_limits {
	double timeout_s;      /* wall time of one cell */
	uint64_t output_bytes; /* of stdout and of stderr, each, in an observation */
	/* of the session: a MemoryError beyond it, and with control groups a wall for all it starts
	 */
	uint64_t memory_bytes;
	uint64_t processes; /* and threads, at once */
	/* processors' worth of time; 0 with no default: as much as there is */
	double cpus;
	/* processor time of one cell, all its processes together; 0 with no default: as much as its
	 * wall time allows */
	double cpu_s;
	double session_cpu_s; /* the same of the whole session, which ends when it is used up */
	uint64_t disk_bytes;  /* /workspace and /tmp, each */
	uint64_t inodes;      /* files and directories in each of them */
	uint64_t file_bytes;  /* of one file */
	uint64_t open_files;  /* descriptors of one process */
	/* of stdout and stderr together that a cell may print at all, shown or not */
	uint64_t total_output_bytes;
	uint64_t log_bytes; /* output kept for GET …/logs */
};

/*
 * A set of packages a session sees. `retain` is called with `hold` for every copy of the session,
 * `release` when one of them is gone; both may be NULL.
 */
struct session_package {
	struct session_package *next;
	char *path; /* inside the jail */
	void (*retain)(void *hold);
	void (*release)(void *hold);
	void *hold;
};

struct session_params {
	char *name; /* or NULL */
	char **env; /* "NAME=value", NULL at the end; or NULL */
	/* modules to import before the first cell, NULL at the end; or NULL */
	char **preload;
	char *metadata; /* JSON text of an object, or NULL */
	/* a name, or the JSON text of an object; NULL: the server's default */
	char *profile;
	char **additional_imports; /* beyond the profile's, NULL at the end; or NULL */
	/* additional imports, the server's too, allow what is safe below them */
	bool imports_below;
	struct session_limits limits;
	double ttl_s;          /* ends this long after its creation; 0: the server's default */
	double idle_timeout_s; /* ends this long after its last cell; 0: the server's default */
	/* a loopback if the server lets sessions have one; for requests that give no network */
	bool wants_loopback;
	bool private_ports;   /* a key is needed for its ports even if the server has no tokens */
	bool pause_on_expiry; /* instead of ending it, when one of the two is over */
	bool has_exec;
	/* which programs it may start; without has_exec the server's default */
	enum jail_exec exec;
	struct network_policy network; /* what it may reach */
	/* directories of the server: "NAME=/place", NULL at the end; or NULL */
	char **mounts;
	char **volumes;   /* "NAME=/mnt/x" or "NAME=/mnt/x:ro", NULL at the end; or NULL */
	bool has_display; /* a screen of its own */
	struct display_params {
		uint64_t width, height, depth, dpi; /* 0: the default */
		/* nobody asked for it by name: nothing is started until something connects to it,
		 * and without an X server there is none */
		bool lazy;
	} display;
	bool has_seed;
	uint64_t seed;        /* random and numpy start from it */
	char **want_packages; /* what a request asked for, for whoever fills in the next two */
	/* sets that are on its sys.path, the last one first; or NULL */
	struct session_package *packages;
	/* the first set has a template of its own with these modules imported, NULL at the end; or
	 * NULL */
	char **template_modules;
	/* they hold other versions of what the system has: no guest that has those imported will do
	 */
	bool packages_replace;
	/* JSON text: what became of the packages it was asked for, or NULL */
	char *packages_report;
	bool no_transactions;                /* cells that end the interpreter cost its variables */
	bool has_transactions, transactions; /* the same as a request says it */
	bool has_keep_checkpoints;
	/* cells that can be undone; without has_: the server's default */
	uint64_t keep_checkpoints;
	bool has_keep_files;
	/* of /workspace, that go back with the variables; 0: none; without has_: the server's
	 * default */
	uint64_t keep_files_bytes;
	/* it runs one program, which seems to import modules of the standard library only: its guest
	 * need not have the packages of the default template imported */
	bool standard_imports;
	/* who makes it, a word of the program; cells that name no dialect have it, too. NULL: native
	 */
	const char *dialect;
	/* the caller waits and tries again when there is no room: its attempts are not counted */
	bool may_wait;
	/* whose it is: a number of the caller's that session_info() gives back; 0 for nobody's */
	uint64_t owner;
};

void session_params_finish(struct session_params *p); /* frees what it owns */

/*
 * Whether the texts are as short as they must be, for every session keeps them: whoever fills the
 * parameters in may have taken them from a request of any size. -EINVAL.
 */
int session_params_check_sizes(const struct session_params *p, struct error *e);

struct sessions_config {
	uv_loop_t *loop;
	char *guest_module; /* path of glovebox-guest.so, which the system's python3 loads */
	char *state_dir;    /* caches of our own; made when missing */
	/* the system tree that sessions see instead of the host's, or NULL */
	const char *rootfs;
	/* what jails see besides the system: lines "HOST DIRECTORY<tab>NAME" (as /NAME), or NULL */
	const char *shown;
	/*
	 * names of the directories that a session must request to see them, with NULL at the end;
	 * or NULL. Freed by the caller
	 */
	char **mounts;
	unsigned max_volumes;      /* of one owner; 0: none */
	uint64_t max_volume_bytes; /* the largest quota */
	/* of owner 1, 2 …: texts that are the same after a restart, NULL at the end; or NULL. Freed
	 * by the caller */
	char *const *owner_keys;
	/* the template: NULL for the default list, an empty list for none */
	char **preload;
	/* at the first start with a template: how to lay it out in memory
	 * (zygote/placement/heap_placement.h) */
	bool learn;
	unsigned ready_guests;   /* kept ahead */
	double renew_s;          /* see sandbox_pool_config */
	uint64_t template_bytes; /* memory of all templates but the default one; 0: no limit */
	/*
	 * what the ready guests may start, too; sessions that ask for another kind wait for a fork
	 */
	enum jail_exec default_exec;
	enum jail_exec max_exec; /* the most a session may ask for: none, system, any */
	/* of sessions that ask for none; those kept ready have it, unless it has rules */
	struct network_policy default_network;
	struct network_most max_network; /* what sessions may ask for */
	unsigned max_sessions;
	unsigned max_queued_cells;
	double grace_s; /* between the interrupt and the kill */
	double default_ttl_s, default_idle_timeout_s;
	double max_paused_s; /* a session that is paused for longer ends */
	struct session_limits defaults, maxima;
	const struct profiles *profiles; /* the own ones; NULL: the built-in only */
	char *default_profile;           /* of sessions that name none; NULL: python */
	/* additional ones for every session, NULL at the end; or NULL */
	char **default_imports;
	bool no_transactions;      /* unless a session asks for them */
	uint64_t keep_files_bytes; /* of /workspace, kept with a copy */
	uint64_t keep_checkpoints; /* of cells, kept by themselves */
	/* of one session, with a name; beyond it the one that was not used for longest goes; 0:
	 * none */
	uint64_t max_checkpoints;
	/* of memory that they may hold (PSS), the same; 0: half of the session's */
	uint64_t checkpoint_bytes;
	/* Called for every session that ended, after it left the table (may be NULL). */
	void (*on_session_end)(void *userdata, const char *id, const char *why);
	/* what displays need is started ahead, not when a first session wants one */
	bool warm_display;
	bool plain_displays; /* X servers are started, not forked from a warm one */
	/* a session that is asked for before the template is warm gets a guest of the plain one */
	bool quick_start;
	bool low_idle_latency; /* CPUs of a virtual machine, while cells come */
	void *userdata;
};

void sessions_config_init(struct sessions_config *c); /* the documented defaults */
