/* What the files of `glovebox run` share; not for others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "jail/jail.h"
#include "session/display/film.h"

struct local;

/*
 * The directories of --mount: what the jailer shows, what the session requests, and their names.
 * Each list ends with NULL.
 */
struct run_mounts {
	unsigned n;
	char *shown[JAIL_MOUNTS_MAX + 1], *asked[JAIL_MOUNTS_MAX + 1], *names[JAIL_MOUNTS_MAX + 1];
};

struct run_options {
	double timeout;
	uint64_t memory, disk, inodes, file_size, total_output;
	unsigned processes, open_files;
	double cpus, cpu_time;
	int exec;
	char *network, **allow;
	char **env, **packages, **imports;
	char *rootfs, *profile, *code, *stdin_file;
	char *screenshot, *record, *display_size;
	char *dir, *out, **mounts;
	double render_timeout;
	bool display, json, help;
};

struct run {
	const struct run_options *options;
	struct local *local;
	unsigned recording; /* its id; 0: none */
	enum film_format film;
	bool is_terminal, pipe_closed, started;
	int exit_code;
	bool no_picture;
	const char *script; /* the file with the code; NULL when it is none */
	struct run_mounts mounts;
	char dir[4096]; /* that the code sees, read-only; empty for none */
	struct buffer json;
	int json_error;
};

/* run_outcome.c */
/*
 * Passes output on as it comes, or keeps the observation for the end (--json); fills in the exit
 * code.
 */
extern const struct cell_observer run_observer_live, run_observer_json;
void run_save_recording(
	struct run *run); /* the film that --record names, or the reason why there is none */

/* run_dir.c */
/* Finds the directory that the code sees: --dir, or that of the script `name`. */
int run_dir_find(struct run *run, const char *name, struct error *e);
/*
 * What jails are shown with it, beside `others` (may be NULL), as in struct local_config; the
 * caller's. NULL: the others alone.
 */
int run_dir_shown(const struct run *run, const char *others, char **ret);
/* Links its files into the working directory of the code, once the sandbox is there. */
int run_dir_link(struct run *run, struct error *e);
/*
 * A module that is missing and is a file of one's own: that is the advice then, and not a package
 * with the same name.
 */
void run_dir_advise(
	const struct run *run, const char *code, const char *message, char *remedy, size_t size);
/* Makes the directory of --out unless it is there. */
int run_dir_check_out(const struct run_options *o, struct error *e);
/*
 * Copies the files that the code wrote to it. False, and a line on stderr, when not all could be.
 */
bool run_dir_save(struct run *run);

/* run_mounts.c: reads --mount. run_mounts_finish() is the caller's, also after an error. */
int run_mounts_find(struct run *run, struct error *e);
void run_mounts_finish(struct run *run);
