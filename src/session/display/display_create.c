/* The beginning of a display: nothing runs until a program connects to its socket. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "sandbox/pool.h"
#include "session/display/session_display_internal.h"

enum { QUEUE_MAX = 1 << 20 }; /* of frames that wait for the screen */

void display_attach(struct display *d, struct sandbox *b)
{
	d->sandbox = b;
	if (getrandom(d->cookie, sizeof(d->cookie), 0) != (ssize_t)sizeof(d->cookie)) {
		d->events->on_failed(
			d->owner, "no random numbers are available for the display's cookie");
		return;
	}
	sandbox_open_display(b, d->cookie);
}

bool display_is_ready(const struct display *d)
{
	return d->listen_open;
}

bool display_is_up(const struct display *d)
{
	return d->state == DISPLAY_UP;
}

int display_create(struct displays *all, const struct display_size *size, bool lazy,
	const struct display_events *events, void *owner, struct display **ret)
{
	struct display *d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;

	d->displays = all;
	d->size = *size;
	d->events = events;
	d->owner = owner;
	d->listening = d->place = d->stream = d->server = d->screen = -1;
	buffer_init(&d->queue, QUEUE_MAX);
	uv_timer_init(displays_loop(all), &d->timer);
	d->timer.data = d;
	displays_add(all, d);
	if (!lazy)
		displays_warm(all, size);
	*ret = d;
	return 0;
}

int display_resize(struct display *d, const struct display_size *size)
{
	if (!memcmp(&d->size, size, sizeof(*size)))
		return 0;
	if (d->state != DISPLAY_NOWHERE && d->state != DISPLAY_LISTENING)
		return -EBUSY;
	d->size = *size;
	displays_warm(d->displays, size);
	return 0;
}

void display_take_socket(struct display *d, int *fds)
{
	if (d->state != DISPLAY_NOWHERE || d->listen_open || d->listening >= 0)
		return; /* the socket of a jail that was left since */
	if (!fds) {
		d->events->on_failed(d->owner, "the display's socket could not be made");
		return;
	}

	d->listening = TAKE_FD(fds[0]);
	d->place = TAKE_FD(fds[1]);
	if (uv_poll_init(displays_loop(d->displays), &d->listen_poll, d->listening) < 0) {
		d->events->on_failed(d->owner, "the display's socket cannot be watched");
		return;
	}

	d->listen_poll.data = d;
	d->listen_open = true;
	display_listen_again(d);
	d->events->on_ready(d->owner);
}
