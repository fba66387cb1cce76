/* SETUP: what an interpreter is told before its first cell. */
#include <string.h>

#include "base/buffer.h"
#include "session/internal.h"

/* The oldest first: each goes before those that are there. */
static bool put_paths(struct buffer *b, const struct session_package *p)
{
	return !p ||
	       (put_paths(b, p->next) && wire_put(b, WIRE_PACKAGES, p->path, strlen(p->path)) == 0);
}

void session_send_path(struct session *s, const struct session_package *p)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	size_t start;
	if (wire_begin(&b, WIRE_SETUP, 0, &start) == 0 &&
		wire_put(&b, WIRE_PACKAGES, p->path, strlen(p->path)) == 0) {
		wire_end(&b, start);
		guest_send(sandbox_guest(s->sandbox), &b);
	}
}

void session_send_paths(struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	size_t start;
	if (s->params.packages && wire_begin(&b, WIRE_SETUP, 0, &start) == 0 &&
		put_paths(&b, s->params.packages)) {
		wire_end(&b, start);
		guest_send(sandbox_guest(s->sandbox), &b);
	}
}

void session_send_setup(struct session *s)
{
	struct buffer b = BUFFER_INIT(0);
	size_t start;
	bool ok = wire_begin(&b, WIRE_SETUP, 0, &start) == 0;
	ok = ok && session_network_setup(s, &b); /* first: what was asked for overrides it */

	/* First, so that the caller's own words about it hold. */
	for (const char *const *v = cell_picture_environment; ok && s->display && *v; v++)
		ok = wire_put(&b, WIRE_ENV, *v, strlen(*v)) == 0;
	for (char **v = s->params.env; ok && v && *v; v++)
		ok = wire_put(&b, WIRE_ENV, *v, strlen(*v)) == 0;
	if (ok && s->display)
		ok = wire_put_u64(&b, WIRE_SCREEN, 1) == 0;
	for (char **v = s->params.preload; ok && v && *v; v++)
		ok = wire_put(&b, WIRE_PRELOAD, *v, strlen(*v)) == 0;
	if (ok && s->table->packages.common_path)
		ok = wire_put(&b, WIRE_PACKAGES, s->table->packages.common_path,
			     strlen(s->table->packages.common_path)) == 0;
	ok = ok && put_paths(&b, s->params.packages);
	for (char **v = s->profile.rules; ok && v && *v; v++)
		ok = wire_put(&b, WIRE_POLICY, *v, strlen(*v)) == 0;
	if (ok && s->params.has_seed)
		ok = wire_put_u64(&b, WIRE_SEED, s->params.seed) == 0;
	if (ok && s->params.limits.memory_bytes)
		ok = wire_put_u64(&b, WIRE_MEMORY, s->params.limits.memory_bytes) == 0;
	if (ok && s->params.limits.processes)
		ok = wire_put_u64(&b, WIRE_PROCESSES,
			     s->params.limits.processes +
				     (history_possible(s) ? LIMIT_SNAPSHOTS : 0)) == 0;
	if (ok && history_possible(s))
		ok = wire_put_u64(&b, WIRE_KEEP_FILES, s->params.keep_files_bytes) == 0;
	if (ok && s->setup.clear_workspace)
		ok = wire_put_u64(&b, WIRE_WIPE, 1) == 0;
	s->setup.clear_workspace = false;
	if (ok && s->params.limits.file_bytes)
		ok = wire_put_u64(&b, WIRE_FILE_BYTES, s->params.limits.file_bytes) == 0;
	if (ok && s->params.limits.open_files)
		ok = wire_put_u64(&b, WIRE_OPEN_FILES, s->params.limits.open_files) == 0;

	/* the daemon counts them together; this bounds each, come what may */
	if (ok && s->params.limits.session_cpu_s > 0)
		ok = wire_put_u64(&b, WIRE_CPU_SECONDS,
			     (uint64_t)s->params.limits.session_cpu_s + 5) == 0;
	if (ok) {
		wire_end(&b, start);
		guest_send(sandbox_guest(s->sandbox), &b);
	}

	buffer_finish(&b);
	s->setup.sent = true;
	tools_send(s, true);
}
