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
#include "sandbox/sandbox.h"
#include "sandbox/rootfs.h"
#include "sandbox/plain_zygote.h"
#include "sandbox/proxy_client.h"
#include "zygote/zygote.h"

enum {
	REFILL_AFTER_MS = 8,      /* the session that took one runs its first cell now, and needs the CPU more */
	REFILL_MS = 2,            /* then stock is made one by one, in the gaps */
	REFILL_FAILED_MS = 1000,  /* when the last one could not be made */
	SHORTAGE_MS = 5000,       /* a shortage that was not seen again for so long is taken to be over */
	RESTART_MS = 200,         /* before a helper that died is started again */
	JAILER_END_MS = 1000,     /* a jailer that does not answer is killed at the end */
	FAILURES_MAX = 5,         /* in a row, before those who wait are told */
	PRELOAD_ARGS_MAX = 256,
	REHEARSE_MS = 100,        /* a guest that waited so long uses the time */
	REHEARSAL_MS = 20,        /* which takes this long, or less */
	SPARE_JAILS = 4,          /* empty ones, a third of the time that a guest forked on demand takes */
};

static void start_helpers(struct sandbox_pool *n);

/* ---- stock --------------------------------------------------------------------------- */

struct stock {
	unsigned guests, jails; /* there or on their way; jails are the spare ones */
	struct sandbox *spare;
	bool busy; /* somebody waits for a guest */
};

