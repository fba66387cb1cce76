/*
 * A sandbox and the pool, as their own files see them. Private to this folder: others use pool.h
 * and snapshot.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "jail/jail.h"
#include "jail/xsocket.h"
#include "sandbox/arrival.h"
#include "sandbox/children.h"
#include "sandbox/helper.h"
#include "sandbox/package_template.h"
#include "sandbox/plain_zygote.h"
#include "sandbox/pool.h"
#include "sandbox/program.h"
#include "sandbox/renewal.h"
#include "sandbox/snapshot.h"
#include "sandbox/socket_ask.h"
#include "sandbox/watchdog.h"

/*
 * The states of a sandbox: JAIL → GUEST → STARTING → READY. When the guest is replaced: READY →
 * KILL_ALL → GUEST. CLOSED from anywhere.
 */
enum sandbox_state {
	SANDBOX_JAIL,     /* the jailer makes its jail */
	SANDBOX_KILL_ALL, /* the init kills all processes of the former guest */
	SANDBOX_GUEST,    /* it has a jail, and no guest was asked for yet; spare jails stay here */
	SANDBOX_STARTING, /* the zygote forks its guest */
	SANDBOX_READY,
	SANDBOX_CLOSED
};

/* control groups that are kept for use by other sandboxes */
enum { SPARE_CGROUPS = 16 };

/* network namespaces, the same */
enum { SPARE_NETS = 16 };

struct sandbox {
	TAILQ_ENTRY(sandbox) link;
	struct sandbox_pool *pool;
	void *owner;                         /* NULL: it waits in the pool for a session */
	const struct sandbox_events *events; /* what the owner hears: the pool's, or a template's */
	enum sandbox_state state;
	uint32_t serial, host_id;
	/* of the request to the zygote whose answer is awaited; 0: none is */
	uint32_t spawn_serial;
	struct sandbox_kind kind;
	char cgroup[CGROUP_NAME_MAX]; /* empty until it is made */
	struct cgroup_limits limits;
	struct {
		/*
		 * guests that were given the files to join the group, and those of them that are
		 * known by number
		 */
		unsigned given, known;
		bool others;   /* somebody else was given them: the group is not used again */
		uint64_t rest; /* bytes that were charged to it before */
	} joins;
	/* without control groups; see sandbox_members.c */
	struct {
		int proc;            /* of its jail; -1 for none */
		uint64_t base_bytes; /* that its first guest was born with */
		uint64_t cpu_ns, cpu_last_ns, kills;
		/*
		 * when its processes were last looked at closely: their memory, and until when not
		 * again
		 */
		uint64_t looked_bytes, rest_until_ns, next_look_ns;
		unsigned looks;
	} watch;
	struct child init;
	int init_control;
	int net; /* its network namespace, from the end of its jail on; -1 */
	/* O_PATH; -1 while it is not needed, see sandbox_workspace() */
	int workspace;
	TAILQ_ENTRY(sandbox) workspace_link;
	bool workspace_listed, workspace_used; /* in the pool's list; since the last look */
	/* sockets of the jail's that the proxy accepts on; kept for the next proxy */
	int outlets[JAIL_LISTEN_MAX];
	unsigned n_outlets;
	bool outlets_sent; /* the proxy has them */
	uv_poll_t control_poll;
	unsigned open_polls;
	bool init_reaped, jail_asked;
	unsigned waited; /* ticks of the watchdog that it has waited for a jail or a guest */
	bool spare;      /* unowned, and without a guest until a session needs it */
	/* when its guest was told to prepare for a first cell, by the loop; 0: it was not */
	uint64_t rehearsed_ms;
	uint64_t ready_ms;      /* since when, by the loop */
	uint64_t asked_ns;      /* when the zygote was asked for the guest */
	unsigned kills_pending; /* the init was asked to kill all processes and has not answered */
	TAILQ_HEAD(, socket_ask) socket_asks; /* of its init, in order */
	bool wants_display, display_asked;
	uint8_t cookie[XSOCKET_COOKIE];
	struct guest *guest;
	/* retired; ended when the one that takes its place is ready: the end of a large process
	 * takes a CPU longer than that */
	struct guest *retiring_guest;
	int guest_fds[3];               /* the guest's ends, until the zygote has them */
	TAILQ_HEAD(, program) programs; /* that run beside its guest */
	struct snapshot_list snapshots; /* parked ones of its guests, oldest first */
	unsigned snapshots_leaving;     /* dropped and not yet reaped */
	/* by which its limit of processes is raised: they are not the session's */
	unsigned snapshots_counted;
	/* its guest comes, or came, from this one and not from the zygote; only compared */
	const struct snapshot *from;
	/*
	 * its guest lives in that one's jail and control group; itself once that is gone; NULL for
	 * most
	 */
	struct sandbox *beside;
	struct sandbox *outer; /* its jail is nested in that one's; NULL for none */
	unsigned nested;       /* jails that are nested in this one, which must outlive them */
	/* of a nested jail, until its first guest was asked for; those by which it is known stay */
	int namespaces[JAIL_NAMESPACES];
	/* a process that says it is the guest, and that the mover looks at: its pidfd, else -1 */
	int arriving;
	pid_t arriving_pid;
	/* that guest is a copy from the outer jail, and not asked for yet; with random numbers of
	 * its own */
	bool moving, reseed;
	char note[256]; /* what it could not re-seed */
	/* why a guest from a copy did not put the files back; empty when it did */
	char files_not_restored[256];
};

