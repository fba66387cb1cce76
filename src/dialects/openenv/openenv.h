/*
 * The OpenEnv dialect (private to its files): environments over sessions.
 *
 * An env is what OpenEnv calls one environment: an episode with its counters, and the session that
 * runs its code. A reset gives it a new session, taken from the guests that are ready, so nothing
 * of the last episode is left, not even files. Envs come in two kinds. One without a name belongs
 * to its WebSocket and ends with it, as OpenEnv's own do. One with a name is found again by it: by
 * requests that carry the name, and by a WebSocket that comes back within the lease after its
 * connection broke.
 *
 * A step is one cell somebody waits for; its sink hears of it. The env owns its steps: ending the
 * env abandons them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "api/api.h"
#include "api/call.h"
#include "api/schema/requests.h"
#include "base/buffer.h"
#include "dialects/common/pydantic.h"

struct env;
struct env_packages;
struct env_socket;
struct env_history;
struct step;
struct web_log;
struct web_view;

enum { ENV_NAME_MAX = 64, ENV_EPISODE_MAX = 255 * 4 };

struct openenv {
	struct api *api;
	struct openenv_config config;
	TAILQ_HEAD(, env) envs;
	uv_timer_t sweep; /* runs while there are envs with a name */
	uv_timer_t more;  /* another turn for sockets that have messages waiting */
	unsigned handles; /* not closed yet */
	TAILQ_HEAD(, env_socket) sockets;
	TAILQ_HEAD(, web_view) views; /* of the web interface */
};

/* The checked fields of a reset; errors are added to p. The seed is valid if has_seed is set. */
struct reset_request {
	bool has_seed, has_rewards, rewards;
	/* the session's fields as read already, with their packages; taken; or NULL */
	struct session_params *given;
	unsigned long long seed;
	const char *episode; /* or NULL; points into the data */
	json_t *session;     /* new reference: the session's fields among the data, or NULL */
};

struct env {
	struct openenv *home;
	TAILQ_ENTRY(env) link;
	char name[ENV_NAME_MAX + 1]; /* "": its socket's alone */
	uint64_t owner;
	char session[SESSION_ID_LEN + 1];
	char episode[ENV_EPISODE_MAX + 1]; /* "" before the first reset */
	unsigned step_count;
	int last_exit_code;
	bool ran;                      /* its session has run something */
	bool plain;                    /* its session has no parameters of its own */
	struct env_packages *packages; /* a reset waits for its packages */
	struct env_history *history; /* a checkpoint, rollback or fork that its socket waits for */
	/* JSON text of the id of the message that asked for it, or NULL */
	char *reset_id;
	bool ending;
	bool rewards;
	TAILQ_HEAD(, step) steps;
	unsigned ws_steps;
	struct env_socket *socket;
	uint64_t lease_until_ns; /* of one whose socket broke; 0: none */
	/*
	 * The last answer to a message with an id, for a client that lost it with its connection.
	 */
	char *answered_id;
	struct buffer answer;
	struct web_log *log; /* of the web interface's environment; else NULL */
};

/* What a step's asker hears; exactly one call, after which the step is gone. */
struct step_sink {
	/* may be NULL */
	void (*on_output)(struct step *s, enum stream stream, const char *data, size_t len);
	void (*on_done)(struct step *s, const struct observation *o);
};

struct step {
	struct env *env; /* NULL: a single run in a session of its own */
	struct api *api;
	TAILQ_ENTRY(step) link;
	const struct step_sink *sink;
	void *target; /* the sink's */
	struct cell *cell;
	char session[SESSION_ID_LEN + 1];
	char *id; /* JSON text of the message's id, or NULL */
	const char *violation;
	double reward;
	bool rewards, extras, executing, dead, over;
	bool pictured; /* its answer has a screenshot, or says why not */
	bool orphaned; /* its connection was lost: the answer is kept, not sent */
};

/* ---- envs (openenv.c) ---------------------------------------------------- */

struct env *env_create(struct openenv *o, uint64_t owner, const char *name);
struct env *env_find(struct openenv *o, uint64_t owner, const char *name);

/* Ends its session, abandons its steps, frees it. NULL is fine. Not from a callback of a cell. */
void env_destroy(struct env *e, const char *why);

void reset_read(json_t *data, struct pydantic *p, struct reset_request *ret);
void reset_finish(struct reset_request *r);

/*
 * openenv_fields.c. Adds an error for every member of a reset that is not known, with the list of
 * those that are.
 */
void reset_check_names(json_t *data, struct pydantic *p);

/* Whether a session can be made of it; nothing is made. Errors as env_reset(). */
int openenv_check_reset(const struct openenv *o, const struct reset_request *r, struct pydantic *p,
	struct error *err);

/*
 * The answer to a reset. `e`: the environment that was reset, NULL when nothing is kept. Its
 * metadata tells of modules that could not be had.
 */
void openenv_put_first(struct json_writer *w, const struct env *e, bool rewards);

/*
 * Adds what every environment may import, and allows what is safe below each of its additional
 * imports. -ENOMEM.
 */
int openenv_add_imports(struct session_params *params);

/*
 * Starts a new episode in a new session. Invalid session fields are added to `p`, and -EINVAL is
 * returned.
 */
