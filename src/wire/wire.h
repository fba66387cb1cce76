/*
 * Frames between daemon and guest: bytes in, frames out, no I/O.
 *
 *   frame  = u32 length of the fields · u8 type · u8[3] zero · u32 serial (the cell it belongs to, 0 for none) · fields
 *   field  = u8 tag · u32 length · bytes            (all numbers little-endian)
 *
 * What a guest sends is hostile: a frame longer than its reader's maximum, a wrong zero byte or a field that runs over its
 * frame is -EPROTO, and the session that sent it is ended. Unknown field tags are skipped; unknown types are the caller's matter.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { WIRE_HEADER = 12, WIRE_FIELD_HEADER = 5 };

enum wire_type {
	/* daemon → guest */
	/* ENV*, PRELOAD*, PACKAGES*, SEED, MEMORY, PROCESSES, NETWORK, POLICY*, TEMPLATE: before
	 * the first cell; later with PACKAGES alone */
	WIRE_SETUP = 1,
	WIRE_EXECUTE,     /* CODE, STDIN, VARIABLES, TYPED, DATA_FORMS, RESCAN, PAINT, ARGUMENT* */
	WIRE_CHECK,       /* CODE: is it complete? */
	WIRE_REHEARSE,    /* the guest is not in use yet: prepare for a first cell */
	WIRE_TOOLS,       /* JSON: the definitions, in place of those before */
	WIRE_TOOL_RESULT, /* CALL, (JSON | ERROR_TYPE, TEXT) */
	WIRE_PARK,        /* SNAPSHOT_ID: leave a copy of yourself behind, now */
	WIRE_PARK_NEXT,   /* the same, when a cell was run and nothing came after it for a moment */
	/* as EXECUTE, silently: to get from a copy's state to a later one. Serial 0: answer
	 * REPLAYED */
	WIRE_REPLAY,
	/* to a cell whose code has ended and whose windows are being painted: the picture was taken
	 */
	WIRE_CONTINUE,
	/*
	 * to a parked copy: SNAPSHOT_ID, RESTORE, MOVE, RESEED; brings control, stdout, stderr:
	 * make a live guest of yourself
	 */
	WIRE_LIVE,
	/*
	 * to a guest that entered its own jail and sent LIVED: it is now in its control groups, and
	 * may continue
	 */
	WIRE_JOINED,
	WIRE_INTROSPECT, /* JSON: a question about the variables */
	/*
	 * to a process that is to become a program beside the interpreters (wire/start.h): ARG*,
	 * PROGRAM*, ENV*, CWD, TERMINAL, PROCESSES, FILE_BYTES, OPEN_FILES, CPU_SECONDS; brings its
	 * standard input
	 */
	WIRE_START,
	/* guest → daemon */
	WIRE_READY = 32,  /* it is in its jail and waits */
	WIRE_FAILED,      /* TEXT: it could not get there */
	WIRE_DISPLAY,     /* MIME, (TEXT | JSON), … */
	WIRE_RESULT,      /* the same, the value of the last expression */
	WIRE_ERROR,       /* TYPE, TEXT, TRACEBACK, LINE, and where it knows CODE, RULE, REMEDY */
	WIRE_FILES,       /* FILE*, CUT */
	WIRE_DONE,        /* EXIT_CODE, OUTCOME, CPU_NS, PEAK: the last frame of a cell */
	WIRE_CHECKED,     /* TEXT */
	WIRE_TOOL_CALL,   /* CALL, TEXT: its name, JSON: an object of arguments */
	WIRE_TOOL_CANCEL, /* CALL: nobody waits for it any more */
	WIRE_ANSWER,      /* JSON or TEXT, ENCODED: the final answer of a cell */
	/*
	 * SNAPSHOT_ID, the copy's pidfd and its control socket; or SNAPSHOT_ID and TEXT: why there
	 * is none; FILES_LEFT; serial: the last cell it has seen
	 */
	WIRE_PARKED,
	WIRE_LIVED,    /* the same, of a parked copy about the live guest it made */
	WIRE_REPLAYED, /* all cells that were to be replayed were */
	WIRE_STARTED,  /* a cell began inside one that was left in a main loop */
	/* LOOP: how the cell's code waits for its windows' events, when that changes */
	WIRE_WAITS,
	WIRE_INTROSPECTED, /* JSON; left out when there is no answer */
};

/* The exit code of a guest that cannot reach the daemon any more. */
enum { WIRE_CUT_OFF = 70 };