TAILQ_HEAD(sandbox_list, sandbox);

struct sandbox_pool {
	struct sandbox_pool_config config;
	struct helper jailer, zygote, proxy, mover;
	/*
	 * the mount namespace of the first jailer, for those after it (jailer.h); -1 when there is
	 * none
	 */
	int tree;
	struct template *plain; /* NULL until it is needed */
	struct package_template_list sets;
	struct cgroup_home cgroups;
	struct watchdog watchdog;
	struct renewal renewal;
	/* groups that were busy when their sandbox ended; owned */
	char (*unremoved)[CGROUP_NAME_MAX];
	unsigned n_unremoved;
	/* empty groups for the next sandboxes, see sandbox_cgroups.c */
	struct spare_cgroup {
		char name[CGROUP_NAME_MAX];
		struct cgroup_limits limits;
		uint64_t rest;
	} spare_cgroups[SPARE_CGROUPS];
	unsigned n_spare_cgroups;
	bool spare_cgroups_used;    /* since the last tick of the watchdog */
	int spare_nets[SPARE_NETS]; /* of jails that have ended, see spare_nets.c */
	unsigned n_spare_nets;
	bool spare_nets_used;
	bool jailer_up, zygote_warm, destroying;
	/* a helper's socket was full: what was to be asked is asked again with its next answer */
	bool requests_refused;
	/* when a sandbox with a loopback, or with a guest of the plain zygote, last was taken, by
	 * the loop; 0: never */
	uint64_t loopback_taken, plain_taken;
	bool refill_failed;       /* the last refill */
	unsigned refill_failures; /* in a row */
	struct {
		char why[160];     /* empty: there is none */
		uint64_t since_ms; /* of the loop, when it was last seen */
	} shortage;                /* the machine or this process has no room for another guest */
	unsigned failures;
	uv_timer_t refill, restart, proxy_restart;
	unsigned proxy_failures;
	/* serials of sandboxes whose end the proxy could not be told yet */
	struct buffer proxy_closes;
	unsigned open_timers;
	struct children *children; /* inits, guests and snapshots */
	struct sandbox_list sandboxes;
	struct sandbox_list workspaces; /* whose workspace is open, least recently used first */
	unsigned n_workspaces;
	bool workspaces_reopen,
		workspaces_tried;       /* whether they can be opened by the init's number */
	TAILQ_HEAD(, program) programs; /* that the zygote is, or will be, asked for */
	uint32_t next_serial, next_host_id, first_host_id;
	int host_id_lock; /* while it is open no other daemon of this machine has our ids */
	uint64_t next_snapshot_id; /* of snapshots */
	uint8_t host_ids[JAIL_HOST_ID_COUNT / 8];
	char report[WIRE_ZYGOTE_TEXT];
	struct sandbox_pool_stats stats;
	void (*done)(void *);
	void *done_userdata;
};

