#include "session/nursery.h"

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
#include "base/text.h"
#include "jail/jail.h"
#include "session/helper.h"
#include "zygote/zygote.h"

enum {
	REFILL_MS = 2,            /* stock is made one by one, in the gaps */
	RESTART_MS = 200,         /* before a helper that died is started again */
	FAILURES_MAX = 5,         /* in a row, before those who wait are told */
	PRELOAD_ARGS_MAX = 256,
};

/* A berth's way: JAIL (asked of the jailer) → SWEEP? → GUEST (asked of the zygote) → READY; or CLOSED from anywhere. */
enum berth_state { BERTH_JAIL, BERTH_SWEEP, BERTH_GUEST, BERTH_STARTING, BERTH_READY, BERTH_CLOSED };

struct berth {
	TAILQ_ENTRY(berth) link;
	struct nursery *nursery;
	void *owner; /* NULL: stock */
	enum berth_state state;
	uint32_t serial, host_id;
	uint64_t disk_bytes;
	int init_pidfd, init_control, workspace;
	uv_poll_t init_poll, control_poll;
	unsigned open_polls;
	bool init_reaped, jail_asked;
	struct guest *guest;
	int far[3]; /* the guest's ends, until the zygote has them */
	char *problem;
};

TAILQ_HEAD(berth_list, berth);

struct nursery {
	struct nursery_config config;
	struct helper jailer, zygote;
	bool jailer_up, zygote_warm, destroying;
	unsigned failures;
	uv_timer_t refill, restart;
	unsigned open_timers;
	struct berth_list berths;
	uint32_t next_serial, next_host_id;
	uint8_t host_ids[JAIL_HOST_ID_COUNT / 8];
	char report[WIRE_ZYGOTE_TEXT];
	struct nursery_stats stats;
	void (*done)(void *);
	void *done_userdata;
};

static void ask_jail(struct berth *b);
static void ask_guest(struct berth *b);
static void start_helpers(struct nursery *n);
static void finish_when_empty(struct nursery *n);

/* ---- host ids ------------------------------------------------------------------ */

static uint32_t take_host_id(struct nursery *n)
{
	for (unsigned tried = 0; tried < JAIL_HOST_ID_COUNT; tried++) {
		uint32_t id = n->next_host_id++ % JAIL_HOST_ID_COUNT;
		if (!(n->host_ids[id / 8] & (1U << (id % 8)))) {
			n->host_ids[id / 8] |= (uint8_t)(1U << (id % 8));
			return JAIL_HOST_ID + id;
		}
	}
	return JAIL_HOST_ID; /* more live berths than ids: cannot be, descriptors run out long before */
}

static void give_back_host_id(struct nursery *n, uint32_t host_id)
{
	uint32_t id = host_id - JAIL_HOST_ID;
	n->host_ids[id / 8] &= (uint8_t) ~(1U << (id % 8));
}

/* ---- life of a berth -------------------------------------------------------------- */

static struct berth *find_berth(struct nursery *n, uint32_t serial)
{
	struct berth *b;
	TAILQ_FOREACH(b, &n->berths, link)
		if (b->serial == serial)
			return b;
	return NULL;
}

static void free_berth(struct berth *b)
{
	struct nursery *n = b->nursery;
	TAILQ_REMOVE(&n->berths, b, link);
	give_back_host_id(n, b->host_id);
	fd_close(b->init_pidfd);
	fd_close(b->init_control);
	fd_close(b->workspace);
	for (int i = 0; i < 3; i++)
		fd_close(b->far[i]);
	free(b->problem);
	free(b);
	finish_when_empty(n);
}

static void free_when_closed(struct berth *b)
{
	if (b->state == BERTH_CLOSED && !b->open_polls && !b->jail_asked)
		free_berth(b);
}

static void poll_closed(uv_handle_t *h)
{
	struct berth *b = h->data;
	b->open_polls--;
	free_when_closed(b);
}

static void close_poll(uv_poll_t *p)
{
	if (!uv_is_closing((uv_handle_t *)p))
		uv_close((uv_handle_t *)p, poll_closed);
}

void berth_close(struct berth *b)
{
	if (!b || b->state == BERTH_CLOSED)
		return;
	b->state = BERTH_CLOSED;
	b->owner = NULL;
	guest_close(b->guest);
	b->guest = NULL;
	if (b->init_pidfd >= 0 && !b->init_reaped)
		process_signal(b->init_pidfd, SIGKILL);
	if (b->open_polls) {
		close_poll(&b->control_poll);
		if (b->init_reaped)
			close_poll(&b->init_poll);
	}
	free_when_closed(b);
}

