/*
 * Sessions as the daemon sees them: a jail, a guest in it, and the cells it runs one after another.
 *
 * Everything here happens on one libuv loop; nothing blocks. Objects are owned by the table: a
 * `struct session *` is valid until its end is reported, so keep ids across callbacks and look them
 * up again. A `struct cell *` is valid until its on_done was called or cell_abandon() returned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/error.h"
#include "base/limits.h"
#include "display/protocol.h"
#include "jail/jail.h"
#include "network/network_policy.h"
#include "network/proxy_protocol.h"
#include "profile/profile.h"
#include "session/display/recording.h"
#include "session/history/session_history.h"
#include "session/observation.h"
#include "session/session_params.h"
#include "wire/output_stream.h"
#include "wire/timing.h"

struct profiles;
struct sessions;
struct session;
struct cell;

enum { SESSION_ID_LEN = 28 }; /* "s_" and 26 random characters (130 bits) */

uv_loop_t *session_loop(const struct session *s);

/* ---- the table -------------------------------------------------------- */

/* Starts jailer and zygote and returns without waiting for the warm-up. */
int sessions_create(const struct sessions_config *config, struct error *e, struct sessions **ret);

/*
 * Ends all sessions and helpers; calls done when nothing is left, then the memory is gone.
 * `deadline_s`: how long running cells may still take (0: none). New sessions and cells are refused
 * from now on.
 */
void sessions_destroy(
	struct sessions *t, double deadline_s, void (*done)(void *userdata), void *userdata);

/*
 * Draining, before a server is replaced: no new sessions (-ESHUTDOWN, slug "draining"), while the
 * sessions that are there are served to their end, or for deadline_s seconds (0: without a limit).
 */
void sessions_drain(struct sessions *t, double deadline_s);
void sessions_stop_drain(struct sessions *t);
/* *ret_left_s (or NULL): seconds until the sessions are ended, 0 without a limit. */
bool sessions_draining(const struct sessions *t, double *ret_left_s);
int sessions_check_drain(const struct sessions *t, struct error *e);

bool sessions_ready(const struct sessions *t);            /* the zygote is warm */
const char *sessions_complaint(const struct sessions *t); /* why they are not */

/*
 * What could not be preloaded, as text lines "name: why" (empty when all was); valid until the next
 * warm-up.
 */
const char *sessions_preload_report(const struct sessions *t);

/*
 * How X servers of the usual size come to be: "warm" (forked), "plain", or "starting" while that is
 * not known.
 */
const char *sessions_display_kind(const struct sessions *t);

/*
 * Figures for /metrics. Histograms count values at or below each bound; the last bucket is the
 * total.
 */
enum { STATS_BUCKETS = 14 };
extern const double stats_bounds_s[STATS_BUCKETS - 1];
struct stats_histogram {
	uint64_t bucket[STATS_BUCKETS];
	double sum;
	uint64_t count;
};
/* What became of a picture that a cell was asked for. */
enum picture_outcome {
	PICTURE_TAKEN,
	PICTURE_EMPTY,  /* taken, and no window was on the screen */
	PICTURE_FAILED, /* there is none */
	PICTURE_OUTCOMES
};
extern const char *const picture_outcome_names[PICTURE_OUTCOMES];

/* Why a session was refused; the last one stands for all others. */
enum refusal {
	REFUSED_FULL,      /* the server's maximum */
	REFUSED_QUOTA,     /* the maximum of one token */
	REFUSED_RESOURCES, /* memory, descriptors, processes or disk have run out */
	REFUSED_DRAINING,
	REFUSED_LIMIT, /* a limit beyond the server's maximum, or one that is not enforced here */
	REFUSED_PROFILE,
	REFUSED_NETWORK,
	REFUSED_OTHER,
	REFUSALS
};
extern const char *const refusal_names[REFUSALS];

/*
 * What is counted for one profile. The first PROFILE_COUNT slots are the built-in profiles; the
 * profiles of files follow in the order in which sessions use them. Profiles without a slot of
 * their own (objects in requests, files beyond STATS_PROFILES) are counted as the built-in profile
 * that they are based on: so no text of a request becomes a label.
 */
struct profile_stats {
	const char *name; /* of a file; NULL for the built-in ones */
	uint64_t violations[POLICY_RULES];
	uint64_t pictures[PICTURE_OUTCOMES];
	uint64_t pictures_settled;
	struct stats_histogram cell_seconds;
};
enum { STATS_PROFILES = PROFILE_COUNT + 32 };

