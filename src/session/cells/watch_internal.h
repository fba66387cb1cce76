/* How the files of the session layer report events; private to src/session. */
#pragma once

#include "session/cells/session_cells.h"

struct snapshot;

struct sessions_watch {
	session_watcher watcher; /* NULL: nobody looks on */
	void *userdata;
};

/* The running cell starts; it is over; it printed; it displayed. */
void watch_cell_started(struct session *s);
void watch_cell_done(struct session *s, const struct cell *c, const struct observation *o);
void watch_output(struct session *s, enum stream stream, const char *data, size_t len);
void watch_display(struct session *s);

void watch_created(struct session *s);
void watch_reset(struct session *s);
void watch_died(struct session *s, const char *why);
void watch_ended(struct session *s, const char *why);
void watch_checkpoint(struct session *s, const struct checkpoint_info *c);
void watch_rollback(struct session *s, const struct checkpoint_info *c); /* NULL: to the start */
void watch_fork(struct session *s, const struct session *child);
