/*
 * A recording in another format: made by ffmpeg inside the session's jail, where ffmpeg runs like
 * the processes of the display. Its input consists of pictures that hostile code can forge, so
 * ffmpeg has its own filter, and the session's limits. Its output is a file in memory.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "display/protocol.h"

struct display;
struct film;

TAILQ_HEAD(film_list, film);

/* Can it be made here? -ENOENT (slug "ffmpeg_missing"), with the package to install. */
int film_check(enum film_format format, struct error *e);

/* Begins to make one of a recording that is complete, and stays the caller's. */
int film_create(struct display *d, const struct film_make *make, int recording, struct error *e,
	struct film **ret);
void film_close(struct film *f); /* ends its process; NULL is fine */

/*
 * 0 with its file, which stays the film's; -EINPROGRESS; else why there is none (slug
 * "film_failed").
 */
int film_get(const struct film *f, struct error *e, int *ret_fd);

/* ---- for display_servers.c ---------------------------------------------------------- */

/* The answer to displays_spawn(); the pidfd (-1 on failure) is ours from here on. */
void film_spawned(struct film_list *films, uint32_t serial, int err, int pidfd);
