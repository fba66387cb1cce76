/* What pool.c and sandbox.c share; not for others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "jail/jail.h"
#include "jail/xsocket.h"
#include "session/history/arrival.h"
#include "sandbox/snapshot.h"
#include "sandbox/helper.h"
#include "sandbox/pool.h"
#include "sandbox/renewal.h"
#include "sandbox/package_template.h"
#include "sandbox/plain_zygote.h"
#include "sandbox/watchdog.h"

/* A sandbox's way: JAIL (asked of the jailer) → SWEEP? → GUEST (asked of the zygote) → READY; or CLOSED from anywhere. */
enum sandbox_state { SANDBOX_JAIL, SANDBOX_SWEEP, SANDBOX_GUEST, SANDBOX_STARTING, SANDBOX_READY, SANDBOX_CLOSED };

struct sandbox {
	TAILQ_ENTRY(sandbox) link;
	struct sandbox_pool *pool;
	void *owner; /* NULL: stock */
	const struct sandbox_events *events; /* what the owner hears: the pool's, or a template's */
	enum sandbox_state state;
	uint32_t serial, host_id;
	struct sandbox_kind kind;
	char cgroup[CGROUP_NAME_MAX]; /* empty until it is made */
	struct cgroup_limits limits;
	int init_pidfd, init_control, workspace;
	int outlets[JAIL_LISTEN_MAX]; /* sockets of the jail's that the proxy accepts on; kept for the next proxy */
	unsigned n_outlets;
	bool outlets_sent; /* the proxy has them */
	uv_poll_t init_poll, control_poll;
	unsigned open_polls;
	bool init_reaped, jail_asked;
	unsigned waited; /* ticks of the watchdog that it has waited for a jail or a guest */
	bool spare;        /* in stock, and its jail gets no guest before somebody wants it */
	uint64_t rehearsed_ms; /* when its guest was told to prepare for a first cell, by the loop; 0: it was not */
	uint64_t ready_ms; /* since when, by the loop */
	uint64_t asked_ns; /* when the zygote was asked for the guest */
	unsigned sweeps; /* asked of the init and not answered yet */
	bool wants_display, display_asked;
	uint8_t cookie[XSOCKET_COOKIE];
	struct guest *guest;
	struct guest *former; /* retired; ended when the one that takes its place is ready: the end of a large process takes a CPU longer than that */
	int far[3]; /* the guest's ends, until the zygote has them */
	struct snapshot_list snapshots; /* parked ones of its guests, oldest first */
	unsigned snapshots_leaving; /* dropped and not yet reaped */
	unsigned snapshots_counted; /* by which its limit of processes is raised: they are not the session's */
	const struct snapshot *from; /* its guest comes, or came, from this one and not from the zygote; only compared */
	struct sandbox *outer;     /* its jail is nested in that one's; NULL for none */
	unsigned nested;         /* jails that are nested in this one, which must outlive them */
	int namespaces[JAIL_NAMESPACES]; /* of a nested jail, until its first guest was asked for; those by which it is known stay */
	int arriving;            /* a process that says it is the guest, and that the mover looks at: its pidfd, else -1 */
	pid_t arriving_pid;
	bool moving, reseed;     /* that guest is a copy from the outer jail, and not asked for yet; with random numbers of its own */
	char note[256];          /* what it could not re-seed */
	char files_left[256];    /* why a guest from a copy did not put the files back; empty when it did */
};

TAILQ_HEAD(sandbox_list, sandbox);

struct sandbox_pool {
	struct sandbox_pool_config config;
	struct helper jailer, zygote, proxy, mover;
	struct template *plain; /* NULL until it is needed */
	struct package_template_list sets;
	struct cgroup_home cgroups;
	struct watchdog watchdog;
	struct renewal renewal;
	char (*unremoved)[CGROUP_NAME_MAX]; /* groups that were busy when their sandbox ended; owned */
	unsigned n_unremoved;
	bool jailer_up, zygote_warm, destroying;
	bool requests_refused; /* a helper's socket was full: what was to be asked is asked again with its next answer */
	bool stock_failed; /* the last sandbox that was made for the stock */
	unsigned stock_failures; /* in a row */
	struct {
		char why[160];    /* empty: there is none */
		uint64_t since_ms; /* of the loop, when it was last seen */
	} shortage; /* the machine or this process has no room for another guest */
	unsigned failures;
	uv_timer_t refill, restart, proxy_restart;
	unsigned proxy_failures;
	struct buffer proxy_closes; /* serials of sandboxes whose end the proxy could not be told yet */
	unsigned open_timers;
	struct sandbox_list sandboxes;
	uint32_t next_serial, next_host_id, first_host_id;
	int host_id_lock; /* while it is open no other daemon of this machine has our ids */
	uint64_t next_ticket; /* of snapshots */
	uint8_t host_ids[JAIL_HOST_ID_COUNT / 8];
	char report[WIRE_ZYGOTE_TEXT];
	struct sandbox_pool_stats stats;
	void (*done)(void *);
	void *done_userdata;
};