static void fail_berth(struct berth *b, const char *text)
{
	struct nursery *n = b->nursery;
	log_warning("a guest could not be made: %s", text);
	if (b->owner)
		n->config.events->on_failed(b->owner, text);
	else
		berth_close(b);
}

struct guest *berth_guest(struct berth *b)
{
	return b->guest;
}

int berth_workspace(const struct berth *b)
{
	return b->workspace;
}

uint32_t berth_host_id(const struct berth *b)
{
	return b->host_id;
}

/* ---- the guest's events, passed on or kept ------------------------------------------ */

static void text_of_frame(const struct wire_frame *f, char *text, size_t size)
{
	struct wire_field field;
	size_t at = 0;
	snprintf(text, size, "no reason given");
	while (wire_field_next(f, &at, &field) == 1)
		if (field.tag == WIRE_TEXT)
			snprintf(text, size, "%.*s", (int)(field.len < size ? field.len : size - 1), field.data);
}

static void berth_on_frame(void *userdata, const struct wire_frame *f)
{
	struct berth *b = userdata;
	char text[256];
	if (b->state != BERTH_STARTING) {
		if (b->owner)
			b->nursery->config.events->guest.on_frame(b->owner, f);
	} else if (f->type == WIRE_READY) {
		b->state = BERTH_READY;
		if (b->owner)
			b->nursery->config.events->on_ready(b->owner);
		else
			b->nursery->stats.stock_ready++;
	} else if (f->type == WIRE_FAILED) {
		text_of_frame(f, text, sizeof(text));
		fail_berth(b, text);
	}
}

static void berth_on_output(void *userdata, enum stream s, const char *data, size_t len)
{
	struct berth *b = userdata;
	if (b->owner)
		b->nursery->config.events->guest.on_output(b->owner, s, data, len);
}

static void berth_on_exit(void *userdata, const struct process_exit *end, bool broken)
{
	struct berth *b = userdata;
	if (b->state == BERTH_STARTING) {
		char text[96];
		snprintf(text, sizeof(text), "it died while it started (%s %d)", end->signaled ? "signal" : "exit code", end->status);
		fail_berth(b, text);
	} else if (b->owner) {
		b->nursery->config.events->guest.on_exit(b->owner, end, broken);
	} else {
		if (b->state == BERTH_READY)
			b->nursery->stats.stock_ready--;
		berth_close(b);
	}
}

static const struct guest_events berth_guest_events = { berth_on_frame, berth_on_output, berth_on_exit };

/* ---- asking ------------------------------------------------------------------------- */

static void ask_jail(struct berth *b)
{
	struct nursery *n = b->nursery;
	struct jail_request q = { .serial = b->serial, .host_id = b->host_id, .disk_bytes = b->disk_bytes };
	if (!n->jailer_up || b->jail_asked)
		return; /* asked when it is up */
	if (helper_send(&n->jailer, &q, sizeof(q), NULL, 0) == 0)
		b->jail_asked = true;
}

static void ask_guest(struct berth *b)
{
	struct nursery *n = b->nursery;
	struct wire_spawn q = { .serial = b->serial };
	if (!n->zygote_warm)
		return; /* asked when it is warm */
	if (!b->guest) {
		int r = guest_create(n->config.loop, &berth_guest_events, b, &b->guest, b->far);
		if (r < 0) {
			fail_berth(b, strerror(-r));
			return;
		}
	}
	int fds[4] = { b->init_pidfd, b->far[0], b->far[1], b->far[2] };
	if (helper_send(&n->zygote, &q, sizeof(q), fds, 4) == 0)
		b->state = BERTH_STARTING;
}

static void on_init_exit(uv_poll_t *p, int status, int events)
{
	struct berth *b = p->data;
	struct process_exit end;
	(void)status, (void)events;
	if (process_reap(b->init_pidfd, &end) == 0)
		return;
	b->init_reaped = true;
	uv_poll_stop(p);
	if (b->state == BERTH_CLOSED) {
		close_poll(p);
		return;
	}
	/* Its jail is gone, and all in it. A stock berth is dropped; an owner hears of it through his guest's end, or here. */
	if (!b->guest || b->state != BERTH_READY)
		fail_berth(b, "the jail's init died");
}

static void on_swept(uv_poll_t *p, int status, int events)
{
	struct berth *b = p->data;
	char byte;
	(void)status, (void)events;
	if (read(b->init_control, &byte, 1) != 1) {
		uv_poll_stop(p);
		return;
	}
	if (b->state == BERTH_SWEEP && byte == JAIL_SWEEP) {
		b->state = BERTH_GUEST;
		ask_guest(b);
	}
}

