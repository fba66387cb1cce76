/* What `glovebox attach` shows of a session: its last cells, then what happens in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/limits.h"
#include "cli/client.h"

/*
 * In memory that two processes share: one reads the keyboard and sends cells, the other one shows
 * what happens.
 */
struct attach_shared {
	volatile bool ready;        /* the stream of events has begun */
	volatile bool ended;        /* the session is gone, or the stream broke off */
	volatile unsigned n_done;   /* own cells whose end was shown */
	volatile size_t own_len;    /* of the cell that was sent last; 0: it was shown */
	char own[LIMIT_CODE_BYTES]; /* its code, which stands on the screen already */
};

struct attach_view {
	const struct client_options *client;
	const char *id; /* of the session */
	unsigned last;  /* so many earlier cells are shown */
	bool echo_own;  /* show own cells' code too: the input is no terminal */
	struct attach_shared *shared;
};

/* Follows the session until it ends. In a process of its own. */
int attach_follow(const struct attach_view *view, struct error *e);
