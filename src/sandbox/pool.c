#include "sandbox/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/text.h"
#include "sandbox/plain_zygote.h"
#include "sandbox/proxy_client.h"
#include "sandbox/rootfs.h"
#include "sandbox/sandbox.h"
#include "zygote/zygote.h"

enum {
	/* the session that took one runs its first cell now, and needs the CPU more */
	REFILL_AFTER_MS = 8,
	REFILL_MS = 2,           /* then sandboxes are made one by one, in the gaps */
	REFILL_FAILED_MS = 1000, /* when the last one could not be made */
	/* a shortage that was not seen again for so long is taken to be over */
	SHORTAGE_MS = 5000,
	JAILER_END_MS = 1000, /* a jailer that does not answer is killed at the end */
	REHEARSE_MS = 100,    /* a guest that waited so long uses the time */
	REHEARSAL_MS = 20,    /* which takes this long, or less */
	/* empty ones, a third of the time that a guest forked on demand takes */
	SPARE_JAILS = 4,
	RARE_KEPT_MS = 10 * 60 * 1000, /* ready guests of a kind that not all sessions have */
};

/* ---- ready sandboxes ---------------------------------------------------------------- */

struct ready_count {
	unsigned guests, jails; /* there or on their way; jails are the spare ones */
	unsigned loopback;      /* guests with a loopback interface; the other guests have none */
	unsigned plain;         /* guests of the plain zygote */
	struct sandbox *spare;
	bool busy; /* somebody waits for a guest */
};

static struct ready_count count_ready(const struct sandbox_pool *n)
{
	struct ready_count s = { 0 };
	struct sandbox *b;

	TAILQ_FOREACH (b, &n->sandboxes, link) {
		if (!sandbox_is_unowned(b)) {
			s.busy |= b->state != SANDBOX_READY && b->state != SANDBOX_CLOSED;
		} else if (b->kind.set) {
			continue; /* its template counts it */
		} else if (b->kind.template) {
			s.plain++;
		} else if (b->kind.network.net != n->config.kind.network.net) {
			s.loopback++;
		} else if (b->spare) {
			s.jails++;
			s.spare = b;
		} else {
			s.guests++;
		}
	}
	return s;
}

/*
 * A first cell takes most of its time for copying pages that guests share. Ready guests do it
 * ahead, one at a time; those that are asked for as fast as they come go on sharing, so that many
 * sessions made in a row stay small. Returns in how many milliseconds to look again, 0 when there
 * is nothing to wait for.
 */
static uint64_t rehearse_ready(struct sandbox_pool *n)
{
	uint64_t now = uv_now(n->config.loop), next = 0;
	struct sandbox *b;

	TAILQ_FOREACH (b, &n->sandboxes, link) {
		if (!sandbox_is_unowned(b) || b->state != SANDBOX_READY || b->rehearsed_ms)
			continue;
		if (now >= b->ready_ms + REHEARSE_MS) {
			sandbox_rehearse(b);
			return REFILL_AFTER_MS;
		}
		uint64_t wait = b->ready_ms + REHEARSE_MS - now;
		next = !next || wait < next ? wait : next;
	}
	return next;
}

/*
 * Clients that ask for a loopback ask again (E2B's do for every sandbox): some are kept ready for a
 * while after the last one was taken.
 */
static bool wants_loopback(const struct sandbox_pool *n)
{
	return n->loopback_taken && uv_now(n->config.loop) - n->loopback_taken < RARE_KEPT_MS &&
	       n->config.kind.network.net == JAIL_NET_NONE;
}

/* The same for guests of the plain zygote. */
static bool wants_plain(const struct sandbox_pool *n)
{
	return n->plain && template_warm(n->plain) && n->plain_taken &&
	       uv_now(n->config.loop) - n->plain_taken < RARE_KEPT_MS;
}

static void note_kind(struct sandbox_pool *n, const struct sandbox_kind *kind)
{
	bool usual = !kind->set && !kind->mounts.n &&
		     kind->disk_bytes == n->config.kind.disk_bytes &&
		     kind->inodes == n->config.kind.inodes && kind->exec == n->config.kind.exec;
	if (usual && !kind->template && kind->network.net == JAIL_NET_LOOPBACK)
		n->loopback_taken = uv_now(n->config.loop);
	if (usual && kind->template && kind->network.net == n->config.kind.network.net)
		n->plain_taken = uv_now(n->config.loop);
}

