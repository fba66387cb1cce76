/*
 * Where things are on this machine: our own programs, the user's files. All paths are malloc'd, the
 * caller's.
 */
#pragma once

#include "base/error.h"

/*
 * Beside this program (a build tree), or in ../lib/glovebox (an installed one). -ENOENT when in
 * neither.
 */
int paths_guest(struct error *e, char **ret_path);

/*
 * The program that measures: in the source tree, or in ../share/glovebox/bench. -ENOENT when in
 * neither.
 */
int paths_bench(struct error *e, char **ret_path);

/*
 * What is kept between runs: GLOVEBOX_STATE_DIR, or /var/lib/glovebox for root, else below
 * XDG_STATE_HOME or ~/.local/state. -ENOENT without a home. Not made here.
 */
int paths_state_dir(struct error *e, char **ret_path);

/*
 * `name` below the directory of the variable, or below `below_home` in the home directory; NULL
 * without both.
 */
char *paths_home_file(const char *variable, const char *below_home, const char *name);

/* Makes the directory of this file and those above it (mode 0700). */
int paths_make_parents(const char *path);