enum wire_tag {
	WIRE_CODE = 1,
	WIRE_STDIN,
	WIRE_ENV,
	WIRE_PRELOAD,
	WIRE_SEED,
	WIRE_MEMORY,
	WIRE_RESCAN,
	WIRE_TEXT,
	WIRE_JSON,
	WIRE_MIME,
	WIRE_ERROR_TYPE,
	WIRE_TRACEBACK,
	WIRE_LINE,
	WIRE_FILE, /* u8 change, u64 size, path */
	WIRE_CUT,
	WIRE_EXIT_CODE,
	WIRE_OUTCOME,
	WIRE_CPU_NS,
	WIRE_PEAK,
	WIRE_FINAL,
	WIRE_PROCESSES,
	WIRE_PACKAGES,    /* a directory of a set, for sys.path */
	WIRE_CALL,        /* a number of the guest's own, not 0 */
	WIRE_NETWORK,     /* "loopback" or "allow" */
	WIRE_STEP,        /* READY, DONE: step_pack() */
	WIRE_SCREEN,      /* SETUP: the session has a display */
	WIRE_ERROR_CODE,  /* a word for programs */
	WIRE_REMEDY,      /* what to do about an error */
	WIRE_POLICY,      /* a rule of the session's profile, "key=value" */
	WIRE_RULE,        /* enum policy_rule that an error is a violation of */
	WIRE_ENCODED,     /* the final answer in smolagents' safe encoding */
	WIRE_SNAPSHOT_ID, /* u64: which copy is meant */
	WIRE_KEEP_FILES,  /* u64: bytes of /workspace that copies may keep; 0 for none */
	WIRE_WIPE,        /* empty /workspace first */
	WIRE_RESTORE,     /* put the files back as they were when the copy was made */
	WIRE_FILES_LEFT,  /* why the files are not as they were */
	WIRE_MOVE,        /* u64: into the jail whose namespaces come along */
	WIRE_RESEED,      /* u64: with random numbers of its own */
	WIRE_NOTE,        /* READY: what could not be re-seeded */
	WIRE_FILE_BYTES,
	WIRE_OPEN_FILES,
	WIRE_CPU_SECONDS,
	WIRE_ERRNO,     /* ERROR: of an OSError */
	WIRE_VARIABLES, /* JSON text of an object */
	WIRE_TYPED,
	WIRE_DATA_FORMS, /* EXECUTE: data frames and figures also as data */
	/* EXECUTE: nobody asked for a picture of the screen, or said what to do about code that
	 * waits for a window */
	WIRE_UNWATCHED,
	WIRE_LOOP, /* enum wire_loop */
	/* SETUP: copies of this guest will be sessions; what it has imported is theirs */
	WIRE_TEMPLATE,
	/* EXECUTE: a picture is wanted, so the cell paints its windows before it ends, and waits
	 * for CONTINUE */
	WIRE_PAINT,
	/* u64: PARK, PARK_NEXT: the copy may be one that goes first when memory runs short; PARKED:
	 * it is one */
	WIRE_FRAGILE,
	/* u64: DONE: enum wire_effects of the cell, or'ed; left out when it had none */
	WIRE_EFFECTS,
	/* u64: LIVE: the copy itself is to be the guest, and to leave another one behind, with this
	 * snapshot_id */
	WIRE_ITSELF,
	WIRE_ARGUMENT, /* EXECUTE: one of the program's arguments, in their order */
	WIRE_ARG,      /* START: an argument, the first is the name of the program */
	WIRE_PROGRAM,  /* START: a file to execute; the first that exists is taken */
	WIRE_CWD,      /* START: the working directory */
	WIRE_TERMINAL, /* START: u64: rows << 16 | columns of a terminal of its own */
};

/*
 * What toolkits' functions say about the code that called them. A hint, for what cannot be seen
 * from outside: it may be forged, and then spoils the forger's own pictures.
 */
enum wire_loop {
	WIRE_LOOP_NONE,  /* it computes, or draws */
	WIRE_LOOP_MAIN,  /* in a main loop, which returns when its windows close */
	WIRE_LOOP_POLLS, /* in a loop of its own, and asks for events in it (pygame) */
	WIRE_LOOP_PAUSE, /* in a main loop for a moment only (matplotlib's pause): it is not done */
	/* The code has ended, of a cell with PAINT. In this order: */
	WIRE_LOOP_ENDED, /* the guest refreshes its toolkits, with a limit of the daemon's */
	/* all its windows are painted, as far as its toolkits know; it handles events until
	 * CONTINUE */
	WIRE_LOOP_PAINTED,
	/* or: it has no windows itself, but threads or processes that may open one */
	WIRE_LOOP_AWAITS,
	WIRE_LOOP_COUNT
};

/* What running a cell again from the same snapshot could make different (guest/run/effects.h). */
enum wire_effects {
	/* it read a clock, random numbers of the system, files …, or changed something outside its
	 * interpreter */
	WIRE_EFFECT_OUTSIDE = 1,
	/* it drew from `random` or `numpy.random`: the same again from a snapshot, not from a new
	 * interpreter */
	WIRE_EFFECT_RANDOM = 2,
	/* it used files: the same again unless somebody else writes to them meanwhile */
	WIRE_EFFECT_FILES = 4,
};