/* sandbox.c */
struct sandbox *sandbox_new(struct sandbox_pool *n, const struct sandbox_kind *kind, const struct cgroup_limits *limits,
	void *owner); /* asks for its jail; NULL without memory */
struct sandbox *sandbox_new_in(struct sandbox_pool *n, const struct sandbox_kind *kind, const struct cgroup_limits *limits, void *owner,
	struct sandbox *outer); /* nested in that one's jail, when there is one */
struct sandbox *sandbox_find(struct sandbox_pool *n, uint32_t serial);
void sandbox_want_guest(struct sandbox *b); /* spare no more */
void sandbox_rehearse(struct sandbox *b);   /* tells its guest to copy now what a first cell would */
bool sandbox_is_stock(const struct sandbox *b);

/* sandbox_groups.c */
int sandbox_set_limits(struct sandbox *b, const struct cgroup_limits *limits); /* of a sandbox that a session takes over */
int sandbox_make_cgroup(struct sandbox *b);
void sandbox_remove_cgroup(struct sandbox *b);
void sandbox_limits_changed(const struct sandbox *b);  /* its own were; those of its family follow */
void sandbox_remove_leftovers(struct sandbox_pool *n);    /* groups that were busy: whatever is in them is killed */

void sandbox_ask_jail(struct sandbox *b);  /* now, or when the jailer is up */
void sandbox_ask_guest(struct sandbox *b); /* now, or when the zygote is warm */
void sandbox_take_jail(struct sandbox *b, const struct jail_answer *a, int *fds, size_t n_fds);
void sandbox_take_guest(struct sandbox *b, int pidfd, pid_t pid);

/* There will be no guest: its owner is told, or a stock sandbox is closed. */
void sandbox_fail(struct sandbox *b, const char *text);

/* The same for a step that failed with a negative errno. */
void sandbox_fail_step(struct sandbox *b, int err, const char *step);

/* The zygote died before it forked what was asked for: back to asking. */
void sandbox_forget_guest(struct sandbox *b);

/* The jailer died: an answer that was awaited will not come. */
void sandbox_forget_jail(struct sandbox *b);

void sandbox_drop_guest(struct sandbox *b); /* and the ends that were meant for it */
void sandbox_end_retiring_guest(struct sandbox *b); /* when there is one */
int sandbox_new_guest(struct sandbox *b);   /* the daemon's end of one, and the far ends */

/* sandbox_figures.c: answers the init, for which a process of the session reads a file about the machine. */
void sandbox_tell_figures(struct sandbox *b);

/* sandbox_snapshot.c */
void sandbox_ask_move(struct sandbox *b); /* a copy from the outer jail for its guest */
void sandbox_end_jail(struct sandbox *b); /* unless jails are nested in it */
void sandbox_drop_snapshots(struct sandbox *b);
/* The process behind a descriptor that a guest or a copy sent: its number when it has the session's id (where each has one of its own) or lives in its group, else 0. Whatever they send is hostile: a
 * pidfd may be of anybody, and what it stands for will be signalled. */
pid_t sandbox_own_process(const struct sandbox *b, int pidfd);
void sandbox_take_live(struct sandbox_pool *n, struct snapshot *from, uint32_t serial, int pidfd, const char *text);
void sandbox_not_alive(struct sandbox *b, const char *text); /* its copy could not be brought to life */
void sandbox_snapshot_died(struct sandbox_pool *n, struct snapshot *c);
void sandbox_snapshot_gone(struct sandbox *b); /* its memory is free */

/* pool.c */
void sandbox_pool_finish_when_empty(struct sandbox_pool *n);
void sandbox_pool_stock_changed(struct sandbox_pool *n);
void sandbox_pool_set_shortage(struct sandbox_pool *n, const char *why);
void sandbox_pool_forget_shortage(struct sandbox_pool *n);
