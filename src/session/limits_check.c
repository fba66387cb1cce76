/* Limits of a session: which hold, when one that the daemon watches is reached, and what to say about those that the code ran into. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "session/internal.h"

/* ---- which hold ------------------------------------------------------------------- */

static int too_large(struct error *e, const char *name, const char *setting, double asked, double max)
{
	error_set(e, -ERANGE, "limits.%s is %.15g, this server allows up to %.15g", name, asked, max);
	error_remedy(e, "Ask for less, or start the server with --max-%s %.15g.", setting, asked);
	return error_slug(e, "limit_too_large");
}

#define NUMBER(member, setting) { #member, setting, offsetof(struct session_limits, member), true }
#define COUNT(member, setting) { #member, setting, offsetof(struct session_limits, member), false }

static const struct {
	const char *name, *setting; /* of the server, behind max- */
	size_t offset;
	bool is_double;
} rows[] = { NUMBER(timeout_s, "timeout"), NUMBER(cpus, "cpus"), NUMBER(cpu_s, "cpu-time"), NUMBER(session_cpu_s, "session-cpu-time"),
	COUNT(output_bytes, "output"), COUNT(total_output_bytes, "total-output"), COUNT(memory_bytes, "memory"), COUNT(processes, "processes"),
	COUNT(disk_bytes, "disk"), COUNT(inodes, "inodes"), COUNT(file_bytes, "file-size"), COUNT(open_files, "open-files"), COUNT(log_bytes, "log") };

static double value_at(const struct session_limits *l, size_t row)
{
	const char *at = (const char *)l + rows[row].offset;
	return rows[row].is_double ? *(const double *)at : (double)*(const uint64_t *)at;
}

int session_settle_limits(const struct sessions_config *c, struct session_limits *l, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (value_at(l, i) <= 0)
			memcpy((char *)l + rows[i].offset, (const char *)&c->defaults + rows[i].offset, sizeof(uint64_t));
		double value = value_at(l, i), max = value_at(&c->maxima, i);
		if (max > 0 && value > max)
			return too_large(e, rows[i].name, rows[i].setting, value, max);
	}
	return 0;
}

int session_settle_exec(const struct sessions_config *c, struct session_params *p, struct error *e)
{
	/* From the narrowest to the widest. */
	static const int width[JAIL_EXEC_COUNT] = { [JAIL_EXEC_NONE] = 0, [JAIL_EXEC_SYSTEM] = 1, [JAIL_EXEC_ANY] = 2 };
	if (!p->has_exec)
		p->exec = c->default_exec;
	if (width[p->exec] <= width[c->max_exec])
		return 0;
	error_set(e, -ERANGE, "exec is \"%s\", this server allows up to \"%s\"", jail_exec_name(p->exec), jail_exec_name(c->max_exec));
	error_remedy(e, "Ask for less, or start the server with --max-exec %s.", jail_exec_name(p->exec));
	return error_slug(e, "limit_too_large");
}

/* ---- those that the daemon watches ---------------------------------------------------- */

/* Without control groups: the interpreter and those of its children that it has waited for. */
static uint64_t cpu_of_process(pid_t pid)
{
	char path[64];
	unsigned long t[4] = { 0 };
	_cleanup_free_ char *text = NULL;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file(path, 4096, &text, NULL) < 0)
		return 0;
	const char *after_name = strrchr(text, ')'); /* a name may hold anything */
	if (!after_name || sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &t[0], &t[1], &t[2], &t[3]) != 4)
		return 0;
	return (t[0] + t[1] + t[2] + t[3]) * (1000000000ULL / (unsigned long)sysconf(_SC_CLK_TCK));
}

static uint64_t cpu_used_ns(struct session *s)
{
	struct cgroup_usage u;
	struct guest *g = sandbox_guest(s->sandbox);
	sandbox_usage(s->sandbox, &u);
	return u.cpu_ns || !g ? u.cpu_ns : cpu_of_process(guest_pid(g));
}

void session_begin_limits(struct session *s)
{
	const struct session_limits *l = &s->params.limits;
	s->total_output_bytes = 0;
	if (l->cpu_s <= 0 && l->session_cpu_s <= 0)
		return;
	s->cell_cpu_ns = cpu_used_ns(s);
	if (!s->has_first_cpu)
		s->first_cpu_ns = s->cell_cpu_ns;
	s->has_first_cpu = true;
}

int session_check_enforced(const struct sessions *t, const struct session_limits *asked, struct error *e)
{
	if (asked->cpus <= 0 || sandbox_pool_has_groups(t->pool))
		return 0;
	error_set(e, -ENOTSUP, "limits.cpus is %g, and this server has no control groups, without which nothing keeps that limit", asked->cpus);
	error_remedy(e, "Leave it out, or start the server where it may make control groups (`glovebox doctor` tells how).");
	return error_slug(e, "limit_not_enforced");
}

const char *sessions_not_enforced(const struct sessions *t)
{
	return t->pool && sandbox_pool_has_groups(t->pool) ? "" : "memory_bytes processes cpus cpu_s session_cpu_s";
}

