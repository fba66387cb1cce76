/*
 * The source of guests: the jailer makes jails, the zygote forks guests into them, and the pool
 * keeps a few of both ready in advance.
 *
 * A sandbox is a jail for one guest. It is requested, becomes ready, belongs to a session, and can
 * get a second guest when the first guest has died. Sandboxes without an owner wait in the pool.
 * Everything is asynchronous, on one loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/error.h"
#include "jail/cgroup/cgroup.h"
#include "jail/jail.h"
#include "jail/xsocket.h"
#include "network/network_policy.h"
#include "sandbox/guest_link.h"
#include "wire/timing.h"

struct sandbox_pool;
struct sandbox;
struct template;
struct package_template;
struct proxy_event;

/*
 * What the owner of a sandbox hears; guest_events slots come through unchanged, with the owner as
 * their first argument.
 */
struct sandbox_events {
	struct guest_events guest;
	void (*on_ready)(void *owner); /* its guest waits for SETUP */
	/* there will be none; close the sandbox */
	void (*on_failed)(void *owner, const char *text);
	/* it wanted to reach something */
	void (*on_network)(void *owner, const struct proxy_event *e);
	/*
	 * The display asked for with sandbox_open_display(): the descriptors of xsocket.h (those
	 * taken are set to -1), or NULL.
	 */
	void (*on_display)(void *owner, int *fds);
};

/*
 * What cannot be changed once a jail stands; a ready sandbox of one kind cannot serve another kind.
 */
struct sandbox_kind {
	uint64_t disk_bytes, inodes;
	enum jail_exec exec;
	struct network_policy network; /* a borrowed one; a sandbox keeps its own copy */
	struct jail_mounts mounts;
	uint32_t host_id;             /* of the jail, when the server is root; 0: any free one */
	struct template *template;    /* the zygote its guests come from; NULL: the default one */
	struct package_template *set; /* whose copy its first guest is; NULL for none */
};

struct sandbox_pool_config {
	uv_loop_t *loop;
	const char *guest_module, *state_dir;
	const char *rootfs;   /* the system that sessions see instead of the host's, or NULL */
	const char *shown;    /* directories that jails see as well, see tree_prepare(); or NULL */
	char *const *preload; /* NULL at the end */
	bool learn;           /* what a first cell touches, and keep it in state_dir */
	char *const *plain_preload; /* the same without anything of the system's packages */
	bool plain_first; /* the plain zygote is started before the other one, which waits for it */
	unsigned ready_target;       /* how many ready sandboxes are kept */
	double renew_s;              /* after which a zygote that was used is replaced; 0: never */
	uint64_t template_bytes;     /* memory of the templates of package sets; 0: no limit */
	struct sandbox_kind kind;    /* of the ready ones */
	struct cgroup_limits limits; /* of the ready ones */
	const struct sandbox_events *events;
};

/*
 * What the control group of a session gets beyond its limit of memory, so that Python's MemoryError
 * comes first.
 */
enum { SANDBOX_MEMORY_HEADROOM = 64 << 20 };

struct sandbox_pool_stats {
	uint64_t forked, restarts;
	unsigned ready;
	struct step_times steps; /* of guests' starts */
};

int sandbox_pool_create(
	const struct sandbox_pool_config *config, struct error *e, struct sandbox_pool **ret);

/*
 * Ends the ready sandboxes and the helpers; done is called when all sandboxes (the owners' too,
 * which they must close) are gone.
 */
void sandbox_pool_destroy(struct sandbox_pool *n, void (*done)(void *), void *userdata);

/*
 * Descriptors that must be free before another guest is made: its own, and some for connections and
 * for sessions that are there.
 */
enum { POOL_SPARE_FDS = 96 };

/* Notes why something could not be made, when the errno says that something has run out. */
void sandbox_pool_note_shortage(struct sandbox_pool *n, int err, const char *step);

/*
 * Why no more guests can be made now (the machine or this process has run out of something), or
 * NULL.
 */
const char *sandbox_pool_shortage(const struct sandbox_pool *n);

/* control groups, which bound what all processes of a session take together */
bool sandbox_pool_has_groups(const struct sandbox_pool *n);
bool sandbox_pool_warm(const struct sandbox_pool *n);
/* why it is not warm; NULL when it is */
const char *sandbox_pool_complaint(const struct sandbox_pool *n);
/* what could not be preloaded, lines */
const char *sandbox_pool_report(const struct sandbox_pool *n);
const struct sandbox_pool_stats *sandbox_pool_stats(const struct sandbox_pool *n);

/*
 * A sandbox for this owner: a ready one when one fits (*ret_ready), else a new one that is being
 * made.
 */
int sandbox_pool_take(struct sandbox_pool *n, const struct sandbox_kind *kind,
	const struct cgroup_limits *limits, void *owner, bool *ret_ready, struct sandbox **ret);

struct guest *sandbox_guest(struct sandbox *b); /* NULL while there is none */
/* O_PATH; the sandbox's, and good for this turn of the loop. -1 when there is none. */
int sandbox_workspace(struct sandbox *b);
uint32_t sandbox_host_id(const struct sandbox *b);

