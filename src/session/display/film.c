#include "session/display/film.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "session/display/session_display_internal.h"

enum film_state { FILM_MAKING, FILM_MADE, FILM_FAILED };

struct film {
	TAILQ_ENTRY(film) link;
	struct display *display; /* NULL once it is closed */
	enum film_state state;
	uint32_t serial;
	int pidfd, fd;
	char why[160], remedy[160];
	uv_poll_t poll;
	uv_timer_t deadline;
	unsigned open_handles;
	bool polling, listed, closed;
};

int film_check(enum film_format format, struct error *e)
{
	if (format == FILM_APNG || access(FILM_PROGRAM, X_OK) == 0)
		return 0;

	error_set(e, -ENOENT, "this machine has no ffmpeg (%s), which is needed for %s",
		FILM_PROGRAM, film_names[format]);
	error_remedy(e,
		"Install the package ffmpeg on the server (apt-get install ffmpeg), or fetch the recording as apng, which needs no ffmpeg.");
	error_slug(e, "ffmpeg_missing");
	return -ENOENT;
}

/* ---- life --------------------------------------------------------------------------------- */

static void free_when_closed(struct film *f)
{
	if (!f->closed || f->open_handles)
		return;
	fd_close(f->pidfd);
	fd_close(f->fd);
	free(f);
}

static void on_handle_closed(uv_handle_t *h)
{
	struct film *f = h->data;
	f->open_handles--;
	free_when_closed(f);
}

static void unlist(struct film *f)
{
	if (f->listed)
		TAILQ_REMOVE(displays_films(f->display->displays), f, link);
	f->listed = false;
}

/* It is over, one way or the other. */
static void settle(struct film *f, enum film_state state, const char *why, const char *remedy)
{
	f->state = state;
	snprintf(f->why, sizeof(f->why), "%s", why);
	snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
	uv_timer_stop(&f->deadline);
	if (f->polling)
		uv_poll_stop(&f->poll);
}

static void on_exit_event(uv_poll_t *p, int status, int events)
{
	struct film *f = p->data;
	struct process_exit end = { 0 };

	(void)status, (void)events;
	if (f->state != FILM_MAKING || process_reap(f->pidfd, &end) < 0)
		return;

	off_t size = lseek(f->fd, 0, SEEK_END);
	if (!end.signaled && end.status == 0 && size > 0)
		settle(f, FILM_MADE, "", "");
	else if (!end.signaled && end.status == FILM_NO_PROGRAM)
		settle(f, FILM_FAILED,
			"there is no ffmpeg in the system tree that the session sees",
			"Install the package ffmpeg in that tree, or fetch the recording as apng.");
	else
		settle(f, FILM_FAILED,
			end.signaled ? "ffmpeg was ended by a limit of the session"
				     : "ffmpeg could not convert the recording",
			"Fetch the recording as apng, record less, or create the session with more memory.");
}

static void on_late(uv_timer_t *t)
{
	struct film *f = t->data;
	if (f->pidfd >= 0)
		process_signal(f->pidfd, SIGKILL); /* the daemon's reaper collects it */
	settle(f, FILM_FAILED, "ffmpeg did not convert the recording in time",
		"Fetch the recording as apng, or record less.");
}

void film_spawned(struct film_list *films, uint32_t serial, int err, int pidfd)
{
	struct film *f;
	TAILQ_FOREACH (f, films, link)
		if (f->serial == serial)
			break;
	if (!f || f->state != FILM_MAKING) { /* nobody wants it any more */
		if (pidfd >= 0)
			process_signal(pidfd, SIGKILL);
		fd_close(pidfd);
		return;
	}

	f->pidfd = pidfd;
	if (err || uv_poll_init(displays_loop(f->display->displays), &f->poll, pidfd) < 0) {
		settle(f, FILM_FAILED,
			"the process that converts the recording could not be started in the session",
			"Try again; `glovebox doctor` checks the machine.");
		return;
	}

	f->polling = true;
	f->open_handles++;
	f->poll.data = f;
	uv_poll_start(&f->poll, UV_READABLE, on_exit_event);
}

/* A description of its own of the same file: each reader has its own place in it. */
static int open_again(int fd)
{
	char path[48];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int again = open(path, O_RDONLY | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

int film_create(struct display *d, const struct film_make *make, int recording, struct error *e,
	struct film **ret)
{
	_cleanup_fd_ int in = open_again(recording),
			 out = memfd_create("glovebox-film", MFD_CLOEXEC);
	struct film *f = in < 0 || out < 0 ? NULL : calloc(1, sizeof(*f));

	if (!f)
		return error_set(e, -ENOMEM, "out of memory");

	*f = (struct film){
		.display = d, .pidfd = -1, .fd = -1, .serial = displays_next_serial(d->displays)
	};
	int r = display_spawn_film(d, f->serial, make, in, out);
	if (r < 0) {
		free(f);
		error_set(e, r, "the process that converts the recording could not be started: %s",
			strerror(-r));
		error_remedy(e, "Try again; open a window first if the session was reset since.");
		return error_slug(e, "film_failed");
	}

	f->fd = TAKE_FD(out);
	TAILQ_INSERT_TAIL(displays_films(d->displays), f, link);
	f->listed = true;
	uv_timer_init(displays_loop(d->displays), &f->deadline);
	f->deadline.data = f;
	f->open_handles = 1;
	uv_timer_start(&f->deadline, on_late, LIMIT_FILM_SECONDS * 1000, 0);
	*ret = f;
	return 0;
}

void film_close(struct film *f)
{
	if (!f || f->closed)
		return;

	if (f->state == FILM_MAKING && f->pidfd >= 0)
		process_signal(f->pidfd, SIGKILL);
	unlist(f);
	f->closed = true;
	uv_close((uv_handle_t *)&f->deadline, on_handle_closed);
	if (f->polling)
		uv_close((uv_handle_t *)&f->poll, on_handle_closed);
}

int film_get(const struct film *f, struct error *e, int *ret_fd)
{
	if (f->state == FILM_MAKING)
		return -EINPROGRESS;

	if (f->state == FILM_MADE) {
		*ret_fd = f->fd;
		return 0;
	}

	error_set(e, -EIO, "%s", f->why);
	error_remedy(e, "%s", f->remedy);
	error_slug(e, "film_failed");
	return -EIO;
}
