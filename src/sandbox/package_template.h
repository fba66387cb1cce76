/*
 * Templates of package sets: a guest with the set's modules imported, parked
 * (src/guest/snapshot/guest_snapshot.h) in its own jail. Sessions that request the set are live
 * copies of this guest, each in a jail nested in the template's jail, like forks of a session.
 *
 * Importing runs code of the packages, so it happens where all untrusted code runs: in a jail,
 * without privileges, under the filter and within limits of memory and time. Processes that it
 * leaves running are ended, and a guest that cannot be copied (for example because it has threads)
 * does not become a template. Sessions never wait for a template, and start without it if there is
 * none. When all templates together use too much memory, the least used ones are evicted.
 *
 * The template's process controls the user namespaces of its sessions: native code that modified
 * this process during the import could reach these sessions, but no others. So a set that the
 * operator did not name is shared only among the sessions of one owner.
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
	/* a directory of the store as jails see it; its last part is the name */
	const char *path;
	char *const *modules; /* what is imported, NULL at the end */
	uint64_t owner;       /* only his sessions come from it; 0: anybody's */
	/* the set has other versions of the system's packages, so none of those may be there before
	 */
	bool plain;
};

/*
 * The set's template (anybody's, or the owner's), started if need be. NULL unless it is warm and
 * sessions of this kind (or, for NULL, any) can come from it.
 */
struct package_template *package_template_get(struct sandbox_pool *n,
	const struct package_template_spec *spec, const struct sandbox_kind *kind);
const char *package_template_name(const struct package_template *t);
struct snapshot *package_template_snapshot(struct package_template *t);

/*
 * Part of the refill: makes a sandbox ahead for a template that has no ready one. False when all
 * have one.
 */
bool package_templates_refill(struct sandbox_pool *n);

/* A session could not be made from the copy: what it is of is a template no more. */
void package_template_spoiled(struct sandbox_pool *n, const struct snapshot *c, const char *why);

void package_templates_destroy(struct sandbox_pool *n); /* ends all; asynchronous */
bool package_templates_gone(const struct sandbox_pool *n);
