/*
 * Sessions as the daemon sees them: a jail, a guest in it, and the cells it runs one after another.
 *
 * Everything here happens on one libuv loop; nothing blocks. Objects are owned by the table: a `struct session *` is valid
 * until its end is reported, so keep ids across callbacks and look them up again. A `struct cell *` is valid until its
 * on_done was called or cell_abandon() returned.
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
#include "session/display/recording.h"
#include "jail/jail.h"
#include "network/proxy_protocol.h"
#include "network/network_policy.h"
#include "wire/timing.h"
#include "profile/profile.h"

struct profiles;
struct sessions;
struct session;
struct cell;

enum { SESSION_ID_LEN = 28 }; /* "s_" and 26 random characters (130 bits) */

/* ---- parameters ------------------------------------------------------- */

/* A value of 0 means "the server's default". */
struct session_limits {
	double timeout_s;      /* wall time of one cell */
	uint64_t output_bytes; /* of stdout and of stderr, each, in an observation */
	uint64_t memory_bytes; /* of the session: a MemoryError beyond it, and with control groups a wall for all it starts */
	uint64_t processes;    /* and threads, at once */
	double cpus;           /* processors' worth of time; 0 with no default: as much as there is */
	double cpu_s;          /* processor time of one cell, all its processes together; 0 with no default: as much as its wall time allows */
	double session_cpu_s;  /* the same of the whole session, which ends when it is used up */
	uint64_t disk_bytes;   /* /workspace and /tmp, each */
	uint64_t inodes;       /* files and directories in each of them */
	uint64_t file_bytes;   /* of one file */
	uint64_t open_files;   /* descriptors of one process */
	uint64_t total_output_bytes; /* of stdout and stderr together that a cell may print at all, shown or not */
	uint64_t log_bytes;    /* output kept for GET …/logs */
};

/* A set of packages a session sees. `retain` is called with `hold` for every copy of the session, `release` when one of them is gone;
 * both may be NULL. */
struct session_package {
	struct session_package *next;
	char *path; /* inside the jail */
	void (*retain)(void *hold);
	void (*release)(void *hold);
	void *hold;
};

struct session_params {
	char *name;            /* or NULL */
	char **env;            /* "NAME=value", NULL at the end; or NULL */
	char **preload;        /* modules to import before the first cell, NULL at the end; or NULL */
	char *metadata;        /* JSON text of an object, or NULL */
	char *profile;         /* a name, or the JSON text of an object; NULL: the server's default */
	char **additional_imports; /* beyond the profile's, NULL at the end; or NULL */
	bool imports_below;        /* additional imports, the server's too, allow what is safe below them */
	struct session_limits limits;
	double ttl_s;          /* ends this long after its creation; 0: the server's default */
	double idle_timeout_s; /* ends this long after its last cell; 0: the server's default */
	bool has_exec;
	enum jail_exec exec;   /* which programs it may start; without has_exec the server's default */
	struct network_policy network; /* what it may reach */
	bool has_display;      /* a screen of its own */
	struct display_params {
		uint64_t width, height, depth, dpi; /* 0: the default */
		bool lazy; /* nobody asked for it by name: nothing is started until something connects to it, and without an X server there is none */
	} display;
	bool has_seed;
	uint64_t seed;         /* random and numpy start from it */
	char **want_packages;  /* what a request asked for, for whoever fills in the next two */
	struct session_package *packages; /* sets that are on its sys.path, the last one first; or NULL */
	char **template_modules; /* the first set has a template of its own with these modules imported, NULL at the end; or NULL */
	bool packages_replace; /* they hold other versions of what the system has: no guest that has those imported will do */
	char *packages_report; /* JSON text: what became of the packages it was asked for, or NULL */
	bool no_transactions;  /* cells that end the interpreter cost its variables */
	bool has_transactions, transactions; /* the same as a request says it */
	bool has_keep_checkpoints;
	uint64_t keep_checkpoints; /* cells that can be undone; without has_: the server's default */
	bool has_keep_files;
	uint64_t keep_files_bytes; /* of /workspace, that go back with the variables; 0: none; without has_: the server's default */
	uint64_t owner;        /* whose it is: a number of the caller's that session_info() gives back; 0 for nobody's */
};

