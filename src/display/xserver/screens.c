#include "display/xserver/screens.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/text.h"
#include "display/client/screen.h"
#include "display/xserver/display_filters.h"
#include "display/xserver/display_fork.h"
#include "display/xserver/xzygote.h"

static struct filter screen_filter, plain_filter, film_filter;

static void put_on(int fd, int place)
{
	if (dup2(fd, place) < 0)
		_exit(1);
}

static void silence(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
}

/* Moves the two descriptors to 3 and 5, in whatever order they came, and closes all others. */
static void keep_two(int a, int b)
{
	a = fcntl(a, F_DUPFD, 16);
	b = fcntl(b, F_DUPFD, 16);
	if (a < 0 || b < 0)
		_exit(1);
	silence();
	put_on(a, XZYGOTE_LISTEN_FD);
	put_on(b, XZYGOTE_COOKIE_FD);
	close(4);
	syscall(SYS_close_range, XZYGOTE_COOKIE_FD + 1U, ~0U, 0);
}

/* Where the zygote cannot be used: Xvfb started as a program of the jail. Slower and larger. */
static void __attribute__((noreturn))
become_plain_server(const struct display_spawn *q, const int *fds)
{
	char screen[48], dpi[16], pid[32];
	keep_two(fds[1], fds[2]);
	snprintf(screen, sizeof(screen), "%ux%ux%u", q->width, q->height, q->depth);
	snprintf(dpi, sizeof(dpi), "%u", q->dpi);
	snprintf(pid, sizeof(pid), "LISTEN_PID=%d", getpid());
	const char *argv[] = { "Xvfb", XSOCKET_DISPLAY, "-screen", "0", screen, "-dpi", dpi,
		XZYGOTE_ARGUMENTS, NULL };
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", (char *)"LISTEN_FDS=1", pid, NULL };
	unlink("/tmp/.X99-lock"); /* of a server that was killed */
	if (filter_load(&plain_filter) < 0)
		_exit(1);
	execve(XZYGOTE_PROGRAM, (char **)argv, envp);
	_exit(127);
}

static void __attribute__((noreturn)) become_screen(const struct display_spawn *q, const int *fds)
{
	keep_two(fds[1], fds[2]);
	prctl(PR_SET_NAME, "glovebox-screen");
	prctl(PR_SET_DUMPABLE, 0); /* the session's code has the same user: no peeking */
	if (filter_load(&screen_filter) < 0)
		_exit(1);
	_exit(screen_run(XZYGOTE_LISTEN_FD, XZYGOTE_COOKIE_FD, q->cookie));
}

/*
 * What ffmpeg is told for each format, between its input and its output. Frames keep their times,
 * which are those of changes and not of a clock.
 */
enum { FILM_WORDS = 16, FILM_TEXT = 320 };
static const char *const film_words[FILM_FORMATS][FILM_WORDS] = {
	[FILM_WEBM] = { "-enc_time_base", "1:1000", "-c:v", "libvpx", "-deadline", "realtime",
		"-cpu-used", "8", "-crf", "10", "-b:v", "4M", "-f", "webm" },
	[FILM_MP4] = { "-enc_time_base", "1:1000", "-c:v", "libx264", "-preset", "veryfast", "-crf",
		"20", "-movflags", "+faststart", "-f", "mp4" },
	[FILM_GIF] = { "-enc_time_base", "1:100", "-loop", "0", "-f", "gif" },
};

/*
 * The filters: for films, the last frame once more where it ends (H.264 has no odd sizes); for a
 * GIF, whose frames have durations of their own, a palette for each, since one for all would have
 * to see them all first.
 */
static void film_filters(const struct film_make *f, char out[FILM_TEXT])
{
	if (f->format == FILM_GIF)
		snprintf(out, FILM_TEXT,
			"split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1:dither=none");
	else
		snprintf(out, FILM_TEXT,
			"tpad=stop=1:stop_mode=clone,setpts='if(eq(N,%u),%llu/1000/TB,PTS)',pad=ceil(iw/2)*2:ceil(ih/2)*2,format=yuv420p",
			f->frames, (unsigned long long)f->end_ms);
}

/*
 * The recording as a file of our own: ffmpeg opens it by name and seeks in it, and the daemon's own
 * is not the session's user's to open.
 */
