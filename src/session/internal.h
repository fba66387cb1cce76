/* What the files of this room share; not for others. */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "sandbox/snapshot.h"
#include "session/display/session_display.h"
#include "profile/profiles.h"
#include "sandbox/pool.h"
#include "session/history/operation.h"
#include "session/outcome.h"
#include "session/output.h"
#include "session/display/recording.h"
#include "session/session.h"
#include "session/output_log.h"

enum { CELL_ID_MAX = 64 };

/* Cells that may be run again to get from a copy to the state of before a cell. */
enum {
	REPLAY_CELLS = 64,         /* at most … */
	REPLAY_WALL_MS = 100,      /* … if they took no longer than this all together … */
	REPLAY_BYTES = 256 * 1024, /* … and are no longer than this */
};

struct tools;

/* Which limit beside its time stopped a cell. */
enum cell_stop { STOP_NONE, STOP_CPU, STOP_OUTPUT };

struct cell {
	TAILQ_ENTRY(cell) link;
	struct session *session;
	char id[CELL_ID_MAX + 1];
	struct buffer frame; /* EXECUTE, ready to be sent; its serial is set when it starts */
	struct cell_observer observer;
	void *userdata;
	double timeout_s;
	struct film_cell *film;  /* of a cell whose recording is part of its answer; else NULL */
	struct capture *capture; /* of a cell that wants pictures, or that must not block; else NULL */
	bool record;
	struct recording_params recording;
	unsigned recording_id; /* 0: none */
	bool detach, started, timed_out, interrupted, abandoned;
	bool printed_answer; /* a final answer may be printed */
	bool program;     /* a one-shot, after which the session ends */
	bool transaction; /* when it ends the interpreter, the session goes back to where it was before … */
	bool outside;     /* it reached something outside the session: it cannot be run again */
	bool strict;      /* … to a copy of that moment, not to an older one from which cells are run again */
	enum cell_stop stop;
};

TAILQ_HEAD(cell_queue, cell);

/* What the deadline timer of a session does next. */
enum session_clock { CLOCK_OFF, CLOCK_LIMIT, CLOCK_INTERRUPTING, CLOCK_RECOVERING, CLOCK_PAINTING };

struct session {
	TAILQ_ENTRY(session) link;
	struct sessions *table;
	char id[SESSION_ID_LEN + 1];
	uint64_t serial;
	struct session_params params;
	struct profile_choice profile;
	struct sandbox *sandbox;
	char template[40]; /* the name of the template it came from */
	bool template_warm;
	bool packages_news; /* the report is to be told with the next answer */
	bool guest_ready, setup_sent, warm, files_touched, ending;
	unsigned cells, retries;
	uint64_t oom_kills, process_refusals; /* of its control group, when last looked at */
	uint64_t cell_cpu_ns, first_cpu_ns;   /* used before this cell, before the first */
	bool has_first_cpu;
	uint64_t total_output_bytes;               /* by the running cell, or since the last one */
	uint64_t created_ns, created_wall_ns, used_ns, used_wall_ns;

	struct cell_queue queue; /* waiting; the running one is not in it */
	unsigned queued;
	struct cell *running;
	uint64_t started_ns, interrupt_ns;
	enum session_clock clock;
	uint64_t limit_at_ns;             /* when the cell's time is over */
	uint64_t paused_at_ns, paused_ns; /* the clock stands still since (0: it runs); how long it stood before */
	uint64_t painting_ns;             /* since when the windows of a cell are painted after its code has ended; 0: not */
	bool painting_late;               /* … and the cell had been interrupted before */
	uv_timer_t deadline;
	struct tools *tools; /* NULL until there are any */
	struct display *display; /* or NULL */
	TAILQ_HEAD(, recording) recordings;
	unsigned last_recording;
	uint32_t left[LIMIT_LEFT_CELLS]; /* cells that were left in a main loop and have not ended */
	unsigned n_left;
	uv_timer_t wake_timer;
	struct outcome outcome;
	struct output output[2];
	size_t carried[2]; /* bytes of an unfinished character, told to the listener with what follows */
	char carry[2][4];
	struct output_log spool;
	struct {
		uint64_t bytes;  /* of files that the API wrote and that may be there */
		uint64_t looked; /* bytes since its memory was last looked at; 0: never */
	} uploads;
	struct {
		uint64_t since_s;
		unsigned lines, dropped;
	} network_log;

