/*
 * A sandbox without a server: a loop, a session table and one session in this process, used one
 * call at a time. Calls block until their answer is there. While a cell runs, Ctrl-C interrupts it
 * (a second one ends the session), and SIGTERM or SIGHUP end the session; local_signal() tells
 * which it was.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "session/session.h"

struct local;

/* In the order of enum jail_exec, NULL at the end. */
extern const char *const local_exec_names[];

struct local_config {
	char **env;            /* "NAME=value" … NULL, or NULL */
	char *profile;         /* executor profile; NULL: python */
	char **imports;        /* beyond the profile's, NULL at the end; or NULL */
	bool imports_below;    /* as in struct session_params */
	char **preload;        /* the template, as in struct sessions_config */
	double timeout_s;      /* of each cell; 0: none */
	uint64_t memory_bytes; /* 0: the default */
	const char *rootfs;    /* or NULL */
	enum jail_exec exec;
	/* those that are set hold instead of the defaults, whatever the maxima */
	struct session_limits limits;
	const char *state_dir; /* NULL: this user's */
	const char *shown;     /* as in struct sessions_config */
	/* directories of `shown`: as in struct session_params, and their names; or NULL. Both must
	 * live as long as the sandbox */
	char **mounts, **mount_names;
	uint64_t disk_bytes; /* 0: the default */
	/* sets on the path, taken over by local_create(); or NULL */
	struct session_package *packages;
	bool display;                       /* a screen of its own */
	struct display_params display_size; /* zeros: the default */
	const char *network;   /* "none", "loopback", or rules with commas; NULL: none */
	char **allow;          /* rules, or NULL */
	uint64_t output_bytes; /* kept of stdout and stderr in an observation; 0: the default */
};

/* What --network and --allow say together. */
int local_network(const struct local_config *config, struct error *e, struct network_policy *ret);

/* Starts it; cells may be given at once. */
int local_create(const struct local_config *config, struct error *e, struct local **ret);

/* Ends the session and every process of it; when it returns nothing is left. NULL is fine. */
void local_destroy(struct local *l);

/* Runs a cell; the observer is called from inside. 0 once on_done was called. */
int local_execute(struct local *l, const struct cell_request *request,
	const struct cell_observer *observer, void *userdata, struct error *e);

/*
 * Whether the source is a whole cell: 1 complete or invalid (run it and see), 0 when more lines
 * must follow.
 */
int local_is_complete(struct local *l, const char *code, size_t len);

/*
 * The names that can stand at the end of the code, as the JSON answer of …/complete (malloc'd, from
 * the guest: hostile); NULL without an answer.
 */
char *local_complete(struct local *l, const char *code, size_t len);

/* Waits until the template is warm, at most that long: false when it is not. */
bool local_wait_ready(struct local *l, double seconds);
const char *local_preload_report(struct local *l);

/* A fresh interpreter; files stay. */
int local_reset(struct local *l, struct error *e);

/*
 * A checkpoint (`name` may be NULL), a way back (NULL: to before the last cell), or a fork in which
 * the session goes on from now.
 */
enum local_history { LOCAL_CHECKPOINT, LOCAL_ROLLBACK, LOCAL_FORK };
int local_history(struct local *l, enum local_history kind, const char *name, struct error *e);

/* Number `i` of its checkpoints; false when there are no more. */
struct checkpoint_info;
bool local_checkpoint(struct local *l, unsigned i, struct checkpoint_info *ret);

/*
 * A recording that a cell was asked for, as a film, once it is made: the file is the session's.
 * -ENOENT, -ENODATA: nothing was on the screen, and what recording_film() says.
 */
int local_recording(
	struct local *l, unsigned id, enum film_format format, struct error *e, int *ret_fd);

/* The session's /workspace (O_PATH), or -1. */
int local_workspace(struct local *l);

/* The same, once it is there; -1 when it is not after that many seconds. */
int local_wait_workspace(struct local *l, double seconds);

/* Ends the session, also from inside an observer: a running cell ends as killed. */
void local_end(struct local *l);

/* The last signal that came while something ran, 0 when none did. Forgets it. */
int local_signal(struct local *l);

/* How X servers come to be here: "warm", "plain" or "starting". */
const char *local_display_kind(struct local *l);
