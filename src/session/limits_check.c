/* Which limits a session has: the defaults, up to the maxima of the server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "session/internal.h"

static int too_large(
	struct error *e, const char *name, const char *setting, double asked, double max)
{
	error_set(
		e, -ERANGE, "limits.%s is %.15g, this server allows up to %.15g", name, asked, max);
	error_remedy(e, "Request less, or {start:max-%s %.15g}.", setting, asked);
	return error_slug(e, "limit_too_large");
}

#define NUMBER(member, setting)                                                 \
	{                                                                       \
#member, setting, offsetof(struct session_limits, member), true \
	}
#define COUNT(member, setting)                                                   \
	{                                                                        \
#member, setting, offsetof(struct session_limits, member), false \
	}

static const struct {
	const char *name, *setting; /* of the server, behind max- */
	size_t offset;
	bool is_double;
} rows[] = { NUMBER(timeout_s, "timeout"), NUMBER(cpus, "cpus"), NUMBER(cpu_s, "cpu-time"),
	NUMBER(session_cpu_s, "session-cpu-time"), COUNT(output_bytes, "output"),
	COUNT(total_output_bytes, "total-output"), COUNT(memory_bytes, "memory"),
	COUNT(processes, "processes"), COUNT(disk_bytes, "disk"), COUNT(inodes, "inodes"),
	COUNT(file_bytes, "file-size"), COUNT(open_files, "open-files"), COUNT(log_bytes, "log") };

static double value_at(const struct session_limits *l, size_t row)
{
	const char *at = (const char *)l + rows[row].offset;
	return rows[row].is_double ? *(const double *)at : (double)*(const uint64_t *)at;
}

int session_resolve_limits(
	const struct sessions_config *c, struct session_limits *l, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (value_at(l, i) <= 0)
			memcpy((char *)l + rows[i].offset,
				(const char *)&c->defaults + rows[i].offset, sizeof(uint64_t));
		double value = value_at(l, i), max = value_at(&c->maxima, i);
		if (max > 0 && value > max)
			return too_large(e, rows[i].name, rows[i].setting, value, max);
	}
	return 0;
}

int session_resolve_exec(const struct sessions_config *c, struct session_params *p, struct error *e)
{
	/* From the narrowest to the widest. */
	static const int width[JAIL_EXEC_COUNT] = {
		[JAIL_EXEC_NONE] = 0, [JAIL_EXEC_SYSTEM] = 1, [JAIL_EXEC_ANY] = 2
	};
	if (!p->has_exec)
		p->exec = c->default_exec;
	if (width[p->exec] <= width[c->max_exec])
		return 0;

	error_set(e, -ERANGE, "exec is \"%s\", this server allows up to \"%s\"",
		jail_exec_name(p->exec), jail_exec_name(c->max_exec));
	error_remedy(e, "Request less, or {start:max-exec %s}.", jail_exec_name(p->exec));
	return error_slug(e, "limit_too_large");
}

int session_check_enforced(
	const struct sessions *t, const struct session_limits *asked, struct error *e)
{
	if (asked->cpus <= 0 || sandbox_pool_has_groups(t->pool))
		return 0;

	error_set(e, -ENOTSUP,
		"limits.cpus is %g, but this server has no control groups and cannot enforce this limit",
		asked->cpus);
	error_remedy(e,
		"Omit the limit, or start the server where it may create control groups (`glovebox doctor` says how).");
	return error_slug(e, "limit_not_enforced");
}

const char *sessions_not_enforced(const struct sessions *t)
{
	return t->pool && sandbox_pool_has_groups(t->pool) ? "" : "cpus";
}