	/* Snapshots of its guest (history.c). */
	struct snapshot *latest;   /* the newest copy on the way to the state of now; NULL when there is none */
	struct {
		bool fresh;            /* they start from an interpreter that has run nothing and an empty directory, not from `latest` */
		bool good;             /* `latest` (or a fresh start) and these cells, run again, are the state before the running cell */
		struct buffer frames;  /* EXECUTE frames */
		unsigned n;
		unsigned same;         /* of them, those from the first on that leave the same state behind when they are run again */
		double wall_ms;        /* of all together */
	} replay;
	struct {
		unsigned n, n_differ;
		unsigned differ[REPLAY_CELLS]; /* their numbers */
	} replayed;            /* cells that were run again, until somebody is told */
	uint64_t head;         /* ticket of the copy the state came from; 0 for none */
	bool wipe;             /* the next SETUP empties /workspace */
	struct {
		struct process_exit end;
		bool broken, out_of_memory;
		bool jail;     /* its jail ended, too */
		const char *display; /* its display had ended, and that is why; else NULL */
		unsigned back_to; /* the cell after which the state was as it is restored */
		uint64_t wall_ns;
	} death;               /* of the last guest that died */
	struct {
		bool state, files; /* cells have run; there may be files */
	} holds;               /* what a death would cost */
	bool has_died;
	struct session_death died; /* between cells; told with the next observation */
	TAILQ_HEAD(, session_listener) listeners;
	char from[SESSION_ID_LEN + 1]; /* whom it was forked from; "" for nobody */
	char *evicted;          /* ids of checkpoints that had to go, until somebody is told; owned */
	bool weigh_due;        /* its checkpoints may hold too much */
	struct {
		uint64_t bytes, family_bytes;         /* what they held at the last look, and the whole family */
		uint64_t rest_until_ns, look_at_ns;
	} weighed;
	struct session *fork_of; /* while the fork is under way: the session it comes from */
	bool fork_ready;         /* counted by that fork */
	struct operation *request;  /* a checkpoint, rollback or fork that somebody waits for; NULL for none */
	struct operation *recovery; /* the interpreter died, and another one is on its way from a snapshot or from the zygote; NULL for none */
	unsigned since;        /* cells since its state was that of `head` */
	char no_snapshot[256];     /* why there is none */
	char remedy[1024];     /* of the error that is being told */

	struct {
		uint32_t serial;
		void (*answer)(void *userdata, const char *verdict); /* NULL: nobody asks */
		void *userdata;
		uint64_t asked_ns;
	} check; /* of a source (source_check.c) */
};

TAILQ_HEAD(session_list, session);

struct tombstone {
	char id[SESSION_ID_LEN + 1];
	char why[96];
	uint64_t wall_ns, owner;
};

/* Where the next session comes from, when not from the pool's stock: see session_fork(). */
struct fork_source {
	struct snapshot *copy;
	bool reseed;
};

struct sessions {
	struct fork_source *fork_source;
	struct sessions_config config;
	struct sandbox_pool *pool;
	struct displays *displays;
	struct idle_latency *idle_latency; /* NULL: CPUs sleep as they like */
	bool displays_warmed;
	struct session_list list;
	void *index; /* tsearch tree by id */
	struct tombstone *tombstones;
	unsigned next_tombstone;
	uv_timer_t sweep;
	struct sessions_stats stats;
	struct denial_log {
		uint64_t second; /* of the clock */
		unsigned logged, left_out; /* in it */
	} denials;
	char **owned_preload;
	void (*ask_packages)(void *userdata, const char *id, uint64_t number, const char *json, size_t len);
	void *ask_userdata;
	char *common_path; /* a set that all sessions have, or NULL */
	bool common_awaited, common_replaces;
	struct {
		uint64_t looked_ns;
		char why[160];
	} shortage; /* of the machine, when last looked at (shortage.c) */
	bool draining, destroying;
	uint64_t drain_until_ns;
	unsigned open_handles, closing_sessions;
	void (*done)(void *);
	void *done_userdata;
};

