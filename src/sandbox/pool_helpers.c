/*
 * The helper processes of the pool: the jailer and the zygote. They are started again when they
 * end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/interpreter.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "sandbox/rootfs.h"
#include "sandbox/sandbox.h"
#include "zygote/zygote.h"

enum {
	RESTART_MS = 200, /* before a helper that died is started again */
	FAILURES_MAX = 5, /* in a row, before sessions that wait are told */
	PRELOAD_ARGS_MAX = 256,
};

void sandbox_pool_timer_closed(uv_handle_t *h)
{
	struct sandbox_pool *n = h->data;
	n->open_timers--;
	sandbox_pool_finish_when_empty(n);
}

/*
 * Something that everybody needs does not work: those who wait are told, others keep what they
 * have.
 */
static void fail_waiting(struct sandbox_pool *n, const char *text)
{
	for (struct sandbox *b = TAILQ_FIRST(&n->sandboxes), *next; b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (b->state == SANDBOX_JAIL || b->state == SANDBOX_KILL_ALL ||
			b->state == SANDBOX_GUEST || (b->state == SANDBOX_STARTING && !b->from))
			sandbox_fail(b, text);
	}
}

bool sandbox_pool_awaits_jails(struct sandbox_pool *n)
{
	struct sandbox *b;
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (b->jail_asked)
			return true;
	return false;
}

/* The last step of the end; idempotent. */
void sandbox_pool_close_jailer(struct sandbox_pool *n)
{
	helper_close(&n->jailer);
	if (!uv_is_closing((uv_handle_t *)&n->restart))
		uv_close((uv_handle_t *)&n->restart, sandbox_pool_timer_closed);
}

/*
 * The next one to be asked. One that was asked may have ended, and others with it: they are found
 * by number, in whose order they are.
 */
static struct sandbox *next_after(struct sandbox_pool *n, uint32_t serial)
{
	struct sandbox *b;
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (b->serial > serial)
			return b;
	return NULL;
}

void sandbox_pool_ask(struct sandbox_pool *n, bool (*wants)(struct sandbox *b, void *userdata),
	void (*ask)(struct sandbox *b), void *userdata)
{
	for (struct sandbox *b = TAILQ_FIRST(&n->sandboxes), *next; b; b = next) {
		uint32_t serial = b->serial;
		if (!wants(b, userdata)) {
			next = TAILQ_NEXT(b, link);
			continue;
		}
		ask(b);
		next = next_after(n, serial);
	}
}

static bool wants_jail(struct sandbox *b, void *userdata)
{
	(void)userdata;
	return b->state == SANDBOX_JAIL;
}

static bool wants_guest(struct sandbox *b, void *userdata)
{
	(void)userdata;
	return b->state == SANDBOX_GUEST && !b->spare && !b->moving;
}

static bool wants_zygote(struct sandbox *b, void *userdata)
{
	(void)userdata;
	return b->state == SANDBOX_GUEST && !b->kind.template;
}

/* Requests that a full socket did not take: without this their sessions would start for ever. */
static void ask_refused_again(struct sandbox_pool *n)
{
	if (!n->requests_refused || n->destroying)
		return;

	n->requests_refused = false;
	sandbox_pool_ask(n, wants_jail, sandbox_ask_jail, NULL);
	sandbox_pool_ask(n, wants_guest, sandbox_ask_guest, NULL);
	programs_ask_again(n);
}

static void on_jailer_message(
	struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h -
							 offsetof(struct sandbox_pool, jailer));
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
		if (n->destroying && !sandbox_pool_awaits_jails(n))
			sandbox_pool_close_jailer(n);
		return;
	}

	if (a.err) {
		log_error("jails cannot be made: %s", a.text);
		fail_waiting(n, a.text);
		n->failures = FAILURES_MAX; /* it will not get better by trying at once */
		return;
	}
	if (n_fds && n->tree < 0)
		n->tree = TAKE_FD(fds[0]);

	n->jailer_up = true;
	sandbox_pool_start_helpers(n); /* the zygote wants to know the jailer */
	template_start(n);
	sandbox_pool_ask(n, wants_jail, sandbox_ask_jail, NULL);
	sandbox_pool_refill_later(n);
}

static struct sandbox *awaits_spawn(struct sandbox_pool *n, uint32_t serial)
{
	struct sandbox *b;
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (b->spawn_serial == serial)
			return b;
	return NULL;
}

void sandbox_pool_spawned(struct sandbox_pool *n, const void *message, int *fds, size_t n_fds)
{
	const struct wire_zygote *m = message;
	if (programs_spawned(n, m->serial, m->err, fds, n_fds, m->pid))
		return;

	struct sandbox *b = awaits_spawn(n, m->serial);
	if (!b || b->state != SANDBOX_STARTING || !b->guest || m->err || n_fds != 1) {
		if (n_fds)
			/* no longer needed; reaped with the orphans */
			process_signal(fds[0], SIGKILL);
		/* without an errno its pidfd was what there was no room for */
		if (b && b->state == SANDBOX_STARTING)
			sandbox_fail_step(b, m->err ? m->err : -EMFILE, "forking the interpreter");
		return;
	}

	n->stats.forked++;
	sandbox_take_guest(b, m->pid);
}

static void on_zygote_message(
	struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h -
							 offsetof(struct sandbox_pool, zygote));
	static struct wire_zygote m;

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
		programs_ask_again(n);
		sandbox_pool_ask(n, wants_zygote, sandbox_ask_guest, NULL);
		sandbox_pool_refill_later(n);
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
	sandbox_pool_start_helpers(t->data);
}

