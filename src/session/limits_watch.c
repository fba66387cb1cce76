/* Limits that the daemon watches: CPU time and output. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/log.h"
#include "session/internal.h"

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
	if (!after_name || sscanf(after_name + 1,
				   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
				   &t[0], &t[1], &t[2], &t[3]) != 4)
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

void session_reset_usage(struct session *s)
{
	const struct session_limits *l = &s->params.limits;
	s->usage.output_bytes = 0;
	if (l->cpu_s <= 0 && l->session_cpu_s <= 0)
		return;

	s->usage.cell_cpu_ns = cpu_used_ns(s);
	if (!s->usage.has_first_cpu)
		s->usage.first_cpu_ns = s->usage.cell_cpu_ns;
	s->usage.has_first_cpu = true;
}

void session_watch_cpu(struct session *s)
{
	const struct session_limits *l = &s->params.limits;
	if (s->phase != PHASE_RUNNING || (l->cpu_s <= 0 && l->session_cpu_s <= 0))
		return;

	uint64_t used = cpu_used_ns(s);
	char why[96];
	if (l->session_cpu_s > 0 &&
		(double)(used - s->usage.first_cpu_ns) / 1e9 > l->session_cpu_s) {
		snprintf(why, sizeof(why), "it used its CPU time of %g s (limits.session_cpu_s)",
			l->session_cpu_s);
		session_end(s, why);
	} else if (l->cpu_s > 0 && (double)(used - s->usage.cell_cpu_ns) / 1e9 > l->cpu_s) {
		session_stop_cell(s, STOP_CPU);
	}
}

void session_count_output(struct session *s, size_t len)
{
	uint64_t limit = s->params.limits.total_output_bytes;
	s->usage.output_bytes += len;
	if (!limit || s->usage.output_bytes <= limit)
		return;

	if (s->queue.running) {
		session_stop_cell(s, STOP_OUTPUT);
	} else if (
		session_has_guest(
			s)) { /* threads of an earlier cell flood, and nobody is there to interrupt */
		log_warning(
			"session %s printed more than %llu bytes between cells; its interpreter is killed",
			s->id, (unsigned long long)limit);
		s->usage.output_bytes = 0;
		guest_signal(sandbox_guest(s->sandbox), SIGKILL);
	}
}

bool session_ran_out_of_memory(struct session *s)
{
	struct cgroup_usage u;
	sandbox_usage(s->sandbox, &u);
	bool more = u.oom_kills > s->usage.oom_kills;
	s->usage.oom_kills = u.oom_kills;
	return more;
}
