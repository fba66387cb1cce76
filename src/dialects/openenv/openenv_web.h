/*
 * OpenEnv's web interface: one environment that all its pages share, what was done in it, and those
 * who watch.
 *
 * The environment is the one named "web" of each owner. A log of its episode hangs on it from the
 * first request of the interface on; watchers (GET /ws/ui) are told the whole of it whenever it
 * changes, as OpenEnv's server tells them.
 */
#pragma once

#include "dialects/openenv/openenv.h"

/* Is this the address of a call of the web interface? */
bool openenv_is_web(const struct call *c);

/* A new episode of the interface's environment. */
void web_note_reset(struct env *e);

/* A step of it is over. */
void web_note_step(struct env *e, const char *code, size_t len, const struct step *s,
	const struct observation *o);

void web_log_destroy(struct web_log *l); /* NULL is fine */
