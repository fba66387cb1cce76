#include "display/client/screen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/text.h"
#include "display/image/encode.h"

enum {
	READ_BYTES = 16 * 1024,
	PIDS_MAX = 64,
	PIDS_AGE_MS = 200,
	RELEASE_MS = 2000,
	ROUND_TRIPS = 2
};

/* ---- settling ----------------------------------------------------------------------- */

static bool any_waiting(const struct screen *s)
{
	for (unsigned i = 0; i < SCREEN_WAITING; i++)
		if (s->waiting[i].used)
			return true;
	return false;
}

/* When to look at the clients again. */
static uint64_t next_look_ns(struct screen *s)
{
	uint64_t first = UINT64_MAX;
	bool windows = windows_any(s);
	for (unsigned i = 0; i < SCREEN_WAITING; i++) {
		const struct waiting *w = &s->waiting[i];
		uint64_t next = w->used ? settle_next_ns(
						  &w->settle, &s->activity, windows, s->looked_ns)
					: UINT64_MAX;
		first = next < first ? next : first;
	}
	return first;
}

/* Is there a question for more than the first window, or for a main loop? */
static bool awaits_pixels(const struct screen *s)
{
	for (unsigned i = 0; i < SCREEN_WAITING; i++)
		if (s->waiting[i].used && s->waiting[i].settle.start_ns &&
			!s->waiting[i].settle.in_loop)
			return true;
	return false;
}

/* Asked of the server only when something was painted since the last time. */
static bool is_flat(void *userdata)
{
	static uint64_t at = ~0ULL;
	static bool flat;
	struct screen *s = userdata;
	if (at != s->activity.changes)
		flat = capture_is_flat(s);
	at = s->activity.changes;
	return flat;
}

static void finish_waiting(struct screen *s, struct waiting *w, enum shot_reason reason)
{
	uint64_t from = w->settle.start_ns ? w->settle.start_ns : w->settle.asked_ns;
	struct picture_info info = { .reason = reason,
		.settled = reason == SHOT_QUIET || reason == SHOT_IDLE || reason == SHOT_BUSY ||
			   reason == SHOT_STILL,
		.in_event_loop = s->activity.last.in_loop && reason == SHOT_QUIET };
	w->used = false;
	if (windows_any(s))
		/* before the picture: both use the same memory */
		info.ink = capture_ink(s, &info.paper);
	screen_take_picture(s, w->serial, &w->options, from, &info);
}

/* Process numbers of the X server, if it is visible, followed by those of the clients. */
static int32_t pids[PIDS_MAX];
static unsigned n_pids;

static void sample_clients(struct screen *s)
{
	static uint64_t at, map;
	static bool foreign;
	struct sample sample;
	uint64_t now = clock_now_ns();

	/*
	 * A new window may be a new client's. The question itself makes the server run, so it is
	 * not asked at every look.
	 */
	if (!n_pids || map != s->activity.map_ns || now - at > PIDS_AGE_MS * NSEC_PER_MSEC) {
		n_pids = windows_pids(s, pids, PIDS_MAX);
		at = now;
		map = s->activity.map_ns;
		foreign = proc_foreign(pids, n_pids, s->server_pid);
	}

	now = clock_now_ns();
	proc_sample(pids, n_pids, s->server_pid, &sample);
	sample.foreign = foreign;
	activity_sample(&s->activity, &sample, now, clock_now_ns());
}

/* What is painted again and again may be the same every time. */
static void look_at_pixels(struct screen *s)
{
	uint64_t now = clock_now_ns(), sum;
	if (activity_wants_look(&s->activity, now) && capture_sum(s, &sum) == 0)
		activity_looked(&s->activity, sum, clock_now_ns());
}

bool screen_is_quiet(struct screen *s, uint64_t since_ns)
{
	sample_clients(s);
	return activity_quiet_ns(&s->activity, since_ns) >= SETTLE_QUIET_MS * NSEC_PER_MSEC;
}

