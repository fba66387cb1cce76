/*
 * Templates of package sets: a guest with the set's modules imported, parked (src/guest/snapshot/guest_snapshot.h) in a jail of its own. Sessions that ask for the
 * set are snapshots of it, each in a jail nested in that one, as forks of a session are.
 *
 * Importing runs code of the packages, so it happens where any code of others does: in a jail, as nobody, under the filter and within
 * limits of memory and time. What it leaves running is ended, and a guest that cannot be copied (it has threads, say) becomes no template.
 * Sessions never wait for one, and do without where there is none. The least used ones go when all together have too much memory.
 *
 * The template's process is the master of its sessions' user namespaces: native code that rewrote it while it was imported could reach them,
 * though nobody else. So what was not named by the operator is shared only among the sessions of one owner.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct sandbox_kind;
struct snapshot;
struct sandbox_pool;
struct package_template;
TAILQ_HEAD(package_template_list, package_template);

enum { SET_NAME_MAX = 32, SET_MODULES_MAX = 64 };

struct package_template_spec {
	const char *path;     /* a directory of the store as jails see it; its last part is the name */
	char *const *modules; /* what is imported, NULL at the end */
	uint64_t owner;       /* only his sessions come from it; 0: anybody's */
	bool plain;           /* the set has other versions of the system's packages, so none of those may be there before */
};

/* The set's template (anybody's, or the owner's), started if need be. NULL unless it is warm and sessions of this kind (or, for NULL, any) can come from it. */
struct package_template *package_template_get(struct sandbox_pool *n, const struct package_template_spec *spec, const struct sandbox_kind *kind);
const char *package_template_name(const struct package_template *t);
struct snapshot *package_template_snapshot(struct package_template *t);

/* For the stock: makes a session's sandbox ahead for a template that has none in stock. False when all have one. */
bool package_templates_refill(struct sandbox_pool *n);

/* A session could not be made from the copy: what it is of is a template no more. */
void package_template_spoiled(struct sandbox_pool *n, const struct snapshot *c, const char *why);

void package_templates_destroy(struct sandbox_pool *n); /* ends all; asynchronous */
bool package_templates_gone(const struct sandbox_pool *n);