void session_params_finish(struct session_params *p); /* frees what it owns */

struct sessions_config {
	uv_loop_t *loop;
	char *guest_module;       /* path of glovebox-guest.so, which the system's python3 loads */
	char *state_dir;          /* caches of our own; made when missing */
	const char *rootfs;       /* the system tree that sessions see instead of the host's, or NULL */
	const char *shown;        /* what jails see besides the system: lines "HOST DIRECTORY<tab>NAME" (as /NAME), or NULL */
	char **preload;           /* the template: NULL for the default list, an empty list for none */
	bool learn;               /* at the first start with a template: how to lay it out in memory (zygote/placement/heap_placement.h) */
	unsigned ready_guests;    /* kept ahead */
	double renew_s;           /* see sandbox_pool_config */
	uint64_t template_bytes;  /* memory of all templates but the default one; 0: no limit */
	enum jail_exec default_exec; /* what those in stock may start too; sessions that ask for another kind wait for a fork */
	enum jail_exec max_exec;     /* the most a session may ask for: none, system, any */
	struct network_policy default_network;   /* of sessions that ask for none; those kept ready have it, unless it has rules */
	struct network_most max_network;         /* what sessions may ask for */
	unsigned max_sessions;
	unsigned max_queued_cells;
	double grace_s;           /* between the interrupt and the kill */
	double default_ttl_s, default_idle_timeout_s;
	struct session_limits defaults, maxima;
	const struct profiles *profiles; /* the own ones; NULL: the built-in only */
	char *default_profile;           /* of sessions that name none; NULL: python */
	char **default_imports;          /* additional ones for every session, NULL at the end; or NULL */
	bool no_transactions;     /* unless a session asks for them */
	uint64_t keep_files_bytes; /* of /workspace, kept with a copy */
	uint64_t keep_checkpoints; /* of cells, kept by themselves */
	uint64_t max_checkpoints;  /* of one session, with a name; beyond it the one that was not used for longest goes; 0: none */
	uint64_t checkpoint_bytes; /* of memory that they may hold (PSS), the same; 0: half of the session's */
	/* Called for every session that ended, after it left the table (may be NULL). */
	void (*on_session_end)(void *userdata, const char *id, const char *why);
	bool warm_display;        /* what displays need is started ahead, not when a first session wants one */
	bool plain_displays;      /* X servers are started, not forked from a warm one */
	bool low_idle_latency;          /* CPUs of a virtual machine, while cells come */
	void *userdata;
};

void sessions_config_init(struct sessions_config *c); /* the documented defaults */

/* ---- the table -------------------------------------------------------- */

/* Starts jailer and zygote and returns without waiting for the warm-up. */
int sessions_create(const struct sessions_config *config, struct error *e, struct sessions **ret);

/* Ends all sessions and helpers; calls done when nothing is left, then the memory is gone. `deadline_s`: how long running
 * cells may still take (0: none). New sessions and cells are refused from now on. */
void sessions_destroy(struct sessions *t, double deadline_s, void (*done)(void *userdata), void *userdata);

bool sessions_ready(const struct sessions *t); /* the zygote is warm */
const char *sessions_complaint(const struct sessions *t); /* why they are not */

/* What could not be preloaded, as text lines "name: why" (empty when all was); valid until the next warm-up. */
const char *sessions_preload_report(const struct sessions *t);

/* How X servers of the usual size come to be: "warm" (forked), "plain", or "starting" while that is not known. */
const char *sessions_display_kind(const struct sessions *t);

