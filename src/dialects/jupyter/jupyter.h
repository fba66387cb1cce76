/*
 * The Jupyter dialect (private to its files): the part of the Kernel Gateway that runs code. A kernel is a
 * session with a UUID for a name, and the WebSockets that listen to it. What a cell does is told to all of
 * them ("iopub"); the reply goes to the one that asked.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "api/call.h"
#include "dialects/jupyter/jupyter_message.h"
#include "base/buffer.h"

struct channels; /* one WebSocket */
struct kernel;

struct jupyter {
	struct api *api;
	double timeout_s;
	TAILQ_HEAD(, kernel) kernels;
	unsigned requests; /* not answered yet */
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
	TAILQ_ENTRY(kernel_request) link;
};

struct kernel {
	struct jupyter *home;
	TAILQ_ENTRY(kernel) link;
	char id[37];
	uint64_t owner;
	char session[SESSION_ID_LEN + 1];
	unsigned execution_count;
	uint64_t used_wall_ns;
	uint64_t messages; /* counts what it said */
	TAILQ_HEAD(, channels) listeners;
	unsigned connections;
	TAILQ_HEAD(, kernel_request) requests;
	struct session_listener deaths; /* of its interpreter, between cells */
	struct kernel_request *check; /* an is_complete_request the guest is asked about */
};

/* ---- kernels (jupyter.c) --------------------------------------------------- */

struct kernel *kernel_find(
	struct jupyter *j, uint64_t owner, const char *id); /* drops it when its session ended */
int kernel_session(const struct kernel *k, struct error *e, struct session **ret);
void kernel_end(struct kernel *k, const char *why); /* with its session; not from a callback of a cell */
int kernel_restart(struct kernel *k, struct error *e);

/* ---- running (jupyter_execute.c) --------------------------------------------- */

struct kernel_request *kernel_request_create(
	struct kernel *k, struct channels *asker, const char *parent, const char *channel);
void kernel_request_destroy(struct kernel_request *r);          /* abandons its cell */
void kernel_execute(struct kernel_request *r, json_t *content); /* takes the request over */
void kernel_check(struct kernel_request *r, json_t *content);   /* is_complete_request; takes it over */

/* ---- channels (jupyter_channels.c) --------------------------------------------- */

/* A message to all who listen; `content` is JSON. `parent` may be NULL. */
void kernel_publish(struct kernel *k, const char *parent, const char *type, const struct buffer *content);
void kernel_publish_status(struct kernel *k, const char *parent, const char *state);
/* A reply to one. */
void channels_reply(struct channels *c, struct kernel *k, const char *channel, const char *parent,
	const char *type, const struct buffer *content);
void channels_settle(struct channels *c);                 /* a request of its was answered */
void channels_close(struct channels *c, const char *why); /* its kernel is gone */