/*
 * Cells by profile, dialect and template. A row is added for each combination that occurs; beyond
 * STATS_CELL_ROWS the last row takes the rest, with `other` as
 * profile (STATS_PROFILES), dialect and template.
 */
enum { STATS_CELL_ROWS = 256 };
struct cells_row {
	unsigned profile;               /* a slot */
	const char *dialect, *template; /* words of the program */
	uint64_t count[CELL_STATUS_COUNT];
};

struct sessions_stats {
	uint64_t live, created, ended, taken_ready, forked, guests_replaced, zygote_restarts;
	uint64_t snapshots_parked, snapshots_refused, cells_rolled_back, checkpoints,
		checkpoints_evicted, rollbacks, forks;
	unsigned ready_guests;
	uint64_t limit; /* sessions that may be alive at once */
	uint64_t refused[REFUSALS];
	struct profile_stats profiles[STATS_PROFILES];
	unsigned n_own_profiles; /* slots behind the built-in ones */
	struct cells_row cells[STATS_CELL_ROWS];
	unsigned n_cells;                       /* rows */
	struct stats_histogram picture_seconds; /* of cells: first window → picture */
	uint64_t denials_not_logged;
	uint64_t running_cells, queued_cells;
	uint64_t stdout_bytes, stderr_bytes;
	uint64_t tool_calls, tool_errors;
	uint64_t network_attempts[NETWORK_VERDICT_COUNT], network_sent_bytes,
		network_received_bytes;
	struct stats_histogram create_seconds; /* asked for → guest there */
	struct step_times steps;               /* where the time went */
};
const struct sessions_stats *sessions_stats(const struct sessions *t);

/* The volumes that sessions can have (volumes/volumes.h); NULL: none. */
struct volumes;
struct volumes *sessions_volumes(struct sessions *t);

/* Counts a session that a layer above refused. */
void sessions_count_refusal(struct sessions *t, enum refusal why);

struct machine_room;
/* What is left of the resources that sessions need. */
void sessions_room(const struct sessions *t, struct machine_room *ret);

/* ---- sessions --------------------------------------------------------- */

/*
 * Makes a session from params (whose content it takes over on success). It is usable at once: cells
 * wait until its guest is there. -ENOSPC (slug "server_full"), -ERANGE (a limit beyond the
 * server's maximum), -ESHUTDOWN while draining.
 */
int session_create(
	struct sessions *t, struct session_params *params, struct error *e, struct session **ret);

/*
 * -ENOENT (slug "session_not_found") or -EIDRM (slug "session_gone", the text says why and when it
 * ended; slug "node_restarted", it was a session of an earlier incarnation of this node).
 */
int session_find(struct sessions *t, const char *id, struct error *e, struct session **ret);

/* Whose an ended session was (0: nobody's, or its end is not remembered). */
uint64_t session_gone_owner(const struct sessions *t, const char *id);
/* Why one of this owner's ended; NULL when it did not, or its end is not remembered. */
const char *session_gone_why(const struct sessions *t, const char *id, uint64_t owner);

/*
 * Ends it: a running cell ends as killed, its files and processes are gone. `why` is a clause such
 * as "it was deleted".
 */
void session_end(struct session *s, const char *why);

/*
 * Throws the interpreter away and starts a fresh one in the same jail: variables are gone, files
 * stay. A running cell ends as killed.
 */
int session_reset(struct session *s, struct error *e);

/*
 * Puts a set on the path of a live session, before its next cell; takes the package and the report
 * (may be NULL) over. Cells that wait already see it, too; the running one does not.
 */
int session_add_package(
	struct session *s, struct session_package *p, char *report, struct error *e);
void session_package_free(struct session_package *p); /* all of the list */

/*
 * Whom to ask when a cell says `%pip install`: `ask` gets the session's id, the number of the call,
 * and its JSON text {"packages": [...]}; the answer goes back with session_answer_packages(), now
 * or later. Without it such cells are told that there are no packages.
 */
void sessions_on_packages(struct sessions *t,
	void (*ask)(void *userdata, const char *id, uint64_t number, const char *json, size_t len),
	void *userdata);

/*
 * Takes package and report over as session_add_package(); with `why` nothing was installed, and the
 * cell gets that as its error.
 */
void session_answer_packages(struct session *s, uint64_t number, struct session_package *p,
	char *report, const char *why);

/*
 * A set that every session has besides its own; until it is told (path NULL: there is none) the
 * table is not ready.
 */
void sessions_await_packages(struct sessions *t);
void sessions_set_packages(struct sessions *t, const char *path, bool replaces);