static struct stock look_at_stock(const struct sandbox_pool *n)
{
	struct stock s = { 0 };
	struct sandbox *b;
	TAILQ_FOREACH(b, &n->sandboxes, link) {
		if (!sandbox_is_stock(b)) {
			s.busy |= b->state != SANDBOX_READY && b->state != SANDBOX_CLOSED;
		} else if (b->kind.set) {
			continue; /* its template counts it */
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
 * A first cell takes most of its time for copying pages that guests share. Those that wait in stock do it ahead, one at a time;
 * those that are asked for as fast as they come go on sharing, so that many sessions made in a row stay small. Returns in how
 * many milliseconds to look again, 0 when there is nothing to wait for.
 */
static uint64_t rehearse_stock(struct sandbox_pool *n)
{
	uint64_t now = uv_now(n->config.loop), next = 0;
	struct sandbox *b;
	TAILQ_FOREACH(b, &n->sandboxes, link) {
		if (!sandbox_is_stock(b) || b->state != SANDBOX_READY || b->rehearsed_ms)
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

/* One step at a time: a guest, in a spare jail if there is one, else a spare jail, else a copy of a template. */
static void on_refill(uv_timer_t *t)
{
	struct sandbox_pool *n = t->data;
	if (n->destroying)
		return;
	struct stock s = look_at_stock(n);
	if (s.guests >= n->config.stock && s.jails >= SPARE_JAILS) {
		uint64_t wait = package_templates_refill(n) ? REFILL_MS : rehearse_stock(n);
		if (wait)
			uv_timer_start(t, on_refill, wait, 0);
		return;
	}
	int room = fd_check_room(NURSERY_SPARE_FDS);
	sandbox_pool_note_shortage(n, room, "another guest in stock");
	n->stock_failed |= room < 0;
	uv_timer_start(t, on_refill, n->stock_failed ? REFILL_FAILED_MS : REFILL_MS, 0);
	if (room < 0)
		return; /* what is left is for connections and for sessions that are there */
	if (s.busy && n->zygote_warm)
		return; /* he goes first */
	if (s.guests < n->config.stock && s.spare) {
		sandbox_want_guest(s.spare);
		return;
	}
	struct sandbox *b = sandbox_new(n, &n->config.kind, &n->config.limits, NULL);
	if (b)
		b->spare = s.guests >= n->config.stock;
}

void sandbox_pool_note_shortage(struct sandbox_pool *n, int err, const char *step)
{
	static const int kinds[] = { -EMFILE, -ENFILE, -EAGAIN, -ENOMEM, -ENOSPC, -EUSERS, -EDQUOT };
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
	bool old = uv_now(n->config.loop) - n->shortage.since_ms > SHORTAGE_MS; /* whoever asks next finds out */
	return n->shortage.why[0] && !old ? n->shortage.why : NULL;
}

void sandbox_pool_stock_changed(struct sandbox_pool *n)
{
	uint64_t wait = n->stock_failed ? REFILL_FAILED_MS : REFILL_AFTER_MS;
	bool soon = uv_is_active((uv_handle_t *)&n->refill) && uv_timer_get_due_in(&n->refill) <= wait;
	if (!n->destroying && n->jailer_up && n->zygote_warm && !soon)
		uv_timer_start(&n->refill, on_refill, wait, 0);
}

/* Is the guest of one readier than that of another? Of those that have rehearsed it is the last: what it touched may still lie in caches. */
static bool is_readier(const struct sandbox_pool *n, const struct sandbox *b, const struct sandbox *than)
{
	if (!than || b->state != than->state)
		return !than || b->state > than->state;
	return b->rehearsed_ms > than->rehearsed_ms && b->rehearsed_ms + REHEARSAL_MS <= uv_now(n->config.loop);
}

int sandbox_pool_take(struct sandbox_pool *n, const struct sandbox_kind *kind, const struct cgroup_limits *limits, void *owner, bool *ret_ready,
	struct sandbox **ret)
{
	struct sandbox *b, *best = NULL;
	TAILQ_FOREACH(b, &n->sandboxes, link)
		if (sandbox_is_stock(b) && b->kind.set == kind->set && b->kind.disk_bytes == kind->disk_bytes && b->kind.inodes == kind->inodes && b->kind.exec == kind->exec &&
			b->kind.network.net == kind->network.net && kind->network.net != JAIL_NET_ALLOW &&
			(kind->set || !kind->template || b->spare || b->state == SANDBOX_JAIL) && /* a guest is of one template, a jail of none */
			is_readier(n, b, best))
			best = b;
	if (!best && kind->set) {
		*ret_ready = false;
		return sandbox_pool_nest(n, package_template_snapshot(kind->set), true, kind, limits, owner, ret);
	}
	if (!best)
		best = sandbox_new(n, kind, limits, owner);
	if (!best)
		return -ENOMEM;
	int r = sandbox_set_limits(best, limits);
	if (r < 0)
		return r; /* it stays in stock, with whatever limits it had */
	best->kind.template = kind->template;
	sandbox_want_guest(best);
	if (best->state == SANDBOX_CLOSED && !(best = sandbox_new(n, kind, limits, owner))) /* that one could not; perhaps a new one can */
		return -ENOMEM;
	best->owner = owner;
	*ret_ready = best->state == SANDBOX_READY;
	if (*ret_ready)
		n->stats.stock_ready--;
	*ret = best;
	sandbox_pool_stock_changed(n);
	return 0;
}

/* ---- helpers -------------------------------------------------------------------------- */

/* Something that everybody needs does not work: those who wait are told, others keep what they have. */
static void fail_waiting(struct sandbox_pool *n, const char *text)
{
	for (struct sandbox *b = TAILQ_FIRST(&n->sandboxes), *next; b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (b->state == SANDBOX_JAIL || b->state == SANDBOX_SWEEP || b->state == SANDBOX_GUEST || (b->state == SANDBOX_STARTING && !b->from))
			sandbox_fail(b, text);
	}
}

static bool jails_on_their_way(struct sandbox_pool *n)
{
	struct sandbox *b;
	TAILQ_FOREACH(b, &n->sandboxes, link)
		if (b->jail_asked)
			return true;
	return false;
}

static void timer_closed(uv_handle_t *h)
{
	struct sandbox_pool *n = h->data;
	n->open_timers--;
	sandbox_pool_finish_when_empty(n);
}

/* The last step of the end; idempotent. */
static void close_jailer(struct sandbox_pool *n)
{
	helper_close(&n->jailer);
	if (!uv_is_closing((uv_handle_t *)&n->restart))
		uv_close((uv_handle_t *)&n->restart, timer_closed);
}

/* Requests that a full socket did not take: without this their sessions would start for ever. */
static void ask_refused_again(struct sandbox_pool *n)
{
	struct sandbox *b;
	if (!n->requests_refused || n->destroying)
		return;
	n->requests_refused = false;
	TAILQ_FOREACH(b, &n->sandboxes, link) {
		if (b->state == SANDBOX_JAIL)
			sandbox_ask_jail(b);
		else if (b->state == SANDBOX_GUEST && !b->spare && !b->moving)
			sandbox_ask_guest(b);
	}
}

static void on_jailer_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h - offsetof(struct sandbox_pool, jailer));
	struct jail_answer a;
	struct sandbox *b;
	if (len != sizeof(a))
		return;
	memcpy(&a, data, sizeof(a));
	a.text[sizeof(a.text) - 1] = '\0';
	watchdog_answered(n);
	if (a.serial) {
		if ((b = sandbox_find(n, a.serial)))
			sandbox_take_jail(b, &a, fds, n_fds);
		else if (n_fds)
			process_signal(fds[0], SIGKILL);
		ask_refused_again(n);
		if (n->destroying && !jails_on_their_way(n))
			close_jailer(n);
		return;
	}
	if (a.err) {
		log_error("jails cannot be made: %s", a.text);
		fail_waiting(n, a.text);
		n->failures = FAILURES_MAX; /* it will not get better by trying at once */
		return;
	}
	n->jailer_up = true;
	start_helpers(n); /* the zygote wants to know the jailer */
	template_start(n);
	TAILQ_FOREACH(b, &n->sandboxes, link)
		if (b->state == SANDBOX_JAIL)
			sandbox_ask_jail(b);
	sandbox_pool_stock_changed(n);
}

void sandbox_pool_spawned(struct sandbox_pool *n, const void *message, int *fds, size_t n_fds)
{
	const struct wire_zygote *m = message;
	struct sandbox *b = sandbox_find(n, m->serial);
	if (!b || b->state != SANDBOX_STARTING || !b->guest || m->err || n_fds != 1) {
		if (n_fds)
			process_signal(fds[0], SIGKILL); /* nobody wants it any more; reaped with the orphans */
		if (b && b->state == SANDBOX_STARTING) /* without an errno its pidfd was what there was no room for */
			sandbox_fail_step(b, m->err ? m->err : -EMFILE, "forking the interpreter");
		return;
	}
	n->stats.forked++;
	sandbox_take_guest(b, TAKE_FD(fds[0]), m->pid);
}

static void on_zygote_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h - offsetof(struct sandbox_pool, zygote));
	static struct wire_zygote m;
	struct sandbox *b;
	if (len != sizeof(m))
		return;
	memcpy(&m, data, sizeof(m));
	m.text[sizeof(m.text) - 1] = '\0';
	switch (m.event) {
	case WIRE_ZYGOTE_SPAWNED:
		sandbox_pool_spawned(n, &m, fds, n_fds);
		ask_refused_again(n);
		break;
	case WIRE_ZYGOTE_WARM:
		memcpy(n->report, m.text, sizeof(n->report));
		n->zygote_warm = true;
		n->failures = 0;
		renewal_zygote_warm(n);
		TAILQ_FOREACH(b, &n->sandboxes, link)
			if (b->state == SANDBOX_GUEST && !b->kind.template)
				sandbox_ask_guest(b);
		sandbox_pool_stock_changed(n);
		break;
	case WIRE_ZYGOTE_PROBLEM:
		log_error("the zygote says: %s", m.text);
		break;
	default:
		break;
	}
}

static void on_restart(uv_timer_t *t)
{
	start_helpers(t->data);
}

static void on_helper_exit(struct helper *h)
{
	helper_close(h);
}

static void on_zygote_closed(struct helper *h)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h - offsetof(struct sandbox_pool, zygote));
	n->zygote_warm = false;
	if (n->destroying) {
		sandbox_pool_finish_when_empty(n);
		return;
	}
	if (renewal_ended(n)) {
		uv_timer_start(&n->restart, on_restart, 0, 0);
		return;
	}
	n->stats.restarts++;
	n->failures++;
	log_warning("the zygote ended; sessions that run do not notice, a new one is started");
	struct sandbox *b;
	TAILQ_FOREACH(b, &n->sandboxes, link)
		if (!b->kind.template)
			sandbox_forget_guest(b);
	if (n->failures >= FAILURES_MAX)
		fail_waiting(n, "the Python zygote does not start; the server's log says why, and `glovebox doctor` what is missing");
	uv_timer_start(&n->restart, on_restart, RESTART_MS * (uint64_t)n->failures, 0);
}

