#include "session/display/display_servers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "display/xserver/xzygote.h"
#include "sandbox/helper.h"
#include "sandbox/pool.h"
#include "session/display/film.h"
#include "session/display/session_display_internal.h"

enum {
	FAILURES_MAX = 2, /* to start, in a row */
	/*
	 * until one that failed is tried again: without screens there is no display at all, without
	 * a warm X server there are plain ones
	 */
	REST_SCREENS_MS = 300,
	REST_SERVERS_MS = 60000,
	/*
	 * until a helper has said that it is up, and until it has answered a request; two of them
	 * in a row end before a display gives up (START_SECONDS), so that it gets a plain X server
	 */
	SILENCE_MS = 8000
};

enum helper_state { HELPER_OFF, HELPER_STARTING, HELPER_UP, HELPER_BROKEN };

/* A helper and what it is good for. */
struct maker {
	struct helper helper;
	struct displays *displays;
	struct display_size size; /* of the X zygotes */
	enum helper_state state;
	unsigned failures;
	uint64_t again_ns;   /* HELPER_BROKEN: not before */
	unsigned unanswered; /* requests, and the start itself */
	uint64_t heard_ns;   /* the last answer, or the request after which it owes one */
};

struct displays {
	struct displays_config config;
	struct maker screens;
	struct maker servers[LIMIT_DISPLAY_CLASSES];
	unsigned n_servers;
	char library[PATH_MAX];
	struct display_list list,
		ending; /* the second: closed, and questions may wait for their last answer */
	struct film_list films;
	uint32_t next_serial;
	bool destroying;
	void (*done)(void *);
	void *done_userdata;
};

static struct maker *maker_of(struct helper *h)
{
	return (struct maker *)((char *)h - offsetof(struct maker, helper));
}

static void give_up(struct maker *m)
{
	unsigned rest_ms = m == &m->displays->screens ? REST_SCREENS_MS : REST_SERVERS_MS;
	m->state = HELPER_BROKEN;
	m->again_ns = clock_now_ns() + rest_ms * NSEC_PER_MSEC;
}

static void expect_answer(struct maker *m)
{
	if (!m->unanswered++)
		m->heard_ns = clock_now_ns();
}

static void note_answer(struct maker *m)
{
	m->unanswered -= m->unanswered > 0;
	m->heard_ns = clock_now_ns();
}

/* A helper that is stopped or hangs would keep every display of its kind from starting. */
static void end_if_silent(struct maker *m)
{
	if (!m->unanswered || !m->helper.running ||
		clock_now_ns() - m->heard_ns < SILENCE_MS * NSEC_PER_MSEC)
		return;

	log_error("%s does not answer; it is killed and a new one is started",
		m == &m->displays->screens ? "the process that forks screens" : "a warm X server");
	helper_close(&m->helper);
}

static bool may_start(struct maker *m)
{
	if (m->helper.open_polls)
		return false; /* it is there, or is being closed */
	if (m->state == HELPER_BROKEN && clock_now_ns() >= m->again_ns)
		m->state = HELPER_OFF;
	return m->state == HELPER_OFF;
}

/* ---- helpers -------------------------------------------------------------------------------- */

static void tell_displays(struct displays *d)
{
	for (struct display *one = TAILQ_FIRST(&d->list), *next; one; one = next) {
		next = TAILQ_NEXT(one, link);
		display_helpers_changed(one);
	}
}

static void finish_when_closed(struct displays *d)
{
	bool open = d->screens.helper.open_polls != 0;
	for (unsigned i = 0; i < d->n_servers; i++)
		open |= d->servers[i].helper.open_polls != 0;
	if (!d->destroying || open)
		return;

	void (*done)(void *) = d->done;
	void *userdata = d->done_userdata;
	free(d);
	if (done)
		done(userdata);
}

static void on_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct maker *m = maker_of(h);
	struct displays *d = m->displays;
	struct display_spawned a;

	if (len != sizeof(a))
		return;

	memcpy(&a, data, sizeof(a));
	a.text[sizeof(a.text) - 1] = '\0';
	note_answer(m);
	if (!a.serial) {
		m->state = HELPER_UP;
		m->failures = 0;
		if (a.err) {
			log_warning("%s: %s", a.text, strerror(-a.err));
			give_up(m);
		}
		tell_displays(d);
		return;
	}

	if (a.process == DISPLAY_FILM) {
		film_spawned(&d->films, a.serial, a.err, n_fds ? TAKE_FD(fds[0]) : -1);
		return;
	}

	struct display *one;
	TAILQ_FOREACH (one, &d->list, link)
		if (one->spawn_serial == a.serial) {
			display_spawned(one, (enum display_process)a.process, a.err, a.text,
				n_fds ? TAKE_FD(fds[0]) : -1);
			return;
		}
	if (n_fds)
		/* nobody wants it any more; reaped with the orphans */
		process_signal(fds[0], SIGKILL);
}