/* Starts the template of a set ahead of need. Path and modules as in session_params. */
void sessions_warm_template(
	struct sessions *t, const char *path, char *const *modules, bool replaces);

/* As session_info.not_enforced. */
const char *sessions_not_enforced(const struct sessions *t);

/*
 * Why no more sessions can be made now: descriptors, processes, namespaces, memory or the state
 * directory's disk have run out. NULL: nothing has.
 */
const char *sessions_shortage(struct sessions *t);

/* Next session in order of creation; NULL starts, NULL ends. */
struct session *sessions_next(struct sessions *t, struct session *after);

enum session_state { SESSION_STARTING, SESSION_IDLE, SESSION_BUSY, SESSION_PAUSED };
const char *session_state_name(enum session_state s);

struct session_info {
	const char *id, *name, *metadata; /* name and metadata may be NULL; metadata is JSON text */
	/* JSON text: what became of the packages it was asked for, or NULL */
	const char *packages;
	uint64_t owner;  /* as in its params */
	uint64_t serial; /* counts the sessions this table ever made, from 1 */
	enum session_state state;
	uint64_t created_wall_ns, used_wall_ns;
	double ttl_s, idle_timeout_s, expires_in_s;
	bool pause_on_expiry, private_ports;
	unsigned cells, queued, left_running;
	const char *from;         /* id of the session it was forked from, or NULL */
	const char *same_numbers; /* what of it kept that one's seeds; "" for nothing */
	bool warm; /* came from a guest that was ready, or from a template that was */
	/* which template: "default", "plain", or the name of a set in the store */
	const char *template;
	pid_t pid; /* of the guest on the host; 0 while starting */
	enum jail_exec exec;
	const struct network_policy *network;
	char *const *mounts;          /* "NAME=/place", NULL at the end; or NULL */
	char *const *volumes;         /* "NAME=/mnt/x" or "NAME=/mnt/x:ro", the same */
	bool has_display, display_up; /* up: an X server runs, since something connected to it */
	struct display_params display;
	const char *profile; /* its name */
	struct session_limits limits;
	/* names of limits, with blanks between, that this server cannot keep for all processes
	 * together; "" for none */
	const char *not_enforced;
};
void session_info(const struct session *s, struct session_info *ret);

/* ---- display ---------------------------------------------------------- */

struct display_reply;
typedef void (*session_display_answer)(void *userdata, const struct display_reply *reply);

/*
 * Asks the session's screen (display/protocol.h; session/display/session_display.h has the reply).
 * The answer comes exactly once, in another turn of the loop, unless it is forgotten before.
 * Returns the question's number, or a negative errno: -ENOTSUP (slug "no_display").
 */
int64_t session_display_ask(struct session *s, enum display_ask what, const void *options,
	size_t len, double timeout_s, session_display_answer answer, void *userdata,
	struct error *e);
void session_display_forget(struct session *s, uint32_t question);

/*
 * Another size, before the first program connects to the display. -ENOTSUP as above, -EBUSY when the
 * display is in use with another size.
 */
struct display_size;
int session_display_resize(struct session *s, const struct display_size *size, struct error *e);

/* The same when the session has ended: all questions with this userdata. */
void sessions_display_forget(struct sessions *t, const void *userdata);

/* ---- log -------------------------------------------------------------- */

struct log_entry {
	uint64_t position, next; /* where it stands, where the next one starts */
	unsigned cell;           /* 0: before the first cell */
	enum stream stream;
	uint64_t wall_ns;
	size_t len;
	const char *data; /* valid until the next call */
};

/*
 * Reads the entry at `position` (0 is the first). 1 and *ret, 0 at the end, negative errno
 * (-EINVAL: no entry starts there).
 */
int session_log_read(struct session *s, uint64_t position, struct log_entry *ret);
uint64_t session_log_dropped(const struct session *s); /* bytes beyond limits.log_bytes, not kept */

/* ---- files ------------------------------------------------------------ */

/* The /workspace directory (O_PATH, the session's), or -1 while the session starts. */
int session_workspace_fd(const struct session *s);

/* Who must own what the API writes there. */
void session_owner(const struct session *s, uid_t *ret_uid, gid_t *ret_gid);

/*
 * Before the API writes bytes of a file: they count as the session's memory. -ENOSPC (slug
 * "no_space") when they do not fit beside what it has.
 */
int session_charge_upload(struct session *s, size_t bytes, struct error *e);

/* The API changed files between cells: the next cell's `files` must not claim them. */
void session_files_touched(struct session *s);
