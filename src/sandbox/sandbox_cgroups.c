/*
 * Control groups of sandboxes. A sandbox has a group of its own; those of forks lie in a group of
 * their family, whose limits are the sum of theirs: whatever goes wrong with one of them stays
 * within what the family has.
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

	TAILQ_FOREACH (b, &n->sandboxes, link) {
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

	sum = (struct cgroup_limits){ memory ? sum.memory_bytes : 0, processes ? sum.processes : 0,
		cpus ? sum.cpus : 0 };
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

/* ---- removing a group ------------------------------------------------------------------ */

/*
 * Tries, and ends what is still in it. The last process of a group may be on its way out; one that
 * is not is nobody's.
 */
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

	char(*grown)[CGROUP_NAME_MAX] = realloc(
		n->unremoved, (n->n_unremoved + 1) * sizeof(*grown));
	if (!grown) {
		log_error("out of memory: the control group %s was not removed", name);
		return;
	}

	n->unremoved = grown;
	snprintf(n->unremoved[n->n_unremoved++], CGROUP_NAME_MAX, "%s", name);
}

/* ---- making ---------------------------------------------------------------------------- */

static int make_nested(struct sandbox *b, char name[CGROUP_NAME_MAX])
{
	char family[CGROUP_NAME_MAX / 2];
	name_family(b, family, sizeof(family));
	snprintf(name, CGROUP_NAME_MAX, "%s/b%u", family, b->serial);
	return cgroup_make_family(&b->pool->cgroups, family);
}

static bool are_equal(const struct cgroup_limits *a, const struct cgroup_limits *b)
{
	return a->memory_bytes == b->memory_bytes && a->processes == b->processes &&
	       a->cpus == b->cpus;
}

/*
 * Making and removing the groups of a sandbox takes a tenth of the CPU time of a one-shot run. A
 * group is used again only when cgroup_reset() finds it empty and its counters at 0, and when every
 * process that had the files to join it has ended: a guest that the zygote has not made yet would
 * join the next session's group. Groups of sandboxes with a network have a limit that cannot be
 * taken back.
 */
static bool take_spare(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	while (n->n_spare_cgroups && b->kind.network.net == JAIL_NET_NONE) {
		const struct spare_cgroup *s = &n->spare_cgroups[--n->n_spare_cgroups];
		if (!are_equal(&s->limits, &b->limits) &&
			cgroup_set_limits(&n->cgroups, s->name, &b->limits) < 0) {
			remove_or_keep(n, s->name);
			continue;
		}
		memcpy(b->cgroup, s->name, sizeof(b->cgroup));
		b->joins.rest = s->rest;
		n->spare_cgroups_used = true;
		return true;
	}

	return false;
}

static bool keep_spare(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	uint64_t rest;
	if (n->destroying || n->n_spare_cgroups == SPARE_CGROUPS || b->outer || b->joins.others ||
		b->joins.given != b->joins.known || b->kind.network.net != JAIL_NET_NONE ||
		!cgroup_reset(&n->cgroups, b->cgroup, &rest))
		return false;

	/* parked snapshots raised it */
	if (b->snapshots_counted &&
		cgroup_set_processes(&n->cgroups, b->cgroup, b->limits.processes) < 0)
		return false;

	struct spare_cgroup *s = &n->spare_cgroups[n->n_spare_cgroups++];
	memcpy(s->name, b->cgroup, sizeof(s->name));
	s->limits = b->limits;
	s->rest = rest;
	return true;
}

void sandbox_remove_spare_cgroups(struct sandbox_pool *n)
{
	while (n->n_spare_cgroups)
		remove_or_keep(n, n->spare_cgroups[--n->n_spare_cgroups].name);
}

void sandbox_trim_spare_cgroups(struct sandbox_pool *n)
{
	if (!n->spare_cgroups_used)
		sandbox_remove_spare_cgroups(n);
	n->spare_cgroups_used = false;
}

uint64_t sandbox_own_bytes(const struct sandbox *b, uint64_t counted)
{
	return counted > b->joins.rest ? counted - b->joins.rest : 0;
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
	else if (take_spare(b))
		return 0;
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
	if (b->beside)
		return 0; /* the group is another one's */
	if (are_equal(&b->limits, limits))
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
	ret->memory_peak_bytes = sandbox_own_bytes(b, ret->memory_peak_bytes);
	if (sandbox_is_watched(b) && !b->beside) {
		ret->cpu_ns = sandbox_members_cpu_ns(b);
		ret->oom_kills = b->watch.kills;
	}
}

/* ---- removing ---------------------------------------------------------------------------- */

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

	if (!keep_spare(b))
		remove_or_keep(n, b->cgroup);
	if (!b->outer)
		return;

	name_family(b, family, sizeof(family));
	if (!fit_family(b))
		remove_or_keep(n, family);
}
