/*
 * Other zygotes besides the default one: each with modules of its own, started when it is first needed, kept while there is memory
 * for it, the least used one ended first. Their sessions are forked on demand, into a spare jail when there is one.
 *
 * A template that imports packages of the store runs their code with the zygote's own rights, so the operator names those that may have
 * one. It sees the jails' tree in place of the host's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "session/helper.h"

struct nursery;
struct template;
TAILQ_HEAD(template_list, template);

enum { TEMPLATE_NAME_MAX = 32, TEMPLATE_MODULES_MAX = 64 };

struct template_spec {
	const char *name;      /* what makes it the same one */
	const char *path;      /* a directory of the store as jails see it, before the system's packages; or NULL */
	char *const *modules;  /* what it imports, NULL at the end */
	bool beyond;           /* the server's own list as well, before those */
};

/* The template of this name, started if need be; NULL when it cannot be had (it failed before): then the default one must do. */
struct template *template_get(struct nursery *n, const struct template_spec *spec);
bool template_warm(const struct template *t);
const char *template_name(const struct template *t);
struct helper *template_helper(struct template *t);

void templates_start(struct nursery *n);   /* the jailer is up: those that wait for it begin */
void templates_destroy(struct nursery *n); /* ends all; asynchronous */
bool templates_gone(const struct nursery *n);

/* nursery.c: starts a zygote for the template or (NULL) the default one. */
int nursery_start_zygote(struct nursery *n, struct helper *h, const struct template_spec *spec);
void nursery_spawned(struct nursery *n, const void *message, int *fds, size_t n_fds);
