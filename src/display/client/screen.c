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

enum { READ_BYTES = 16 * 1024, PIDS_MAX = 64, PIDS_AGE_MS = 200, RELEASE_MS = 2000 };

/* ---- saying ------------------------------------------------------------------------------- */

static void say(struct screen *s)
{
	if (fd_write_full(s->daemon, s->out.data, s->out.len) < 0)
		_exit(0); /* the daemon is gone, or the session */
	buffer_finish(&s->out); /* pictures are large and rare */
}

static void put(struct screen *s, enum display_tag tag, const void *data, size_t len)
{
	if (wire_put(&s->out, (enum wire_tag)tag, data, len) < 0)
		_exit(1);
}

static size_t begin(struct screen *s, enum display_say type, uint32_t serial)
{
	size_t start;
	if (wire_begin(&s->out, (enum wire_type)type, serial, &start) < 0)
		_exit(1);
	return start;
}

void screen_say_trouble(struct screen *s, uint32_t serial, const char *code, const char *text, const char *remedy)
{
	size_t start = begin(s, DISPLAY_SAY_TROUBLE, serial);
	put(s, DISPLAY_TAG_CODE, code, strlen(code));
	put(s, DISPLAY_TAG_TEXT, text, strlen(text));
	put(s, DISPLAY_TAG_REMEDY, remedy, strlen(remedy));
	wire_end(&s->out, start);
	say(s);
}

void screen_say_done(struct screen *s, uint32_t serial, uint64_t count)
{
	size_t start = begin(s, DISPLAY_SAY_DONE, serial);
	if (wire_put_u64(&s->out, (enum wire_tag)DISPLAY_TAG_COUNT, count) < 0)
		_exit(1);
	wire_end(&s->out, start);
	say(s);
}

void screen_say_frame(struct screen *s, uint32_t serial, const struct frame_info *info, const struct buffer *file)
{
	size_t start = begin(s, DISPLAY_SAY_FRAME, serial);
	put(s, DISPLAY_TAG_FRAME, info, sizeof(*info));
	if (file->len)
		put(s, DISPLAY_TAG_DATA, file->data, file->len);
	wire_end(&s->out, start);
	say(s);
}

static void put_windows(struct screen *s, const struct window_entry *list, unsigned n)
{
	for (unsigned i = 0; i < n && i < LIMIT_WINDOWS; i++)
		put(s, DISPLAY_TAG_WINDOW, &list[i], sizeof(list[i]));
}

/* ---- pictures -------------------------------------------------------------------------------- */

static void say_capture_failed(struct screen *s, uint32_t serial, const struct shot_options *o, int err)
{
	char text[128];
	if (err == -ENOENT && o->active) {
		screen_say_trouble(s, serial, "no_window", "no window has the focus", "Leave `window` out for the whole screen.");
	} else if (err == -ENOENT) {
		snprintf(text, sizeof(text), "there is no window %u on the screen", o->window);
		screen_say_trouble(s, serial, "window_not_found", text, "GET …/windows lists those there are.");
	} else if (err == -ERANGE) {
		snprintf(text, sizeof(text), "the region lies outside of the picture (the screen has %ux%u pixels)", s->width, s->height);
		screen_say_trouble(s, serial, "region_outside", text, "Give a region that overlaps it.");
	} else if (err == -E2BIG) {
		screen_say_trouble(s, serial, "picture_too_large", "the window is larger than a picture may be", "Ask for a region of it.");
	} else {
		snprintf(text, sizeof(text), "the picture could not be taken: %s", strerror(-err));
		screen_say_trouble(s, serial, "capture_failed", text, "Try again; POST …/reset starts the session's display anew.");
	}
}

/* Now that it is made: how long after `from_ns` (0: nothing was awaited) and after the last paint. */
static void tell_times(const struct screen *s, uint64_t from_ns, struct picture_info *info)
{
	uint64_t now = clock_now_ns(), paint = s->activity.paint_ns;
	info->after_ms = from_ns ? (double)(now - from_ns) / 1e6 : 0;
	info->paint_ms = paint ? (double)(now - paint) / 1e6 : -1;
}

