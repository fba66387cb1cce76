/*
 * What of a display can be tested without an X server: when a picture has settled, files of
 * pictures, the filters.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "bpf.h"
#include "display/client/screen.h"
#include "display/image/encode.h"
#include "display/settle/settle.h"
#include "display/xserver/display_filters.h"
#include "tap.h"

#define MS NSEC_PER_MSEC

/* ---- settling ------------------------------------------------------------------------ */

static bool flat_answer;

static bool flat(void *userdata)
{
	(void)userdata;
	return flat_answer;
}

/* A screen whose time we make: each step is a sample. */
struct world {
	struct activity a;
	struct settle q;
	uint64_t now, run_ns;
	enum shot_reason reason;
};

static struct world begin(struct shot_options o)
{
	struct world w = { .now = 1000 * MS };
	settle_begin(&w.q, &o, &w.a, w.now);
	flat_answer = false;
	return w;
}

/* `ms` pass in which the clients use `cpu` of each; true when the picture is taken. */
static bool pass(
	struct world *w, unsigned ms, double cpu, bool waiting, double near_ms, bool windows)
{
	for (unsigned t = 0; t < ms; t += SETTLE_TICK_MS) {
		w->now += SETTLE_TICK_MS * MS;
		w->run_ns += (uint64_t)(cpu * SETTLE_TICK_MS * MS);
		struct sample s = { .waiting = waiting,
			.in_loop = waiting,
			.near_ms = near_ms,
			.run_ns = w->run_ns };
		activity_sample(&w->a, &s, w->now, w->now);
		if (settle_decide(&w->q, &w->a, windows, flat, NULL, w->now, &w->reason))
			return true;
	}
	return false;
}

static void paint(struct world *w)
{
	activity_painted(&w->a, w->now);
}

static const struct shot_options first = { .settle = true, .first_window = true };

static void test_quiet(void)
{
	struct world w = begin(first);
	OK(!pass(&w, 500, 1, false, 1e9, false)); /* no window yet, however long */
	activity_mapped(&w.a, w.now);
	OK(!pass(&w, 200, 1, false, 1e9, true)); /* mapped, and computing what to paint */
	paint(&w);
	OK(!pass(&w, SETTLE_QUIET_MS - 2, 0, true, 1e9, true));
	OK(pass(&w, 2 * SETTLE_TICK_MS + 2, 0, true, 1e9, true) && w.reason == SHOT_QUIET);
}

/* A frame each 16 ms, of which the pixels add up to `sum`, or to something else every time. */
static bool frames(struct world *w, unsigned n, uint64_t sum, bool moving)
{
	for (unsigned i = 0; i < n; i++) {
		paint(w);
		if (pass(w, 16, 0.5, false, 5, true))
			return true;
		if (activity_wants_look(&w->a, w->now))
			activity_looked(&w->a, moving ? sum + i : sum, w->now);
	}
	return false;
}

static void test_same_frame_again_and_again(void)
{
	struct world w = begin(first);
	activity_mapped(&w.a, w.now);
	OK(!frames(&w, 60, 1, true)); /* it moves */
	OK(!frames(&w, 10, 7, false));
	OK(frames(&w, 20, 7, false) && w.reason == SHOT_STILL);
	w = begin(first);
	activity_mapped(&w.a, w.now);
	flat_answer = true; /* nothing to be seen yet */
	OK(!frames(&w, 60, 7, false));
	OK(!frames(&w, 80, 7, false));
	OK(frames(&w, 60, 7, false) && w.reason == SHOT_STILL); /* one colour is all there is */
}

static const struct shot_options loop = { .settle = true, .in_loop = true };

/* n looks at the clients; true when the picture is taken. */
static bool look(struct world *w, unsigned n, struct sample s)
{
	for (unsigned i = 0; i < n; i++) {
		w->now += SETTLE_LOOP_TICK_MS * MS;
		s.run_ns = w->run_ns;
		activity_sample(&w->a, &s, w->now, w->now);
		if (settle_decide(&w->q, &w->a, true, flat, NULL, w->now, &w->reason))
			return true;
	}
	return false;
}

static void test_waiting_for_a_main_loop(void)
{
	struct world w = begin(loop);
	const struct sample draws = { .near_ms = 1e9 },
			    sleeps = { .waiting = true, .near_ms = 500 };
	const struct sample waits = { .waiting = true, .in_loop = true, .near_ms = 1e9 };
	const struct sample ticks = {
		.waiting = true, .in_loop = true, .ticking = true, .near_ms = 10
	};
	OK(!look(&w, 10000, draws)); /* however long */
	OK(!look(&w, 10000, sleeps));
	OK(look(&w, 3, waits) && w.reason == SHOT_QUIET);
	w = begin(loop);
	OK(!look(&w, SETTLE_LOOP_SAMPLES - 1, ticks));
	OK(!look(&w, 100, draws));
	OK(look(&w, 1, ticks) && w.reason == SHOT_CAP);
	w = begin((struct shot_options){ .settle = true, .in_loop = true, .or_settled = true });
	OK(!look(&w, 1000, draws)); /* no cap */
	OK(look(&w, 3, sleeps) && w.reason == SHOT_QUIET);
	w = begin(loop);
	/* another program's windows */
	OK(look(&w, 1, (struct sample){ .foreign = true }) && w.reason == SHOT_CAP);
}