static void read_events(struct screen *s);

/* What was done before and is still on its way here: a question and its answer come after it. */
static void catch_up(struct screen *s)
{
	free(xcb_get_input_focus_reply(s->x, xcb_get_input_focus(s->x), NULL));
	read_events(s);
}

/*
 * Does everybody wait, also when the server has answered what it was asked? Jails hide the server,
 * so that a client that waits for an answer of a server which has no processor looks like one that
 * waits for events. The server takes turns with its clients: when it has answered us twice, it has
 * come to the requests that were there before. A client that got its answer is running, or has run.
 */
static bool waits_for_events(struct screen *s)
{
	unsigned skip = n_pids && pids[0] == s->server_pid ? 1 : 0;
	uint64_t changes = s->activity.changes, managed = s->managed;
	struct sample before, after;
	proc_sample(pids + skip, n_pids - skip, 0, &before);
	for (int i = 0; i < ROUND_TRIPS; i++)
		catch_up(s);
	proc_sample(pids + skip, n_pids - skip, 0, &after);
	if (changes != s->activity.changes || managed != s->managed)
		return false;
	if (before.waiting && after.waiting && before.run_ns == after.run_ns)
		return true;
	activity_answered(&s->activity);
	return false;
}

/* Is the reason still one when everything that happened before has been read? */
static bool holds(struct screen *s, enum shot_reason reason)
{
	uint64_t changes = s->activity.changes;
	if (reason == SHOT_QUIET || reason == SHOT_IDLE)
		return waits_for_events(s);
	catch_up(s);
	return changes == s->activity.changes || reason != SHOT_BUSY;
}

static void decide_all(struct screen *s)
{
	bool windows = windows_any(s);
	/*
	 * Code that draws wakes us with every stroke; a look at each would cost it more than the
	 * drawing.
	 */
	if (clock_now_ns() < next_look_ns(s))
		return;
	s->looked_ns = clock_now_ns();
	sample_clients(s);
	if (awaits_pixels(s))
		look_at_pixels(s);
	for (unsigned i = 0; i < SCREEN_WAITING; i++) {
		struct waiting *w = &s->waiting[i];
		enum shot_reason reason;
		if (!w->used || !settle_decide(&w->settle, &s->activity, windows, is_flat, s,
					clock_now_ns(), &reason))
			continue;
		if (holds(s, reason))
			finish_waiting(s, w, reason);
	}
}

/* ---- questions ---------------------------------------------------------------------- */

static void on_shot(struct screen *s, uint32_t serial, const void *options)
{
	struct shot_options o;
	memcpy(&o, options, sizeof(o));
	if (!o.settle && !o.first_window) {
		struct picture_info info = { .reason = SHOT_AS_IT_IS };
		screen_take_picture(s, serial, &o, 0, &info);
		return;
	}

	for (unsigned i = 0; i < SCREEN_WAITING; i++) {
		struct waiting *w = &s->waiting[i];
		if (w->used)
			continue;
		*w = (struct waiting){ .used = true, .serial = serial, .options = o };
		settle_begin(&w->settle, &o, &s->activity, clock_now_ns());
		return;
	}

	screen_say_trouble(s, serial, "too_many_questions",
		"too many screenshots of this display are pending", "Wait for their answers.");
}

static void on_windows(struct screen *s, uint32_t serial, const void *options)
{
	static struct window_entry list[LIMIT_WINDOWS];
	(void)options;
	unsigned n = windows_list(s, list, LIMIT_WINDOWS);
	size_t start = screen_begin(s, DISPLAY_SAY_WINDOWS, serial);
	screen_put_windows(s, list, n);
	wire_end(&s->out, start);
	screen_send(s);
}

static void on_close(struct screen *s, uint32_t serial, const void *options)
{
	(void)options;
	screen_say_done(s, serial, manager_close_all(s));
}

static void on_poke(struct screen *s, uint32_t serial, const void *options)
{
	(void)options;
	screen_say_done(s, serial, manager_send_noop_all(s));
}