unsigned sandbox_ready_weight(const struct sandbox *b)
{
	return b->kind.set ||
	       (!b->kind.template && b->kind.network.net == b->pool->config.kind.network.net);
}

static bool is_full(const struct sandbox_pool *n, const struct ready_count *s)
{
	return s->guests >= n->config.ready_target && s->jails >= SPARE_JAILS &&
	       (s->loopback >= n->config.ready_target || !wants_loopback(n)) &&
	       (s->plain >= n->config.ready_target || !wants_plain(n));
}

/* One more: a guest, in a spare jail if there is one, else a spare jail. */
static void make_one(struct sandbox_pool *n, const struct ready_count *s)
{
	struct sandbox_kind kind = n->config.kind;
	bool usual = s->guests < n->config.ready_target;
	bool loopback = !usual && s->loopback < n->config.ready_target && wants_loopback(n);
	bool plain = !usual && !loopback && s->plain < n->config.ready_target && wants_plain(n);

	if (loopback)
		kind.network.net = JAIL_NET_LOOPBACK;
	if (plain)
		kind.template = n->plain;
	if (s->spare && (usual || plain)) {
		s->spare->kind.template = kind.template;
		sandbox_want_guest(s->spare);
		return;
	}

	struct sandbox *b = sandbox_new(n, &kind, &n->config.limits, NULL);
	if (b)
		b->spare = !usual && !loopback && !plain;
}

/* One step at a time: a guest or a jail, else a copy of a template. */
static void on_refill(uv_timer_t *t)
{
	struct sandbox_pool *n = t->data;
	if (n->destroying)
		return;

	struct ready_count s = count_ready(n);
	if (is_full(n, &s)) {
		uint64_t wait = package_templates_refill(n) ? REFILL_MS : rehearse_ready(n);
		if (wait)
			uv_timer_start(t, on_refill, wait, 0);
		return;
	}

	int room = fd_check_room(POOL_SPARE_FDS);
	sandbox_pool_note_shortage(n, room, "another ready guest");
	n->refill_failed |= room < 0;
	uv_timer_start(t, on_refill, n->refill_failed ? REFILL_FAILED_MS : REFILL_MS, 0);
	if (room < 0)
		return; /* what is left is for connections and for sessions that are there */
	if (!s.busy || !n->zygote_warm) /* a session that waits for its guest goes first */
		make_one(n, &s);
}

void sandbox_pool_note_shortage(struct sandbox_pool *n, int err, const char *step)
{
	static const int kinds[] = { -EMFILE, -ENFILE, -EAGAIN, -ENOMEM, -ENOSPC, -EUSERS,
		-EDQUOT };
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (err != kinds[i])
			continue;
		char why[sizeof(n->shortage.why)];
		snprintf(why, sizeof(why), "%s: %s", step, strerror(-err));
		sandbox_pool_set_shortage(n, why);
	}
}

void sandbox_pool_set_shortage(struct sandbox_pool *n, const char *why)
{
	snprintf(n->shortage.why, sizeof(n->shortage.why), "%s", why);
	n->shortage.since_ms = uv_now(n->config.loop);
}

void sandbox_pool_forget_shortage(struct sandbox_pool *n)
{
	n->shortage.why[0] = '\0';
}

const char *sandbox_pool_shortage(const struct sandbox_pool *n)
{
	/* an old shortage is ignored: the next request shows whether it lasts */
	bool old = uv_now(n->config.loop) - n->shortage.since_ms > SHORTAGE_MS;
	return n->shortage.why[0] && !old ? n->shortage.why : NULL;
}

void sandbox_pool_refill_later(struct sandbox_pool *n)
{
	uint64_t wait = n->refill_failed ? REFILL_FAILED_MS : REFILL_AFTER_MS;
	bool soon = uv_is_active((uv_handle_t *)&n->refill) &&
		    uv_timer_get_due_in(&n->refill) <= wait;
	if (!n->destroying && n->jailer_up && n->zygote_warm && !soon)
		uv_timer_start(&n->refill, on_refill, wait, 0);
}