/* Figures for /metrics. Histograms count values at or below each bound; the last bucket is the total. */
enum { STATS_BUCKETS = 14 };
extern const double stats_bounds_s[STATS_BUCKETS - 1];
struct stats_histogram {
	uint64_t bucket[STATS_BUCKETS];
	double sum;
	uint64_t count;
};
enum cell_status {
	CELL_OK,
	CELL_ERROR,
	CELL_TIMEOUT,
	CELL_INTERRUPTED,
	CELL_OUT_OF_MEMORY,
	CELL_KILLED,
	CELL_REFUSED,
	CELL_RUNNING, /* left in its main loop, with its windows; what it does from now on is told nobody */
	CELL_STATUS_COUNT
};
const char *cell_status_name(enum cell_status s); /* "ok", "error", … */

/* What became of a picture that a cell was asked for. */
enum picture_outcome {
	PICTURE_TAKEN,
	PICTURE_EMPTY,  /* taken, and no window was on the screen */
	PICTURE_FAILED, /* there is none */
	PICTURE_OUTCOMES
};
extern const char *const picture_outcome_names[PICTURE_OUTCOMES];

struct sessions_stats {
	uint64_t live, created, ended, taken_ready, forked, guests_replaced, zygote_restarts;
	uint64_t snapshots_parked, snapshots_refused, cells_rolled_back, checkpoints, checkpoints_evicted, rollbacks, forks;
	unsigned ready_guests;
	uint64_t limit; /* sessions that may be alive at once */
	/* By the built-in profile that the session's comes down to. */
	uint64_t cells[PROFILE_COUNT][CELL_STATUS_COUNT];
	uint64_t violations[PROFILE_COUNT][POLICY_RULES];
	uint64_t pictures[PROFILE_COUNT][PICTURE_OUTCOMES];
	uint64_t denials_not_logged;
	uint64_t running_cells, queued_cells;
	uint64_t stdout_bytes, stderr_bytes;
	uint64_t tool_calls, tool_errors;
	uint64_t network_attempts[NETWORK_VERDICT_COUNT], network_sent_bytes, network_received_bytes;
	struct stats_histogram cell_seconds, create_seconds; /* create: asked for → guest there */
	struct step_times steps;                             /* where the time went */
};
const struct sessions_stats *sessions_stats(const struct sessions *t);

/* ---- sessions --------------------------------------------------------- */

/*
 * Makes a session from params (whose content it takes over on success). It is usable at once: cells wait until its guest is
 * there. -ENOSPC (slug "too_many_sessions"), -ERANGE (a limit beyond the server's maximum), -ESHUTDOWN while draining.
 */
int session_create(struct sessions *t, struct session_params *params, struct error *e, struct session **ret);

/* -ENOENT (slug "session_not_found") or -EIDRM (slug "session_gone", the text says why and when it ended). */
int session_find(struct sessions *t, const char *id, struct error *e, struct session **ret);

/* Whose an ended session was (0: nobody's, or its end is not remembered). */
uint64_t session_gone_owner(const struct sessions *t, const char *id);

/* Ends it: a running cell ends as killed, its files and processes are gone. `why` is a clause such as "it was deleted". */
void session_end(struct session *s, const char *why);

/* Throws the interpreter away and starts a fresh one in the same jail: variables are gone, files stay. A running cell ends
 * as killed. */
int session_reset(struct session *s, struct error *e);

/*
 * Puts a set on the path of a live session, before its next cell; takes the package and the report (may be NULL) over. Cells that wait
 * already see it, too; the running one does not.
 */
int session_add_package(struct session *s, struct session_package *p, char *report, struct error *e);
void session_package_free(struct session_package *p); /* all of the list */

/*
 * Whom to ask when a cell says `%pip install`: `ask` gets the session's id, the number of the call, and its JSON text {"packages": [...]};
 * the answer goes back with session_answer_packages(), now or later. Without it such cells are told that there are no packages.
 */
void sessions_on_packages(struct sessions *t, void (*ask)(void *userdata, const char *id, uint64_t number, const char *json, size_t len),
	void *userdata);

/* Takes package and report over as session_add_package(); with `why` nothing was installed, and the cell gets that as its error. */
void session_answer_packages(struct session *s, uint64_t number, struct session_package *p, char *report, const char *why);

