#include "cli/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/config.h"
#include "json/json_read.h"
#include "session/session.h"

enum { BAR_WIDTH = 20, TEXT_WIDTH = 44 };

struct waiting {
	struct fetched *fetched;
	struct error *e;
	enum fetch_progress show;
	bool terminal, done;
	char phase[16];
};

/* ---- progress --------------------------------------------------------------- */

static void clear_line(const struct waiting *w)
{
	if (w->show == FETCH_SHOW && w->terminal && w->phase[0])
		fprintf(stderr, "\r\033[K");
}

/* One line that changes; how far each phase has come by its place in the bar. */
static void draw(const char *phase, const char *text, unsigned done, unsigned total)
{
	static const char *const phases[] = { "resolving", "downloading", "building", "storing" };
	unsigned full = 1;
	for (unsigned i = 0; i < ARRAY_LEN(phases); i++)
		if (text_eq(phase, phases[i]))
			full += i * BAR_WIDTH / ARRAY_LEN(phases);
	if (total)
		full += done * (BAR_WIDTH / ARRAY_LEN(phases) - 1) / total;
	fprintf(stderr, "\r\033[K[");
	for (unsigned i = 0; i < BAR_WIDTH; i++)
		fputc(i < full ? '#' : '.', stderr);
	fprintf(stderr, "] %s %.*s", phase, TEXT_WIDTH, text);
	fflush(stderr);
}

static void on_progress(void *userdata, const char *phase, const char *text, unsigned done, unsigned total)
{
	struct waiting *w = userdata;
	char plain[128];
	size_t n = 0;
	for (; *text && n + 1 < sizeof(plain); text++) /* names come from an index: nothing in them may move the cursor */
		plain[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text;
	plain[n] = '\0';
	if (w->show == FETCH_SHOW && w->terminal)
		draw(phase, plain, done, total);
	else if (w->show == FETCH_SHOW && !text_eq(w->phase, phase))
		fprintf(stderr, "packages: %s %s\n", phase, plain);
	snprintf(w->phase, sizeof(w->phase), "%s", phase);
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void on_done(void *userdata, const struct packages_answer *a)
{
	struct waiting *w = userdata;
	struct fetched *f = w->fetched;
	w->done = true;
	if (a->error)
		*w->e = *a->error;
	f->report = copy(a->report);
	f->log = copy(a->log);
	f->set = copy(a->set);
	f->path = copy(a->path);
	f->cached = a->cached;
	f->replaces = a->replaces;
}

/* ---- all of it ----------------------------------------------------------------- */

int fetch_packages(struct fetched *f, const struct packages_request *q, struct config *config, enum fetch_progress show, struct error *e)
{
	static const struct packages_listener listener = { on_progress, on_done };
	struct error failed = { 0 };
	struct waiting w = { .fetched = f, .e = &failed, .show = show, .terminal = isatty(STDERR_FILENO) };
	struct packages_wait *wait;
	*f = (struct fetched){ .config = config };
	int r = uv_loop_init(&f->loop);
	if (r < 0)
		return error_set_errno(e, r, "the event loop");
	f->loop_open = true;
	r = packages_create(&f->loop, &config->packages, config->state_dir, e, &f->packages);
	if (r == 0)
		r = packages_ask(f->packages, q, &listener, &w, e, &wait);
	if (r < 0)
		return r;
	while (!w.done)
		uv_run(&f->loop, UV_RUN_ONCE);
	clear_line(&w);
	if (failed.err && e)
		*e = failed;
	return failed.err;
}

static void show_log(const char *log)
{
	_cleanup_json_ json_t *lines = NULL;
	const json_t *line;
	size_t i;
	if (!log || json_read(log, strlen(log), NULL, &lines) < 0)
		return;
	json_array_foreach(lines, i, line)
		fprintf(stderr, "  | %s\n", json_string_value(line));
}

int fetch_for_local(struct fetched *f, struct config *config, char *const *packages, struct error *e)
{
	char *argv[] = { (char *)"serve", NULL };
	int r = config_load(1, argv, e, config);
	if (r < 0)
		return r;
	r = fetch_packages(f, &(struct packages_request){ .packages = packages }, config, FETCH_SHOW, e);
	if (r < 0)
		show_log(f->log);
	return r;
}

struct session_package *fetched_package(struct fetched *f)
{
	if (!f->set)
		return NULL;
	struct session_package *p = calloc(1, sizeof(*p));
	if (!p || !(p->path = strdup(f->path)) || !(p->hold = packages_hold(f->packages, f->set))) {
		session_package_free(p);
		return NULL;
	}
	p->retain = packages_retain;
	p->release = packages_release;
	return p;
}

const char *fetched_shown(const struct fetched *f)
{
	return f->packages ? packages_shown(f->packages) : NULL;
}

void fetched_finish(struct fetched *f)
{
	packages_destroy(f->packages);
	if (f->loop_open) {
		uv_run(&f->loop, UV_RUN_DEFAULT);
		uv_loop_close(&f->loop);
	}
	free(f->report);
	free(f->log);
	free(f->set);
	free(f->path);
	*f = (struct fetched){ 0 };
}