static void on_jailer_closed(struct helper *h)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h - offsetof(struct sandbox_pool, jailer));
	struct sandbox *b;
	n->jailer_up = false;
	h->open_polls++; /* the last sandbox to go would take the pool with it */
	for (b = TAILQ_FIRST(&n->sandboxes); b;) {
		struct sandbox *next = TAILQ_NEXT(b, link);
		sandbox_forget_jail(b);
		b = next;
	}
	h->open_polls--;
	if (n->destroying) {
		close_jailer(n);
		sandbox_pool_finish_when_empty(n);
		return;
	}
	/* Where the jailer has a user namespace of its own, jails of the next one are out of reach for a zygote that joined this one's. */
	if (geteuid() != 0) {
		helper_close(&n->zygote);
		template_restart(n);
	}
	n->failures++;
	log_warning("the jailer ended; a new one is started");
	uv_timer_start(&n->restart, on_restart, RESTART_MS * (uint64_t)n->failures, 0);
}

static int start_jailer(struct sandbox_pool *n)
{
	char *argv[] = { (char *)"glovebox", (char *)"jailer", NULL };
	_cleanup_free_ char *shown = NULL;
	_cleanup_free_ char *lines = n->config.rootfs ? rootfs_shown(n->config.rootfs, n->config.guest_module, n->config.shown)
						      : strdup(n->config.shown ? n->config.shown : "");
	if (!lines || asprintf(&shown, JAILER_SHOWN "=%s", lines) < 0)
		return -ENOMEM;
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", shown, NULL };
	n->jailer.on_message = on_jailer_message;
	n->jailer.on_exit = on_helper_exit;
	n->jailer.on_closed = on_jailer_closed;
	watchdog_jailer_new(n);
	return helper_start(&n->jailer, n->config.loop, "/proc/self/exe", argv, envp, (const int[HELPER_EXTRA]){ -1 });
}