int env_reset(struct env *e, const struct reset_request *r, struct pydantic *p, struct error *err);
int env_open(struct env *e, struct error *err); /* a session without an episode yet */
int env_make_session(
	struct env *e, const struct reset_request *r, struct pydantic *p, struct error *err);
int reset_read_params(const struct reset_request *r, struct pydantic *p, struct error *err,
	struct session_params *params);

/*
 * What one of our own tables said, as pydantic would. Its error names a path, such as
 * $.limits.timeout_s: the first member is the field.
 */
void openenv_add_field_error(struct pydantic *p, json_t *fields, const struct error *err);

/* Makes a session for this dialect; `fields` may be NULL. */
int openenv_session(struct openenv *o, uint64_t owner, const char *name,
	const struct reset_request *r, struct pydantic *p, struct error *err,
	char ret_id[SESSION_ID_LEN + 1]);

/* Was no session made because the server has no room for one, or the token's quota is used up? */
bool openenv_is_full(const struct error *e);

/*
 * The name in the query, `session` or `session_id`: 1, 0 without one, negative when it does not
 * fit.
 */
int env_name_asked(const struct call *c, char out[ENV_NAME_MAX + 2]);

/* May this be the name of an env? Letters, digits, '.', '_', '-'. */
bool env_name_is_sound(const char *name);

void env_put_state(struct json_writer *w, const struct env *e);

/* ---- envs whose sessions need packages (openenv_packages.c) ------------------------ */

/*
 * As env_reset(), for a request that may have to wait for packages: `done` is called once, now or
 * later, with what env_reset() returned, or -EIDRM when the env ends first. Only one reset of an
 * env waits at a time: another is -EBUSY.
 */
typedef void (*env_reset_done)(
	struct env *e, void *userdata, int result, struct pydantic *p, const struct error *err);
void env_reset_with_packages(struct env *e, const struct reset_request *r, struct pydantic *p,
	env_reset_done done, void *userdata);
void env_packages_forget(struct env *e);                  /* the asker left: done is not called */
void env_packages_cancel(struct env *e, const char *why); /* the env ends: its asker hears it */
void env_packages_destroy(struct env_packages *o);

/* ---- checkpoints, rollbacks and forks (openenv_history.c) ----------------------- */

void env_history_forget(struct env *e); /* the env ends: its session is told so */
void env_history_free(struct env *e);   /* the sessions are gone */
void env_history_orphan(struct env *e); /* its connection was lost: the answer is for nobody */

/* ---- steps (openenv_step.c) ----------------------------------------------- */

/* A CodeAction, checked: errors go to p. Release with action_finish(). */
struct action {
	const char *code;
	size_t code_len;
	double timeout_s;               /* 0: the session's */
	bool printed_answer;            /* a final answer may be printed */
	bool pictured;                  /* a screenshot is asked for, as `execute` says */
	struct execute_request execute; /* only what is about the screen */
};
void action_read(json_t *data, struct pydantic *p, struct action *ret);
void action_finish(struct action *a);

/*
 * `env` or, for a single run, the id of a session. Takes nothing over; `id` and the action are
 * copied. 0: the sink will hear of it, or has already.
 */
int step_start(struct openenv *o, struct env *env, const char *session, const struct action *a,
	const char *id, bool extras, bool detach, const struct step_sink *sink, void *target,
	struct error *err, struct step **ret);
void step_abandon(struct step *s); /* frees it; its cell is interrupted */

/* {"observation":…,"reward":…,"done":…}, as OpenEnv's clients read it. */
void step_put_observation(struct json_writer *w, const struct step *s, const struct observation *o);
/* those three members */
void step_put_outcome(struct json_writer *w, const struct step *s, const struct observation *o);
/* the first one's value */
void step_put_seen(struct json_writer *w, const struct step *s, const struct observation *o);

void step_put_reward(struct json_writer *w, bool rewards, double reward);

/* ---- JSON-RPC (openenv_rpc.c) ------------------------------------------------ */

struct rpc {
	struct openenv *home;
	uint64_t owner;
	struct env *env; /* of the WebSocket it came over, or NULL */
	json_t *request; /* NULL: it was no JSON */
};
void openenv_put_rpc(struct json_writer *w, const struct rpc *rpc);

/* ---- sockets (openenv_socket.c) ---------------------------------------------- */

/* its env is gone or another's */
void env_socket_drop(struct env_socket *s, unsigned code, const char *why);
void openenv_resume(struct openenv *o);

/* ---- handlers ---------------------------------------------------------------- */

void handle_openenv_reset(struct call *c);
void handle_openenv_step(struct call *c);
void handle_openenv_state(struct call *c);
void handle_openenv_close(struct call *c);
void handle_openenv_metadata(struct call *c);
void handle_openenv_schema(struct call *c);
void handle_openenv_mcp(struct call *c);
void handle_openenv_socket(struct call *c);
void handle_openenv_mcp_socket(struct call *c);
void handle_openenv_environments(struct call *c);
void handle_openenv_web_page(struct call *c);
void handle_openenv_web_address(struct call *c);
void handle_openenv_web_socket(struct call *c);
