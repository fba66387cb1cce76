/*
 * The session: its parts, each with a header that says its invariants. Private to this folder and
 * its subfolders.
 */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "profile/profiles.h"
#include "sandbox/pool.h"
#include "session/cells/introspect.h"
#include "session/cells/watch_internal.h"
#include "session/deadline.h"
#include "session/death.h"
#include "session/display/cell_picture.h"
#include "session/display/recording.h"
#include "session/display/session_display.h"
#include "session/history/history.h"
#include "session/origin.h"
#include "session/outcome.h"
#include "session/pause.h"
#include "session/phase.h"
#include "session/queue.h"
#include "session/session.h"
#include "session/session_cell.h"
#include "session/session_output.h"
#include "session/source_check.h"
#include "session/table.h"
#include "session/tools/tools_internal.h"
#include "session/usage.h"
#include "session/volumes/session_volumes.h"

struct processes;
struct tools;

struct session {
	TAILQ_ENTRY(session) link;
	struct sessions *table;
	char id[SESSION_ID_LEN + 1];
	uint64_t serial;
	struct session_params params;
	struct profile_choice profile;
	unsigned stats_slot; /* of its profile: sessions_stats.profiles */
	enum session_phase phase;
	struct sandbox *sandbox; /* NULL while there is none, and after the end */
	struct session_origin origin;
	struct session_setup setup;
	struct {
		uint64_t created_ns, created_wall_ns, used_ns, used_wall_ns;
	} times;
	struct session_queue queue;
	struct session_clock clock;
	struct session_usage usage;
	struct outcome outcome; /* of the running cell */
	struct session_output output;
	struct cell_history cell_history; /* the cells that it ran */
	struct session_history history;
	struct session_deaths death;
	struct session_pause pause;
	struct session_volumes volumes;
	struct display *display; /* or NULL */
	struct {
		TAILQ_HEAD(, recording) list;
		unsigned last_id;
	} recordings;
	struct tools *tools;         /* NULL until there are any */
	struct processes *processes; /* NULL until there are any (processes/processes.h) */
	struct {
		TAILQ_HEAD(, port_link) list;
		unsigned n;
	} ports; /* connections to its servers (ports/port_link.h) */
	struct {
		TAILQ_HEAD(, file_watch) list;
		unsigned n, last, n_dirs;
	} file_watches; /* directories that somebody follows (files/file_watch.h) */
	struct source_check check;
	struct introspection introspection;
};
