/*
 * The activity of sessions, for observers: the cells that were run (cell_history.h), and events as
 * they happen, of all sessions of a table, whoever caused them.
 */
#pragma once

#include "session/cells/cell_history.h"

enum session_event_kind {
	SESSION_EVENT_CREATED,
	SESSION_EVENT_STARTED, /* a cell; text: its code */
	SESSION_EVENT_OUTPUT,  /* text: what was printed, in whole characters mostly */
	SESSION_EVENT_DISPLAY, /* a value was displayed; number: how many before it in the cell */
	SESSION_EVENT_DONE,    /* outcome */
	SESSION_EVENT_LIMIT, /* a cell met a limit; text: the code of its error; before its DONE */
	SESSION_EVENT_CHECKPOINT, /* text: its name or NULL; id */
	SESSION_EVENT_ROLLBACK,   /* the same; number: the cell after which the state was so */
	SESSION_EVENT_FORK,       /* id: of a new session; once for each */
	SESSION_EVENT_RESET,
	SESSION_EVENT_CHANGED, /* name, metadata or times */
	SESSION_EVENT_DIED,    /* the interpreter died between cells; text: why */
	SESSION_EVENT_ENDED,   /* text: why; the last one of a session */
	SESSION_EVENT_KINDS
};
extern const char *const session_event_names[SESSION_EVENT_KINDS];

/* Everything is valid during the call only. */
struct session_event {
	enum session_event_kind kind;
	const char *session, *name; /* id and name of the session; the name may be NULL */
	uint64_t owner;
	unsigned cell;
	uint64_t record;  /* number of the cell's record; 0: none is kept */
	uint64_t number;  /* see the kinds */
	const char *text; /* or NULL */
	size_t len;
	enum stream stream; /* of output */
	const char *id;     /* of a checkpoint or a new session, or NULL */
	const char *dialect;
	const struct observation *outcome; /* of DONE */
};

/* Must not call back into the session. */
typedef void (*session_watcher)(void *userdata, const struct session_event *ev);

/* One watcher for the table; NULL: none any more. */
void sessions_watch(struct sessions *t, session_watcher watcher, void *userdata);

const struct cell_history *session_cell_history(const struct session *s);

/*
 * What the running cell has printed and displayed so far; false: none runs. Valid until the loop
 * goes on.
 */
bool session_cell_so_far(struct session *s, struct observation *ret);

/* What a session uses now. Zero where it cannot be told. */
struct session_figures {
	uint64_t memory_bytes;
	uint64_t cache_bytes; /* of files, beside memory_bytes */
	uint64_t disk_bytes;  /* used in /workspace */
	double cpu_s;         /* since its creation */
};
void session_figures(struct session *s, struct session_figures *ret);

/* What a client may change of a session that lives. */
struct session_update {
	bool has_name, has_metadata;
	char *name, *metadata;        /* NULL: none any more; taken over on success */
	double ttl_s, idle_timeout_s; /* 0: as before */
};
void session_update(struct session *s, struct session_update *u);
