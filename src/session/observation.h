/*
 * Cells: the fields of a request, the callbacks of its observer, and the observation, which
 * describes the outcome.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/limits.h"
#include "display/protocol.h"
#include "session/display/recording.h"
#include "wire/output_stream.h"

struct session;
struct cell;

enum cell_status {
	CELL_OK,
	CELL_ERROR,
	CELL_TIMEOUT,
	CELL_INTERRUPTED,
	CELL_OUT_OF_MEMORY,
	CELL_KILLED,
	CELL_REFUSED,
	/*
	 * left in its main loop, with its windows open; its later output is reported to no client
	 */
	CELL_RUNNING,
	CELL_STATUS_COUNT
};
const char *cell_status_name(enum cell_status s); /* "ok", "error", … */

/*
 * One value in several forms. Data is UTF-8 text (base64 for binary types), or JSON text when
 * is_json.
 */
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
	/* never NULL inside an error; traceback may be "" */
	const char *type, *message, *traceback;
	size_t message_len, traceback_len;
	int line;                  /* in the cell's own source, 0 when unknown */
	const char *code, *remedy; /* a word for programs and what to do; may be "" */
};

/* What a cell gave to final_answer() and its kin. */
struct final_answer {
	const char *data; /* JSON text when is_json, else the value's repr */
	size_t len;
	bool is_json;
	const char *encoded; /* "safe:…", smolagents' encoding, or NULL */
	size_t encoded_len;
};

/*
 * Captured text: the first bytes, then what was left out, then the last bytes. Valid UTF-8 after
 * session/output cut it.
 */
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
	/* the code showed no window: this is the screen without one */
	bool no_window;
	/* its windows were asked to close, so that the cell could end */
	bool closed;
	const char *code, *text, *remedy; /* when there is none; NULL otherwise */
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
	bool state_lost; /* variables are gone; else they are as they were after `cell` … */
	bool files_rolled_back; /* … and so are the files */
	bool files_lost;        /* /workspace is empty: the jail ended with the interpreter */
	unsigned cell;          /* the last one before; 0: none had run */
	char remedy[512];
};

/*
 * Hears at once when the session's interpreter dies between cells. Owned by whoever listens;
 * session is NULL after the session's end.
 */
struct session_listener {
	TAILQ_ENTRY(session_listener) link;
	struct session *session;
	/* must not change the session */
	void (*on_death)(void *userdata, const struct session_death *d);
	void *userdata;
};
void session_listen(struct session *s, struct session_listener *l);
void session_unlisten(struct session_listener *l); /* idempotent */

/* Cells that were run again, silently, to get from a snapshot to a later state. */
struct replayed {
	unsigned n;
	/* numbers of those that may have left another state behind than the first time */
	const unsigned *may_differ;
	unsigned n_may_differ;
};

/*
 * The outcome of a cell (DESIGN §7). Everything it points to is valid during the on_done call only.
 */
struct observation {
	const char *id, *session; /* of the cell's request, of the session */
	unsigned cell;
	enum cell_status status;
	int exit_code;
	bool state_lost; /* variables are gone: by this cell, or by a death before it */
	bool files_lost; /* and all files: the jail ended too */
	/* the interpreter died between the cell before and this one; or NULL */
	const struct session_death *died;
	/* JSON text: what became of packages since the cell before, or NULL */
	const char *packages;
	/* ids of checkpoints that had to go since the last answer, with blanks between, or NULL */
	const char *evicted;
	/* variables are as before the cell, or were put back before it (`died`) … */
	bool rolled_back;
	bool files_rolled_back;   /* … and so are the files */
	unsigned rolled_back_to;  /* the cell after which they were so; 0: before the first */
	struct replayed replayed; /* since the answer before */
	struct captured out, err;
	const struct bundle *result; /* or NULL */
	const struct bundle *displays;
	unsigned n_displays, displays_left_out;
	const struct cell_error *error;    /* or NULL */
	const struct final_answer *answer; /* or NULL */
	const struct file_entry *files;
	unsigned n_files;
	bool files_cut;                                       /* more changed than are listed */
	const struct screenshot *screenshot, *end_screenshot; /* or NULL when not asked for */
	unsigned recording;                                   /* id of the cell's own; 0: none */
	const struct film_report *film; /* its file, when that was asked for; or NULL */
	double wall_ms, cpu_ms;
	uint64_t peak_memory_bytes;
	struct cell *source; /* for observation_keep() */
};