/* What the control group of a session is given: the memory limit, a little more so that Python's MemoryError comes first. */
struct cgroup_limits session_cgroup_limits(const struct session_limits *l);

/* params.c: lists of words that end with NULL */
char **session_words_copy(const char *const *list);

/* counts.c: a cell that is over, with the session's outcome; the picture it was asked for, or NULL. */
void session_count_cell(struct session *s, enum cell_status status);
void session_count_picture(struct session *s, const struct screenshot *shot);

/* printed_answer.c: what the cell printed as its final answer becomes that of its outcome. */
void session_take_printed_answer(struct session *s);
void session_words_free(char **list);
/* For a fork: without name, display, seed and packages. */
int session_params_copy(const struct session_params *p, struct session_params *ret);

extern const struct sandbox_events session_events; /* what guests tell their sessions */

/* A sandbox for the session, by its parameters. */
int session_take_sandbox(struct session *s, bool *ret_ready);

/* limits_check.c */
int session_settle_limits(const struct sessions_config *c, struct session_limits *l, struct error *e); /* defaults, maxima; -ERANGE */
int session_settle_exec(const struct sessions_config *c, struct session_params *p, struct error *e);
void session_begin_limits(struct session *s);              /* a cell starts */
void session_watch_cpu(struct session *s);                 /* now and then; may end the session */
void session_count_output(struct session *s, size_t len);  /* the guest printed so much */
/* The words for a cell that s->running->stop stopped: a message into text, the rest into *ret. */
void session_say_stop(struct session *s, bool killed, char *text, size_t size, struct cell_error *ret);
void session_explain_memory(struct session *s);            /* a MemoryError */
void session_explain_error(struct session *s);             /* adds code and remedy where the code ran into a limit */

