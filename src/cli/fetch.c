#include "cli/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/provision.h"
#include "base/clock.h"
#include "base/text.h"
#include "daemon/config.h"
#include "session/session.h"
#include "json/json_read.h"

enum { BAR_WIDTH = 20, TEXT_WIDTH = 44, BAR_BYTES = 128, AGAIN_MS = 1000, LONG_S = 3 };

struct waiting {
	struct fetched *fetched;
	struct error *e;
	enum fetch_progress show;
	bool terminal, done;
	const char *phase; /* NULL until something was said */
	char text[BAR_BYTES];
	unsigned full, told; /* how much of the bar; how many phases had a line */
	uint64_t since_ns;   /* when the text came */
	uv_timer_t again;
};

/* ---- progress --------------------------------------------------------------- */

static void clear_line(const struct waiting *w)
{
	if (w->show == FETCH_SHOW && w->terminal && w->phase)
		fprintf(stderr, "\r\033[K");
}

/* What fits behind the bar: a line that wraps could not be drawn over. */
static int text_width(void)
{
	struct winsize size;
	int room = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col
			   ? (int)size.ws_col - BAR_WIDTH - 24
			   : TEXT_WIDTH;
	return room < 0 ? 0 : room < TEXT_WIDTH ? room : TEXT_WIDTH;
}

/* One line that changes. What takes long says for how long. */
static void draw(const struct waiting *w)
{
	unsigned seconds = (unsigned)((clock_now_ns() - w->since_ns) / NSEC_PER_SEC);
	fprintf(stderr, "\r\033[K[");
	for (unsigned i = 0; i < BAR_WIDTH; i++)
		fputc(i < w->full ? '#' : '.', stderr);
	fprintf(stderr, "] %s %.*s", w->phase, text_width(), w->text);
	if (seconds >= LONG_S)
		fprintf(stderr, " %u s", seconds);
	fflush(stderr);
}

static void on_again(uv_timer_t *t)
{
	if (((const struct waiting *)t->data)->phase)
		draw(t->data);
}

/*
 * Each phase has its part of the bar, which never gets shorter: pip looks for packages and
 * downloads them by turns.
 */
static void on_progress(
	void *userdata, const char *phase, const char *text, unsigned done, unsigned total)
{
	static const char *const phases[] = { "resolving", "downloading", "building", "storing" };
	enum { PART = BAR_WIDTH / ARRAY_LEN(phases) };
	struct waiting *w = userdata;
	unsigned at = 0, n = 0;

	while (at + 1 < ARRAY_LEN(phases) && !text_eq(phase, phases[at]))
		at++;
	/* names come from an index: nothing in them may move the cursor */
	for (; *text && n + 1 < sizeof(w->text); text++)
		w->text[n++] = *text >= ' ' && *text <= '~' ? *text : '?';
	w->text[n] = '\0';
	unsigned full = 1 + at * PART + (total ? done * (PART - 1) / total : 0);
	w->full = full > w->full ? full : w->full;
	w->phase = phases[at];
	w->since_ns = clock_now_ns();
	if (w->show == FETCH_SHOW && w->terminal)
		draw(w);
	else if (w->show == FETCH_SHOW && at >= w->told)
		fprintf(stderr, "packages: %s %s\n", w->phase, w->text);
	w->told = at >= w->told ? at + 1 : w->told;
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

int fetch_packages(struct fetched *f, const struct packages_request *q, struct config *config,
	enum fetch_progress show, struct error *e)
{
	static const struct packages_listener listener = { on_progress, on_done };
	struct error failed = { 0 };
	struct waiting w = {
		.fetched = f, .e = &failed, .show = show, .terminal = isatty(STDERR_FILENO)
	};
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
	uv_timer_init(&f->loop, &w.again);
	w.again.data = &w;
	if (w.show == FETCH_SHOW && w.terminal)
		uv_timer_start(&w.again, on_again, AGAIN_MS, AGAIN_MS);
	while (!w.done)
		uv_run(&f->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&w.again, NULL);
	uv_run(&f->loop, UV_RUN_NOWAIT); /* it is on our stack */
	clear_line(&w);
	if (failed.err && e)
		*e = failed;
	return failed.err;
}

/* What a package printed while it was built: nothing of it may reach the terminal but text. */
static void show_line(const char *text)
{
	fputs("  | ", stderr);
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		bool c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
		fputc(*at < ' ' || *at == 0x7f || c1 ? '?' : *at, stderr);
		at += c1;
	}
	fputc('\n', stderr);
}

void fetch_show_log(const char *log)
{
	_cleanup_json_ json_t *lines = NULL;
	const json_t *line;
	size_t i;
	if (!log || json_read(log, strlen(log), NULL, &lines) < 0)
		return;
	json_array_foreach(lines, i, line)
		show_line(json_string_value(line) ? json_string_value(line) : "");
}

int fetch_for_local(struct fetched *f, struct config *config, char *const *packages,
	char *const *imports, struct error *e)
{
	char *argv[] = { (char *)"serve", NULL };
	int r = config_load(1, argv, e, config);
	if (r < 0)
		return r;
	r = fetch_packages(f,
		&(struct packages_request){ .packages = packages, .imports = imports }, config,
		FETCH_SHOW, e);
	if (r < 0)
		fetch_show_log(f->log);
	return r;
}

struct session_package *fetched_package(struct fetched *f)
{
	return f->set ? provision_package(f->packages, f->set, f->path) : NULL;
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