/* sandbox.c */
struct sandbox *sandbox_new(struct sandbox_pool *n, const struct sandbox_kind *kind,
	const struct cgroup_limits *limits,
	void *owner); /* asks for its jail; NULL without memory */
struct sandbox *sandbox_new_in(struct sandbox_pool *n, const struct sandbox_kind *kind,
	const struct cgroup_limits *limits, void *owner,
	struct sandbox *outer); /* nested in that one's jail, when there is one */
struct sandbox *sandbox_find(struct sandbox_pool *n, uint32_t serial);
void sandbox_want_guest(struct sandbox *b); /* spare no more */
/* tells its guest to copy now what a first cell would */
void sandbox_rehearse(struct sandbox *b);
bool sandbox_is_unowned(const struct sandbox *b);

/* sandbox_cgroups.c, sandbox_jail.c */
/* of a sandbox that a session takes over */
int sandbox_set_limits(struct sandbox *b, const struct cgroup_limits *limits);
int sandbox_make_cgroup(struct sandbox *b);
void sandbox_remove_cgroup(struct sandbox *b);
void sandbox_remove_spare_cgroups(struct sandbox_pool *n);
/* from time to time: removes them when none was used since the last call */
void sandbox_trim_spare_cgroups(struct sandbox_pool *n);
/*
 * bytes of memory as its control group counts them, without what was charged before the sandbox had
 * it
 */
uint64_t sandbox_own_bytes(const struct sandbox *b, uint64_t counted);
/* its own were; those of its family follow */
void sandbox_limits_changed(const struct sandbox *b);
/* groups that were busy: whatever is in them is killed */
void sandbox_remove_leftovers(struct sandbox_pool *n);

void sandbox_ask_jail(struct sandbox *b);  /* now, or when the jailer is up */
void sandbox_ask_guest(struct sandbox *b); /* now, or when the zygote is warm */
/* Asks for all that want it; whoever is asked may end, and others with it. */
void sandbox_pool_ask(struct sandbox_pool *n, bool (*wants)(struct sandbox *b, void *userdata),
	void (*ask)(struct sandbox *b), void *userdata);
void sandbox_take_jail(struct sandbox *b, const struct jail_answer *a, int *fds, size_t n_fds);
void sandbox_take_guest(struct sandbox *b, pid_t pid);

/*
 * One message to the jail's init, which is not answered. Descriptors stay the caller's. -EAGAIN
 * when its queue is full.
 */
int sandbox_tell_init(
	struct sandbox *b, const void *data, size_t len, const int *fds, size_t n_fds);

/* spare_nets.c */
void sandbox_remember_net(struct sandbox *b);       /* its jail is about to end */
void sandbox_give_back_net(struct sandbox *b);      /* it has ended, its socket is closed */
int sandbox_take_spare_net(struct sandbox_pool *n); /* the caller's; -1 when there is none */
void sandbox_remove_spare_nets(struct sandbox_pool *n);
/* from time to time: closes them when none was used since the last call */
void sandbox_trim_spare_nets(struct sandbox_pool *n);

/* sandbox_workspace.c */
void sandbox_keep_workspace(struct sandbox *b, int fd); /* the jail brought it; owned */
void sandbox_close_workspace(struct sandbox *b);
void sandbox_pool_close_workspaces(struct sandbox_pool
		*n); /* from time to time: those that were not used since the last call */

/* There will be no guest: the owner is told; an unowned sandbox is closed. */
void sandbox_fail(struct sandbox *b, const char *text);

/* sandbox_beside.c */
/* numbers of the guests that live in its jail beside its own; returns how many */
size_t sandbox_beside_guests(const struct sandbox *host, pid_t *ret, size_t max);
void sandbox_leave_beside(struct sandbox *host); /* it is about to be freed */