/* A set that every session has besides its own; until it is told (path NULL: there is none) the table is not ready. */
void sessions_await_packages(struct sessions *t);
void sessions_set_packages(struct sessions *t, const char *path, bool replaces);

/* Starts the template of a set ahead of need. Path and modules as in session_params. */
void sessions_warm_template(struct sessions *t, const char *path, char *const *modules, bool replaces);

/* As session_info.not_enforced. */
const char *sessions_not_enforced(const struct sessions *t);

/* Why no more sessions can be made now: descriptors, processes, namespaces, memory or the state directory's disk have run out. NULL: nothing has. */
const char *sessions_shortage(struct sessions *t);

/* Next session in order of creation; NULL starts, NULL ends. */
struct session *sessions_next(struct sessions *t, struct session *after);

enum session_state { SESSION_STARTING, SESSION_IDLE, SESSION_BUSY };
const char *session_state_name(enum session_state s);

struct session_info {
	const char *id, *name, *metadata; /* name and metadata may be NULL; metadata is JSON text */
	const char *packages;             /* JSON text: what became of the packages it was asked for, or NULL */
	uint64_t owner;                   /* as in its params */
	uint64_t serial;                  /* counts the sessions this table ever made, from 1 */
	enum session_state state;
	uint64_t created_wall_ns, used_wall_ns;
	double ttl_s, idle_timeout_s, expires_in_s;
	unsigned cells, queued, left_running;
	const char *from;         /* id of the session it was forked from, or NULL */
	const char *same_numbers; /* what of it kept that one's seeds; "" for nothing */
	bool warm; /* came from a guest that was ready, or from a template that was */
	const char *template; /* which template: "default", "plain", or the name of a set in the store */
	pid_t pid; /* of the guest on the host; 0 while starting */
	enum jail_exec exec;
	const struct network_policy *network;
	bool has_display, display_up; /* up: an X server runs, since something connected to it */
	struct display_params display;
	const char *profile; /* its name */
	struct session_limits limits;
	const char *not_enforced; /* names of limits, with blanks between, that this server cannot keep for all processes together; "" for none */
};
void session_info(const struct session *s, struct session_info *ret);

/* ---- cells ------------------------------------------------------------ */

enum stream { STREAM_STDOUT, STREAM_STDERR };

/* One value in several forms. Data is UTF-8 text (base64 for binary types), or JSON text when is_json. */
struct bundle_item {
	const char *mime;
	const char *data;
	size_t len;
	bool is_json;
};
struct bundle {
	struct bundle_item item[LIMIT_BUNDLE_ITEMS];
	unsigned n;
};

struct cell_error {
	const char *type, *message, *traceback; /* never NULL inside an error; traceback may be "" */
	size_t message_len, traceback_len;
	int line;                               /* in the cell's own source, 0 when unknown */
	const char *code, *remedy;              /* a word for programs and what to do; may be "" */
};

/* What a cell gave to final_answer() and its kin. */
struct final_answer {
	const char *data; /* JSON text when is_json, else the value's repr */
	size_t len;
	bool is_json;
	const char *encoded; /* "safe:…", smolagents' encoding, or NULL */
	size_t encoded_len;
};

/* Captured text: the first bytes, then what was left out, then the last bytes. Valid UTF-8 after session/output cut it. */
struct captured {
	const char *head, *tail;
	size_t head_len, tail_len;
	uint64_t left_out;
	bool is_short; /* some of it because the server held too much for others */
};

enum file_change { FILE_CREATED, FILE_MODIFIED, FILE_DELETED };
struct file_entry {
	const char *path; /* below /workspace */
	uint64_t size;
	enum file_change change;
};

/* A picture of the session's screen, or why there is none. */
struct screenshot {
	const char *data; /* the file; NULL when there is none */
	size_t len;
	struct picture_info info;
	const struct window_entry *windows; /* that could be seen */
	unsigned n_windows;
	bool no_window;                     /* the code showed no window: this is the screen without one */
	bool closed;                        /* its windows were asked to close, so that the cell could end */
	const char *code, *text, *remedy;   /* when there is none; NULL otherwise */
};

