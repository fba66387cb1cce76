/*
 * A folder of this machine as a tar archive, both ways, for `glovebox cp`. Links, devices and FIFOs
 * are left out, as the server does it.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct tree_counts {
	unsigned files, folders, skipped;
	uint64_t bytes;
};

/*
 * Writes what is in `dir` into a new file without a name, in TMPDIR: its descriptor (CLOEXEC), the
 * caller's. Errors name the path.
 */
int local_tree_pack(const char *dir, struct error *e, struct tree_counts *ret, int *ret_fd);

struct local_tree;
/*
 * Unpacks into `dir`, which is made unless it is there. No entry is written through a symbolic link
 * below it.
 */
int local_tree_create(const char *dir, struct error *e, struct local_tree **ret);
int local_tree_feed(struct local_tree *t, const char *data, size_t len);
/* All entries have come: 0, or what went wrong, also while feeding. */
int local_tree_end(struct local_tree *t, struct error *e, struct tree_counts *ret);
void local_tree_destroy(struct local_tree *t);