/*
 * Programs run beside its guest, and can be spared when what a guest left behind is killed: there
 * are control groups.
 */
bool sandbox_has_programs(const struct sandbox *b);

/* The same for a step that failed with a negative errno. */
void sandbox_fail_step(struct sandbox *b, int err, const char *step);

/* The zygote died before it forked what was asked for: back to asking. */
void sandbox_forget_guest(struct sandbox *b);

/* The jailer died: an answer that was awaited will not come. */
void sandbox_forget_jail(struct sandbox *b);

void sandbox_drop_guest(struct sandbox *b);         /* and the ends that were meant for it */
void sandbox_end_retiring_guest(struct sandbox *b); /* when there is one */
int sandbox_new_guest(struct sandbox *b); /* the daemon's ends of a guest, and guest_fds */

/*
 * sandbox_figures.c: answers the init, for which a process of the session reads a file about the
 * machine.
 */
void sandbox_tell_figures(struct sandbox *b);

/* sandbox_members.c: without control groups */
bool sandbox_is_watched(const struct sandbox *b);
/* Whether the process is in its jail, or in one that is nested in it. */
bool sandbox_has_member(const struct sandbox *b, pid_t pid);
void sandbox_kill_members(struct sandbox *b, const struct cgroup_spared *spared);
void sandbox_members_born(struct sandbox *b); /* a guest is ready */
void sandbox_members_figures(struct sandbox *b, struct jail_figures *ret);
uint64_t sandbox_members_bytes(struct sandbox *b);
uint64_t sandbox_members_cpu_ns(struct sandbox *b);

/* sandbox_snapshot.c */
void sandbox_ask_move(struct sandbox *b); /* a copy from the outer jail for its guest */
/*
 * Kills all processes in the group (or the jail) of the sandbox except the spared ones; `after` are
 * the limits that apply afterwards.
 */
void sandbox_kill_group(
	struct sandbox *b, const struct cgroup_limits *after, const struct cgroup_spared *spared);
void sandbox_end_jail(struct sandbox *b); /* unless jails are nested in it */
void sandbox_drop_snapshots(struct sandbox *b);
/*
 * The process behind a descriptor that a guest or a copy sent: its number when it has the session's
 * id (where each has one of its own) or lives in its group, else 0. Whatever they send is hostile:
 * a pidfd may be of anybody, and what it stands for will be signalled.
 */
pid_t sandbox_own_process(const struct sandbox *b, int pidfd);
/*
 * Called when WIRE_LIVED arrives on the guest's socket, with the pidfd of the process that the
 * snapshot made, or with the reason why there is no such process.
 */
void sandbox_take_live(struct sandbox *b, const char *text);
/* its copy could not be brought to life */
void sandbox_snapshot_failed(struct sandbox *b, const char *text);
void sandbox_snapshot_died(struct sandbox_pool *n, struct snapshot *c);
/*
 * Frees a closed sandbox after its snapshots, polls and init have ended. The last of them to end
 * calls this function.
 */
void sandbox_free_when_closed(struct sandbox *b);

/* pool.c */
void sandbox_pool_finish_when_empty(struct sandbox_pool *n);
void sandbox_pool_start_helpers(struct sandbox_pool *n); /* those that do not run and may */
/*
 * 1 when it counts among the ready ones; 0 for those with a loopback or of the plain zygote, which
 * come beside the number that was asked for.
 */
unsigned sandbox_ready_weight(const struct sandbox *b);
void sandbox_pool_refill_later(struct sandbox_pool *n);
void sandbox_pool_set_shortage(struct sandbox_pool *n, const char *why);
void sandbox_pool_forget_shortage(struct sandbox_pool *n);

/* pool_helpers.c */
int sandbox_pool_start_jailer(struct sandbox_pool *n);
void sandbox_pool_close_jailer(struct sandbox_pool *n);
bool sandbox_pool_awaits_jails(struct sandbox_pool *n); /* the jailer was asked for one */
void sandbox_pool_timer_closed(uv_handle_t *h);
