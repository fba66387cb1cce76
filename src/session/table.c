/* The table of all sessions: its defaults, its life, expiry. */
#include "session/session.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "jail/mounts.h"
#include "sandbox/plain_zygote.h"
#include "session/files/file_watch.h"
#include "session/idle_latency.h"
#include "session/internal.h"
#include "session/ports/port_link.h"
#include "session/processes/processes.h"

enum { TICK_MS = 200 };

/*
 * What most code imports first, and what takes longest to import. Missing ones are reported, not
 * fatal.
 */
#define STDLIB_MODULES                                                                             \
	"abc", "argparse", "array", "ast", "asyncio", "base64", "bisect", "calendar",              \
		"collections", "collections.abc", "concurrent.futures", "contextlib", "copy",      \
		"csv", "ctypes", "dataclasses", "datetime", "decimal", "difflib", "enum",          \
		"fractions", "functools", "glob", "gzip", "hashlib", "heapq", "html", "inspect",   \
		"io", "itertools", "json", "logging", "math", "multiprocessing", "operator", "os", \
		"pathlib", "pickle", "pprint", "queue", "random", "re", "secrets", "shutil",       \
		"signal", "socket", "sqlite3", "statistics", "string", "struct", "subprocess",     \
		"sys", "tempfile", "textwrap", "threading", "time", "timeit", "traceback",         \
		"types", "typing", "unicodedata", "unittest", "urllib.parse", "urllib.request",    \
		"uuid", "warnings", "weakref", "xml.etree.ElementTree", "zipfile", "zlib"
static const char *const default_preload[] = { STDLIB_MODULES, "numpy", "pandas",
	"matplotlib.pyplot", "PIL.Image", NULL };
/*
 * Without the system's packages; and what these have imported of the standard library, where it is
 * written in Python.
 */
static const char *const plain_preload[] = { STDLIB_MODULES, "__future__", "_strptime", "cmath",
	"importlib.resources", "shlex", "sysconfig", "tarfile", NULL };

void sessions_config_init(struct sessions_config *c)
{
	*c = (struct sessions_config){
		.ready_guests = 4,
		.max_sessions = 2000,
		.max_queued_cells = LIMIT_QUEUED_CELLS,
		.max_network = { .any = true, .loopback = true },
		.grace_s = 2,
		.keep_files_bytes = 64 << 20,
		.keep_checkpoints = 1,
		.max_checkpoints = 16,
		.default_ttl_s = 24 * 3600,
		.default_idle_timeout_s = 3600,
		.max_paused_s = 24 * 3600,
		.defaults = { .timeout_s = 30,
			.output_bytes = 1 << 20,
			.memory_bytes = 2ULL << 30,
			.processes = 256,
			.disk_bytes = 256 << 20,
			.inodes = JAIL_INODES,
			.file_bytes = 1ULL << 30,
			.open_files = 1024,
			.total_output_bytes = 1ULL << 30,
			.log_bytes = 16 << 20 },
		.maxima = { .timeout_s = 3600,
			.output_bytes = 4 << 20,
			.memory_bytes = 0,
			.processes = 4096,
			.disk_bytes = 4ULL << 30,
			.inodes = 1 << 20,
			.open_files = 4096,
			.log_bytes = 256 << 20 },
		.max_exec = JAIL_EXEC_ANY,
	};
}

static void warm_displays_once(struct sessions *t)
{
	const struct display_size usual = { DISPLAY_WIDTH, DISPLAY_HEIGHT, DISPLAY_DEPTH,
		DISPLAY_DPI };
	if (!t->config.warm_display || t->displays_warmed || !sandbox_pool_warm(t->pool) ||
		displays_check(NULL) < 0)
		return;

	t->displays_warmed = true;
	displays_warm(t->displays, &usual);
}

/*
 * Ends a session whose time to live or whose idle time is over, or pauses it if that was asked for.
 */
static void expire(struct session *s, uint64_t now)
{
	char why[96] = "";
	if (s->pause.since_ns) {
		if (pause_expires_in_s(s) < 0)
			session_end(s, "it was paused for longer than the server allows");
		return;
	}

	bool idle = !s->queue.running && !s->queue.n_waiting && !processes_attended(s) &&
		    !ports_attended(s);
	if ((double)(now - s->times.created_ns) / 1e9 > s->params.ttl_s)
		snprintf(why, sizeof(why), "its time to live of %g s had passed", s->params.ttl_s);
	else if (idle && (double)(now - s->times.used_ns) / 1e9 > s->params.idle_timeout_s)
		snprintf(why, sizeof(why), "it was idle for more than %g s",
			s->params.idle_timeout_s);

	struct error e = { 0 };
	if (!*why)
		return;
	if (!s->params.pause_on_expiry)
		session_end(s, why);
	else if (pause_possible(s)) /* else when its cell has ended */
		session_pause(s, &e);
}