static void test_animation_is_not_quiet(void)
{
	struct world w = begin(first);
	activity_mapped(&w.a, w.now);
	/* 16 ms between frames, a timeout of 16 ms while it waits */
	for (int frame = 0; frame < 60; frame++) {
		paint(&w);
		if (pass(&w, 16, 0, true, 16, true))
			break;
	}
	OK(w.reason != SHOT_QUIET && w.reason != SHOT_IDLE);
	while (!pass(&w, 16, 0, true, 16, true))
		paint(&w);
	OK(w.reason == SHOT_CAP && w.now - w.q.start_ns >= SETTLE_MAX_MS * MS);
}

static void test_idle_waits_for_paint(void)
{
	struct world w = begin(first);
	activity_mapped(&w.a, w.now);
	flat_answer = true; /* mapped and cleared, not painted */
	OK(!pass(&w, SETTLE_IDLE_MS * 2, 0.1, true, 5, true));
	flat_answer = false;
	OK(pass(&w, SETTLE_IDLE_MS * 2, 0.1, true, 5, true) && w.reason == SHOT_IDLE);
}

/*
 * A client waits for the X server for a moment, and the screen process is preempted right after it
 * saw that: one look is not 6 ms of rest.
 */
static void test_one_look_is_not_quiet(void)
{
	struct world w = begin(first);
	const struct sample waits = { .waiting = true, .in_loop = true, .near_ms = 1e9 };
	activity_mapped(&w.a, w.now);
	w.now += SETTLE_TICK_MS * MS;
	activity_sample(&w.a, &waits, w.now, w.now);
	w.now += 20 * MS;
	OK(!settle_decide(&w.q, &w.a, true, flat, NULL, w.now, &w.reason));
	/* nor is a second one that began in time and took long */
	activity_sample(&w.a, &waits, w.now - 18 * MS, w.now);
	OK(!settle_decide(&w.q, &w.a, true, flat, NULL, w.now, &w.reason));
	activity_answered(&w.a);
	OK(activity_quiet_ns(&w.a, 0) == 0);
	OK(pass(&w, 20, 0, true, 1e9, true) && w.reason == SHOT_QUIET);
}

/*
 * On a loaded machine the screen gets as little time as the client, whose timer it finds expired
 * once in a while.
 */
static void test_starved_animation_is_not_idle(void)
{
	struct world w = begin(first);
	activity_mapped(&w.a, w.now);
	bool taken = false;
	while (!taken) {
		paint(&w);
		taken = pass(&w, 12, 0, true, 15, true); /* waits for its timer, and is seen to */
		w.now += 2 * SETTLE_IDLE_MS * MS;        /* nobody ran, neither it nor we */
		taken = taken || pass(&w, SETTLE_TICK_MS, 0, false, 0, true);
	}
	OK(w.reason == SHOT_CAP);
}

static void test_looks_when_there_is_something_to_see(void)
{
	struct world w = begin(first);
	/* no window: an event will tell */
	OK(settle_next_ns(&w.q, &w.a, false, w.now) == UINT64_MAX);
	/* another cell's */
	OK(settle_next_ns(&w.q, &w.a, true, w.now) == w.now + SETTLE_LOOP_TICK_MS * MS);
	activity_mapped(&w.a, w.now);
	OK(settle_next_ns(&w.q, &w.a, true, w.now) == w.now + SETTLE_TICK_MS * MS);
	w.a.quiet_ns = w.now - SETTLE_QUIET_MS * MS + MS;
	/* when it will have been quiet for long enough */
	OK(settle_next_ns(&w.q, &w.a, true, w.now) == w.now + MS);
	struct shot_options patient = first;
	patient.render_ms = 50;
	w = begin(patient);
	OK(settle_next_ns(&w.q, &w.a, false, w.now) == w.now + 50 * MS);
	w = begin(loop);
	OK(settle_next_ns(&w.q, &w.a, true, w.now) == w.now + SETTLE_LOOP_TICK_MS * MS);
}

