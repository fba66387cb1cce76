/*
 * Control groups of sandboxes. A sandbox has a group of its own; those of forks lie in a group of their family, whose limits are the sum of
 * theirs: whatever goes wrong with one of them stays within what the family has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sandbox/sandbox.h"

/* ---- families ---------------------------------------------------------------------- */

static const struct sandbox *top_of(const struct sandbox *b)
{
	while (b->outer)
		b = b->outer;
	return b;
}

static void name_family(const struct sandbox *b, char *ret, size_t size)
{
	snprintf(ret, size, "f%u", top_of(b)->serial);
}

/* Sets the limits of a family; returns how many groups it has. */
static unsigned fit_family(const struct sandbox *member)
{
	struct sandbox_pool *n = member->pool;
	const struct sandbox *top = top_of(member), *b;
	struct cgroup_limits sum = { 0 };
	bool memory = true, processes = true, cpus = true;
	unsigned members = 0;
	TAILQ_FOREACH(b, &n->sandboxes, link) {
		if (!b->outer || !b->cgroup[0] || top_of(b) != top)
			continue;
		members++;
		memory &= b->limits.memory_bytes > 0;
		processes &= b->limits.processes > 0;
		cpus &= b->limits.cpus > 0;
		sum.memory_bytes += b->limits.memory_bytes;
		sum.processes += b->limits.processes + b->snapshots_counted;
		sum.cpus += b->limits.cpus;
	}
	sum = (struct cgroup_limits){ memory ? sum.memory_bytes : 0, processes ? sum.processes : 0, cpus ? sum.cpus : 0 };
	char name[CGROUP_NAME_MAX];
	name_family(member, name, sizeof(name));
	if (members)
		cgroup_set_limits(&n->cgroups, name, &sum);
	return members;
}

void sandbox_limits_changed(const struct sandbox *b)
{
	if (b->outer && b->cgroup[0])
		fit_family(b);
}

/* ---- making ---------------------------------------------------------------------------- */

static int make_nested(struct sandbox *b, char name[CGROUP_NAME_MAX])
{
	char family[CGROUP_NAME_MAX / 2];
	name_family(b, family, sizeof(family));
	snprintf(name, CGROUP_NAME_MAX, "%s/b%u", family, b->serial);
	return cgroup_make_family(&b->pool->cgroups, family);
}

/* Made when the guest is about to be: a sandbox that never gets there needs none. */
int sandbox_make_cgroup(struct sandbox *b)
{
	struct cgroup_home *home = &b->pool->cgroups;
	char name[CGROUP_NAME_MAX];
	int r = 0;
	if (b->cgroup[0])
		return 0;
	if (b->outer)
		r = make_nested(b, name);
	else
		snprintf(name, sizeof(name), "b%u", b->serial);
	if (r == 0)
		r = cgroup_make(home, name, &b->limits);
	if (r == 0 && b->kind.network.net != JAIL_NET_NONE)
		r = cgroup_bound_sockets(home, name);
	if (r < 0)
		return r;
	memcpy(b->cgroup, name, sizeof(b->cgroup));
	sandbox_limits_changed(b);
	return 0;
}

int sandbox_set_limits(struct sandbox *b, const struct cgroup_limits *limits)
{
	if (b->limits.memory_bytes == limits->memory_bytes && b->limits.processes == limits->processes &&
		b->limits.cpus == limits->cpus)
		return 0;
	b->limits = *limits;
	sandbox_limits_changed(b);
	return b->cgroup[0] ? cgroup_set_limits(&b->pool->cgroups, b->cgroup, limits) : 0;
}

void sandbox_usage(struct sandbox *b, struct cgroup_usage *ret)
{
	*ret = (struct cgroup_usage){ 0 };
	if (b->cgroup[0])
		cgroup_usage_read(&b->pool->cgroups, b->cgroup, ret);
}

/* ---- removing ---------------------------------------------------------------------------- */

/* Tries, and ends what is still in it. The last process of a group may be on its way out; one that is not is nobody's. */
static int remove_group(struct sandbox_pool *n, const char *name)
{
	int r = cgroup_remove(&n->cgroups, name);
	if (r == -EBUSY)
		cgroup_kill_all(&n->cgroups, name);
	return r;
}

static void remove_or_keep(struct sandbox_pool *n, const char *name)
{
	if (remove_group(n, name) != -EBUSY)
		return;
	char(*grown)[CGROUP_NAME_MAX] = realloc(n->unremoved, (n->n_unremoved + 1) * sizeof(*grown));
	if (!grown) {
		log_error("out of memory: the control group %s stays", name);
		return;
	}
	n->unremoved = grown;
	snprintf(n->unremoved[n->n_unremoved++], CGROUP_NAME_MAX, "%s", name);
}

void sandbox_remove_leftovers(struct sandbox_pool *n)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < n->n_unremoved; i++)
		if (remove_group(n, n->unremoved[i]) == -EBUSY)
			memmove(n->unremoved[kept++], n->unremoved[i], CGROUP_NAME_MAX);
	n->n_unremoved = kept;
	if (!kept) {
		free(n->unremoved);
		n->unremoved = NULL;
	}
}

void sandbox_remove_cgroup(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	char family[CGROUP_NAME_MAX];
	if (!b->cgroup[0])
		return;
	remove_or_keep(n, b->cgroup);
	if (!b->outer)
		return;
	name_family(b, family, sizeof(family));
	if (!fit_family(b))
		remove_or_keep(n, family);
}