static void on_tick(uv_timer_t *timer)
{
	struct sessions *t = timer->data;
	uint64_t now = clock_now_ns();
	warm_displays_once(t);

	for (struct session *s = TAILQ_FIRST(&t->list), *next; s; s = next) {
		next = TAILQ_NEXT(s, link);
		session_watch_cpu(s);
		if (s->sandbox)
			sandbox_watch_memory(s->sandbox);
		source_check_expire(s);
		introspect_expire(s);
		if (s->phase == PHASE_ENDING)
			continue;

		if (s->sandbox) {
			session_recount_uploads(s);
			evict_over_memory(s, false);
		}
		expire(s, now);
	}
	sessions_end_drained(t, now);
}

/* With its parents, as mkdir -p. */
static int make_state_dir(const char *dir, struct error *e)
{
	_cleanup_free_ char *path = dir ? strdup(dir) : NULL;
	if (!dir)
		return 0;
	if (!path)
		return error_set(e, -ENOMEM, "out of memory");

	for (char *slash = path;;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST &&
			(!slash || errno == EACCES || errno == ENOSPC || errno == EROFS)) {
			error_set_errno(e, -errno, "making the state directory %s", dir);
			return error_remedy(e,
				"Choose another directory with {setting:state-dir}, or make this directory writable.");
		}
		if (!slash)
			return 0;
		*slash = '/';
	}
}

static int create_volumes(struct sessions *t, struct error *e)
{
	const struct sessions_config *config = &t->config;
	return volumes_create(&(struct volumes_config){ .loop = config->loop,
				      .state_dir = config->state_dir,
				      .max = config->max_volumes,
				      .most_bytes = config->max_volume_bytes,
				      .keys = config->owner_keys,
				      .on_full = session_volume_full,
				      .userdata = t },
		e, &t->volumes);
}

/* What jails are shown besides: the lines of the settings, and the directory of the volumes. */
static char *all_shown(const struct sessions *t)
{
	char *all = NULL;
	const char *others = t->config.shown ? t->config.shown : "";
	const char *directory = volumes_directory(t->volumes);
	size_t len = strlen(others);

	if (!directory)
		return strdup(others);
	return asprintf(&all, "%s%s%s\t%c", others, len && others[len - 1] != '\n' ? "\n" : "",
		       directory, MOUNTS_VOLUMES_MARK) < 0
		       ? NULL
		       : all;
}

static int create_pool(struct sessions *t, const char *shown, struct error *e)
{
	const struct sessions_config *config = &t->config;
	struct sandbox_pool_config pool = { .loop = config->loop,
		.guest_module = config->guest_module,
		.state_dir = config->state_dir,
		.rootfs = config->rootfs,
		.shown = shown,
		.template_bytes = config->template_bytes,
		.preload = t->owned_preload,
		.learn = config->learn,
		.plain_preload = (char *const *)plain_preload,
		.plain_first = t->config.quick_start && t->owned_preload[0],
		.ready_target = config->ready_guests,
		.renew_s = config->renew_s,
		.kind = { .disk_bytes = config->defaults.disk_bytes,
			.inodes = config->defaults.inodes,
			.exec = config->default_exec,
			.network = { .net = config->default_network.net == JAIL_NET_LOOPBACK
						    ? JAIL_NET_LOOPBACK
						    : JAIL_NET_NONE } },
		.limits = session_cgroup_limits(&config->defaults),
		.events = &session_events };
	return sandbox_pool_create(&pool, e, &t->pool);
}

/*
 * At the first start of all, learning takes some seconds in addition to the imports. A new user
 * must not wait for it.
 */
static bool is_first_start(const struct sessions_config *config)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/layout", config->state_dir);
	return config->learn && access(path, F_OK) < 0;
}