static void copy_recording(void)
{
	int copy = memfd_create("recording", 0);
	ssize_t n = 1;
	while (copy >= 0 && n > 0)
		n = sendfile(copy, XZYGOTE_LISTEN_FD, NULL, 1 << 20);
	if (copy < 0 || n < 0)
		_exit(1);
	put_on(copy, XZYGOTE_LISTEN_FD);
	close(copy);
}

static void __attribute__((noreturn)) become_film(const struct display_spawn *q, const int *fds)
{
	const struct film_make *f = &q->film;
	char filters[FILM_TEXT], delay[24];
	const char *argv[FILM_WORDS + 32] = { "ffmpeg", "-nostdin", "-hide_banner", "-loglevel",
		"quiet", "-threads", "2", "-f", "apng", "-i", "/proc/self/fd/3", "-an", "-fps_mode",
		"vfr", "-threads", "2", "-lavfi", filters };
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", (char *)"HOME=/nonexistent", NULL };
	const struct rlimit size = { LIMIT_FILM_BYTES, LIMIT_FILM_BYTES };
	size_t n = 0;

	film_filters(f, filters);
	snprintf(delay, sizeof(delay), "%llu",
		(unsigned long long)(f->last_ms / 10 < 65535 ? f->last_ms / 10 : 65535));
	keep_two(fds[1], fds[2]);
	copy_recording();
	while (argv[n])
		n++;
	for (size_t i = 0; f->format < FILM_FORMATS && film_words[f->format][i]; i++)
		argv[n++] = film_words[f->format][i];
	if (f->format == FILM_GIF) {
		argv[n++] = "-final_delay";
		argv[n++] = delay;
	}

	argv[n++] = "-y";
	argv[n++] = "/proc/self/fd/5"; /* by name: it is written to in more than one place */
	if (setrlimit(RLIMIT_FSIZE, &size) < 0 || filter_load(&film_filter) < 0)
		_exit(1);
	execve(FILM_PROGRAM, (char **)argv, envp);
	_exit(FILM_NO_PROGRAM);
}

static void serve_one(const struct display_spawn *q, int *fds, size_t n)
{
	struct display_spawned a = { .serial = q->serial, .process = q->process };
	const char *step = "the request";
	int pidfd = -1;
	pid_t pid = n >= DISPLAY_SPAWN_FDS + q->into ? display_fork(q, fds, n, &pidfd, &step)
						     : -EINVAL;

	if (pid == 0 && q->process == DISPLAY_SCREEN)
		become_screen(q, fds);
	if (pid == 0 && q->process == DISPLAY_FILM)
		become_film(q, fds);
	if (pid == 0)
		become_plain_server(q, fds);
	a.err = pid < 0 ? pid : 0;
	a.pid = pid;
	strncpy(a.text, step, sizeof(a.text) - 1);
	fd_send(DISPLAY_HELPER_SOCKET, &a, sizeof(a), &pidfd, pid > 0 ? 1 : 0);
	fd_close(pidfd);
}

int screens_main(void)
{
	struct display_spawned hello = { .process = DISPLAY_SCREEN };
	struct display_spawn q;
	int fds[DISPLAY_SPAWN_FDS_MAX];
	size_t n;

	prctl(PR_SET_NAME, "glovebox-screens");
	hello.err = display_filter_build(DISPLAY_SCREEN, false, &screen_filter);
	if (hello.err == 0)
		hello.err = display_filter_build(DISPLAY_SERVER, true, &plain_filter);
	if (hello.err == 0)
		hello.err = display_filter_build(DISPLAY_FILM, false, &film_filter);
	if (hello.err == 0)
		hello.err = display_join_jailer();
	strncpy(hello.text, "preparing the display helper", sizeof(hello.text) - 1);
	screen_prepare();
	if (fd_send(DISPLAY_HELPER_SOCKET, &hello, sizeof(hello), NULL, 0) < 0 || hello.err)
		return 1;
	while (fd_recv(DISPLAY_HELPER_SOCKET, &q, sizeof(q), fds, DISPLAY_SPAWN_FDS_MAX, &n) ==
		(ssize_t)sizeof(q)) {
		serve_one(&q, fds, n);
		for (size_t i = 0; i < n; i++)
			fd_close(fds[i]);
	}

	return 0;
}
