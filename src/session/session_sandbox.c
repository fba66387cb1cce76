/* The sandbox of a session: of which kind it is, and from which template its guests come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/package_template.h"
#include "sandbox/plain_zygote.h"
#include "session/internal.h"

struct cgroup_limits session_cgroup_limits(const struct session_limits *l)
{
	return (struct cgroup_limits){
		.memory_bytes = l->memory_bytes ? l->memory_bytes + SANDBOX_MEMORY_HEADROOM : 0,
		.processes = (unsigned)l->processes,
		.cpus = l->cpus
	};
}

/*
 * A program that imports no package is run from the plain zygote once that is warm, unless the
 * session has more to it: then what its text says is not all. A list of modules to preload that
 * somebody wrote is kept: they may be imported for their effects.
 */
static struct template *template_for_text(const struct session *s)
{
	const struct sessions *t = s->table;
	const struct session_params *p = &s->params;
	bool usual = !p->packages && !p->preload && !p->has_seed && !s->display &&
		     !s->profile.own && s->profile.table == 0 && !t->config.preload;
	struct template *plain = p->standard_imports && usual ? template_plain(t->pool) : NULL;
	return plain && template_warm(plain) ? plain : NULL;
}

/*
 * Where its guests come from: snapshots of one with the set's modules, the zygote with none of the
 * system's packages, or the one that all have.
 */
static void choose_template(struct session *s, struct sandbox_kind *kind)
{
	struct sessions *t = s->table;
	const struct session_package *p = s->params.packages;
	bool early = t->config.quick_start && !sandbox_pool_warm(t->pool);
	bool plain = (s->params.packages_replace || t->packages.common_replaces || early) &&
		     t->owned_preload[0];

	kind->template = plain ? template_plain(t->pool) : template_for_text(s);
	if (p && s->params.template_modules)
		kind->set = package_template_get(t->pool,
			&(struct package_template_spec){ .path = p->path,
				.modules = s->params.template_modules,
				.owner = s->params.owner,
				.plain = plain },
			kind);
	snprintf(s->origin.template, sizeof(s->origin.template), "%s",
		kind->set        ? package_template_name(kind->set)
		: kind->template ? "plain"
				 : "default");
	s->origin.template_warm = kind->set || (kind->template && template_warm(kind->template));
}

void sessions_await_packages(struct sessions *t)
{
	t->packages.common_awaited = true;
}

void sessions_set_packages(struct sessions *t, const char *path, bool replaces)
{
	free(t->packages.common_path);
	t->packages.common_path = path ? strdup(path) : NULL;
	t->packages.common_replaces = path && replaces;
	t->packages.common_awaited = false;
}

void sessions_warm_template(
	struct sessions *t, const char *path, char *const *modules, bool replaces)
{
	bool plain = (replaces || t->packages.common_replaces) && t->owned_preload[0];
	package_template_get(t->pool,
		&(struct package_template_spec){ .path = path, .modules = modules, .plain = plain },
		NULL);
}

int session_take_sandbox(struct session *s, const struct fork_source *from, bool *ret_ready)
{
	struct cgroup_limits wall = session_cgroup_limits(&s->params.limits);
	struct sandbox_kind kind = { .disk_bytes = s->params.limits.disk_bytes,
		.inodes = s->params.limits.inodes,
		.exec = s->params.exec,
		.network = s->params.network };

	session_mounts_fill(s->params.mounts, &kind.mounts);
	kind.host_id = session_volumes_fill(s, &kind.mounts);
	choose_template(s, &kind);
	if (kind.host_id)
		kind.set = NULL; /* a copy of its guest would have the user of the template */
	if (from && from->beside) {
		*ret_ready = false;
		s->origin.context_of = from->beside;
		return from->beside->sandbox
			       ? sandbox_pool_beside(from->beside->sandbox, s, &s->sandbox)
			       : -EAGAIN;
	}
	if (from) {
		*ret_ready = false;
		s->setup.sent = true; /* the copy's was */
		s->history.replay.good = s->history.replay.fresh = false;
		s->queue.cells = from->snapshot->cell;
		s->death.holds.state = s->death.holds.files = true;
		kind.set = NULL;
		return sandbox_pool_nest(
			s->table->pool, from->snapshot, from->reseed, &kind, &wall, s, &s->sandbox);
	}

	int r = sandbox_pool_take(s->table->pool, &kind, &wall, s, ret_ready, &s->sandbox);
	if (r == 0 && s->display)
		display_attach(s->display, s->sandbox);
	return r;
}