static void on_exit_event(struct helper *h)
{
	helper_close(h);
}

static bool same_size(const struct display_size *a, const struct display_size *b)
{
	return a->width == b->width && a->height == b->height && a->depth == b->depth &&
	       a->dpi == b->dpi;
}

/* Tells the displays that requested a process from this helper that they get none. */
static void tell_askers(struct maker *m)
{
	struct displays *d = m->displays;
	bool screens = m == &d->screens;
	for (struct display *one = TAILQ_FIRST(&d->list), *next; one; one = next) {
		next = TAILQ_NEXT(one, link);
		if (screens || same_size(&one->size, &m->size))
			display_helper_ended(one, screens);
	}
}

static void on_closed(struct helper *h)
{
	struct maker *m = maker_of(h);
	struct displays *d = m->displays;

	m->unanswered = 0;
	if (!d->destroying) {
		m->failures += m->state != HELPER_UP;
		if (m->failures >= FAILURES_MAX)
			give_up(m);
		else
			m->state = HELPER_OFF;
		log_warning("%s ended; existing displays are not affected",
			m == &d->screens ? "the process that forks screens" : "a warm X server");
		tell_askers(m);
		tell_displays(d);
	}

	finish_when_closed(d);
}

static void prepare(struct displays *d, struct maker *m)
{
	m->displays = d;
	m->helper.on_message = on_message;
	m->helper.on_exit = on_exit_event;
	m->helper.on_closed = on_closed;
	m->state = HELPER_STARTING;
	m->unanswered = 0;
	expect_answer(m);
}

static void start_screens(struct displays *d)
{
	struct maker *m = &d->screens;
	char *argv[] = { (char *)"glovebox", (char *)"screens", NULL },
	     *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	if (!may_start(m))
		return;

	prepare(d, m);
	if (helper_start(&m->helper, d->config.loop, "/proc/self/exe", argv, envp,
		    (const int[HELPER_EXTRA]){ sandbox_pool_jailer_pidfd(d->config.pool), -1 }) < 0)
		give_up(m);
}

static void start_zygote(struct displays *d, struct maker *m)
{
	char name[16], number[40], screen[48], dpi[16], preload[PATH_MAX + 16];
	if (!may_start(m))
		return;

	prepare(d, m);
	if (d->config.plain || access(d->library, R_OK) < 0) {
		give_up(m);
		return;
	}

	snprintf(screen, sizeof(screen), "%ux%ux%u", m->size.width, m->size.height, m->size.depth);
	snprintf(dpi, sizeof(dpi), "%u", m->size.dpi);
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", d->library);

	/*
	 * A number of its own: where -nolock is refused (to all but root), a lock file of that
	 * number stands in /tmp until the zygote is up.
	 */
	snprintf(name, sizeof(name), ":%u",
		XZYGOTE_FIRST_DISPLAY +
			((unsigned)getpid() * LIMIT_DISPLAY_CLASSES + (unsigned)(m - d->servers)) %
				XZYGOTE_DISPLAYS);
	snprintf(number, sizeof(number), XZYGOTE_VARIABLE "=%s", name + 1);
	const char *argv[] = { "Xvfb", name, "-screen", "0", screen, "-dpi", dpi, XZYGOTE_ARGUMENTS,
		NULL };

	/*
	 * Pixmaps go back to the system when their window closes, instead of staying in the heap.
	 */
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", preload, number, (char *)"LISTEN_FDS=1",
		(char *)"MALLOC_MMAP_THRESHOLD_=65536", (char *)"MALLOC_TRIM_THRESHOLD_=65536",
		NULL };
	m->helper.silent = true;
	if (helper_start(&m->helper, d->config.loop, XZYGOTE_PROGRAM, (char **)argv, envp,
		    (const int[HELPER_EXTRA]){ sandbox_pool_jailer_pidfd(d->config.pool), -1 }) < 0)
		give_up(m);
}

/* The zygote of this size, made when there is room for one more; NULL: plain servers. */
static struct maker *server_maker(struct displays *d, const struct display_size *size)
{
	for (unsigned i = 0; i < d->n_servers; i++)
		if (same_size(&d->servers[i].size, size))
			return &d->servers[i];
	if (d->n_servers == LIMIT_DISPLAY_CLASSES)
		return NULL;

	struct maker *m = &d->servers[d->n_servers++];
	m->size = *size;
	return m;
}