static int watch_jail(struct berth *b)
{
	uv_loop_t *loop = b->nursery->config.loop;
	fd_set_nonblock(b->init_control, 1);
	int r = uv_poll_init(loop, &b->init_poll, b->init_pidfd);
	if (r == 0)
		r = uv_poll_init(loop, &b->control_poll, b->init_control);
	if (r < 0)
		return r;
	b->init_poll.data = b->control_poll.data = b;
	b->open_polls = 2;
	uv_poll_start(&b->init_poll, UV_READABLE, on_init_exit);
	uv_poll_start(&b->control_poll, UV_READABLE, on_swept);
	return 0;
}

static void take_jail(struct berth *b, const struct jail_answer *a, int *fds, size_t n_fds)
{
	b->jail_asked = false;
	if (b->state == BERTH_CLOSED && (a->err || n_fds != 3)) {
		free_when_closed(b);
		return;
	}
	if (a->err || n_fds != 3) {
		fail_berth(b, a->text);
		return;
	}
	b->init_pidfd = TAKE_FD(fds[0]);
	b->init_control = TAKE_FD(fds[1]);
	b->workspace = TAKE_FD(fds[2]);
	int r = watch_jail(b);
	if (b->state == BERTH_CLOSED) { /* closed while the jail was being made: undo it */
		process_signal(b->init_pidfd, SIGKILL);
		close_poll(&b->control_poll);
		return;
	}
	if (r < 0) {
		fail_berth(b, uv_strerror(r));
		return;
	}
	b->state = BERTH_GUEST;
	ask_guest(b);
}

void berth_replace_guest(struct berth *b)
{
	char byte = JAIL_SWEEP;
	guest_close(b->guest);
	b->guest = NULL;
	for (int i = 0; i < 3; i++)
		fd_close_clear(&b->far[i]);
	if (b->state == BERTH_JAIL)
		return; /* nothing there yet: its first guest will do */
	if (b->init_reaped || write(b->init_control, &byte, 1) != 1) {
		fail_berth(b, "the jail's init died");
		return;
	}
	b->state = BERTH_SWEEP;
}

/* ---- stock --------------------------------------------------------------------------- */

static struct berth *new_berth(struct nursery *n, uint64_t disk_bytes, void *owner)
{
	struct berth *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->nursery = n;
	b->owner = owner;
	b->serial = ++n->next_serial;
	b->host_id = take_host_id(n);
	b->disk_bytes = disk_bytes;
	b->init_pidfd = b->init_control = b->workspace = b->far[0] = b->far[1] = b->far[2] = -1;
	TAILQ_INSERT_TAIL(&n->berths, b, link);
	ask_jail(b);
	return b;
}

static bool is_stock(const struct berth *b)
{
	return !b->owner && b->state != BERTH_CLOSED;
}

static void on_refill(uv_timer_t *t)
{
	struct nursery *n = t->data;
	struct berth *b;
	unsigned stock = 0;
	if (n->destroying)
		return;
	TAILQ_FOREACH(b, &n->berths, link) {
		if (is_stock(b))
			stock++;
		else if (b->state != BERTH_READY && b->state != BERTH_CLOSED && n->zygote_warm) {
			uv_timer_start(t, on_refill, REFILL_MS, 0); /* somebody waits: he goes first */
			return;
		}
	}
	if (stock >= n->config.stock)
		return;
	if (new_berth(n, n->config.disk_bytes, NULL) && stock + 1 < n->config.stock)
		uv_timer_start(t, on_refill, REFILL_MS, 0);
}

static void refill_soon(struct nursery *n)
{
	if (!n->destroying && n->jailer_up && n->zygote_warm && !uv_is_active((uv_handle_t *)&n->refill))
		uv_timer_start(&n->refill, on_refill, REFILL_MS, 0);
}

int nursery_take(struct nursery *n, uint64_t disk_bytes, void *owner, bool *ret_ready, struct berth **ret)
{
	struct berth *b, *best = NULL;
	/* The readiest one in stock, the oldest of those. */
	TAILQ_FOREACH(b, &n->berths, link)
		if (is_stock(b) && b->disk_bytes == disk_bytes && (!best || b->state > best->state)) {
			best = b;
			if (b->state == BERTH_READY)
				break;
		}
	if (!best)
		best = new_berth(n, disk_bytes, owner);
	if (!best)
		return -ENOMEM;
	best->owner = owner;
	*ret_ready = best->state == BERTH_READY;
	if (*ret_ready)
		n->stats.stock_ready--;
	*ret = best;
	refill_soon(n);
	return 0;
}

