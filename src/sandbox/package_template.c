#include "sandbox/package_template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/sandbox.h"
#include "wire/wire.h"

enum {
	SETS_MAX = 16,
	TRIES_MAX = 3,
	WARM_UP_MS = 120 * 1000, /* for importing it all */
	FILES_BYTES = 16 << 20,  /* that the modules may leave in /workspace: sessions get them */
	SAID_BYTES = 300,
};

struct package_template {
	TAILQ_ENTRY(package_template) link;
	struct sandbox_pool *pool;
	char name[SET_NAME_MAX + 1];
	char *path, *modules[SET_MODULES_MAX + 1];
	uint64_t owner;
	bool plain, freed;
	struct sandbox *sandbox; /* NULL: it does not run */
	struct snapshot *copy;   /* its sandbox's; a template once it is parked */
	uv_timer_t patience;
	unsigned tries;
	uint64_t used_ns, bytes;
	char said[SAID_BYTES]; /* the beginning of what was printed to standard error */
};

static bool warm(const struct package_template *t)
{
	return t->copy && snapshot_is_there(t->copy);
}

const char *package_template_name(const struct package_template *t)
{
	return t->name;
}

struct snapshot *package_template_snapshot(struct package_template *t)
{
	return t->copy;
}

/* ---- its end ------------------------------------------------------------------------- */

/* The sandbox of the next session, made ahead; NULL when there is none. */
static struct sandbox *unowned_sandbox(const struct package_template *t)
{
	struct sandbox *b;
	TAILQ_FOREACH (b, &t->pool->sandboxes, link)
		if (sandbox_is_unowned(b) && b->kind.set == t)
			return b;
	return NULL;
}

/* Sessions that came from it live on: its jail stays until the last of them is gone. */
static void stop(struct package_template *t)
{
	struct sandbox *b = t->sandbox, *ahead;
	uv_timer_stop(&t->patience);
	while ((ahead = unowned_sandbox(t)))
		sandbox_close(ahead);
	t->sandbox = NULL;
	t->copy = NULL;
	t->bytes = 0;
	sandbox_close(b);
}

static void fail(struct package_template *t, const char *why)
{
	log_warning(
		"the template %s could not be made, so its sessions import their packages themselves: %s%s%s",
		t->name, why, t->said[0] ? ": " : "", t->said);
	stop(t);
}

static void on_freed(uv_handle_t *h)
{
	struct package_template *t = h->data;
	struct sandbox_pool *n = t->pool;
	TAILQ_REMOVE(&n->sets, t, link);
	for (char **m = t->modules; *m; m++)
		free(*m);
	free(t->path);
	free(t);
	sandbox_pool_finish_when_empty(n);
}

static void destroy(struct package_template *t)
{
	if (t->freed)
		return;
	t->freed = true;
	stop(t);
	uv_close((uv_handle_t *)&t->patience, on_freed);
}

/* Ends the least used templates until the others fit. */
static void retire(struct sandbox_pool *n)
{
	for (;;) {
		uint64_t all = 0, max = n->config.template_bytes;
		unsigned count = 0;
		struct package_template *t, *least = NULL;
		TAILQ_FOREACH (t, &n->sets, link) {
			if (t->freed)
				continue;
			all += t->bytes;
			count++;
			least = !least || t->used_ns < least->used_ns ? t : least;
		}
		if (!least || (count <= SETS_MAX && (!max || all <= max)))
			return;
		log_info("the template %s is retired: templates have %llu MB", least->name,
			(unsigned long long)(all >> 20));
		destroy(least);
	}
}

/* ---- warming up ------------------------------------------------------------------------ */

/*
 * What the process has without files; a part of it is shared with all that come from the same
 * zygote.
 */