/* A recording as part of an observation. */
struct film_report {
	enum film_format format;
	const char *data; /* NULL: there is none, and the error says why */
	size_t len;
	unsigned frames;
	uint64_t duration_ms;
	const struct error *error;
};

/* An interpreter that died while no cell ran: what is left of the session. */
struct session_death {
	uint64_t wall_ns;
	char why[256];
	bool state_lost;        /* variables are gone; else they are as they were after `cell` … */
	bool files_rolled_back; /* … and so are the files */
	bool files_lost;        /* /workspace is empty: the jail ended with the interpreter */
	unsigned cell;          /* the last one before; 0: none had run */
	char remedy[512];
};

/* Hears at once when the session's interpreter dies between cells. Owned by whoever listens; session is NULL after the session's end. */
struct session_listener {
	TAILQ_ENTRY(session_listener) link;
	struct session *session;
	void (*on_death)(void *userdata, const struct session_death *d); /* must not change the session */
	void *userdata;
};
void session_listen(struct session *s, struct session_listener *l);
void session_unlisten(struct session_listener *l); /* idempotent */

/* Cells that were run again, silently, to get from a snapshot to a later state. */
struct replayed {
	unsigned n;
	const unsigned *may_differ; /* numbers of those that may have left another state behind than the first time */
	unsigned n_may_differ;
};

/* The outcome of a cell (DESIGN §7). Everything it points to is valid during the on_done call only. */
struct observation {
	const char *id, *session; /* of the cell's request, of the session */
	unsigned cell;
	enum cell_status status;
	int exit_code;
	bool state_lost;      /* variables are gone: by this cell, or by a death before it */
	bool files_lost;      /* and all files: the jail ended too */
	const struct session_death *died; /* the interpreter died between the cell before and this one; or NULL */
	const char *packages; /* JSON text: what became of packages since the cell before, or NULL */
	const char *evicted;   /* ids of checkpoints that had to go since the last answer, with blanks between, or NULL */
	bool rolled_back;       /* variables are as before the cell, or were put back before it (`died`) … */
	bool files_rolled_back; /* … and so are the files */
	unsigned rolled_back_to; /* the cell after which they were so; 0: before the first */
	struct replayed replayed; /* since the answer before */
	struct captured out, err;
	const struct bundle *result; /* or NULL */
	const struct bundle *displays;
	unsigned n_displays, displays_left_out;
	const struct cell_error *error; /* or NULL */
	const struct final_answer *answer; /* or NULL */
	const struct file_entry *files;
	unsigned n_files;
	bool files_cut; /* more changed than are listed */
	const struct screenshot *screenshot, *end_screenshot; /* or NULL when not asked for */
	unsigned recording; /* id of the cell's own; 0: none */
	const struct film_report *film; /* its file, when that was asked for; or NULL */
	double wall_ms, cpu_ms;
	uint64_t peak_memory_bytes;
	struct cell *source; /* for observation_keep() */
};

/*
 * Inside on_done: takes over the texts, values, pictures and films that the observation points to, so that they stay where they are until
 * observation_release(). The rest (ids, files, packages) is valid during on_done only. NULL without memory; then nothing has changed.
 */
struct observation_kept *observation_keep(const struct observation *o);
void observation_release(struct observation_kept *k); /* NULL is fine */

/* What becomes of a cell whose code waits in a main loop, once its window has settled. */
enum on_block {
	ON_BLOCK_AUTO,  /* CLOSE when a screenshot was asked for, else WAIT */
	ON_BLOCK_CLOSE, /* its windows are asked to close: the loop returns, and the cell goes on to its end */
	ON_BLOCK_WAIT,  /* nothing: the time limit ends it, or whoever uses the window */
	ON_BLOCK_LEAVE, /* it stays there; the cell's answer says "running", and later cells run inside its loop */
	ON_BLOCK_COUNT
};