/* What all processes of the sandbox used since it was made; zeros without control groups. */
void sandbox_usage(struct sandbox *b, struct cgroup_usage *ret);
/*
 * Memory and processor time of all its processes now; without control groups: of the interpreter.
 */
void sandbox_figures(struct sandbox *b, struct jail_figures *ret);

/* Its number on the host; 0 when there is none. */
pid_t sandbox_init_pid(const struct sandbox *b);

/* False once the jail's init has ended, with all processes and files of the jail. */
bool sandbox_has_jail(const struct sandbox *b);

/*
 * Kills the guest and, through the init, which does not share the guest's processors, all else in
 * the jail at the same moment: against a fork bomb the guest alone would take seconds to die. Its
 * end is reported as usual.
 */
void sandbox_kill_all(struct sandbox *b);

/*
 * Lets go of the guest (dead or not), kills all else in the jail, and asks for a new one: on_ready
 * or on_failed follows.
 */
void sandbox_replace_guest(struct sandbox *b);

/* The same, but parked snapshots stay. */
void sandbox_restart_guest(struct sandbox *b);

/* Asks for a display's socket in the jail, with this cookie; on_display follows. */
void sandbox_open_display(struct sandbox *b, const uint8_t cookie[XSOCKET_COOKIE]);

/*
 * What a process needs to enter the sandbox: the init's pidfd and descriptors of its control group,
 * all of them the caller's.
 */
int sandbox_join_fds(struct sandbox *b, int *ret_init_pidfd, struct cgroup_join_fds *ret);

/* The process that jails come from, whose user namespace they belong to; -1 while there is none. */
int sandbox_pool_jailer_pidfd(const struct sandbox_pool *n);

/* ---- snapshots of its guest (snapshot.h) ---- */
struct snapshot;
bool sandbox_can_snapshot(const struct sandbox *b);
struct snapshot *sandbox_snapshot(
	struct sandbox *b, uint64_t snapshot_id); /* NULL when it is gone */

/*
 * The snapshots in the order in which they were taken: the next one after `c`, or the one before;
 * from NULL on the oldest, or the newest. NULL at the end.
 */
struct snapshot *sandbox_next_snapshot(const struct sandbox *b, const struct snapshot *c);
struct snapshot *sandbox_previous_snapshot(const struct sandbox *b, const struct snapshot *c);
/* The snapshot is the newest: they are asked for in another order than they are taken. */
void sandbox_snapshot_is_newest(struct sandbox *b, struct snapshot *c);
/* Snapshots that were dropped and whose memory is not free yet. */
unsigned sandbox_snapshots_leaving(const struct sandbox *b);

/* Their number changed: parked snapshots do not count against the session's limit of processes. */
void sandbox_count_snapshots(struct sandbox *b);

/* Kills the guest and all else in the jail but the parked snapshots. */
void sandbox_kill_others(struct sandbox *b);

/* Memory of its jail, the snapshots' and the files' included; 0 when that cannot be told. */
uint64_t sandbox_memory(const struct sandbox *b);

/*
 * Without control groups, from time to time: kills its largest process when all of them together
 * use more memory than its limit.
 */
void sandbox_watch_memory(struct sandbox *b);

/*
 * Memory of a snapshot without control groups: an upper bound, what it shares with others counts in
 * full.
 */
uint64_t sandbox_snapshot_bytes(const struct snapshot *c);

/* The same without what the kernel takes back when it needs it. */
uint64_t sandbox_memory_used(const struct sandbox *b);

/* Its control group's limits from now on. */
int sandbox_set_limits(struct sandbox *b, const struct cgroup_limits *limits);

/* Is its guest all that runs there, snapshots aside? False when that cannot be told. */
bool sandbox_is_alone(const struct sandbox *b);
/* … with memory to spare? One that waits for a cell then does nothing until it gets one. */
bool sandbox_is_quiet(const struct sandbox *b);

/*
 * Lets go of the guest (which may be `quiet`, and ends a little later then) and has the copy take
 * its place: on_ready or on_failed follows, unless this fails. *ret stands for the copy then: see
 * snapshot_become_guest().
 */
int sandbox_restore_snapshot(struct sandbox *b, struct snapshot *c, bool restore_files, bool quiet,
	struct snapshot **ret);
/*
 * A sandbox whose jail is nested in that of the copy, with a guest that comes from it. Kind and
 * limits as in sandbox_pool_take(), a network of its own but none that leads outside. on_ready or
 * on_failed follows.
 */
int sandbox_pool_nest(struct sandbox_pool *n, struct snapshot *c, bool reseed,
	const struct sandbox_kind *kind, const struct cgroup_limits *limits, void *owner,
	struct sandbox **ret);
/* after on_ready: what kept its seed; "" for nothing */
const char *sandbox_note(const struct sandbox *b);
/* after on_ready: why files were not put back; "" when they were */
const char *sandbox_files_not_restored(const struct sandbox *b);

/*
 * A sandbox for a further guest in the jail and the control group of `host`, which must be closed
 * after it. It has no snapshots. on_ready or on_failed follows. -EAGAIN: the host has no jail now.
 */
int sandbox_pool_beside(struct sandbox *host, void *owner, struct sandbox **ret);

/* Ends jail and guest; no callback of the owner is called after it. NULL is allowed. */
void sandbox_close(struct sandbox *b);
