#include "session/templates.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "session/berth.h"
#include "wire/wire.h"

enum { TEMPLATES_MAX = 16, FAILURES_MAX = 3 };

struct template {
	TAILQ_ENTRY(template) link;
	struct nursery *nursery;
	struct helper helper;
	char name[TEMPLATE_NAME_MAX + 1];
	char *path, *modules[TEMPLATE_MODULES_MAX + 1];
	bool beyond, warm, retired;
	unsigned failures;
	uint64_t used_ns, bytes;
};

static struct template *template_of(struct helper *h)
{
	return (struct template *)((char *)h - offsetof(struct template, helper));
}

bool template_warm(const struct template *t)
{
	return t->warm;
}

const char *template_name(const struct template *t)
{
	return t->name;
}

struct helper *template_helper(struct template *t)
{
	return &t->helper;
}

static void free_template(struct template *t)
{
	TAILQ_REMOVE(&t->nursery->templates, t, link);
	for (char **m = t->modules; *m; m++)
		free(*m);
	free(t->path);
	free(t);
}

/* ---- memory ----------------------------------------------------------------------- */

/* What the process has for itself. */
static uint64_t own_bytes(const struct template *t)
{
	char path[64];
	_cleanup_free_ char *info = NULL, *statm = NULL;
	unsigned long long size, resident, shared;
	size_t len;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", t->helper.pidfd);
	const char *pid = fd_read_file(path, 4096, &info, &len) < 0 ? NULL : strstr(info, "Pid:");
	if (!pid)
		return 0;
	snprintf(path, sizeof(path), "/proc/%ld/statm", strtol(pid + 4, NULL, 10));
	if (fd_read_file(path, 4096, &statm, &len) < 0 || sscanf(statm, "%llu %llu %llu", &size, &resident, &shared) != 3)
		return 0;
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool in_use(const struct template *t)
{
	const struct berth *b;
	TAILQ_FOREACH(b, &t->nursery->berths, link)
		if (b->kind.template == t && b->state != BERTH_CLOSED)
			return true;
	return false;
}

/* Ends the least used ones until the rest fits. One whose sessions live stays: they may need another guest. */
static void retire(struct nursery *n, uint64_t max_bytes, unsigned max_count)
{
	for (;;) {
		uint64_t all = 0;
		unsigned count = 0;
		struct template *t, *least = NULL;
		TAILQ_FOREACH(t, &n->templates, link) {
			if (t->retired)
				continue;
			all += t->bytes;
			count++;
			if (!in_use(t) && (!least || t->used_ns < least->used_ns))
				least = t;
		}
		if (!least || (count <= max_count && (!max_bytes || all <= max_bytes)))
			return;
		log_info("the template %s is retired: templates have %llu MB", least->name, (unsigned long long)(all >> 20));
		least->retired = true;
		least->warm = false;
		if (least->helper.open_polls)
			helper_close(&least->helper);
		else
			free_template(least);
	}
}

/* ---- its zygote --------------------------------------------------------------------- */

static void start(struct template *t);

static void on_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct template *t = template_of(h);
	static struct wire_zygote m;
	struct berth *b;
	if (len != sizeof(m))
		return;
	memcpy(&m, data, sizeof(m));
	m.text[sizeof(m.text) - 1] = '\0';
	if (m.event == WIRE_ZYGOTE_SPAWNED) {
		nursery_spawned(t->nursery, &m, fds, n_fds);
	} else if (m.event == WIRE_ZYGOTE_PROBLEM) {
		log_error("the zygote of the template %s says: %s", t->name, m.text);
	} else if (m.event == WIRE_ZYGOTE_WARM) {
		t->warm = true;
		t->failures = 0;
		t->bytes = own_bytes(t);
		log_info("the template %s is warm, with %llu MB%s%s", t->name, (unsigned long long)(t->bytes >> 20), m.text[0] ? "; not imported: " : "",
			m.text);
		TAILQ_FOREACH(b, &t->nursery->berths, link)
			if (b->state == BERTH_GUEST && b->kind.template == t)
				berth_ask_guest(b);
		retire(t->nursery, t->nursery->config.template_bytes, TEMPLATES_MAX);
	}
}

static void on_exit_of(struct helper *h)
{
	helper_close(h);
}

static void fail_waiting(struct template *t)
{
	for (struct berth *b = TAILQ_FIRST(&t->nursery->berths), *next; b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (b->kind.template == t && (b->state == BERTH_GUEST || b->state == BERTH_STARTING))
			berth_fail(b, "the Python zygote with these packages does not start; the server's log says why");
	}
}

static void on_closed(struct helper *h)
{
	struct template *t = template_of(h);
	struct nursery *n = t->nursery;
	struct berth *b;
	t->warm = false;
	if (n->destroying) {
		free_template(t);
		nursery_finish_when_empty(n);
		return;
	}
	if (t->retired) {
		free_template(t); /* nobody has it: retire() saw to that, and nobody gets it since */
		return;
	}
	TAILQ_FOREACH(b, &n->berths, link)
		if (b->kind.template == t)
			berth_forget_guest(b);
	t->failures++;
	log_warning("the zygote of the template %s ended", t->name);
	if (t->failures >= FAILURES_MAX)
		fail_waiting(t);
	else
		start(t);
}

static void start(struct template *t)
{
	struct template_spec spec = { .name = t->name, .path = t->path, .modules = t->modules, .beyond = t->beyond };
	if (!t->nursery->jailer_up || t->helper.running || t->helper.open_polls)
		return; /* when it is up */
	t->helper.on_message = on_message;
	t->helper.on_exit = on_exit_of;
	t->helper.on_closed = on_closed;
	if (nursery_start_zygote(t->nursery, &t->helper, &spec) < 0)
		t->failures = FAILURES_MAX;
}

void templates_start(struct nursery *n)
{
	struct template *t;
	TAILQ_FOREACH(t, &n->templates, link)
		start(t);
}

/* ---- getting one ---------------------------------------------------------------------- */

static struct template *find(struct nursery *n, const char *name)
{
	struct template *t;
	TAILQ_FOREACH(t, &n->templates, link)
		if (!t->retired && text_eq(t->name, name))
			return t;
	return NULL;
}

static struct template *create(struct nursery *n, const struct template_spec *spec)
{
	struct template *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->nursery = n;
	t->helper.socket = t->helper.pidfd = -1;
	t->beyond = spec->beyond;
	snprintf(t->name, sizeof(t->name), "%s", spec->name);
	t->path = spec->path ? strdup(spec->path) : NULL;
	for (size_t i = 0; spec->modules && spec->modules[i] && i < TEMPLATE_MODULES_MAX; i++)
		t->modules[i] = strdup(spec->modules[i]);
	TAILQ_INSERT_TAIL(&n->templates, t, link);
	retire(n, 0, TEMPLATES_MAX);
	start(t);
	return t;
}

struct template *template_get(struct nursery *n, const struct template_spec *spec)
{
	struct template *t = find(n, spec->name);
	if (!t)
		t = create(n, spec);
	if (!t || t->failures >= FAILURES_MAX)
		return NULL;
	t->used_ns = clock_now_ns();
	return t;
}

void templates_destroy(struct nursery *n)
{
	for (struct template *t = TAILQ_FIRST(&n->templates), *next; t; t = next) {
		next = TAILQ_NEXT(t, link);
		if (t->helper.open_polls)
			helper_close(&t->helper);
		else
			free_template(t);
	}
}

bool templates_gone(const struct nursery *n)
{
	return TAILQ_EMPTY(&n->templates);
}