/*
 * Is the guest of one readier than that of another? Of those that have rehearsed it is the last:
 * what it touched may still lie in caches.
 */
static bool is_readier(
	const struct sandbox_pool *n, const struct sandbox *b, const struct sandbox *than)
{
	if (!than || b->state != than->state)
		return !than || b->state > than->state;
	return b->rehearsed_ms > than->rehearsed_ms &&
	       b->rehearsed_ms + REHEARSAL_MS <= uv_now(n->config.loop);
}

int sandbox_pool_take(struct sandbox_pool *n, const struct sandbox_kind *kind,
	const struct cgroup_limits *limits, void *owner, bool *ret_ready, struct sandbox **ret)
{
	struct sandbox *b, *best = NULL;
	note_kind(n, kind);
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (sandbox_is_unowned(b) && b->kind.set == kind->set &&
			b->kind.disk_bytes == kind->disk_bytes && b->kind.inodes == kind->inodes &&
			b->kind.exec == kind->exec && b->kind.network.net == kind->network.net &&
			kind->network.net != JAIL_NET_ALLOW && !kind->mounts.n &&
			/* a guest is of one template, a jail of none */
			(kind->set || b->kind.template == kind->template || b->spare ||
				b->state == SANDBOX_JAIL) &&
			is_readier(n, b, best))
			best = b;
	if (!best && kind->set) {
		*ret_ready = false;
		return sandbox_pool_nest(
			n, package_template_snapshot(kind->set), true, kind, limits, owner, ret);
	}

	if (!best)
		best = sandbox_new(n, kind, limits, owner);
	if (!best)
		return -ENOMEM;

	int r = sandbox_set_limits(best, limits);
	if (r < 0)
		return r; /* it stays ready for others, with whatever limits it had */
	best->kind.template = kind->template;
	sandbox_want_guest(best);

	/* that one could not; perhaps a new one can */
	if (best->state == SANDBOX_CLOSED && !(best = sandbox_new(n, kind, limits, owner)))
		return -ENOMEM;

	best->owner = owner;
	*ret_ready = best->state == SANDBOX_READY;
	if (*ret_ready)
		n->stats.ready -= sandbox_ready_weight(best);
	*ret = best;
	sandbox_pool_refill_later(n);
	return 0;
}

/* ---- life of the pool ------------------------------------------------------------------ */

/*
 * A block of host ids that no other daemon of this machine has: two sessions with one id could
 * signal each other's processes through a shared kernel limit, or be counted together. A byte of a
 * file is locked for each block, for as long as we live; where there is no such file, the block is
 * chosen by our pid.
 */
static void take_host_ids(struct sandbox_pool *n)
{
	uint32_t block = (uint32_t)getpid() % JAIL_HOST_ID_BLOCKS;
	n->host_id_lock = geteuid() == 0
				  ? open("/run/glovebox.ids", O_RDWR | O_CREAT | O_CLOEXEC, 0600)
				  : -1;
	for (unsigned tried = 0; n->host_id_lock >= 0 && tried < JAIL_HOST_ID_BLOCKS; tried++) {
		struct flock lock = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = block, .l_len = 1
		};
		if (fcntl(n->host_id_lock, F_OFD_SETLK, &lock) == 0)
			break;
		block = (block + 1) % JAIL_HOST_ID_BLOCKS;
	}

	n->first_host_id = JAIL_HOST_ID + block * JAIL_HOST_ID_COUNT;
}