static void test_sleep_before_the_first_stroke_is_not_the_end(void)
{
	struct world w = begin(first);
	const struct sample reads = { .waiting = true, .near_ms = 1e12 };
	activity_mapped(&w.a, w.now);
	flat_answer = true;
	OK(!look(&w, 40, reads)); /* a file, or another program */
	OK(look(&w, 1000, reads) && w.reason == SHOT_IDLE &&
		w.now - w.q.start_ns < 2 * SETTLE_IDLE_MS * SETTLE_FLAT_FACTOR * MS);
	w = begin(first);
	activity_mapped(&w.a, w.now);
	OK(look(&w, 3, reads) && w.reason == SHOT_QUIET); /* something is to be seen */
	w = begin(first);
	activity_mapped(&w.a, w.now);
	flat_answer = true;
	/* it waits for events: one colour is all */
	OK(pass(&w, 20, 0, true, 1e12, true) && w.reason == SHOT_QUIET);
}

static void test_starved_program_has_longer_for_its_first_stroke(void)
{
	struct world w = begin(first);
	const unsigned limit = SETTLE_MAX_MS + SETTLE_FLAT_MAX_MS;
	activity_mapped(&w.a, w.now);
	flat_answer = true;
	OK(!pass(&w, limit + 1000, 0.05, false, 0, true)); /* a twentieth of a processor */
	flat_answer = false;
	OK(pass(&w, 10, 0.05, false, 0, true) && w.reason == SHOT_BUSY);
	w = begin(first);
	activity_mapped(&w.a, w.now);
	flat_answer = true;
	OK(!pass(&w, limit - 100, 1, false, 0, true)); /* all of one: that is how it is */
	OK(pass(&w, 200, 1, false, 0, true));
	w = begin(first);
	activity_mapped(&w.a, w.now);
	flat_answer = true;
	/* not for ever */
	OK(pass(&w, SETTLE_MAX_MS + SETTLE_STARVED_FACTOR * SETTLE_FLAT_MAX_MS + 10, 0, false, 0,
		true));
}

static void test_busy_counts_processor_time(void)
{
	struct world w = begin(first);
	activity_mapped(&w.a, w.now);
	paint(&w);
	OK(!pass(&w, 1000, 0.2, false, 0, true)); /* starved: 200 ms of it in a second */
	OK(pass(&w, 1000, 1, false, 0, true) && w.reason == SHOT_BUSY);
}

static void test_options(void)
{
	struct shot_options o = first;
	o.render_ms = 50;
	struct world w = begin(o);
	OK(pass(&w, 60, 1, false, 0, false) && w.reason == SHOT_NO_WINDOW);
	o = (struct shot_options){ .settle = true, .max_ms = 100 };
	w = begin(o);
	flat_answer = false;
	w.q.max_ms = 100;
	while (!pass(&w, 10, 1, false, 0, true))
		paint(&w);
	OK(w.reason == SHOT_CAP && w.now - w.q.start_ns < 200 * MS);
	/* A main loop beside windows nobody touched is a picture too. */
	w = begin(first);
	OK(!pass(&w, SETTLE_UNCHANGED_MS - 20, 0, true, 1e9, true));
	OK(pass(&w, 60, 0, true, 1e9, true) && w.reason == SHOT_QUIET);
}

/* ---- pictures ---------------------------------------------------------------------------- */