static void on_helper_exit(struct helper *h)
{
	helper_close(h);
}

static void on_zygote_closed(struct helper *h)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h -
							 offsetof(struct sandbox_pool, zygote));
	n->zygote_warm = false;
	programs_zygote_died(n);
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
	log_warning(
		"the zygote ended; running sessions are not affected, and a new zygote is started");
	struct sandbox *b;
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (!b->kind.template)
			sandbox_forget_guest(b);
	if (n->failures >= FAILURES_MAX)
		fail_waiting(n,
			"the Python zygote could not be started; the server's log says why, and `glovebox doctor` what is missing");
	uv_timer_start(&n->restart, on_restart, RESTART_MS * (uint64_t)n->failures, 0);
}

static void on_jailer_closed(struct helper *h)
{
	struct sandbox_pool *n = (struct sandbox_pool *)((char *)h -
							 offsetof(struct sandbox_pool, jailer));
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
		sandbox_pool_close_jailer(n);
		sandbox_pool_finish_when_empty(n);
		return;
	}

	/*
	 * Where the jailer has a user namespace of its own, jails of the next one are out of reach
	 * for a zygote that joined this one's.
	 */
	if (geteuid() != 0) {
		helper_close(&n->zygote);
		template_restart(n);
	}

	n->failures++;
	log_warning("the jailer ended; a new one is started");
	uv_timer_start(&n->restart, on_restart, RESTART_MS * (uint64_t)n->failures, 0);
}

int sandbox_pool_start_jailer(struct sandbox_pool *n)
{
	char *argv[] = { (char *)"glovebox", (char *)"jailer", NULL };
	_cleanup_free_ char *shown = NULL;
	_cleanup_free_ char *lines = n->config.rootfs
					     ? rootfs_shown(n->config.rootfs,
						       n->config.guest_module, n->config.shown)
					     : strdup(n->config.shown ? n->config.shown : "");

	if (!lines || asprintf(&shown, JAILER_SHOWN "=%s", lines) < 0)
		return -ENOMEM;

	char *envp[] = { (char *)"PATH=/usr/bin:/bin", shown, NULL };
	n->jailer.on_message = on_jailer_message;
	n->jailer.on_exit = on_helper_exit;
	n->jailer.on_closed = on_jailer_closed;
	watchdog_jailer_new(n);
	return helper_start(&n->jailer, n->config.loop, "/proc/self/exe", argv, envp,
		(const int[HELPER_EXTRA]){ n->tree, -1 });
}

/*
 * The environment is built from nothing, before exec: clearing it later would leave it readable in
 * /proc.
 */
int sandbox_pool_start_zygote(
	struct sandbox_pool *n, struct helper *h, char *const *modules, int book)
{
	char *argv[PRELOAD_ARGS_MAX + 16];
	static char *envp[] = { (char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LANG=C.UTF-8",
		(char *)"LC_ALL=C.UTF-8", (char *)"HOME=/tmp", (char *)"OPENBLAS_NUM_THREADS=1",
		(char *)"OMP_NUM_THREADS=1", NULL };
	char cache[4096];
	size_t at = 0;
	bool own_tree = n->config.rootfs;

	snprintf(cache, sizeof(cache), "%s/matplotlib",
		n->config.state_dir && !own_tree ? n->config.state_dir : "/tmp");
	const char *fixed[] = { "glovebox", "inside", interpreter_path(), "-I", "-B", "-X", "utf8",
		"-c", ZYGOTE_BOOT, own_tree ? "/run/" ROOTFS_MODULE : n->config.guest_module,
		cache };
	for (size_t i = own_tree ? 0 : 2; i < ARRAY_LEN(fixed); i++)
		argv[at++] = (char *)fixed[i];
	for (size_t i = 0; modules[i] && i < PRELOAD_ARGS_MAX; i++)
		argv[at++] = modules[i];
	argv[at] = NULL;
	return helper_start(h, n->config.loop, own_tree ? "/proc/self/exe" : interpreter_path(),
		argv, envp, (const int[HELPER_EXTRA]){ n->jailer.pidfd, book });
}

/*
 * What was learnt about the template: a file of its own for other modules or another system. -1
 * where nothing is to be learnt.
 */
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
		log_warning(
			"%s: %s; sessions start slower than they could (make it writable, or choose another state directory)",
			path, strerror(errno));
	else if (fstat(fd, &st) == 0 && st.st_size == 0)
		log_info(
			"first start with these modules: they are imported twice, to find out which objects a session's first cell uses");
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

/* The first session must not share the processor with imports that it does not need. */
static bool waits_for_plain(struct sandbox_pool *n)
{
	struct template *t = n->config.plain_first ? template_plain(n) : NULL;
	return t && !template_warm(t);
}

/* Starts what does not run: the jailer first, and once it answers the zygote. */
void sandbox_pool_start_helpers(struct sandbox_pool *n)
{
	int r = 0;
	if (n->destroying)
		return;

	if (!n->jailer.running && !n->jailer.open_polls)
		r = sandbox_pool_start_jailer(n);
	else if (n->jailer_up && !n->zygote.running && !n->zygote.open_polls && !waits_for_plain(n))
		r = start_zygote(n);
	if (r < 0) {
		log_error("a helper process could not be started: %s", strerror(-r));
		n->failures++;
		uv_timer_start(&n->restart, on_restart, RESTART_MS * (uint64_t)n->failures, 0);
	}
}