/* ---- helpers -------------------------------------------------------------------------- */

/* Something that everybody needs does not work: those who wait are told, others keep what they have. */
static void fail_waiting(struct nursery *n, const char *text)
{
	for (struct berth *b = TAILQ_FIRST(&n->berths), *next; b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (b->state == BERTH_JAIL || b->state == BERTH_SWEEP || b->state == BERTH_GUEST || b->state == BERTH_STARTING)
			fail_berth(b, text);
	}
}

static void on_jailer_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct nursery *n = (struct nursery *)((char *)h - offsetof(struct nursery, jailer));
	struct jail_answer a;
	struct berth *b;
	if (len != sizeof(a))
		return;
	memcpy(&a, data, sizeof(a));
	a.text[sizeof(a.text) - 1] = '\0';
	if (a.serial) {
		if ((b = find_berth(n, a.serial)))
			take_jail(b, &a, fds, n_fds);
		else if (n_fds)
			process_signal(fds[0], SIGKILL);
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
	TAILQ_FOREACH(b, &n->berths, link)
		if (b->state == BERTH_JAIL)
			ask_jail(b);
	refill_soon(n);
}

static void on_spawned(struct nursery *n, const struct wire_zygote *m, int *fds, size_t n_fds)
{
	struct berth *b = find_berth(n, m->serial);
	if (!b || b->state != BERTH_STARTING || !b->guest || m->err || n_fds != 1) {
		if (n_fds)
			process_signal(fds[0], SIGKILL); /* nobody wants it any more; reaped with the orphans */
		if (b && b->state == BERTH_STARTING)
			fail_berth(b, strerror(-m->err));
		return;
	}
	for (int i = 0; i < 3; i++)
		fd_close_clear(&b->far[i]);
	n->stats.forked++;
	int r = guest_attach(b->guest, TAKE_FD(fds[0]), m->pid);
	if (r < 0)
		fail_berth(b, uv_strerror(r));
}

