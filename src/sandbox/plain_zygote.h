/*
 * The other zygote: one that has nothing of the system's packages imported, for sessions whose own packages replace some of those. Started
 * when it is first needed. (Templates of package sets are no zygotes: see set_templates.h.)
 */
#pragma once

#include <stdbool.h>

#include "sandbox/helper.h"

struct nursery;
struct template;

/* NULL when it does not start: then the default one must do. */
struct template *template_plain(struct nursery *n);
bool template_warm(const struct template *t);
struct helper *template_helper(struct template *t);

void template_start(struct nursery *n);   /* the jailer is up: if it waits for it, it begins */
void template_restart(struct nursery *n); /* kills it; another one is started when the jailer is up */
void template_destroy(struct nursery *n); /* ends it; asynchronous */

/* nursery.c: starts a zygote that imports the modules. */
int nursery_start_zygote(struct nursery *n, struct helper *h, char *const *modules, int book);
void nursery_spawned(struct nursery *n, const void *message, int *fds, size_t n_fds);