static void on_cancel(struct screen *s, uint32_t serial, const void *options)
{
	(void)options;
	for (unsigned i = 0; i < SCREEN_WAITING; i++)
		if (s->waiting[i].serial == serial)
			s->waiting[i].used = false;
	input_cancel(s, serial);
	watch_cancel(s, serial);
}

static void on_watch(struct screen *s, uint32_t serial, const void *options)
{
	struct frame_options o;
	memcpy(&o, options, sizeof(o));
	watch_ask(s, serial, &o);
}

static void on_input(struct screen *s, uint32_t serial, const void *options)
{
	int r = input_add(s, serial, options, s->options_len);
	if (r == -EBUSY)
		screen_say_trouble(s, serial, "too_many_questions",
			"too many actions wait for this display", "Wait for their answers.");
	else if (r < 0)
		screen_say_trouble(s, serial, "input_failed",
			"the display did not understand the action", "Try again.");
}

/* The cell is over: no first window will come, and what there is settles at once. */
static void on_now(struct screen *s, uint32_t serial, const void *options)
{
	(void)options;
	catch_up(s); /* its window may be about to be mapped, by us */
	for (unsigned i = 0; i < SCREEN_WAITING; i++) {
		struct waiting *w = &s->waiting[i];
		if (!w->used || w->serial != serial)
			continue;
		if (!windows_any(s))
			finish_waiting(s, w, SHOT_NO_WINDOW);
		else if (!w->settle.start_ns || w->settle.in_loop)
			w->settle.start_ns = clock_now_ns();
		w->settle.in_loop = false;
	}
}

static const struct question {
	enum display_ask ask;
	size_t options; /* bytes it must bring */
	size_t most;    /* … or may, when that varies */
	void (*answer)(struct screen *s, uint32_t serial, const void *options);
} questions[] = {
	{ DISPLAY_ASK_SHOT, sizeof(struct shot_options), 0, on_shot },
	{ DISPLAY_ASK_WINDOWS, 0, 0, on_windows },
	{ DISPLAY_ASK_CLOSE, 0, 0, on_close },
	{ DISPLAY_ASK_POKE, 0, 0, on_poke },
	{ DISPLAY_ASK_CANCEL, 0, 0, on_cancel },
	{ DISPLAY_ASK_NOW, 0, 0, on_now },
	{ DISPLAY_ASK_FRAME, sizeof(struct frame_options), 0, on_watch },
	{ DISPLAY_ASK_INPUT, offsetof(struct input_action, text), sizeof(struct input_action),
		on_input },
};

static void on_frame(struct screen *s, const struct wire_frame *f)
{
	struct wire_field field = { 0 };
	size_t at = 0;
	while (wire_field_next(f, &at, &field) == 1 && field.tag != DISPLAY_TAG_OPTIONS)
		;
	s->options_len = field.len;
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		const struct question *q = &questions[i];
		if (q->ask == f->type && field.len >= q->options &&
			(!q->options || field.len <= (q->most ? q->most : q->options)))
			q->answer(s, f->serial, field.data);
	}
}

/* ---- the loop ----------------------------------------------------------------------- */

static void on_event(struct screen *s, const xcb_generic_event_t *event)
{
	if ((event->response_type & 0x7f) == s->damage_event + XCB_DAMAGE_NOTIFY) {
		activity_painted(&s->activity, clock_now_ns());
		xcb_damage_subtract(s->x, s->damage, XCB_NONE, XCB_NONE);
	} else {
		s->managed++;
		activity_answered(&s->activity);
		manager_event(s, event);
	}
}

static void read_events(struct screen *s)
{
	for (xcb_generic_event_t *e; (e = xcb_poll_for_event(s->x)); free(e))
		on_event(s, e);
	xcb_flush(s->x);
}

