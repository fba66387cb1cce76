/*
 * The plain zygote: it has imported none of the system's packages. It serves sessions whose own
 * packages replace some of these, and runs of programs that seem not to import any: its guests have
 * a quarter of the mappings. Started when it is first needed. (Templates of package sets are not
 * zygotes: see package_template.h.)
 */
#pragma once

#include <stdbool.h>

#include "sandbox/helper.h"

struct sandbox_pool;
struct template;

/* NULL when it does not start: then the default one must do. */
struct template *template_plain(struct sandbox_pool *n);
bool template_warm(const struct template *t);
struct helper *template_helper(struct template *t);

void template_start(struct sandbox_pool *n); /* the jailer is up: if it waits for it, it begins */
/* kills it; another one is started when the jailer is up */
void template_restart(struct sandbox_pool *n);
/* ends it, its ready guests too, and starts another one: renewal.h */
void template_renew(struct sandbox_pool *n);
void template_destroy(struct sandbox_pool *n); /* ends it; asynchronous */

/* pool.c: starts a zygote that imports the modules. */
int sandbox_pool_start_zygote(
	struct sandbox_pool *n, struct helper *h, char *const *modules, int book);
void sandbox_pool_spawned(struct sandbox_pool *n, const void *message, int *fds, size_t n_fds);
