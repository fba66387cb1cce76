/*
 * What the files of a session's /proc say: its memory and processor time, told to its init when a
 * process reads one of them.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sandbox/sandbox.h"

/* Without control groups: the interpreter's own. */
static void read_process(pid_t pid, struct jail_figures *ret)
{
	char path[64];
	unsigned long data, user, kernel;
	_cleanup_free_ char *memory = NULL, *times = NULL;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (fd_read_file(path, 4096, &memory, NULL) == 0 &&
		sscanf(memory, "%*u %*u %*u %*u %*u %lu", &data) == 1)
		ret->used_bytes = (uint64_t)data * (uint64_t)sysconf(_SC_PAGESIZE);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const char *after_name = fd_read_file(path, 4096, &times, NULL) < 0 ? NULL
									    : strrchr(times, ')');
	if (!after_name ||
		sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			&user, &kernel) != 2)
		return;

	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	ret->user_ns = user * tick_ns;
	ret->system_ns = kernel * tick_ns;
}

void sandbox_figures(struct sandbox *b, struct jail_figures *ret)
{
	*ret = (struct jail_figures){ 0 };
	if (b->limits.memory_bytes > SANDBOX_MEMORY_HEADROOM)
		ret->memory_bytes = b->limits.memory_bytes - SANDBOX_MEMORY_HEADROOM;
	if (b->cgroup[0])
		cgroup_figures_read(&b->pool->cgroups, b->cgroup, ret);
	ret->used_bytes = sandbox_own_bytes(b, ret->used_bytes);
	if (sandbox_is_watched(b) && !b->beside)
		sandbox_members_figures(b, ret);
	if (!ret->used_bytes && b->guest)
		read_process(guest_pid(b->guest), ret);
}

void sandbox_tell_figures(struct sandbox *b)
{
	struct __attribute__((packed)) {
		char order;
		struct jail_figures f;
	} m = { .order = JAIL_FIGURES };
	struct jail_figures f;
	sandbox_figures(b, &f);
	m.f = f;

	/* An init that is not answered uses the figures it had. */
	ssize_t w = write(b->init_control, &m, sizeof(m));
	(void)w;
}