static uint64_t own_bytes(pid_t pid)
{
	char path[64];
	_cleanup_free_ char *statm = NULL;
	unsigned long long size, resident, shared;
	size_t len;
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (fd_read_file(path, 4096, &statm, &len) < 0 ||
		sscanf(statm, "%llu %llu %llu", &size, &resident, &shared) != 3)
		return 0;
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int put_setup(const struct package_template *t, struct buffer *frames)
{
	size_t start;
	int r = wire_begin(frames, WIRE_SETUP, 0, &start);

	if (r == 0)
		r = wire_put(frames, WIRE_PACKAGES, t->path, strlen(t->path));
	if (r == 0)
		r = wire_put_u64(frames, WIRE_KEEP_FILES, FILES_BYTES);
	for (char *const *m = t->modules; r == 0 && *m; m++)
		r = wire_put(frames, WIRE_PRELOAD, *m, strlen(*m));
	if (r == 0)
		r = wire_put_u64(frames, WIRE_TEMPLATE, 1);
	if (r == 0)
		wire_end(frames, start);
	return r;
}

/* Its guest is there: it is told to import all of it and then to leave a copy of itself. */
static void on_ready(void *owner)
{
	struct package_template *t = owner;
	_cleanup_buffer_ struct buffer frames = BUFFER_INIT(0);
	size_t start;
	int r = sandbox_can_snapshot(t->sandbox) ? snapshot_create(t->sandbox, &t->copy) : -ENOTSUP;

	if (r == 0)
		r = put_setup(t, &frames);
	if (r == 0)
		r = wire_begin(&frames, WIRE_PARK, 0, &start);
	if (r == 0)
		r = wire_put_u64(&frames, WIRE_SNAPSHOT_ID, t->copy->snapshot_id);
	if (r == 0) {
		wire_end(&frames, start);
		guest_send(sandbox_guest(t->sandbox), &frames);
	} else {
		fail(t, r == -ENOTSUP
				? "this sandbox has no snapshots: it shares the jail of another one"
				: strerror(-r));
	}
}

/*
 * The copy is there. Its original, and whatever processes the packages left behind, have nothing to
 * do any more.
 */
static void settle(struct package_template *t)
{
	uv_timer_stop(&t->patience);
	sandbox_count_snapshots(t->sandbox);
	sandbox_kill_others(t->sandbox);
	sandbox_drop_guest(t->sandbox);
	t->bytes = own_bytes(t->copy->pid);
	log_info("the template %s is warm, with %llu MB%s%s", t->name,
		(unsigned long long)(t->bytes >> 20), t->said[0] ? "; " : "", t->said);
	retire(t->pool);
	sandbox_pool_refill_later(t->pool);
}

static void on_frame(void *owner, const struct wire_frame *f)
{
	struct package_template *t = owner;
	struct wire_field field;
	char why[160] = "";
	size_t at = 0;
	int came[GUEST_FDS_MAX];

	if (f->type != WIRE_PARKED || !t->copy || warm(t))
		return;

	guest_take_fds(sandbox_guest(t->sandbox), came);
	while (wire_field_next(f, &at, &field) == 1)
		if (field.tag == WIRE_TEXT || field.tag == WIRE_FILES_LEFT)
			snprintf(why, sizeof(why), "%.*s",
				(int)(field.len < sizeof(why) ? field.len : sizeof(why) - 1),
				field.data);
	if (snapshot_parked(t->copy, came[0], came[1]) < 0 || *why)
		fail(t, *why ? why : "its snapshot was not made");
	else
		settle(t);
}

/* Of another's code: cut, and without what a terminal would obey. */
static void on_output(void *owner, enum stream s, const char *data, size_t len)
{
	struct package_template *t = owner;
	size_t have = strlen(t->said);
	for (size_t i = 0; s == STREAM_STDERR && i < len && have + 1 < sizeof(t->said); i++)
		t->said[have++] = data[i] >= ' ' && data[i] <= '~' ? data[i] : ' ';
	t->said[have] = '\0';
}

static void on_exit_of(void *owner, const struct process_exit *end, bool broken)
{
	char why[64];
	snprintf(why, sizeof(why), "importing ended its interpreter (%s %d)",
		broken          ? "broken frames,"
		: end->signaled ? "signal"
				: "exit code",
		end->status);
	fail(owner, why);
}

static void on_failed(void *owner, const char *text)
{
	fail(owner, text);
}

static void on_patience(uv_timer_t *timer)
{
	fail(timer->data, "importing takes too long");
}

static void start(struct package_template *t)
{
	static const struct sandbox_events events = { { on_frame, on_output, on_exit_of }, on_ready,
		on_failed, NULL, NULL };
	struct sandbox_pool *n = t->pool;
	struct sandbox_kind kind = n->config.kind;

	if (t->tries >= TRIES_MAX)
		return;

	t->tries++;
	t->said[0] = '\0';
	kind.template = t->plain ? template_plain(n) : NULL;
	if (!(t->sandbox = sandbox_new(n, &kind, &n->config.limits, t)))
		return;

	t->sandbox->events = &events;
	uv_timer_start(&t->patience, on_patience, WARM_UP_MS, 0);
}

/* ---- getting one ------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static struct package_template *find(struct sandbox_pool *n, const char *name, uint64_t owner)
{
	struct package_template *t;
	TAILQ_FOREACH (t, &n->sets, link)
		if (!t->freed && (!t->owner || t->owner == owner) && text_eq(t->name, name))
			return t;
	return NULL;
}

static struct package_template *create(
	struct sandbox_pool *n, const struct package_template_spec *spec)
{
	struct package_template *t = calloc(1, sizeof(*t));
	if (!t || !(t->path = strdup(spec->path))) {
		free(t);
		return NULL;
	}

	t->pool = n;
	t->owner = spec->owner;
	t->plain = spec->plain;
	snprintf(t->name, sizeof(t->name), "%s", name_of(spec->path));
	for (size_t i = 0; spec->modules[i] && i < SET_MODULES_MAX &&
			   (t->modules[i] = strdup(spec->modules[i]));
		i++)
		;
	uv_timer_init(n->config.loop, &t->patience);
	t->patience.data = t;
	t->used_ns = clock_now_ns();
	TAILQ_INSERT_TAIL(&n->sets, t, link);
	retire(n);
	return t;
}

/*
 * A filter can only become narrower and a jail's network not another one: what the template has is
 * what its sessions have.
 */
static bool fits(const struct package_template *t, const struct sandbox_kind *kind)
{
	const struct sandbox_kind *own = &t->sandbox->kind;
	return !kind || (kind->exec == own->exec && kind->network.net == own->network.net);
}

struct package_template *package_template_get(struct sandbox_pool *n,
	const struct package_template_spec *spec, const struct sandbox_kind *kind)
{
	struct package_template *t = find(n, name_of(spec->path), spec->owner);
	if (n->destroying || (!t && !(t = create(n, spec))))
		return NULL;
	t->used_ns = clock_now_ns();
	if (!t->sandbox)
		start(t);
	return t->sandbox && warm(t) && fits(t, kind) ? t : NULL;
}

bool package_templates_refill(struct sandbox_pool *n)
{
	struct package_template *t;
	TAILQ_FOREACH (t, &n->sets, link) {
		struct sandbox_kind kind = n->config.kind;
		struct sandbox *b;
		if (!t->sandbox || !warm(t) || unowned_sandbox(t))
			continue;
		kind.template = t->sandbox->kind.template;
		kind.set = t;
		return sandbox_pool_nest(n, t->copy, true, &kind, &n->config.limits, NULL, &b) == 0;
	}
	return false;
}

void package_template_spoiled(struct sandbox_pool *n, const struct snapshot *c, const char *why)
{
	struct package_template *t;
	TAILQ_FOREACH (t, &n->sets, link)
		if (t->copy == c) {
			fail(t, why);
			return;
		}
}

void package_templates_destroy(struct sandbox_pool *n)
{
	struct package_template *t;
	TAILQ_FOREACH (t, &n->sets, link)
		destroy(t);
}

bool package_templates_gone(const struct sandbox_pool *n)
{
	return TAILQ_EMPTY(&n->sets);
}