struct cell_request {
	const char *code; /* valid UTF-8 without NUL; copied */
	size_t code_len;
	const char *stdin_text; /* or NULL; copied */
	size_t stdin_len;
	double timeout_s; /* 0: the session's */
	const char *variables; /* JSON text of an object: values put into the session before the code runs; or NULL; copied */
	bool typed_result;     /* the result also with typed markers */
	bool printed_answer;   /* text that it prints as a final answer counts as one */
	bool detach;      /* goes on when the client leaves */
	bool no_transaction; /* when it ends the interpreter, variables are gone */
	bool strict;         /* when it does, go back to a copy of the very moment before, whatever that costs now */
	bool final;       /* the whole program: waits for its threads and calls atexit's functions, as python3 does at the end */
	bool has_screenshot; /* of the screen while it runs, when that has settled; needs a display */
	bool end_screenshot; /* and another when it is over, also after an error */
	struct shot_options screenshot;
	enum on_block on_block;
	bool record; /* a recording of the screen until it is over; needs a display */
	struct recording_params recording;
	bool film; /* the recording's file is part of the observation: its session is about to end */
};

/* What the asker hears, in this order: on_started, then outputs and displays as they come, then on_done exactly once. None
 * may call back into the session but through another turn of the loop, except session_execute(). Unused slots are NULL. */
struct cell_observer {
	void (*on_started)(void *userdata, unsigned cell);
	void (*on_output)(void *userdata, enum stream stream, const char *data, size_t len); /* raw bytes, within the cap */
	void (*on_display)(void *userdata, const struct bundle *b);
	void (*on_done)(void *userdata, const struct observation *o);
	void (*on_died)(void *userdata, const struct session_death *d); /* the interpreter died before this cell; comes before on_started */
	/* Say no to the output cap: on_output gets every byte and nothing is kept (the CLI's way). */
	bool uncapped;
};

/*
 * Queues a cell. -EBUSY (slug "queue_full") when too many wait. `id` names the request in the observation (copied, may be
 * NULL: one is made).
 */
int session_execute(struct session *s, const char *id, const struct cell_request *request,
	const struct cell_observer *observer, void *userdata, struct error *e, struct cell **ret);

/* Its asker is gone: nothing more is called. A cell that did not ask to detach is interrupted, or taken from the queue. */
void cell_abandon(struct cell *c);

/* Interrupts the running cell (KeyboardInterrupt, killed after the grace). False when none runs. */
bool session_interrupt(struct session *s);

/* Asks the guest whether the source is complete (for interactive input); answers "complete", "incomplete" or "invalid". */
int session_check(struct session *s, const char *code, size_t len,
	void (*answer)(void *userdata, const char *verdict), void *userdata, struct error *e);

/* Tools: session/tools/session_tools.h. */
/* ---- display ---------------------------------------------------------- */

struct display_reply;
typedef void (*session_display_answer)(void *userdata, const struct display_reply *reply);

/*
 * Asks the session's screen (display/protocol.h; session/display/session_display.h has the reply). The answer comes exactly once, in another turn of
 * the loop, unless it is forgotten before. Returns the question's number, or a negative errno: -ENOTSUP (slug "no_display").
 */
int64_t session_display_ask(struct session *s, enum display_ask what, const void *options, size_t len, double timeout_s,
	session_display_answer answer, void *userdata, struct error *e);
void session_display_forget(struct session *s, uint32_t question);

/* ---- checkpoints ------------------------------------------------------ */

/* A parked copy of the session's interpreter, with its files, to go back to. */
struct checkpoint_info {
	const char *id, *name; /* name is NULL for one that was kept by itself */
	const char *parent;    /* id of the one its state came from, or NULL */
	unsigned cell;         /* the last cell it has seen */
	uint64_t created_wall_ns;
	uint64_t size_bytes;   /* its share of memory (PSS); 0 when that cannot be told */
	bool current;          /* the session's state is this one's, or came from it */
	bool files;            /* it holds the files too: of /workspace, /tmp and /dev/shm */
};

