/*
 * Where guests come from: jails made by the jailer, guests forked into them by the zygote, a few of both kept ahead of need.
 *
 * A berth is a jail with room for one guest. It is asked for, becomes ready, belongs to a session, and can get a second guest
 * when the first one was lost. Berths that nobody owns yet are the nursery's stock. All asynchronous, on one loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/error.h"
#include "jail/cgroup.h"
#include "jail/jail.h"
#include "network/network_policy.h"
#include "jail/xsocket.h"
#include "sandbox/guest_link.h"

struct nursery;
struct berth;
struct template;
struct set_template;
struct proxy_event;

/* What the owner of a berth hears; guest_events slots come through unchanged, with the owner as their first argument. */
struct berth_events {
	struct guest_events guest;
	void (*on_ready)(void *owner);                      /* its guest waits for SETUP */
	void (*on_failed)(void *owner, const char *text);   /* there will be none; close the berth */
	void (*on_network)(void *owner, const struct proxy_event *e); /* it wanted to reach something */
	/* The display asked for with berth_open_display(): the descriptors of xsocket.h (those taken are set to -1), or NULL. */
	void (*on_display)(void *owner, int *fds);
};

/* What cannot be changed once a jail stands; stock of one kind is of no use for another. */
struct berth_kind {
	uint64_t disk_bytes, inodes;
	enum jail_exec exec;
	struct network_policy network; /* a borrowed one; a berth keeps its own copy */
	struct template *template;     /* the zygote its guests come from; NULL: the default one */
	struct set_template *set;      /* whose copy its first guest is; NULL for none */
};

struct nursery_config {
	uv_loop_t *loop;
	const char *guest_module, *state_dir;
	const char *rootfs;   /* the system that sessions see instead of the host's, or NULL */
	const char *shown;    /* directories that jails see as well, see tree_prepare(); or NULL */
	char *const *preload; /* NULL at the end */
	bool learn;           /* what a first cell touches, and keep it in state_dir */
	char *const *plain_preload; /* the same without anything of the system's packages */
	unsigned stock;       /* ready berths kept */
	double renew_s;       /* after which a zygote that was used is replaced; 0: never */
	uint64_t template_bytes; /* memory of the templates of package sets; 0: no limit */
	struct berth_kind kind; /* of those in stock */
	struct cgroup_limits limits; /* of those in stock */
	const struct berth_events *events;
};

/* What the control group of a session gets beyond its limit of memory, so that Python's MemoryError comes first. */
enum { BERTH_MEMORY_HEADROOM = 64 << 20 };

struct nursery_stats {
	uint64_t forked, restarts;
	unsigned stock_ready;
	struct step_times steps; /* of guests' starts */
};

int nursery_create(const struct nursery_config *config, struct error *e, struct nursery **ret);

/* Ends the stock and the helpers; done is called when all berths (the owners' too, which they must close) are gone. */
void nursery_destroy(struct nursery *n, void (*done)(void *), void *userdata);

/* Descriptors that must be free before another guest is made: its own, and some for connections and for sessions that are there. */
enum { NURSERY_SPARE_FDS = 96 };

/* Notes why something could not be made, when the errno says that something has run out. */
void nursery_note_shortage(struct nursery *n, int err, const char *step);

/* Why no more guests can be made now (the machine or this process has run out of something), or NULL. */
const char *nursery_shortage(const struct nursery *n);

bool nursery_has_groups(const struct nursery *n); /* control groups, which bound what all processes of a session take together */
bool nursery_warm(const struct nursery *n);
const char *nursery_complaint(const struct nursery *n); /* why it is not warm; NULL when it is */
const char *nursery_report(const struct nursery *n); /* what could not be preloaded, lines */
const struct nursery_stats *nursery_stats(const struct nursery *n);

/* A berth for this owner: from stock when it fits (*ret_ready), else on its way. */
int nursery_take(struct nursery *n, const struct berth_kind *kind, const struct cgroup_limits *limits, void *owner, bool *ret_ready,
	struct berth **ret);

struct guest *berth_guest(struct berth *b); /* NULL while there is none */
int berth_workspace(const struct berth *b); /* O_PATH fd, or -1 */
uint32_t berth_host_id(const struct berth *b);

/* What all processes of the berth used since it was made; zeros without control groups. */
void berth_usage(struct berth *b, struct cgroup_usage *ret);

/* False once the jail's init has ended, with all processes and files of the jail. */
bool berth_has_jail(const struct berth *b);

/* Kills the guest and, through the init, which does not share the guest's processors, all else in the jail at the same moment: against a
 * fork bomb the guest alone would take seconds to die. Its end is reported as usual. */
void berth_kill_all(struct berth *b);

/* Lets go of the guest (dead or not), kills all else in the jail, and asks for a new one: on_ready or on_failed follows. */
void berth_replace_guest(struct berth *b);

/* The same, but parked copies stay. */
void berth_restart_guest(struct berth *b);

/* Asks for a display's socket in the jail, with this cookie; on_display follows. */
void berth_open_display(struct berth *b, const uint8_t cookie[XSOCKET_COOKIE]);

/* What a process needs to enter the berth: the init's pidfd (the berth's own) and a ticket of its control group, the caller's. */
int berth_ticket(struct berth *b, int *ret_init_pidfd, struct cgroup_ticket *ret);

/* The process that jails come from, whose user namespace they belong to; -1 while there is none. */
int nursery_jailer_pidfd(const struct nursery *n);

/* ---- copies of its guest (copy.h) ---- */
struct copy;
bool berth_can_park(const struct berth *b);
struct copy *berth_copy(struct berth *b, uint64_t ticket); /* NULL when it is gone */

/* Their number changed: parked copies do not count against the session's limit of processes. */
void berth_count_copies(struct berth *b);

/* Kills the guest and all else in the jail but the parked copies. */
void berth_kill_others(struct berth *b);

/* Memory of its jail, the copies' and the files' included; 0 when that cannot be told. */
uint64_t berth_memory(const struct berth *b);

/* The same without what the kernel takes back when it needs it. */
uint64_t berth_memory_used(const struct berth *b);

/* Its control group's limits from now on. */
int berth_set_limits(struct berth *b, const struct cgroup_limits *limits);

/* Is its guest all that runs there, copies aside, with memory to spare? One that waits for a cell then does nothing until it gets one. */
bool berth_is_quiet(const struct berth *b);

/*
 * Lets go of the guest (which may be `quiet`, and ends a little later then) and has the copy take its place: on_ready or on_failed follows, unless this fails. *ret stands
 * for the copy then: see copy_take().
 */
int berth_revive(struct berth *b, struct copy *c, bool restore_files, bool quiet, struct copy **ret);
/*
 * A berth whose jail is nested in that of the copy, with a guest that comes from it. Kind and limits as in nursery_take(), a network of its own but
 * none that leads outside. on_ready or on_failed follows.
 */
int nursery_nest(struct nursery *n, struct copy *c, bool reseed, const struct berth_kind *kind, const struct cgroup_limits *limits, void *owner,
	struct berth **ret);
const char *berth_note(const struct berth *b); /* after on_ready: what kept its seed; "" for nothing */
const char *berth_files_left(const struct berth *b); /* after on_ready: why files were not put back; "" when they were */

/* Ends jail and guest; the owner hears nothing more. NULL is fine. */
void berth_close(struct berth *b);
