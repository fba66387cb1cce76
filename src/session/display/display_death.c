/*
 * Displays whose X server or screen process ended without being told to: who ended, and who has to
 * hear of it.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/process.h"
#include "session/display/session_display_internal.h"

/*
 * Its memory may take longer to free than its connections to close: PF_EXITING of the kernel's
 * comes first.
 */
static bool is_exiting(pid_t pid)
{
	enum { EXITING = 0x4 };
	char path[64];
	unsigned flags = 0;
	_cleanup_free_ char *text = NULL;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);

	/* its name may hold anything */
	const char *at = pid > 0 && fd_read_file(path, 4096, &text, NULL) >= 0 ? strrchr(text, ')')
									       : NULL;
	return at && sscanf(at, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & EXITING;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	return pidfd >= 0 && (poll(&p, 1, 0) == 1 || is_exiting(process_pid(pidfd)));
}

bool display_server_ended(const struct display *d)
{
	return has_ended(d->server);
}

/* A screen ends with its X server, so that is looked at first. */
static const char *what_ended(const struct display *d)
{
	return has_ended(d->server)
		       ? "the session's X server ended"
		       : "the process that watches the session's screen ended, and the X server was ended with it";
}

const char *display_note_death(struct display *d)
{
	d->death = what_ended(d);
	/* who waits outside the session for an answer gets this one */
	d->untold = true;
	for (unsigned i = 0; i < LIMIT_DISPLAY_ASKS; i++)
		if (d->question[i].serial && d->question[i].outlives)
			d->untold = false;
	return d->death;
}

const char *display_death(const struct display *d)
{
	bool unnoticed = d->state == DISPLAY_UP && (has_ended(d->server) || has_ended(d->screen));
	return unnoticed ? what_ended(d) : d->death;
}

void display_forget_death(struct display *d)
{
	d->death = NULL;
	d->untold = false;
}

const char *display_refuses(struct display *d)
{
	if (!d->untold || d->state != DISPLAY_LISTENING)
		return NULL;
	d->untold = false;
	return d->death;
}