/*
 * Inside on_done: takes over the texts, values, pictures and films that the observation points to,
 * so that they stay where they are until observation_release(). The rest (ids, files, packages) is
 * valid during on_done only. NULL without memory; then nothing has changed.
 */
struct observation_kept *observation_keep(const struct observation *o);
void observation_release(struct observation_kept *k); /* NULL is fine */

/* What becomes of a cell whose code waits in a main loop, once its window has settled. */
enum on_block {
	ON_BLOCK_AUTO, /* CLOSE when a screenshot was asked for, else WAIT */
	/* its windows are asked to close: the loop returns, and the cell goes on to its end */
	ON_BLOCK_CLOSE,
	ON_BLOCK_WAIT, /* nothing: the time limit ends it, or whoever uses the window */
	/* it stays there; the cell's answer says "running", and later cells run inside its loop */
	ON_BLOCK_LEAVE,
	ON_BLOCK_COUNT
};

struct cell_request {
	const char *code; /* valid UTF-8 without NUL; copied */
	size_t code_len;
	const char *stdin_text; /* or NULL; copied */
	size_t stdin_len;
	/* of a program (final): sys.argv[1:], NULL at the end; or NULL */
	char *const *arguments;
	double timeout_s; /* 0: the session's */
	/* JSON text of an object: values put into the session before the code runs; or NULL; copied
	 */
	const char *variables;
	const char *
		dialect; /* who sends it: a word that lives as long as the program; NULL: the session's */
	bool typed_result;   /* the result also with typed markers */
	bool data_forms;     /* data frames and figures also as data */
	bool printed_answer; /* text that it prints as a final answer counts as one */
	bool detach;         /* goes on when the client leaves */
	bool no_transaction; /* when it ends the interpreter, variables are gone */
	/* when it does, go back to a copy of the very moment before, whatever that costs now */
	bool strict;
	/* the whole program: waits for its threads and calls atexit's functions, as python3 does at
	 * the end */
	bool final;
	/* of the screen while it runs, when that has settled; needs a display */
	bool has_screenshot;
	bool end_screenshot; /* and another when it is over, also after an error */
	struct shot_options screenshot;
	enum on_block on_block;
	bool record; /* a recording of the screen until it is over; needs a display */
	struct recording_params recording;
	/* the recording's file is part of the observation: its session is about to end */
	bool film;
};

/*
 * What the asker hears, in this order: on_started, then outputs and displays as they come, then
 * on_done exactly once. None may call back into the session but through another turn of the loop,
 * except session_execute(). Unused slots are NULL.
 */
struct cell_observer {
	void (*on_started)(void *userdata, unsigned cell);
	/* raw bytes, within the cap */
	void (*on_output)(void *userdata, enum stream stream, const char *data, size_t len);
	void (*on_display)(void *userdata, const struct bundle *b);
	void (*on_done)(void *userdata, const struct observation *o);
	/* the interpreter died before this cell; comes before on_started */
	void (*on_died)(void *userdata, const struct session_death *d);
	/*
	 * Say no to the output cap: on_output gets every byte and nothing is kept (the CLI's way).
	 */
	bool uncapped;
	/* on_output gets every byte; the observation keeps what the cap allows */
	bool streams_all;
};

/*
 * Queues a cell. -EBUSY (slug "queue_full") when too many wait. `id` names the request in the
 * observation (copied, may be NULL: one is made).
 */
int session_execute(struct session *s, const char *id, const struct cell_request *request,
	const struct cell_observer *observer, void *userdata, struct error *e, struct cell **ret);

/*
 * Its asker is gone: nothing more is called. A cell that did not ask to detach is interrupted, or
 * taken from the queue.
 */
void cell_abandon(struct cell *c);

/* Interrupts the running cell (KeyboardInterrupt, killed after the grace). False when none runs. */
bool session_interrupt(struct session *s);

/*
 * Asks the guest whether the source is complete (for interactive input); answers "complete",
 * "incomplete" or "invalid".
 */
int session_check(struct session *s, const char *code, size_t len,
	void (*answer)(void *userdata, const char *verdict), void *userdata, struct error *e);

/* Tools: session/tools/session_tools.h. */
