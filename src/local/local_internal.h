/* What the files of src/local share; not for others. */
#pragma once

#include <uv.h>

#include "local/local.h"
#include "local/reaper.h"

enum { LOCAL_SIGNALS = 3 };

struct local {
	uv_loop_t loop;
	struct sessions *sessions;
	/* the table looks at them again when it starts a helper anew */
	char *guest_module, *state_dir, *shown;
	char id[SESSION_ID_LEN + 1];
	uv_signal_t signals[LOCAL_SIGNALS];
	uv_timer_t patience;
	struct profiles *profiles;
	struct reaper reaper;
	const struct cell_observer *observer; /* of the cell under way */
	void *userdata;
	bool done, late, gone;
	int complete, signal, interrupts;
	char *answer; /* to the last question */
};

/* The session; NULL when it is gone. */
struct session *local_find(struct local *l);
/* Of l->patience: says that it is late. */
void local_on_patience(uv_timer_t *timer);