/* Encodes what was captured into the frame. */
static int put_picture(struct screen *s, const struct shot_options *o, const struct image *full, uint64_t from_ns, struct picture_info *info)
{
	struct image small = { 0 };
	const struct image *i = full;
	_cleanup_buffer_ struct buffer file = BUFFER_INIT(LIMIT_PICTURE_BYTES + 65536);
	if (o->scale > 0 && o->scale < 1) {
		int r = image_shrink(full, o->scale, &small);
		if (r < 0)
			return r;
		i = &small;
	}
	int r = encoders[o->format % SHOT_FORMAT_COUNT].encode(i, o->quality, &file);
	info->width = i->width;
	info->height = i->height;
	info->format = o->format % SHOT_FORMAT_COUNT;
	free(small.pixels);
	tell_times(s, from_ns, info);
	if (r < 0 || file.len > LIMIT_PICTURE_BYTES)
		return r < 0 ? r : -E2BIG;
	put(s, DISPLAY_TAG_INFO, info, sizeof(*info));
	put(s, DISPLAY_TAG_DATA, file.data, file.len);
	return 0;
}

static void take_picture(struct screen *s, uint32_t serial, const struct shot_options *o, uint64_t from_ns, struct picture_info *info)
{
	static struct window_entry list[LIMIT_WINDOWS];
	struct image i;
	info->n_windows = windows_list(s, list, LIMIT_WINDOWS);
	int r = capture_image(s, o, &i);
	size_t start = begin(s, DISPLAY_SAY_PICTURE, serial);
	if (r == 0)
		r = put_picture(s, o, &i, from_ns, info);
	if (r < 0) {
		s->out.len = start;
		say_capture_failed(s, serial, o, r);
		return;
	}
	put_windows(s, list, info->n_windows);
	wire_end(&s->out, start);
	say(s);
}

/* ---- settling ---------------------------------------------------------------------------------- */

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
		uint64_t next = w->used ? settle_next_ns(&w->settle, &s->activity, windows, s->looked_ns) : UINT64_MAX;
		first = next < first ? next : first;
	}
	return first;
}

/* Is there a question for more than the first window, or for a main loop? */
static bool awaits_pixels(const struct screen *s)
{
	for (unsigned i = 0; i < SCREEN_WAITING; i++)
		if (s->waiting[i].used && s->waiting[i].settle.start_ns && !s->waiting[i].settle.in_loop)
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
		.settled = reason == SHOT_QUIET || reason == SHOT_IDLE || reason == SHOT_BUSY || reason == SHOT_STILL,
		.in_event_loop = s->activity.last.in_loop && reason == SHOT_QUIET };
	w->used = false;
	if (windows_any(s))
		info.ink = capture_ink(s, &info.paper); /* before the picture: both use the same memory */
	take_picture(s, w->serial, &w->options, from, &info);
}

static void sample_clients(struct screen *s)
{
	static int32_t pids[PIDS_MAX];
	static unsigned n;
	static uint64_t at, map;
	static bool foreign;
	struct sample sample;
	uint64_t now = clock_now_ns();
	/* A new window may be a new client's. The question itself makes the server run, so it is not asked at every look. */
	if (!n || map != s->activity.map_ns || now - at > PIDS_AGE_MS * NSEC_PER_MSEC) {
		n = windows_pids(s, pids, PIDS_MAX);
		at = now;
		map = s->activity.map_ns;
		foreign = proc_foreign(pids, n, s->server_pid);
	}
	proc_sample(pids, n, s->server_pid, &sample);
	sample.foreign = foreign;
	activity_sample(&s->activity, &sample, clock_now_ns());
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
	const struct activity *a = &s->activity;
	uint64_t from = a->quiet_ns > since_ns ? a->quiet_ns : since_ns;
	return a->last.waiting && a->quiet_ns && clock_now_ns() - from >= SETTLE_QUIET_MS * NSEC_PER_MSEC;
}

static void read_events(struct screen *s);

/* What was done before and is still on its way here: a question and its answer come after it. */
static void catch_up(struct screen *s)
{
	free(xcb_get_input_focus_reply(s->x, xcb_get_input_focus(s->x), NULL));
	read_events(s);
}

