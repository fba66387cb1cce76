/*
 * The Jupyter dialect (private to its files): the part of the Kernel Gateway that runs code. A
 * kernel is a session with a UUID for a name, and the WebSockets that listen to it. What a cell
 * does is told to all of them ("iopub"); the reply goes to the one that asked.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "api/call.h"
#include "base/buffer.h"
#include "dialects/jupyter/jupyter_message.h"

struct channels; /* one WebSocket */
struct kernel;

struct jupyter {
	struct api *api;
	double timeout_s;
	TAILQ_HEAD(, kernel) kernels;
};

/* A request that a cell or the guest's answer is awaited for. */
struct kernel_request {
	struct kernel *kernel;
	struct channels *asker; /* NULL when it left */
	char *parent;           /* JSON text of the request's header */
	char channel[16];
	json_t *code;
	struct hold held; /* the code */
	struct cell *cell;
	unsigned count;
	bool silent, stop_on_error, executing, dead, started;
	bool stores; /* its code goes into the history */
	bool allows_stdin;
	bool completes;
	json_int_t cursor; /* of a completion or an inspection, in characters */
	TAILQ_ENTRY(kernel_request) link;
};

struct kernel_input;
struct kernel_line;

struct kernel {
	struct jupyter *home;
	TAILQ_ENTRY(kernel) link;
	char id[37];
	uint64_t owner;
	char session[SESSION_ID_LEN + 1];
	unsigned execution_count;
	uint64_t used_wall_ns;
	uint64_t messages; /* counts what it said */
	bool serves_input;
	TAILQ_HEAD(, channels) listeners;
	unsigned connections;
	TAILQ_HEAD(, kernel_request) requests;
	struct session_listener deaths;     /* of its interpreter, between cells */
	struct kernel_request *check;       /* an is_complete_request the guest is asked about */
	struct kernel_request *question;    /* a completion or an inspection, the same */
	STAILQ_HEAD(, kernel_input) inputs; /* its history */
	unsigned inputs_n;
	size_t inputs_bytes;
	STAILQ_HEAD(, kernel_line) lines; /* that code waits for; the first one was asked for */
};

/* ---- kernels (jupyter.c) --------------------------------------------------- */

struct kernel *kernel_find(
	struct jupyter *j, uint64_t owner, const char *id); /* drops it when its session ended */
int kernel_session(const struct kernel *k, struct error *e, struct session **ret);
/* with its session; not from a callback of a cell */
void kernel_end(struct kernel *k, const char *why);
int kernel_restart(struct kernel *k, struct error *e);

/* ---- running (jupyter_execute.c) --------------------------------------------- */

struct kernel_request *kernel_request_create(
	struct kernel *k, struct channels *asker, const char *parent, const char *channel);
void kernel_request_destroy(struct kernel_request *r);          /* abandons its cell */
void kernel_execute(struct kernel_request *r, json_t *content); /* takes the request over */
/* is_complete_request; takes it over */
void kernel_check(struct kernel_request *r, json_t *content);

/* ---- questions (jupyter_ask.c); each takes the request over ------------------------ */

void kernel_complete(struct kernel_request *r, json_t *content);
void kernel_inspect(struct kernel_request *r, json_t *content);
void kernel_history(struct kernel_request *r, json_t *content);
void kernel_refuse_comm(struct kernel_request *r, json_t *content);
void kernel_note_input(struct kernel *k, unsigned count, const char *code, size_t len);
void kernel_drop_inputs(struct kernel *k);
void kernel_forget_question(struct kernel *k);

/* ---- input() (jupyter_stdin.c) ------------------------------------------------------- */

/* From now on the session asks this kernel for the lines that input() reads. */
int kernel_serve_input(struct kernel *k, struct session *s, struct error *e);
/* input_reply: the line that was asked for. */
void kernel_take_line(struct kernel *k, const json_t *content);
/* The connection of a request left: its code gets an EOFError. */
void kernel_drop_lines_of(struct kernel *k, const struct channels *asker);
void kernel_stop_input(struct kernel *k); /* its session asks it no longer */
void kernel_drop_lines(struct kernel *k); /* frees them */

/* ---- media types (jupyter_bundle.c) -------------------------------------------------- */

/* The forms that notebooks show; they stay the bundle's. */
void bundle_for_notebooks(const struct bundle *b, struct bundle *ret);
/* What a display is beside its content, a new reference; NULL: an ordinary one. */
json_t *bundle_control(const struct bundle *b);

/* ---- channels (jupyter_channels.c) --------------------------------------------- */

/* A message to all who listen; `content` is JSON. `parent` may be NULL. */
void kernel_publish(
	struct kernel *k, const char *parent, const char *type, const struct buffer *content);
void kernel_publish_status(struct kernel *k, const char *parent, const char *state);
/* A reply to one. */
void channels_reply(struct channels *c, struct kernel *k, const char *channel, const char *parent,
	const char *type, const struct buffer *content);
void channels_settle(struct channels *c);                 /* a request of its was answered */
void channels_close(struct channels *c, const char *why); /* its kernel is gone */