void session_watch_cpu(struct session *s)
{
	const struct session_limits *l = &s->params.limits;
	if (!s->running || !s->guest_ready || (l->cpu_s <= 0 && l->session_cpu_s <= 0))
		return;
	uint64_t used = cpu_used_ns(s);
	char why[96];
	if (l->session_cpu_s > 0 && (double)(used - s->first_cpu_ns) / 1e9 > l->session_cpu_s) {
		snprintf(why, sizeof(why), "it used its CPU time of %g s (limits.session_cpu_s)", l->session_cpu_s);
		session_end(s, why);
	} else if (l->cpu_s > 0 && (double)(used - s->cell_cpu_ns) / 1e9 > l->cpu_s) {
		session_stop_cell(s, STOP_CPU);
	}
}

void session_count_output(struct session *s, size_t len)
{
	uint64_t limit = s->params.limits.total_output_bytes;
	s->total_output_bytes += len;
	if (!limit || s->total_output_bytes <= limit)
		return;
	if (s->running) {
		session_stop_cell(s, STOP_OUTPUT);
	} else if (s->guest_ready) { /* threads of an earlier cell flood, and nobody is there to interrupt */
		log_warning("session %s printed more than %llu bytes between cells; its interpreter is killed", s->id, (unsigned long long)limit);
		s->total_output_bytes = 0;
		guest_signal(sandbox_guest(s->sandbox), SIGKILL);
	}
}

/* ---- what to say -------------------------------------------------------------------------- */

void session_say_stop(struct session *s, bool killed, char *text, size_t size, struct cell_error *ret)
{
	const struct session_limits *l = &s->params.limits;
	const char *how = killed ? "killed, because it did not stop when interrupted" : "interrupted";
	if (s->running->stop == STOP_CPU) {
		snprintf(text, size, "the cell used more than its %g s of CPU time and was %s", l->cpu_s, how);
		*ret = (struct cell_error){ .type = "TimeoutError", .code = "cpu_limit",
			.remedy = "Make the code do less work in one cell, or make the session with a larger limits.cpu_s (--cpu-time)." };
	} else {
		snprintf(text, size, "the cell printed more than %llu bytes and was %s", (unsigned long long)l->total_output_bytes, how);
		*ret = (struct cell_error){ .type = "OutputLimitError", .code = "output_limit",
			.remedy = "Print less, write to files instead, or make the session with a larger limits.total_output_bytes (--total-output)." };
	}
}

/* True when the control group refused a process since the last look. */
static bool process_was_refused(struct session *s)
{
	struct cgroup_usage u;
	sandbox_usage(s->sandbox, &u);
	bool more = u.process_refusals > s->process_refusals;
	s->process_refusals = u.process_refusals;
	return more;
}

static bool is_about_processes(struct session *s, const struct outcome *o)
{
	if (text_eq(o->error.type, "RuntimeError") && strstr(o->error.message, "can't start new thread"))
		return true;
	if (o->error_errno != EAGAIN)
		return false;
	return process_was_refused(s) || strstr(o->error.traceback, "fork") || strstr(o->error.traceback, "subprocess");
}

void session_explain_memory(struct session *s)
{
	struct outcome *o = &s->outcome;
	uint64_t most = s->params.limits.memory_bytes;
	char limit[64] = "";
	if (most)
		snprintf(limit, sizeof(limit), "The session may use %llu bytes of memory. ", (unsigned long long)most);
	snprintf(o->remedy_text, sizeof(o->remedy_text),
		"%sUse less at once (files in /workspace and /tmp count), or make the session with a larger limits.memory_bytes (--memory).", limit);
	o->error.code = "out_of_memory";
	o->error.remedy = o->remedy_text;
}

void session_explain_error(struct session *s)
{
	const struct session_limits *l = &s->params.limits;
	struct outcome *o = &s->outcome;
	const char *code = NULL;
	char *text = o->remedy_text;
	size_t size = sizeof(o->remedy_text);
	if (!o->has_error || (o->error.remedy && *o->error.remedy))
		return;
	if (o->error_errno == ENOSPC) {
		code = "disk_full";
		snprintf(text, size, "/workspace and /tmp hold %llu bytes and %llu files each, /dev/shm %d bytes. Delete what is not needed, or make the "
			"session with a larger limits.disk_bytes (--disk) or limits.inodes (--inodes).", (unsigned long long)l->disk_bytes,
			(unsigned long long)l->inodes, JAIL_SHM_BYTES);
	} else if (o->error_errno == EFBIG) {
		code = "file_too_large";
		snprintf(text, size, "A file may have %llu bytes. Write smaller ones, or make the session with a larger limits.file_bytes (--file-size).",
			(unsigned long long)l->file_bytes);
	} else if (o->error_errno == EMFILE) {
		code = "too_many_files";
		snprintf(text, size, "%llu files may be open at once. Close those that are not needed (with open(…) as f:), or make the session with a "
			"larger limits.open_files (--open-files).", (unsigned long long)l->open_files);
	} else if (is_about_processes(s, o)) {
		code = "too_many_processes";
		snprintf(text, size, "%llu processes and threads may live at once. Wait for some to end, use a pool, or make the session with a larger "
			"limits.processes (--processes).", (unsigned long long)l->processes);
	} else if (o->error_errno == EROFS) {
		code = "read_only";
		snprintf(text, size, "The system is read-only. Write below /workspace or /tmp.");
	} else if (o->error_errno == ENOENT && strstr(o->error.message, "'/proc/")) {
		code = "hidden";
		snprintf(text, size, "/proc shows the session's own processes only. os.cpu_count(), os.sched_getaffinity(0), os.sysconf, resource.getrusage "
			"and platform tell what a program may know about the machine.");
	}
	if (code) {
		o->error.code = code;
		o->error.remedy = text;
	}
}
