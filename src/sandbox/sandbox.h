/* What nursery.c and berth.c share; not for others. */
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

/* A berth's way: JAIL (asked of the jailer) → SWEEP? → GUEST (asked of the zygote) → READY; or CLOSED from anywhere. */
enum berth_state { BERTH_JAIL, BERTH_SWEEP, BERTH_GUEST, BERTH_STARTING, BERTH_READY, BERTH_CLOSED };

struct berth {
	TAILQ_ENTRY(berth) link;
	struct nursery *nursery;
	void *owner; /* NULL: stock */
	const struct berth_events *events; /* what the owner hears: the nursery's, or a template's */
	enum berth_state state;
	uint32_t serial, host_id;
	struct berth_kind kind;
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
	struct copy_list copies; /* parked ones of its guests, oldest first */
	unsigned copies_leaving; /* dropped and not yet reaped */
	unsigned copies_counted; /* by which its limit of processes is raised: they are not the session's */
	const struct copy *from; /* its guest comes, or came, from this one and not from the zygote; only compared */
	struct berth *outer;     /* its jail is nested in that one's; NULL for none */
	unsigned nested;         /* jails that are nested in this one, which must outlive them */
	int namespaces[JAIL_NAMESPACES]; /* of a nested jail, until its first guest was asked for; those by which it is known stay */
	int arriving;            /* a process that says it is the guest, and that the mover looks at: its pidfd, else -1 */
	pid_t arriving_pid;
	bool moving, reseed;     /* that guest is a copy from the outer jail, and not asked for yet; with random numbers of its own */
	char note[256];          /* what it could not re-seed */
	char files_left[256];    /* why a guest from a copy did not put the files back; empty when it did */
};

TAILQ_HEAD(berth_list, berth);

struct nursery {
	struct nursery_config config;
	struct helper jailer, zygote, proxy, mover;
	struct template *plain; /* NULL until it is needed */
	struct set_template_list sets;
	struct cgroup_home cgroups;
	struct watchdog watchdog;
	struct renewal renewal;
	char (*unremoved)[CGROUP_NAME_MAX]; /* groups that were busy when their berth ended; owned */
	unsigned n_unremoved;
	bool jailer_up, zygote_warm, destroying;
	bool stock_failed; /* the last berth that was made for the stock */
	unsigned stock_failures; /* in a row */
	struct {
		char why[160];    /* empty: there is none */
		uint64_t since_ms; /* of the loop, when it was last seen */
	} shortage; /* the machine or this process has no room for another guest */
	unsigned failures;
	uv_timer_t refill, restart, proxy_restart;
	unsigned proxy_failures;
	struct buffer proxy_closes; /* serials of berths whose end the proxy could not be told yet */
	unsigned open_timers;
	struct berth_list berths;
	uint32_t next_serial, next_host_id, first_host_id;
	int host_id_lock; /* while it is open no other daemon of this machine has our ids */
	uint64_t next_ticket; /* of copies */
	uint8_t host_ids[JAIL_HOST_ID_COUNT / 8];
	char report[WIRE_ZYGOTE_TEXT];
	struct nursery_stats stats;
	void (*done)(void *);
	void *done_userdata;
};

/* berth.c */
struct berth *berth_new(struct nursery *n, const struct berth_kind *kind, const struct cgroup_limits *limits,
	void *owner); /* asks for its jail; NULL without memory */
struct berth *berth_new_in(struct nursery *n, const struct berth_kind *kind, const struct cgroup_limits *limits, void *owner,
	struct berth *outer); /* nested in that one's jail, when there is one */
struct berth *berth_find(struct nursery *n, uint32_t serial);
void berth_want_guest(struct berth *b); /* spare no more */
void berth_rehearse(struct berth *b);   /* tells its guest to copy now what a first cell would */
bool berth_is_stock(const struct berth *b);

/* berth_groups.c */
int berth_set_limits(struct berth *b, const struct cgroup_limits *limits); /* of a berth that a session takes over */
int berth_make_cgroup(struct berth *b);
void berth_remove_cgroup(struct berth *b);
void berth_limits_changed(const struct berth *b);  /* its own were; those of its family follow */
void berth_remove_leftovers(struct nursery *n);    /* groups that were busy: whatever is in them is killed */

void berth_ask_jail(struct berth *b);  /* now, or when the jailer is up */
void berth_ask_guest(struct berth *b); /* now, or when the zygote is warm */
void berth_take_jail(struct berth *b, const struct jail_answer *a, int *fds, size_t n_fds);
void berth_take_guest(struct berth *b, int pidfd, pid_t pid);

/* There will be no guest: its owner is told, or a stock berth is closed. */
void berth_fail(struct berth *b, const char *text);

/* The same for a step that failed with a negative errno. */
void berth_fail_step(struct berth *b, int err, const char *step);

/* The zygote died before it forked what was asked for: back to asking. */
void berth_forget_guest(struct berth *b);

/* The jailer died: an answer that was awaited will not come. */
void berth_forget_jail(struct berth *b);

void berth_drop_guest(struct berth *b); /* and the ends that were meant for it */
void berth_end_former(struct berth *b); /* when there is one */
int berth_new_guest(struct berth *b);   /* the daemon's end of one, and the far ends */

/* berth_figures.c: answers the init, for which a process of the session reads a file about the machine. */
void berth_tell_figures(struct berth *b);

/* berth_copy.c */
void berth_ask_move(struct berth *b); /* a copy from the outer jail for its guest */
void berth_end_jail(struct berth *b); /* unless jails are nested in it */
void berth_drop_copies(struct berth *b);
/* The process behind a descriptor that a guest or a copy sent: its number when it has the session's id (where each has one of its own) or lives in its group, else 0. Whatever they send is hostile: a
 * pidfd may be of anybody, and what it stands for will be signalled. */
pid_t berth_own_process(const struct berth *b, int pidfd);
void berth_take_live(struct nursery *n, struct copy *from, uint32_t serial, int pidfd, const char *text);
void berth_not_alive(struct berth *b, const char *text); /* its copy could not be brought to life */
void berth_copy_died(struct nursery *n, struct copy *c);
void berth_copy_gone(struct berth *b); /* its memory is free */

/* nursery.c */
void nursery_finish_when_empty(struct nursery *n);
void nursery_stock_changed(struct nursery *n);
void nursery_set_shortage(struct nursery *n, const char *why);
void nursery_forget_shortage(struct nursery *n);