static void decide_all(struct screen *s)
{
	bool windows = windows_any(s);
	/* Code that draws wakes us with every stroke; a look at each would cost it more than the drawing. */
	if (clock_now_ns() < next_look_ns(s))
		return;
	s->looked_ns = clock_now_ns();
	sample_clients(s);
	if (awaits_pixels(s))
		look_at_pixels(s);
	for (unsigned i = 0; i < SCREEN_WAITING; i++) {
		struct waiting *w = &s->waiting[i];
		enum shot_reason reason;
		if (!w->used || !settle_decide(&w->settle, &s->activity, windows, is_flat, s, clock_now_ns(), &reason))
			continue;
		uint64_t changes = s->activity.changes;
		catch_up(s); /* what was painted before changes the answer */
		if (changes == s->activity.changes || reason == SHOT_CAP || reason == SHOT_STILL || reason == SHOT_NO_WINDOW)
			finish_waiting(s, w, reason);
	}
}

/* ---- questions ------------------------------------------------------------------------------------ */

static void on_shot(struct screen *s, uint32_t serial, const void *options)
{
	struct shot_options o;
	memcpy(&o, options, sizeof(o));
	if (!o.settle && !o.first_window) {
		struct picture_info info = { .reason = SHOT_AS_IT_IS };
		take_picture(s, serial, &o, 0, &info);
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
	screen_say_trouble(s, serial, "too_many_questions", "too many pictures of this display are awaited", "Wait for their answers.");
}

static void on_windows(struct screen *s, uint32_t serial, const void *options)
{
	static struct window_entry list[LIMIT_WINDOWS];
	(void)options;
	unsigned n = windows_list(s, list, LIMIT_WINDOWS);
	size_t start = begin(s, DISPLAY_SAY_WINDOWS, serial);
	put_windows(s, list, n);
	wire_end(&s->out, start);
	say(s);
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
		screen_say_trouble(s, serial, "too_many_questions", "too many actions wait for this display", "Wait for their answers.");
	else if (r < 0)
		screen_say_trouble(s, serial, "input_failed", "the display did not understand the action", "Try again.");
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
	{ DISPLAY_ASK_INPUT, offsetof(struct input_action, text), sizeof(struct input_action), on_input },
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
		if (q->ask == f->type && field.len >= q->options && (!q->options || field.len <= (q->most ? q->most : q->options)))
			q->answer(s, f->serial, field.data);
	}
}

/* ---- the loop ---------------------------------------------------------------------------------------- */

static void on_event(struct screen *s, const xcb_generic_event_t *event)
{
	if ((event->response_type & 0x7f) == s->damage_event + XCB_DAMAGE_NOTIFY) {
		activity_painted(&s->activity, clock_now_ns());
		xcb_damage_subtract(s->x, s->damage, XCB_NONE, XCB_NONE);
	} else {
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

/* What came while we waited for an answer of the server is not in the socket any more, where poll() would see it. */
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

/* Waits so many milliseconds, -1 for ever, but not beyond the next look at the clients, which is due to the tenth of one. When nobody
 * wants pictures any more, their memory is given back: most displays are idle most of the time, and it is as large as the screen. */
static int wait_for_something(struct screen *s, struct pollfd *fds, int ms)
{
	uint64_t now = clock_now_ns(), look = any_waiting(s) ? next_look_ns(s) : UINT64_MAX, until = look;
	bool release = ms < 0 && look == UINT64_MAX && s->segment;
	if (release)
		ms = RELEASE_MS;
	if (ms >= 0 && now + (uint64_t)ms * NSEC_PER_MSEC < until)
		until = now + (uint64_t)ms * NSEC_PER_MSEC;
	uint64_t left = until > now ? until - now : 0;
	struct timespec t = { .tv_sec = (time_t)(left / NSEC_PER_SEC), .tv_nsec = (long)(left % NSEC_PER_SEC) };
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
			windows_any(s); /* asks the server when need be, so that what came meanwhile is read below */
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
	for (int i = 0; i < SHOT_FORMAT_COUNT; i++) { /* libraries resolve their symbols and choose their routines at the first call */
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
		screen_say_trouble(&s, 0, "display_failed", "the X server does not answer as it should", "POST …/reset starts it anew.");
		return 1;
	}
	s.server_pid = proc_find("Xvfb");
	manager_adopt(&s);
	size_t start = begin(&s, DISPLAY_SAY_UP, 0);
	wire_end(&s.out, start);
	say(&s);
	return serve(&s);
}
