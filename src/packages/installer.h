/*
 * The installer: a process of its own, started by whoever wants packages that are not in the store.
 * A request comes as JSON on standard input, lines of JSON go out on standard output: {"phase",
 * "text", "done", "total"} while it works, then {"done": true} (the answer is in the store then) or
 * {"error": {…}}.
 *
 * pip runs in a jail, as every code that is not ours; it sees the wheel folders read-only and of
 * the network the index alone. It works in stages (installer_stages.c): between two of them
 * everything in the jail is killed and all files are removed but those that the next stage needs.
 * So code that a source package runs while it is resolved or built has no part in what comes after:
 * fetching packages that are not built, unpacking, compiling. What the last stage leaves is taken
 * over file by file (store_intake_tree).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "local/local.h"
#include "packages/plan.h"
#include "json/json_read.h"

struct installer {
	json_t *request, *settings; /* settings is part of the request */
	/* own_key: of answers for this client alone; NULL for the operator */
	const char *state_dir, *key, *own_key;
	struct store *store;
	struct local *local;
	struct plan plan;
	/* what the jail said, unchecked */
	json_t *survey, *resolved, *fetched, *arranged, *failed, *refused;
	json_t *installed;  /* {"packages", "modules", "dists"}, checked */
	struct buffer line; /* the unfinished one of the jail's output */
	enum cell_status status;
	bool overflow;
	/* packages were built: their code ran in the jail that their files come from */
	bool built;
	/* an import was not found, or the index not reached: the answer holds for a while only */
	bool incomplete;
	uint64_t started_ns;
};

/* The process: reads the request, does the work. Returns its exit code. */
int installer_main(int argc, char **argv);

/* Runs the driver's source in the jail's interpreter. */
int installer_load(struct installer *in, struct error *e);

/* Calls a function of the driver's with one argument. */
int installer_call(struct installer *in, const char *function, json_t *argument, struct error *e);

/* Kills everything in the jail; then a fresh interpreter is there. */
int installer_quiet(struct installer *in, struct error *e);

/*
 * installer_stages.c: installs the plan's requirements into "tree" of the jail's workspace, and
 * fills in `installed` and `built`.
 */
int installer_pip(struct installer *in, struct error *e);
