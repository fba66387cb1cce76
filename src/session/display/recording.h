/*
 * Recordings of a session's screen: animated PNGs, made of the frames that the screen sends when
 * something changed (display/protocol.h, "watching"). A screen that does not change causes no work.
 *
 * A recording lasts until it is stopped, until its cell is over, or until it reaches a limit; it
 * keeps its frames when the display ends. Its file has no name and is deleted with the session. The
 * daemon checks the structure of the pictures but does not decode them. Films of other formats
 * (session/display/film.h) are made of it when they are asked for, and kept with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "display/protocol.h"

struct session;

struct recording_params {
	uint64_t fps;            /* at most so many frames in a second; 0: 10 */
	double max_seconds;      /* 0: 600 */
	enum film_format format; /* what it will be fetched as when nothing else is said */
};

enum recording_state { RECORDING_RUNNING, RECORDING_FINISHING, RECORDING_DONE };

/* The time during which a cell ran, measured from the start of the recording. */
struct recording_cell {
	unsigned cell;
	uint64_t from_ms, to_ms;
	unsigned first_frame, frames;
};

struct recording_info {
	unsigned id;
	enum recording_state state;
	/* why: "stopped", "cell", "max_seconds", "frames", "bytes", "display_gone", "no_space";
	 * NULL while it runs */
	const char *ended;
	enum film_format format;
	unsigned width, height; /* 0 before the first frame */
	unsigned frames;
	uint64_t bytes, duration_ms, started_wall_ns;
	const struct recording_cell *cells;
	unsigned n_cells;
};

/*
 * Starts one. The session must have a display: -ENOTSUP (slug "no_display"). The X server is not
 * started for it.
 */
int recording_start(
	struct session *s, const struct recording_params *p, struct error *e, unsigned *ret_id);

/*
 * Ends it: with the screen as it is now; then it is FINISHING for a moment. id 0: all that run.
 * -ENOENT (slug "recording_not_found").
 */
int recording_stop(struct session *s, unsigned id, const char *why, struct error *e);

/* By id; -ENOENT. ret_fd (may be NULL) is the recording's own. */
int recording_get(
	struct session *s, unsigned id, struct error *e, struct recording_info *ret, int *ret_fd);
/*
 * The recording as a film, made when it is not yet: 0 with its file, which is the recording's own;
 * -EINPROGRESS: ask again soon. -ENOENT (also slug "ffmpeg_missing"), -EBUSY (slug
 * "recording_running"), -ENODATA (slug "nothing_recorded"), -EIO (slug "film_failed": asking again
 * tries again).
 */
int recording_film(
	struct session *s, unsigned id, enum film_format format, struct error *e, int *ret_fd);
/* Its params.format from now on. */
int recording_set_format(struct session *s, unsigned id, enum film_format format, struct error *e);
/* The first with an id above this one; false: there is none. */
bool recording_next(struct session *s, unsigned after, struct recording_info *ret);
int recording_delete(struct session *s, unsigned id, struct error *e);

void recordings_destroy(struct session *s); /* with the session */