/* The outcome of a cell as the guest reports it; the daemon chooses the status that clients see. */
enum wire_outcome {
	WIRE_OUTCOME_OK,
	WIRE_OUTCOME_ERROR,
	WIRE_OUTCOME_EXIT,
	WIRE_OUTCOME_INTERRUPT,
	WIRE_OUTCOME_MEMORY,
	WIRE_OUTCOME_REFUSED /* by the profile, before anything ran */
};

/*
 * The daemon interrupts a cell with one SIGINT and then wakes the guest with this signal until the
 * cell ends: a SIGINT that comes just before the code blocks in a system call would wait for that
 * call's end. It does nothing but interrupt the call, after which Python looks for signals; so a
 * handler that cleans up after a KeyboardInterrupt is not interrupted again.
 */
#define WIRE_WAKE_SIGNAL (SIGRTMAX - 2)

/*
 * A cell for a guest whose cell before was left in a main loop: says that there is an EXECUTE to be
 * read. Python's own handler takes it, inside the loop, as soon as that lets Python run.
 */
#define WIRE_CELL_SIGNAL (SIGRTMAX - 3)

/* ---- writing: into a buffer, a frame at a time -------------------------- */

/* Starts a frame; *ret_start is for wire_end. */
int wire_begin(struct buffer *b, enum wire_type type, uint32_t serial, size_t *ret_start);
int wire_put(struct buffer *b, enum wire_tag tag, const void *data, size_t len);
int wire_put_u64(struct buffer *b, enum wire_tag tag, uint64_t value);
void wire_end(struct buffer *b, size_t start);

/* Gives the whole frame at `start` another type; returns its length. */
size_t wire_retype(struct buffer *b, size_t start, enum wire_type type);

/* Of the whole frame at `start`. */
size_t wire_frame_bytes(const struct buffer *b, size_t start);
uint32_t wire_frame_serial(const struct buffer *b, size_t start);

/* ---- reading ------------------------------------------------------------ */

struct wire_frame {
	uint8_t type;
	uint32_t serial;
	const char *fields; /* inside the reader's buffer, until the next call on it */
	size_t len;
};

struct wire_reader {
	struct buffer in;
	size_t done;      /* bytes of `in` that were handed out */
	size_t frame_max; /* longest field area it accepts */
};

void wire_reader_init(struct wire_reader *r, size_t frame_max);
void wire_reader_finish(struct wire_reader *r);

/* Returns free space for a read; report the number of bytes read with wire_reader_filled(). */
int wire_reader_room(struct wire_reader *r, size_t want, char **ret_at, size_t *ret_room);
void wire_reader_filled(struct wire_reader *r, size_t n);

/* Bytes that were received and not returned yet. */
size_t wire_reader_pending(const struct wire_reader *r);

/*
 * Lets go of room beyond `keep` that a long frame left, once all of it was handed out and looked
 * at.
 */
void wire_reader_trim(struct wire_reader *r, size_t keep);

/* 1 and *ret for a whole frame, 0 when more bytes are needed, -EPROTO. */
int wire_reader_next(struct wire_reader *r, struct wire_frame *ret);

struct wire_field {
	uint8_t tag;
	const char *data;
	size_t len;
};

/* Walks a frame's fields: start with *at = 0. 1 and *ret, 0 at the end, -EPROTO. */
int wire_field_next(const struct wire_frame *f, size_t *at, struct wire_field *ret);

/* A number field of eight bytes; -EPROTO when it is not. */
int wire_field_u64(const struct wire_field *f, uint64_t *ret);

/* ---- daemon ↔ zygote, daemon ↔ jailer: one SEQPACKET message each way ---- */

/*
 * Ask the zygote for a guest; brings [jail init pidfd, control socket, stdout, stderr], then what
 * it needs to join its control groups: up to four files to write "0" to, or with `into` the one
 * directory to be cloned into.
 */
struct wire_spawn {
	uint32_t serial;
	uint32_t into;
	uint32_t exec; /* enum jail_exec: which filter it gets */
	uint32_t net;  /* enum jail_net: the same */
	/* not a guest but a program: the control socket (SEQPACKET) has a START frame for it */
	uint32_t program;
};
enum { WIRE_SPAWN_FDS = 4, WIRE_SPAWN_FDS_MAX = 8 };

/* The zygote's messages. */
enum wire_zygote_event { WIRE_ZYGOTE_WARM = 1, WIRE_ZYGOTE_SPAWNED, WIRE_ZYGOTE_PROBLEM };
enum { WIRE_ZYGOTE_TEXT = 2048 };
struct wire_zygote {
	uint32_t event;
	uint32_t serial; /* of the spawn request */
	/* negative errno when it failed; else the message brings the guest's pidfd */
	int32_t err;
	int32_t pid;
	/* WARM: what could not be preloaded, a line each; PROBLEM: what is wrong */
	char text[WIRE_ZYGOTE_TEXT];
};