void displays_warm(struct displays *d, const struct display_size *size)
{
	struct maker *m = server_maker(d, size);
	if (d->destroying || sandbox_pool_jailer_pidfd(d->config.pool) < 0)
		return;
	start_screens(d);
	if (m)
		start_zygote(d, m);
}

/* ---- for displays ------------------------------------------------------------------- */

bool displays_ready(struct displays *d, const struct display_size *size)
{
	struct maker *m = server_maker(d, size);
	displays_warm(d, size);
	return d->screens.state == HELPER_UP &&
	       (!m || m->state == HELPER_UP || m->state == HELPER_BROKEN);
}

void displays_give_up(struct displays *d, const struct display_size *size)
{
	struct maker *m = server_maker(d, size);
	if (!m || m->state == HELPER_BROKEN)
		return;
	log_warning(
		"the warm X server did not work; a new X server is started for each display instead");
	give_up(m);
}

const char *displays_kind(struct displays *d, const struct display_size *size)
{
	struct maker *m = server_maker(d, size);
	return !m || m->state == HELPER_BROKEN ? "plain"
	       : m->state == HELPER_UP         ? "warm"
					       : "starting";
}

int displays_spawn(struct displays *d, const struct display_size *size, struct display_spawn *q,
	const int *fds, size_t n_fds)
{
	struct maker *m = q->process == DISPLAY_SERVER ? server_maker(d, size) : NULL;
	q->width = size->width;
	q->height = size->height;
	q->depth = size->depth;
	q->dpi = size->dpi;
	if (!m || m->state != HELPER_UP)
		m = &d->screens;
	int r = helper_send(&m->helper, q, sizeof(*q), fds, n_fds);
	if (r == 0)
		expect_answer(m);
	return r;
}

void displays_watch(struct displays *d)
{
	end_if_silent(&d->screens);
	for (unsigned i = 0; i < d->n_servers; i++)
		end_if_silent(&d->servers[i]);
}

void displays_add(struct displays *d, struct display *display)
{
	TAILQ_INSERT_TAIL(&d->list, display, link);
}

void displays_ending(struct displays *d, struct display *display)
{
	TAILQ_REMOVE(&d->list, display, link);
	TAILQ_INSERT_TAIL(&d->ending, display, link);
}

void displays_ended(struct displays *d, struct display *display)
{
	TAILQ_REMOVE(&d->ending, display, link);
}

void displays_forget(struct displays *d, const void *userdata)
{
	struct display *display;
	TAILQ_FOREACH (display, &d->ending, link)
		display_forget_all(display, userdata);
}

struct film_list *displays_films(struct displays *d)
{
	return &d->films;
}

uv_loop_t *displays_loop(struct displays *d)
{
	return d->config.loop;
}

uint32_t displays_next_serial(struct displays *d)
{
	if (!++d->next_serial)
		d->next_serial = 1; /* 0 is a helper's greeting */
	return d->next_serial;
}

int displays_check(struct error *e)
{
	if (access(XZYGOTE_PROGRAM, X_OK) == 0)
		return 0;

	error_set(e, -ENOENT,
		"this machine has no X server (%s), so sessions cannot have a display",
		XZYGOTE_PROGRAM);
	error_remedy(e,
		"Install the package xvfb (apt-get install xvfb) on the server, or make the session without `display`.");
	return error_slug(e, "display_unavailable");
}

/* ---- life --------------------------------------------------------------------------- */

int displays_create(const struct displays_config *config, struct displays **ret)
{
	struct displays *d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;

	d->config = *config;
	TAILQ_INIT(&d->list);
	TAILQ_INIT(&d->ending);
	TAILQ_INIT(&d->films);
	const char *slash = strrchr(config->guest_module, '/');
	int n = snprintf(d->library, sizeof(d->library), "%.*s" XZYGOTE_LIBRARY,
		slash ? (int)(slash - config->guest_module + 1) : 0, config->guest_module);

	/* LD_PRELOAD takes a path only with a slash in it, and splits at spaces and colons. */
	if (n >= (int)sizeof(d->library) || !slash || strpbrk(d->library, " :"))
		d->library[0] = '\0';
	if (d->library[0] && d->library[0] != '/') {
		char *full = realpath(d->library, NULL);
		snprintf(d->library, sizeof(d->library), "%s", full ? full : "");
		free(full);
	}

	*ret = d;
	return 0;
}

void displays_destroy(struct displays *d, void (*done)(void *), void *userdata)
{
	d->destroying = true;
	d->done = done;
	d->done_userdata = userdata;
	helper_close(&d->screens.helper);
	for (unsigned i = 0; i < d->n_servers; i++)
		helper_close(&d->servers[i].helper);
	finish_when_closed(d);
}