static uint32_t word(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;
	return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static void test_png(void)
{
	uint32_t pixels[64 * 4];
	struct image i = { .pixels = (uint8_t *)pixels, .width = 64, .height = 4 };
	struct buffer out = BUFFER_INIT(0), small = BUFFER_INIT(0);
	for (int k = 0; k < 256; k++)
		pixels[k] = (uint32_t)k * 7919U;
	OK(png_encode(&i, 0, &out) == 0 && !memcmp(out.data, "\x89PNG\r\n\x1a\n", 8));
	/* 256 colours: indexed */
	OK(word(out.data + 16) == 64 && word(out.data + 20) == 4 && out.data[24] == 8 &&
		out.data[25] == 3);
	OK(!memcmp(out.data + out.len - 8, "IEND", 4));
	struct image wide = { .pixels = malloc(512 * 4), .width = 512, .height = 1 };
	for (uint32_t k = 0; k < 512; k++)
		((uint32_t *)(void *)wide.pixels)[k] = k;
	OK(png_encode(&wide, 0, &small) == 0 && small.data[25] == 2); /* 512: RGB */
	free(wide.pixels);
	buffer_finish(&out);
	buffer_finish(&small);
	struct buffer tight = BUFFER_INIT(64);
	OK(png_encode(&i, 0, &tight) < 0);
	buffer_finish(&tight);
}

static void test_jpeg_and_shrink(void)
{
	uint32_t pixels[16] = { 0xff0000, 0xff0000, 0x0000ff, 0x0000ff, 0xff0000, 0xff0000,
		0x0000ff, 0x0000ff };
	struct image i = { .pixels = (uint8_t *)pixels, .width = 4, .height = 2 }, half;
	struct buffer out = BUFFER_INIT(0);
	OK(jpeg_encode(&i, 90, &out) == 0 && !memcmp(out.data, "\xff\xd8\xff", 3));
	buffer_finish(&out);
	OK(image_shrink(&i, 0.5, &half) == 0 && half.width == 2 && half.height == 1);
	const uint32_t *p = (const uint32_t *)(const void *)half.pixels;
	OK(p[0] == 0xff0000 && p[1] == 0x0000ff);
	free(half.pixels);
	OK(image_shrink(&i, 0.01, &half) == 0 && half.width == 1 && half.height == 1);
	free(half.pixels);
}

/* ---- filters -------------------------------------------------------------------------------- */

static uint32_t ask(
	const struct filter *f, long call, uint64_t first_argument, uint64_t second, uint64_t third)
{
	const uint64_t arguments[6] = { first_argument, second, third };
	return bpf_answer(f, BPF_NATIVE, (uint32_t)call, arguments);
}

static void test_filters(void)
{
	static const long never[] = { SYS_execve, SYS_execveat, SYS_clone3, SYS_clone, SYS_socket,
		SYS_connect, SYS_bind, SYS_kill, SYS_ptrace, SYS_mount, SYS_setns, SYS_unshare,
		SYS_process_vm_writev, SYS_unlinkat, SYS_mkdirat, SYS_renameat, SYS_tgkill };
	for (int p = 0; p < 2; p++) {
		struct filter f = { 0 };
		unsigned open = 0;
		OK(display_filter_build((enum display_process)p, false, &f) == 0);
		for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
			open += ask(&f, never[i], 0, 0, 0) == SECCOMP_RET_ALLOW;
		OK(open == 0);
		OK(ask(&f, SYS_openat, 0, 0, O_RDONLY | O_CLOEXEC) == SECCOMP_RET_ALLOW);
		OK(ask(&f, SYS_openat, 0, 0, O_WRONLY) != SECCOMP_RET_ALLOW &&
			ask(&f, SYS_openat, 0, 0, O_CREAT) != SECCOMP_RET_ALLOW);
		OK((ask(&f, SYS_process_vm_readv, 0, 0, 0) == SECCOMP_RET_ALLOW) ==
			(p == DISPLAY_SCREEN));
		filter_finish(&f);
	}
	struct filter plain = { 0 };
	OK(display_filter_build(DISPLAY_SERVER, true, &plain) == 0 &&
		ask(&plain, SYS_execve, 0, 0, 0) == SECCOMP_RET_ALLOW);
	OK(ask(&plain, SYS_clone, 0x11, 0, 0) == SECCOMP_RET_ALLOW &&
		ask(&plain, SYS_clone, 0x10000000, 0, 0) != SECCOMP_RET_ALLOW);
	OK(ask(&plain, SYS_socket, 0, 0, 0) != SECCOMP_RET_ALLOW &&
		ask(&plain, SYS_kill, 0, 0, 0) != SECCOMP_RET_ALLOW);
	filter_finish(&plain);
	struct filter film = { 0 };
	static const long not_for_films[] = { SYS_clone3, SYS_execveat,
#ifdef __x86_64__
		SYS_fork, SYS_vfork,
#endif

		SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_kill, SYS_tgkill, SYS_ptrace,
		SYS_process_vm_readv, SYS_mount, SYS_setns, SYS_unshare, SYS_unlinkat, SYS_mkdirat,
		SYS_renameat };
	unsigned open = 0;
	OK(display_filter_build(DISPLAY_FILM, false, &film) == 0 &&
		ask(&film, SYS_execve, 0, 0, 0) == SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < sizeof(not_for_films) / sizeof(not_for_films[0]); i++)
		open += ask(&film, not_for_films[i], 0, 0, 0) == SECCOMP_RET_ALLOW;
	OK(open == 0);
	OK(ask(&film, SYS_clone, 0x3d0f00, 0, 0) == SECCOMP_RET_ALLOW &&
		ask(&film, SYS_clone, 0x11, 0, 0) != SECCOMP_RET_ALLOW);
	OK(ask(&film, SYS_clone, 0x10010000, 0, 0) != SECCOMP_RET_ALLOW);
	filter_finish(&film);
}

int main(void)
{
	test_quiet();
	test_animation_is_not_quiet();
	test_same_frame_again_and_again();
	test_waiting_for_a_main_loop();
	test_idle_waits_for_paint();
	test_one_look_is_not_quiet();
	test_starved_animation_is_not_idle();
	test_looks_when_there_is_something_to_see();
	test_sleep_before_the_first_stroke_is_not_the_end();
	test_starved_program_has_longer_for_its_first_stroke();
	test_busy_counts_processor_time();
	test_options();
	test_png();
	test_jpeg_and_shrink();
	test_filters();
	return tap_done();
}