int sessions_create(const struct sessions_config *config, struct error *e, struct sessions **ret)
{
	int r = make_state_dir(config->state_dir, e);
	if (r < 0)
		return r;

	struct sessions *t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(e, -ENOMEM, "out of memory");

	t->config = *config;
	t->config.quick_start = config->quick_start || is_first_start(config);
	t->stats.limit = config->max_sessions;
	TAILQ_INIT(&t->list);
	cell_store_init(&t->cell_store);
	t->tombstones = calloc(LIMIT_TOMBSTONES, sizeof(*t->tombstones));
	t->owned_preload = session_words_copy(
		config->preload ? (const char *const *)config->preload : default_preload);
	if (!t->tombstones || !t->owned_preload) {
		r = error_set(e, -ENOMEM, "out of memory");
		goto fail;
	}

	if (config->max_volumes && (r = create_volumes(t, e)) < 0)
		goto fail;
	t->owned_shown = all_shown(t);
	r = t->owned_shown ? create_pool(t, t->owned_shown, e)
			   : error_set(e, -ENOMEM, "out of memory");
	if (r < 0)
		goto fail;

	struct displays_config dc = { .loop = config->loop,
		.guest_module = config->guest_module,
		.pool = t->pool,
		.plain = config->plain_displays };
	if ((r = displays_create(&dc, &t->displays)) < 0) {
		sandbox_pool_destroy(t->pool, NULL, NULL);
		error_set(e, r, "out of memory");
		goto fail;
	}

	if (config->low_idle_latency)
		t->idle_latency = idle_latency_create(
			config->loop, IDLE_LATENCY_DRIVER, IDLE_LATENCY_DEVICE);
	uv_timer_init(config->loop, &t->tick);
	t->tick.data = t;
	uv_timer_start(&t->tick, on_tick, TICK_MS, TICK_MS);
	*ret = t;
	return 0;
fail:
	volumes_destroy(t->volumes);
	free(t->owned_shown);
	free(t->tombstones);
	session_words_free(t->owned_preload);
	free(t);
	return r;
}

static void table_freed(uv_handle_t *h)
{
	struct sessions *t = h->data;
	void (*done)(void *) = t->end.done;
	void *userdata = t->end.userdata;
	free(t->packages.common_path);
	free(t->owned_shown);
	free(t->tombstones);
	session_words_free(t->owned_preload);
	free(t);
	if (done)
		done(userdata);
}

static void wait_for_sessions(uv_timer_t *timer)
{
	struct sessions *t = timer->data;
	if (!t->end.closing_sessions)
		uv_close((uv_handle_t *)timer, table_freed);
}

static void sandbox_pool_gone(void *userdata)
{
	struct sessions *t = userdata;
	uv_timer_start(&t->tick, wait_for_sessions, 0, 1);
}

static void displays_gone(void *userdata)
{
	struct sessions *t = userdata;
	sandbox_pool_destroy(t->pool, sandbox_pool_gone, t);
	t->pool = NULL;
}

static void end_all(struct sessions *t)
{
	while (!TAILQ_EMPTY(&t->list))
		session_end(TAILQ_FIRST(&t->list), "the server ended");
	file_watches_close(t);
	volumes_destroy(t->volumes);
	t->volumes = NULL;
	displays_destroy(t->displays, displays_gone, t);
	t->displays = NULL;
	idle_latency_destroy(t->idle_latency);
	t->idle_latency = NULL;
}

static void on_drain(uv_timer_t *timer)
{
	struct sessions *t = timer->data;
	if (!t->stats.running_cells || clock_now_ns() >= t->end.until_ns) {
		uv_timer_stop(timer);
		end_all(t);
	}
}

void sessions_destroy(struct sessions *t, double deadline_s, void (*done)(void *), void *userdata)
{
	t->end.done = done;
	t->end.userdata = userdata;
	t->end.until_ns = clock_now_ns() + (uint64_t)(deadline_s * 1e9);
	if (t->end.destroying) /* asked again, with less patience */
		return;
	t->end.draining = t->end.destroying = true;
	uv_timer_start(&t->tick, on_drain, 0, 20);
}

bool sessions_ready(const struct sessions *t)
{
	return t->pool && sandbox_pool_warm(t->pool) && !t->packages.common_awaited;
}

const char *sessions_complaint(const struct sessions *t)
{
	const char *why = t->pool ? sandbox_pool_complaint(t->pool) : NULL;
	return why ? why : "the interpreter is warming up";
}

const char *sessions_preload_report(const struct sessions *t)
{
	return sandbox_pool_report(t->pool);
}

const char *sessions_display_kind(const struct sessions *t)
{
	const struct display_size usual = { DISPLAY_WIDTH, DISPLAY_HEIGHT, DISPLAY_DEPTH,
		DISPLAY_DPI };
	return displays_kind(t->displays, &usual);
}

struct volumes *sessions_volumes(struct sessions *t)
{
	return t->volumes;
}

const struct sessions_stats *sessions_stats(const struct sessions *t)
{
	struct sessions *w = (struct sessions *)t;
	if (t->pool) {
		const struct sandbox_pool_stats *n = sandbox_pool_stats(t->pool);
		w->stats.forked = n->forked;
		w->stats.zygote_restarts = n->restarts;
		w->stats.ready_guests = n->ready;
		for (int i = STEP_CLONE; i <= STEP_SPAWN; i++) {
			w->stats.steps.count[i] = n->steps.count[i];
			w->stats.steps.ns[i] = n->steps.ns[i];
		}
	}
	return &t->stats;
}
