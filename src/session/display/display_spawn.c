/*
 * The processes of a display in its jail (X server, screen, maker of films): asking for them, and
 * ending them.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/fds.h"
#include "base/process.h"
#include "sandbox/pool.h"
#include "session/display/session_display_internal.h"

static int spawn_as(struct display *d, struct display_spawn q, int a, int b)
{
	struct cgroup_join_fds join = { 0 };
	int fds[DISPLAY_SPAWN_FDS_MAX] = { -1, a, b };
	int r = d->sandbox ? sandbox_join_fds(d->sandbox, &fds[0], &join) : -ENOENT;

	if (r < 0)
		return r;

	memcpy(q.cookie, d->cookie, sizeof(q.cookie));
	q.into = (uint32_t)join.into;
	memcpy(fds + DISPLAY_SPAWN_FDS, join.fds, join.n * sizeof(int));
	r = displays_spawn(d->displays, &d->size, &q, fds, DISPLAY_SPAWN_FDS + join.n);
	cgroup_join_fds_close(&join);
	fd_close(fds[0]);
	return r;
}

int display_spawn(struct display *d, enum display_process process, int a, int b)
{
	return spawn_as(
		d, (struct display_spawn){ .serial = d->spawn_serial, .process = process }, a, b);
}

int display_spawn_film(
	struct display *d, uint32_t serial, const struct film_make *make, int recording, int film)
{
	return spawn_as(d,
		(struct display_spawn){ .serial = serial, .process = DISPLAY_FILM, .film = *make },
		recording, film);
}

void display_kill_processes(struct display *d)
{
	int *processes[] = { &d->server, &d->screen };
	for (int i = 0; i < 2; i++) {
		if (*processes[i] >= 0)
			/* the daemon's reaper collects it */
			process_signal(*processes[i], SIGKILL);
		fd_close_clear(processes[i]);
	}

	d->spawn_serial = 0;
}