/* The environment is built from nothing, before exec: clearing it later would leave it readable in /proc. */
int sandbox_pool_start_zygote(struct sandbox_pool *n, struct helper *h, char *const *modules, int book)
{
	char *argv[PRELOAD_ARGS_MAX + 16];
	static char *envp[] = { (char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LANG=C.UTF-8", (char *)"LC_ALL=C.UTF-8",
		(char *)"HOME=/tmp", (char *)"OPENBLAS_NUM_THREADS=1", (char *)"OMP_NUM_THREADS=1", NULL };
	char cache[4096];
	size_t at = 0;
	bool own_tree = n->config.rootfs;
	snprintf(cache, sizeof(cache), "%s/matplotlib", n->config.state_dir && !own_tree ? n->config.state_dir : "/tmp");
	const char *fixed[] = { "glovebox", "inside", GLOVEBOX_PYTHON, "-I", "-B", "-X", "utf8", "-c", ZYGOTE_BOOT,
		own_tree ? "/run/" ROOTFS_MODULE : n->config.guest_module, cache };
	for (size_t i = own_tree ? 0 : 2; i < ARRAY_LEN(fixed); i++)
		argv[at++] = (char *)fixed[i];
	for (size_t i = 0; modules[i] && i < PRELOAD_ARGS_MAX; i++)
		argv[at++] = modules[i];
	argv[at] = NULL;
	return helper_start(h, n->config.loop, own_tree ? "/proc/self/exe" : GLOVEBOX_PYTHON, argv, envp,
		(const int[HELPER_EXTRA]){ n->jailer.pidfd, book });
}

/* What was learnt about the template: a file of its own for other modules or another system. -1 where nothing is to be learnt. */
static int open_book(const struct sandbox_pool *n)
{
	struct sha256 s;
	struct stat st;
	char path[4096], hex[SHA256_HEX + 1];
	if (!n->config.learn || !ZYGOTE_LEARNS || !n->config.preload[0])
		return -1;
	sha256_init(&s);
	for (size_t i = 0; n->config.preload[i]; i++)
		sha256_add(&s, n->config.preload[i], strlen(n->config.preload[i]) + 1);
	if (n->config.rootfs)
		sha256_add(&s, n->config.rootfs, strlen(n->config.rootfs));
	sha256_end(&s, hex);
	snprintf(path, sizeof(path), "%s/layout", n->config.state_dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/layout/%.16s", n->config.state_dir, hex);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		log_warning("%s: %s; sessions start slower than they could (make it writable, or name another place with --state-dir)", path, strerror(errno));
	else if (fstat(fd, &st) == 0 && st.st_size == 0)
		log_info("the first start with these modules: they are imported twice, to learn what a session's first cell touches");
	return fd;
}

static int start_zygote(struct sandbox_pool *n)
{
	_cleanup_fd_ int book = open_book(n);
	n->zygote.on_message = on_zygote_message;
	n->zygote.on_exit = on_helper_exit;
	n->zygote.on_closed = on_zygote_closed;
	return sandbox_pool_start_zygote(n, &n->zygote, n->config.preload, book);
}

/* Starts what does not run: the jailer first, and once it answers the zygote. */
static void start_helpers(struct sandbox_pool *n)
{
	int r = 0;
	if (n->destroying)
		return;
	if (!n->jailer.running && !n->jailer.open_polls)
		r = start_jailer(n);
	else if (n->jailer_up && !n->zygote.running && !n->zygote.open_polls)
		r = start_zygote(n);
	if (r < 0) {
		log_error("a helper process does not start: %s", strerror(-r));
		n->failures++;
		uv_timer_start(&n->restart, on_restart, RESTART_MS * (uint64_t)n->failures, 0);
	}
}

/* ---- life of the pool ------------------------------------------------------------------ */

/*
 * A block of host ids that no other daemon of this machine has: two sessions with one id could signal each other's processes through a
 * shared kernel limit, or be counted together. A byte of a file is locked for each block, for as long as we live; where there is no such file,
 * the block is chosen by our pid.
 */
static void take_host_ids(struct sandbox_pool *n)
{
	uint32_t block = (uint32_t)getpid() % JAIL_HOST_ID_BLOCKS;
	n->host_id_lock = geteuid() == 0 ? open("/run/glovebox.ids", O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	for (unsigned tried = 0; n->host_id_lock >= 0 && tried < JAIL_HOST_ID_BLOCKS; tried++) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = block, .l_len = 1 };
		if (fcntl(n->host_id_lock, F_OFD_SETLK, &lock) == 0)
			break;
		block = (block + 1) % JAIL_HOST_ID_BLOCKS;
	}
	n->first_host_id = JAIL_HOST_ID + block * JAIL_HOST_ID_COUNT;
}

int sandbox_pool_create(const struct sandbox_pool_config *config, struct error *e, struct sandbox_pool **ret)
{
	if (access(config->guest_module, R_OK) < 0) {
		error_set_errno(e, -errno, "the guest module %s", config->guest_module);
		return error_remedy(e, "Build it with `make`, or install the program with `make install`.");
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
	n->jailer.pidfd = n->jailer.socket = n->zygote.pidfd = n->zygote.socket = n->proxy.pidfd = n->proxy.socket = n->mover.pidfd = n->mover.socket = -1;
	TAILQ_INIT(&n->sandboxes);
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
	if (why.err)
		log_warning("%s. %s", why.text, why.remedy);
	int r = start_jailer(n);
	if (r < 0) {
		error_set_errno(e, r, "starting the jailer");
		sandbox_pool_destroy(n, NULL, NULL);
		return r;
	}
	*ret = n;
	return 0;
}

void sandbox_pool_finish_when_empty(struct sandbox_pool *n)
{
	if (!n->destroying || n->open_timers || n->jailer.open_polls || n->zygote.open_polls || n->proxy.open_polls || n->mover.open_polls || n->plain || !package_templates_gone(n) ||
		!TAILQ_EMPTY(&n->sandboxes))
		return;
	void (*done)(void *) = n->done;
	void *userdata = n->done_userdata;
	sandbox_remove_leftovers(n);
	cgroup_home_finish(&n->cgroups);
	free(n->unremoved);
	fd_close(n->host_id_lock);
	free(n);
	if (done)
		done(userdata);
}

static void on_patience_over(uv_timer_t *t)
{
	close_jailer(t->data);
}

void sandbox_pool_destroy(struct sandbox_pool *n, void (*done)(void *), void *userdata)
{
	n->destroying = true;
	n->done = done;
	n->done_userdata = userdata;
	for (struct sandbox *b = TAILQ_FIRST(&n->sandboxes), *next; b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (sandbox_is_stock(b))
			sandbox_close(b);
	}
	helper_close(&n->zygote);
	template_destroy(n);
	package_templates_destroy(n);
	proxy_client_destroy(n);
	arrival_destroy(n);
	watchdog_stop(n, timer_closed);
	uv_close((uv_handle_t *)&n->refill, timer_closed);
	uv_close((uv_handle_t *)&n->proxy_restart, timer_closed);
	/* Jails that are being made are taken and ended; killed halfway, the jailer would leave their processes to chance. */
	if (jails_on_their_way(n))
		uv_timer_start(&n->restart, on_patience_over, JAILER_END_MS, 0);
	else
		close_jailer(n);
}

bool sandbox_pool_has_groups(const struct sandbox_pool *n)
{
	return n->cgroups.ops && strcmp(cgroup_home_kind(&n->cgroups), "none") != 0;
}

bool sandbox_pool_warm(const struct sandbox_pool *n)
{
	return (n->zygote_warm || renewal_under_way(n)) && n->jailer_up; /* while it is renewed there are guests in stock, and others wait a moment */
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
