/* Declarations shared by the files of serve.h; private to them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/agent.h"
#include "daemon/config.h"
#include "daemon/mcp_settings.h"
#include "daemon/preinstalled_sets.h"
#include "jail/layers.h"
#include "local/reaper.h"

enum phase { SERVING, DRAINING, FINISHING, ENDING, OVER };

struct server {
	const struct config *config;
	uv_loop_t loop;
	struct packages *packages;
	struct warm_sets warm_sets;
	struct sessions *sessions;
	struct profiles *profiles;
	struct mcp_settings mcp;
	char *shown, **mounts; /* what jails are shown, and the names of what they may ask for */
	char *guest_module;    /* the table looks at it again when it starts a helper anew */
	struct api *api;
	struct http_server *http; /* NULL once it is closed */
	struct agent *agent;      /* or NULL */
	struct reaper reaper;
	struct layer_state layers[LAYER_COUNT];
	uv_signal_t on_term, on_int, on_child, on_usr1;
	uv_timer_t tick;
	enum phase phase;
	bool warm;
	uint64_t started_ns, notice_ns, phase_until_ns;
	int exit_code;
};

/*
 * serve_start.c: layers, sessions, API and HTTP, then the daemon's own system call filter. After an
 * error, what was started is still there.
 */
int server_start(struct server *s, struct error *e);