static void on_zygote_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct nursery *n = (struct nursery *)((char *)h - offsetof(struct nursery, zygote));
	static struct wire_zygote m;
	struct berth *b;
	if (len != sizeof(m))
		return;
	memcpy(&m, data, sizeof(m));
	m.text[sizeof(m.text) - 1] = '\0';
	switch (m.event) {
	case WIRE_ZYGOTE_SPAWNED:
		on_spawned(n, &m, fds, n_fds);
		break;
	case WIRE_ZYGOTE_WARM:
		memcpy(n->report, m.text, sizeof(n->report));
		n->zygote_warm = true;
		n->failures = 0;
		TAILQ_FOREACH(b, &n->berths, link)
			if (b->state == BERTH_GUEST)
				ask_guest(b);
		refill_soon(n);
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

/* Guests that were asked for and did not come are asked for again. */
static void ask_again(struct nursery *n)
{
	struct berth *b;
	TAILQ_FOREACH(b, &n->berths, link) {
		if (b->state == BERTH_STARTING && b->guest && !guest_pid(b->guest)) {
			guest_close(b->guest);
			b->guest = NULL;
			for (int i = 0; i < 3; i++)
				fd_close_clear(&b->far[i]);
			b->state = BERTH_GUEST;
		}
	}
}

static void on_helper_exit(struct helper *h)
{
	helper_close(h);
}

static void on_zygote_closed(struct helper *h)
{
	struct nursery *n = (struct nursery *)((char *)h - offsetof(struct nursery, zygote));
	n->zygote_warm = false;
	if (n->destroying) {
		finish_when_empty(n);
		return;
	}
	n->stats.restarts++;
	n->failures++;
	log_warning("the zygote ended; sessions that run do not notice, a new one is started");
	ask_again(n);
	if (n->failures >= FAILURES_MAX)
		fail_waiting(n, "the Python zygote does not start; the server's log says why, and `glovebox doctor` what is missing");
	uv_timer_start(&n->restart, on_restart, RESTART_MS * (uint64_t)n->failures, 0);
}

static void on_jailer_closed(struct helper *h)
{
	struct nursery *n = (struct nursery *)((char *)h - offsetof(struct nursery, jailer));
	struct berth *b;
	n->jailer_up = false;
	h->open_polls++; /* the last berth to go would take the nursery with it */
	for (b = TAILQ_FIRST(&n->berths); b;) {
		struct berth *next = TAILQ_NEXT(b, link);
		b->jail_asked = false;
		free_when_closed(b);
		b = next;
	}
	h->open_polls--;
	if (n->destroying) {
		finish_when_empty(n);
		return;
	}
	n->failures++;
	log_warning("the jailer ended; a new one is started");
	uv_timer_start(&n->restart, on_restart, RESTART_MS * (uint64_t)n->failures, 0);
}

static int start_jailer(struct nursery *n)
{
	char *argv[] = { (char *)"glovebox", (char *)"jailer", NULL };
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	n->jailer.on_message = on_jailer_message;
	n->jailer.on_exit = on_helper_exit;
	n->jailer.on_closed = on_jailer_closed;
	return helper_start(&n->jailer, n->config.loop, "/proc/self/exe", argv, envp, -1);
}

/* The environment is built from nothing, before exec: clearing it later would leave it readable in /proc. */
static int start_zygote(struct nursery *n)
{
	char *argv[PRELOAD_ARGS_MAX + 12];
	static char *envp[] = { (char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LANG=C.UTF-8", (char *)"LC_ALL=C.UTF-8",
		(char *)"HOME=/tmp", (char *)"OPENBLAS_NUM_THREADS=1", (char *)"OMP_NUM_THREADS=1",
		(char *)"GLIBC_TUNABLES=glibc.malloc.hugetlb=1", NULL };
	char cache[4096];
	size_t at = 0;
	snprintf(cache, sizeof(cache), "%s/matplotlib", n->config.state_dir ? n->config.state_dir : "/tmp");
	const char *fixed[] = { GLOVEBOX_PYTHON, "-I", "-B", "-X", "utf8", "-c", ZYGOTE_BOOT, n->config.guest_module, cache };
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		argv[at++] = (char *)fixed[i];
	for (size_t i = 0; n->config.preload[i] && i < PRELOAD_ARGS_MAX; i++)
		argv[at++] = n->config.preload[i];
	argv[at] = NULL;
	n->zygote.on_message = on_zygote_message;
	n->zygote.on_exit = on_helper_exit;
	n->zygote.on_closed = on_zygote_closed;
	return helper_start(&n->zygote, n->config.loop, GLOVEBOX_PYTHON, argv, envp, n->jailer.pidfd);
}

/* Starts what does not run: the jailer first, and once it answers the zygote. */
static void start_helpers(struct nursery *n)
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

/* ---- life of the nursery ------------------------------------------------------------------ */

int nursery_create(const struct nursery_config *config, struct error *e, struct nursery **ret)
{
	if (access(config->guest_module, R_OK) < 0) {
		error_set_errno(e, -errno, "the guest module %s", config->guest_module);
		return error_remedy(e, "Build it with `make`, or install the program with `make install`.");
	}
	struct nursery *n = calloc(1, sizeof(*n));
	if (!n)
		return error_set(e, -ENOMEM, "out of memory");
	n->config = *config;
	n->jailer.pidfd = n->jailer.socket = n->zygote.pidfd = n->zygote.socket = -1;
	TAILQ_INIT(&n->berths);
	uv_timer_init(config->loop, &n->refill);
	uv_timer_init(config->loop, &n->restart);
	n->refill.data = n->restart.data = n;
	n->open_timers = 2;
	int r = start_jailer(n);
	if (r < 0) {
		error_set_errno(e, r, "starting the jailer");
		nursery_destroy(n, NULL, NULL);
		return r;
	}
	*ret = n;
	return 0;
}

static void timer_closed(uv_handle_t *h)
{
	struct nursery *n = h->data;
	n->open_timers--;
	finish_when_empty(n);
}

static void finish_when_empty(struct nursery *n)
{
	if (!n->destroying || n->open_timers || n->jailer.open_polls || n->zygote.open_polls || !TAILQ_EMPTY(&n->berths))
		return;
	void (*done)(void *) = n->done;
	void *userdata = n->done_userdata;
	free(n);
	if (done)
		done(userdata);
}

void nursery_destroy(struct nursery *n, void (*done)(void *), void *userdata)
{
	n->destroying = true;
	n->done = done;
	n->done_userdata = userdata;
	for (struct berth *b = TAILQ_FIRST(&n->berths), *next; b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (is_stock(b))
			berth_close(b);
	}
	helper_close(&n->zygote);
	helper_close(&n->jailer);
	uv_close((uv_handle_t *)&n->refill, timer_closed);
	uv_close((uv_handle_t *)&n->restart, timer_closed);
}

bool nursery_warm(const struct nursery *n)
{
	return n->zygote_warm && n->jailer_up;
}

const char *nursery_report(const struct nursery *n)
{
	return n->report;
}

const struct nursery_stats *nursery_stats(const struct nursery *n)
{
	return &n->stats;
}