/* cell_end.c: what comes of a cell, and its end */
/* What it left of the session's variables. */
enum state_after { STATE_KEPT, STATE_LOST, STATE_BEFORE };
void cell_free(struct cell *c);
void session_tell_output(struct session *s, enum stream stream, const char *data, size_t len); /* to the listener */
void session_override_error(struct session *s, const char *type, const char *code, const char *remedy, const char *text);
void session_tell_timeout(struct session *s, bool killed);
enum cell_status session_tell_stop(struct session *s, bool killed); /* why s->running was stopped */
void session_report_cell(struct session *s, struct cell *c, enum cell_status status, int exit_code, enum state_after after);
void session_close_cell(struct session *s, enum cell_status status, int exit_code, enum state_after after); /* the running one */
void session_wake_guest(struct session *s);         /* wakes a main loop in which a cell was left, for what comes next */
void session_keep_waking_guest(struct session *s); /* again and again, until it has come round */
/* deadline.c */
void session_stop_cell(struct session *s, enum cell_stop why); /* interrupts the running one for good */
void session_start_clock(struct session *s, enum session_clock clock, uint64_t ms); /* what happens then: on_deadline() */
void session_arm_clock(struct session *s);     /* the limit of the running cell */
void session_begin_limit(struct session *s, uint64_t after_ms); /* the cell begins now, or in so many ms at the latest */
void session_stop_clock(struct session *s);
/* The code of the running cell has ended, and its windows are painted: its clock stands still, and in so many ms the guest is interrupted. */
void session_clock_painting(struct session *s, uint64_t ms);
void session_clock_painted(struct session *s); /* that is over: the clock goes on */
/* death.c */
void death_note(struct session *s, const struct process_exit *end, bool broken); /* into s->death */
void death_say_why(const struct session *s, char *text, size_t size);            /* s->death in words */
void death_between_cells(struct session *s, bool restored); /* tells listeners, and the next observation */
void death_drop_listeners(struct session *s);
/* guest_events.c */
/* The running cell is over with its guest: `rolled_back` when another one goes on from before the cell. */
void session_end_with_guest(struct session *s, bool rolled_back);
bool session_ran_out_of_memory(struct session *s);
/* source_check.c */
bool source_check_frame(struct session *s, const struct wire_frame *f); /* false: not one about sources */
void source_check_drop(struct session *s);   /* the interpreter is gone: the answer is "unknown" */
void source_check_expire(struct session *s); /* the same, when it takes too long */
/* queue.c */
void session_send_setup(struct session *s);
/* history.c */
/* Sends the running cell to the guest, with what it takes to have a copy of before and after. */
void history_send_cell(struct session *s);
bool history_frame(struct session *s, const struct wire_frame *f); /* false: not one about snapshots, or forged */
bool history_recover(struct session *s); /* begins to restore the state before the running cell for s->recovery; false: there is no way back */
bool history_fall_back(struct session *s); /* begins to restore the last snapshot that the state came from, cells before the death or not */
bool history_retry(struct session *s);   /* restores the same state once more; false: its snapshot is gone */
bool history_possible(const struct session *s); /* snapshots can be had at all */
void history_cell_done(struct session *s, bool repeatable); /* the running cell ended, its guest goes on */
void history_ready(struct session *s);  /* the restored guest is there; operation_restored() follows, now or when cells were run again */
void history_forget(struct session *s); /* its snapshots are gone, or about to be */
void history_evict(struct session *s, struct snapshot *c);
bool history_awaits(struct session *s); /* a copy that has become the guest is about to leave another in its place */
int history_park(struct session *s, uint64_t *ret_ticket);                            /* asks the idle guest for a copy */
int history_go_back(struct session *s, struct snapshot *c, bool replay);                  /* a new guest from it, in place of the idle one */
void history_start_again(struct session *s);                                          /* from a fresh interpreter and the cells to run again */
void history_forget_cells(struct session *s, bool good);
/* replay.c */
bool replay_fits(const struct session *s);        /* there are not too many, and they find the files as they did */
bool replay_possible(const struct session *s);    /* `latest` and the kept cells lead to the state of now */
bool replay_is_exact(const struct session *s);    /* … to the very same */
void replay_add(struct session *s);               /* the running cell, which has ended */
void replay_drop_last(struct session *s);
unsigned replay_cut(struct session *s);           /* drops those that may differ; returns the number of the last cell then */
void replay_done(struct session *s);              /* the kept cells were run again: noted for the next answer */
struct replayed replay_tell(struct session *s);   /* for this answer; valid until the next replay */
enum { REPLAY_WORDS_MAX = 192 };
const char *replay_words(const struct session *s, char text[REPLAY_WORDS_MAX]); /* the same as a clause, untold; "" for none */
/* evict.c */
uint64_t evict_snapshot_size(struct snapshot *c);                    /* its share of memory (PSS); 0 when that cannot be told */
void room_lose_named(struct session *s);               /* the jail is gone, or about to be swept: the same for all that have a name */
bool room_keep_named(struct session *s);               /* lets go of all others; false: there are none with a name */
void evict_note(struct session *s, struct snapshot *c);     /* it is no more: told with the next answer, when it has a name */
void evict_for_new(struct session *s);                  /* another checkpoint is about to be: others may have to go */
void evict_over_memory(struct session *s, bool at_once); /* the same, by their memory alone; else when it is due and they have not just been weighed. Called now and then, too */
/* recovery.c */
void recovery_begin(struct session *s);                  /* the interpreter died: restores its state, or starts afresh */
void recovery_lose(struct session *s, const char *why);  /* starts afresh: variables are gone, and why (NULL: s->no_snapshot says it) */
bool recovery_retry(struct session *s, unsigned *tries); /* restores the same state once more, while it makes sense */
/* checkpoint.c */
enum { CHECKPOINT_MS = 10000 };
struct snapshot *checkpoint_find(struct session *s, const char *which);     /* by id, or the newest of that name; NULL for none */
int checkpoint_not_found(const char *which, struct error *e);
int checkpoint_check_idle(struct session *s, struct error *e);          /* may history be changed now? */
bool checkpoint_is_current(const struct session *s);                    /* s->latest is the state of now */
int checkpoint_ask(struct session *s, uint64_t *ret_ticket);            /* a snapshot for s->request, which ends when that fails */
/* session_fork.c */
void fork_child_ready(struct session *child);                   /* when somebody waits for it as a fork */
void fork_child_failed(struct session *child, const char *why); /* the same; the child ends by itself */

/* limits_check.c: refuses what was asked for and nothing could keep. -ENOTSUP (slug "limit_not_enforced"). */
int session_check_enforced(const struct sessions *t, const struct session_limits *asked, struct error *e);

