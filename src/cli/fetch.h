/*
 * Packages for a command: asks for them, shows how it goes on stderr (a bar on a terminal, else a
 * line per phase), and waits.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "packages/packages.h"

struct config;
struct session_package;

struct fetched {
	/* private */
	uv_loop_t loop;
	bool loop_open;
	struct packages *packages;
	struct config *config;
	/* what came of it */
	char *report;     /* JSON; owned */
	char *log;        /* JSON: pip's last lines, when it failed; owned */
	char *set, *path; /* NULL when nothing had to be installed; owned */
	bool cached, replaces;
};

enum fetch_progress { FETCH_SILENT, FETCH_SHOW };

/* The settings are those of the file and the environment. */
int fetch_packages(struct fetched *f, const struct packages_request *q, struct config *config,
	enum fetch_progress show, struct error *e);

/*
 * Both together, for commands with a session of their own: reads the settings into *config first,
 * shows pip's last lines when it fails.
 */
int fetch_for_local(struct fetched *f, struct config *config, char *const *packages,
	char *const *imports, struct error *e);

/* Prints pip's last lines (the JSON of `log`, or NULL) to standard error. */
void fetch_show_log(const char *log);

/*
 * For a local session: the set (NULL without one; its lock goes with the session), and what its
 * jails must show.
 */
struct session_package *fetched_package(struct fetched *f);
const char *fetched_shown(const struct fetched *f);

void fetched_finish(struct fetched *f); /* also of one that failed; the session must be gone */