/* False when the daemon hung up. */
static bool read_daemon(struct screen *s)
{
	struct wire_frame f;
	char *at;
	size_t room;
	int r;
	if (wire_reader_room(&s->in, READ_BYTES, &at, &room) < 0)
		return false;
	ssize_t n = read(s->daemon, at, room);
	if (n <= 0)
		return n < 0 && errno == EINTR;
	wire_reader_filled(&s->in, (size_t)n);
	while ((r = wire_reader_next(&s->in, &f)) == 1)
		on_frame(s, &f);
	return r == 0;
}

/*
 * What came while we waited for an answer of the server is not in the socket any more, where poll()
 * would see it.
 */
static bool read_queued(struct screen *s)
{
	bool any = false;
	for (xcb_generic_event_t *e; (e = xcb_poll_for_queued_event(s->x)); free(e), any = true)
		on_event(s, e);
	return any;
}

/* Of two waits in milliseconds, -1 for ever. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/*
 * Waits so many milliseconds, -1 for ever, but not beyond the next look at the clients, which is
 * due to the tenth of one. When nobody wants pictures any more, their memory is given back: most
 * displays are idle most of the time, and it is as large as the screen.
 */
static int wait_for_something(struct screen *s, struct pollfd *fds, int ms)
{
	uint64_t now = clock_now_ns(), look = any_waiting(s) ? next_look_ns(s) : UINT64_MAX,
		 until = look;
	bool release = ms < 0 && look == UINT64_MAX && s->segment;

	if (release)
		ms = RELEASE_MS;
	if (ms >= 0 && now + (uint64_t)ms * NSEC_PER_MSEC < until)
		until = now + (uint64_t)ms * NSEC_PER_MSEC;
	uint64_t left = until > now ? until - now : 0;
	struct timespec t = { .tv_sec = (time_t)(left / NSEC_PER_SEC),
		.tv_nsec = (long)(left % NSEC_PER_SEC) };
	int r = ppoll(fds, 2, until == UINT64_MAX ? NULL : &t, NULL);
	if (r == 0 && release)
		capture_release(s);
	return r;
}

static int serve(struct screen *s)
{
	struct pollfd fds[2] = { { .fd = s->daemon, .events = POLLIN },
		{ .fd = xcb_get_file_descriptor(s->x), .events = POLLIN } };

	while (!xcb_connection_has_error(s->x)) {
		read_events(s);
		if (any_waiting(s))
			decide_all(s);
		int wait = sooner(input_run(s), watch_run(s));
		if (any_waiting(s))
			/* asks the server when need be, so that what came meanwhile is read below
			 */
			windows_any(s);
		if (read_queued(s))
			wait = 0;
		xcb_flush(s->x);
		if (wait_for_something(s, fds, wait) < 0 && errno != EINTR)
			return 1;
		if (fds[0].revents && !read_daemon(s))
			return 0;
	}

	return 0; /* the X server ended; the daemon sees our end */
}

void screen_prepare(void)
{
	static uint32_t dot;
	struct image one = { .pixels = (uint8_t *)&dot, .width = 1, .height = 1 };
	/* libraries resolve their symbols and choose their routines at the first call */
	for (int i = 0; i < SHOT_FORMAT_COUNT; i++) {
		_cleanup_buffer_ struct buffer out = BUFFER_INIT(0);
		encoders[i].encode(&one, 0, &out);
	}
}

int screen_run(int daemon, int server, const uint8_t cookie[XSOCKET_COOKIE])
{
	static struct screen s;
	s.daemon = daemon;
	wire_reader_init(&s.in, 65536);
	int r = screen_connect(&s, server, cookie);
	if (r == 0)
		r = manager_start(&s);
	if (r < 0) {
		screen_say_trouble(&s, 0, "display_failed", "the X server sent an invalid answer",
			"{reset} starts it anew.");
		return 1;
	}

	s.server_pid = proc_find("Xvfb");
	manager_adopt(&s);
	size_t start = screen_begin(&s, DISPLAY_SAY_UP, 0);
	wire_end(&s.out, start);
	screen_send(&s);
	return serve(&s);
}