/* uploads.c: gives back what was deleted. */
void session_recount_uploads(struct session *s);

/* shortage.c: -EAGAIN (slug "no_resources") when a session could not be made now. */
int sessions_check_shortage(struct sessions *t, struct error *e);

void session_guest_ready(struct session *s);
void session_send_path(struct session *s, const struct session_package *p);
void session_send_paths(struct session *s); /* all packages again: a snapshot may be older than some of them */
void session_guest_frame(struct session *s, const struct wire_frame *f);
void session_guest_output(struct session *s, enum stream stream, const char *data, size_t len);
void session_guest_exit(struct session *s, const struct process_exit *end, bool broken);
bool session_network_setup(const struct session *s, struct buffer *frame); /* its part of SETUP */
void session_network_event(struct session *s, const struct proxy_event *e);
void session_guest_failed(struct session *s, const char *text);
void session_fail_all_cells(struct session *s, enum cell_status status, const char *code, const char *text, const char *remedy);
/* Calls of tools wait, or no longer: the clock of the cell stands still or goes on. */
void session_tools_waiting(struct session *s, bool waiting);

/* session_tools.c */
int tools_take(struct session *s, const struct wire_frame *f); /* TOOL_CALL, TOOL_CANCEL; -EPROTO for one that cannot be */
void tools_send(struct session *s, bool fresh_guest);          /* the definitions, when the guest does not have them */
uint64_t tools_next_deadline(const struct session *s);         /* of the calls that wait; UINT64_MAX for none */
void tools_expire(struct session *s, uint64_t now_ns);
void tools_end_cell(struct session *s);
void tools_finish(struct session *s);
/* Ends the running cell: what the guest said is complete, and so are its pictures. */
void session_end_cell(struct session *s, enum cell_status status, int exit_code);
void session_interrupt_running(struct session *s);
void session_leave_cell(struct session *s); /* ends the running cell as running */
void session_start_next(struct session *s);

/* film_cell.c: a recording that is part of the cell's answer. */
int film_cell_create(struct session *s, struct cell *c, enum film_format format, struct error *e);
void film_cell_destroy(struct film_cell *f); /* NULL is fine */
/* The code is over: true when the film is awaited first; then session_end_cell() is called with these. */
bool film_cell_finish(struct film_cell *f, unsigned recording, enum cell_status status, int exit_code);
/* As it was told then, or otherwise. */
enum cell_status film_cell_status(const struct film_cell *f, enum cell_status otherwise, int *exit_code);
void film_cell_report(struct film_cell *f, struct observation *o);
void film_cell_take(struct film_cell *f, struct buffer *ret); /* the film's bytes */

/* cell_picture.c: pictures of a cell, and what becomes of one that blocks. */
int capture_create(struct session *s, struct cell *c, const struct cell_request *q, struct error *e);
void capture_destroy(struct capture *p);              /* NULL is fine */
void capture_begin(struct capture *p);                /* its cell starts */
/* The code is over; true when a picture is still awaited: session_end_cell() is then called with these. */
bool capture_finish(struct capture *p, enum cell_status status, int exit_code);
void capture_stuck(struct capture *p); /* its windows are not painted within the limit: it is interrupted */
bool capture_tell_kill(const struct capture *p); /* of a cell that is dead: true when we interrupted it, and the error says so */
enum cell_status capture_status(const struct capture *p, int *ret_exit_code); /* as capture_finish() was told */
void capture_loop(struct capture *p, enum wire_loop loop); /* what its guest says of main loops */
void capture_abort(struct capture *p);                /* the interpreter is gone: no more pictures */
void capture_report(const struct capture *p, struct observation *o);
enum { CAPTURE_PICTURES = 2 };
void capture_take_pictures(struct capture *p, struct buffer ret[CAPTURE_PICTURES]); /* the bytes of those that are reported */
void session_tell_continue(struct session *s, uint32_t serial); /* to a cell that waits at its end, until a picture is taken */
/* What the guest's environment says about its display, for SETUP. NULL at the end. */
extern const char *const capture_environment[];

void stats_observe(struct stats_histogram *h, double seconds);