int sandbox_pool_create(
	const struct sandbox_pool_config *config, struct error *e, struct sandbox_pool **ret)
{
	if (access(config->guest_module, R_OK) < 0) {
		error_set_errno(e, -errno, "the guest module %s", config->guest_module);
		return error_remedy(
			e, "Build it with `make`, or install the program with `make install`.");
	}

	if (config->rootfs) {
		int r = rootfs_check(config->rootfs, e);
		if (r < 0)
			return r;
	}

	struct sandbox_pool *n = calloc(1, sizeof(*n));
	if (!n)
		return error_set(e, -ENOMEM, "out of memory");

	n->config = *config;
	n->tree = n->jailer.pidfd = n->jailer.socket = n->zygote.pidfd = n->zygote.socket =
		n->proxy.pidfd = n->proxy.socket = n->mover.pidfd = n->mover.socket = -1;
	int r = children_create(config->loop, &n->children);
	if (r < 0) {
		free(n);
		return error_set_errno(e, r, "watching child processes");
	}

	TAILQ_INIT(&n->sandboxes);
	TAILQ_INIT(&n->workspaces);
	TAILQ_INIT(&n->programs);
	TAILQ_INIT(&n->sets);
	take_host_ids(n);
	uv_timer_init(config->loop, &n->refill);
	uv_timer_init(config->loop, &n->restart);
	uv_timer_init(config->loop, &n->proxy_restart);
	n->refill.data = n->restart.data = n->proxy_restart.data = n;
	watchdog_start(n);
	n->open_timers = 4;
	struct error why = { 0 };
	cgroup_home_init(&n->cgroups, "/sys/fs/cgroup", &why);
	r = sandbox_pool_start_jailer(n);
	if (r < 0) {
		error_set_errno(e, r, "starting the jailer");
		sandbox_pool_destroy(n, NULL, NULL);
		return r;
	}

	*ret = n;
	return 0;
}

static void free_pool(void *userdata)
{
	struct sandbox_pool *n = userdata;
	void (*done)(void *) = n->done;
	void *done_userdata = n->done_userdata;
	free(n);
	if (done)
		done(done_userdata);
}

void sandbox_pool_finish_when_empty(struct sandbox_pool *n)
{
	if (!n->destroying || n->open_timers || n->jailer.open_polls || n->zygote.open_polls ||
		n->proxy.open_polls || n->mover.open_polls || n->plain ||
		!package_templates_gone(n) || !TAILQ_EMPTY(&n->sandboxes) || !n->children)
		return;

	sandbox_remove_spare_cgroups(n);
	sandbox_remove_spare_nets(n);
	sandbox_remove_leftovers(n);
	cgroup_home_finish(&n->cgroups);
	free(n->unremoved);
	fd_close(n->host_id_lock);
	fd_close(n->tree);
	children_destroy(TAKE_PTR(n->children), free_pool, n);
}

static void on_patience_over(uv_timer_t *t)
{
	sandbox_pool_close_jailer(t->data);
}

void sandbox_pool_destroy(struct sandbox_pool *n, void (*done)(void *), void *userdata)
{
	n->destroying = true;
	n->done = done;
	n->done_userdata = userdata;
	for (struct sandbox *b = TAILQ_FIRST(&n->sandboxes), *next; b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (sandbox_is_unowned(b))
			sandbox_close(b);
	}

	helper_close(&n->zygote);
	template_destroy(n);
	package_templates_destroy(n);
	proxy_client_destroy(n);
	arrival_destroy(n);
	watchdog_stop(n, sandbox_pool_timer_closed);
	uv_close((uv_handle_t *)&n->refill, sandbox_pool_timer_closed);
	uv_close((uv_handle_t *)&n->proxy_restart, sandbox_pool_timer_closed);

	/*
	 * Jails that are being made are taken and ended; killed halfway, the jailer would leave
	 * their processes to chance.
	 */
	if (sandbox_pool_awaits_jails(n))
		uv_timer_start(&n->restart, on_patience_over, JAILER_END_MS, 0);
	else
		sandbox_pool_close_jailer(n);
}

bool sandbox_pool_has_groups(const struct sandbox_pool *n)
{
	return n->cgroups.ops && strcmp(cgroup_home_kind(&n->cgroups), "none") != 0;
}

bool sandbox_pool_warm(const struct sandbox_pool *n)
{
	/* while it is renewed there are ready guests, and other sessions wait a moment */
	return (n->zygote_warm || renewal_under_way(n)) && n->jailer_up;
}

int sandbox_pool_jailer_pidfd(const struct sandbox_pool *n)
{
	return n->jailer.pidfd;
}

const char *sandbox_pool_complaint(const struct sandbox_pool *n)
{
	return watchdog_complaint(n);
}

const char *sandbox_pool_report(const struct sandbox_pool *n)
{
	return n->report;
}

const struct sandbox_pool_stats *sandbox_pool_stats(const struct sandbox_pool *n)
{
	return &n->stats;
}