/* Where a checkpoint or a rollback led to. */
struct arrival {
	const struct checkpoint_info *checkpoint; /* or NULL: to a state without one */
	const char *evicted;       /* ids, with blanks between, of those that had to go since the last answer; or NULL */
	bool back;                /* it was a rollback … */
	struct replayed replayed; /* … with these cells */
};

/* How a checkpoint or a rollback ended: *e is NULL when it worked, else `a` is. */
typedef void (*checkpoint_done)(void *userdata, const struct error *e, const struct arrival *a);

/*
 * Takes one, between cells: -EBUSY (slug "session_busy") while one runs or waits. `done` is called once, perhaps before this returns; errors there:
 * slug "cannot_checkpoint" with what stands in the way. `name` may be NULL: then it is called by the number of its cell.
 */
int session_checkpoint(struct session *s, const char *name, checkpoint_done done, void *userdata, struct error *e);

/* Goes back to the checkpoint of this id or name (the newest of the name); NULL: to before the last cell. Also -ENOENT (slug "checkpoint_not_found"),
 * "nothing_to_undo". */
int session_rollback(struct session *s, const char *which, checkpoint_done done, void *userdata, struct error *e);

int session_checkpoint_delete(struct session *s, const char *which, struct error *e);

/* ---- forks ---- */

struct fork_request {
	const char *at;  /* a checkpoint's id or name; NULL: as it is now */
	unsigned count;
	bool same_numbers; /* random numbers go on as in the parent */
	struct session_params *own; /* name, metadata, ttl_s, idle_timeout_s of the new ones, where given; taken over when it begins; or NULL */
};

/* How a fork ended: *e is NULL when it worked, and then there are n sessions, all of them ready. */
typedef void (*fork_done)(void *userdata, const struct error *e, struct session *const *sessions, unsigned n);

/*
 * Makes `count` new sessions that go on from the session's state (or a checkpoint's), each in a jail of its own with its own copy of the files, with the
 * same limits, environment and profile. All or none. Errors as session_checkpoint(), slug "cannot_fork" with what stands in the way.
 */
int session_fork(struct session *s, const struct fork_request *q, fork_done done, void *userdata, struct error *e);

/* Whose checkpoint has this id, among the sessions of one owner; NULL for nobody's. */
struct session *sessions_find_checkpoint(struct sessions *t, const char *id, uint64_t owner);

/* What of a forked session kept the seed of its parent, as text; "" for nothing. */
const char *session_fork_note(const struct session *s);

/* The asker of a checkpoint, rollback or fork is gone: done is not called. */
void session_history_abandon(struct session *s, void *userdata);

/* Number `i` from the oldest. False when there are no more. With `size`, memory is looked at, which takes about a millisecond each. */
bool session_checkpoint_info(struct session *s, unsigned i, bool size, struct checkpoint_info *ret);

/* ---- log -------------------------------------------------------------- */

struct log_entry {
	uint64_t position, next; /* where it stands, where the next one starts */
	unsigned cell;           /* 0: before the first cell */
	enum stream stream;
	uint64_t wall_ns;
	size_t len;
	const char *data;        /* valid until the next call */
};

/* Reads the entry at `position` (0 is the first). 1 and *ret, 0 at the end, negative errno (-EINVAL: no entry starts there). */
int session_log_read(struct session *s, uint64_t position, struct log_entry *ret);
uint64_t session_log_dropped(const struct session *s); /* bytes beyond limits.log_bytes, not kept */

/* ---- files ------------------------------------------------------------ */

/* The /workspace directory (O_PATH, the session's), or -1 while the session starts. */
int session_workspace_fd(const struct session *s);

/* Who must own what the API writes there. */
void session_owner(const struct session *s, uid_t *ret_uid, gid_t *ret_gid);

/* Before the API writes bytes of a file: they count as the session's memory. -ENOSPC (slug "no_space") when they do not fit beside what it has. */
int session_charge_upload(struct session *s, size_t bytes, struct error *e);

/* The API changed files between cells: the next cell's `files` must not claim them. */
void session_files_touched(struct session *s);
