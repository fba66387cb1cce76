/* Installations: one installer process per request that the store cannot answer, some at a time. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "packages/packages_internal.h"

enum {
	INSTALLERS_MAX = 2,   /* at once; others wait */
	LINE_BYTES = 1 << 20, /* of what an installer says */
	READ_BYTES = 16 * 1024,
	END_EXTRA_S = 60, /* an installer gets so much more than an installation */
	/* one that nobody waits for: somebody whose patience ended may ask again */
	ABANDONED_S = 30,
};

struct job *job_find(struct packages *p, const struct request_keys *keys, bool alone)
{
	struct job *j;
	TAILQ_FOREACH (j, &p->jobs, link)
		if (!j->finished && j->alone == alone && text_eq(j->keys.shared, keys->shared) &&
			(!alone || text_eq(j->keys.own, keys->own)))
			return j;
	return NULL;
}

struct job *job_new(
	struct packages *p, const struct request_keys *keys, bool alone, struct buffer *request)
{
	struct job *j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->packages = p;
	j->keys = *keys;
	j->alone = alone;
	j->request = buffer_take(request, &j->request_len);
	j->pidfd = j->out = -1;
	buffer_init(&j->line, LINE_BYTES);
	TAILQ_INIT(&j->waits);
	TAILQ_INSERT_TAIL(&p->jobs, j, link);
	return j;
}

static void job_free(struct job *j)
{
	if (j->packages) /* else all of it is gone already */
		TAILQ_REMOVE(&j->packages->jobs, j, link);
	fd_close(j->pidfd);
	fd_close(j->out);
	buffer_finish(&j->line);
	free(j->request);
	free(j->log);
	free(j->report);
	free(j);
}

static void handle_closed(uv_handle_t *h)
{
	struct job *j = h->data;
	if (--j->open_handles == 0)
		job_free(j);
}

void job_close(struct job *j)
{
	if (!j->open_handles) { /* it never ran */
		job_free(j);
		return;
	}
	uv_close((uv_handle_t *)&j->out_poll, handle_closed);
	uv_close((uv_handle_t *)&j->deadline, handle_closed);
}

static void tell_failure(struct job *j)
{
	struct packages_answer a = { .error = &j->error, .log = j->log, .report = j->report };
	for (struct packages_wait *w; (w = TAILQ_FIRST(&j->waits));) {
		TAILQ_REMOVE(&j->waits, w, link);
		j->packages->n_waits--;
		if (j->packages->asking == w)
			j->packages->asking = NULL;
		w->listener->on_done(w->userdata, &a);
		free(w);
	}
}

static void tell_success(struct job *j, const json_t *record, struct packages_hold *hold)
{
	for (struct packages_wait *w; (w = TAILQ_FIRST(&j->waits));) {
		TAILQ_REMOVE(&j->waits, w, link);
		j->packages->n_waits--;
		packages_tell(w->listener, w->userdata, record, hold, false);
		free(w);
	}
}

/* It said all it had to say, or is gone. */
static void job_finish(struct job *j)
{
	struct packages *p = j->packages;
	_cleanup_json_ json_t *record = NULL;
	struct packages_hold *hold = NULL;

	if (j->finished)
		return;
	j->finished = true;
	/* it has ended, or is to; nothing of it may outlive its answer */
	process_kill_wait(j->pidfd);
	p->stats.running--;
	if (!j->error.err && packages_look_up(p, &j->keys, &record, &hold) < 0) {
		error_set(&j->error, -EIO, "the installer ended without an answer");
		error_remedy(&j->error, "The server's log says more. Try again.");
		error_slug(&j->error, "package_failed");
	}

	if (j->error.err) {
		p->stats.failed++;
		tell_failure(j);
	} else {
		p->stats.installed++;
		tell_success(j, record, hold);
		packages_release(hold);
	}

	job_close(j);
	jobs_start(p);
}

static void take_error(struct job *j, const json_t *line)
{
	const json_t *e = json_object_get(line, "error");
	const char *text = json_string_value(json_object_get(e, "text")),
		   *remedy = json_string_value(json_object_get(e, "remedy")),
		   *code = json_string_value(json_object_get(e, "code"));
	error_set(&j->error, -EIO, "%s", text ? text : "the installation failed");
	error_remedy(&j->error, "%s", remedy ? remedy : "");
	error_slug(&j->error, code ? code : "package_failed");
	free(j->log);
	free(j->report);
	j->log = json_dumps(json_object_get(e, "log"), JSON_COMPACT);
	j->report = json_dumps(json_object_get(line, "report"), JSON_COMPACT);
}

static void take_line(struct job *j, const char *text, size_t len)
{
	_cleanup_json_ json_t *line = NULL;
	if (json_read(text, len, NULL, &line) < 0)
		return;
	if (json_object_get(line, "error")) {
		take_error(j, line);
		return;
	}

	const char *phase = json_string_value(json_object_get(line, "phase")),
		   *what = json_string_value(json_object_get(line, "text"));
	unsigned done = (unsigned)json_integer_value(json_object_get(line, "done")),
		 total = (unsigned)json_integer_value(json_object_get(line, "total"));
	struct packages_wait *w, *next;
	for (w = phase ? TAILQ_FIRST(&j->waits) : NULL; w; w = next) {
		next = TAILQ_NEXT(w, link);
		if (w->listener->on_progress)
			w->listener->on_progress(w->userdata, phase, what ? what : "", done, total);
	}
}

static void on_out(uv_poll_t *poll, int status, int events)
{
	struct job *j = poll->data;
	(void)status, (void)events;
	ssize_t n = buffer_reserve(&j->line, READ_BYTES) < 0
			    ? 0
			    : read(j->out, j->line.data + j->line.len, READ_BYTES);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		job_finish(j);
		return;
	}

	j->line.len += (size_t)n;
	for (char *end; (end = j->line.len ? memchr(j->line.data, '\n', j->line.len) : NULL);) {
		size_t len = (size_t)(end - j->line.data);
		take_line(j, j->line.data, len);
		buffer_consume(&j->line, len + 1);
	}
}

/* ---- who waits ---------------------------------------------------------------------------- */

static void abandon(struct job *j)
{
	error_set(&j->error, -ECANCELED,
		"the installation was cancelled, because no client was waiting for it");
	error_slug(&j->error, "package_failed");
	job_finish(j);
}

static void on_abandoned(uv_timer_t *timer)
{
	abandon(timer->data);
}

void job_left(struct job *j)
{
	if (!TAILQ_EMPTY(&j->waits) || j->finished || j->packages->destroying)
		return;
	if (!j->running) {
		job_close(j);
		return;
	}
	j->abandoned = true;
	uint64_t now = clock_now_ns(),
		 left_ms = j->deadline_ns > now ? (j->deadline_ns - now) / NSEC_PER_MSEC : 0;
	uv_timer_start(&j->deadline, on_abandoned,
		left_ms < ABANDONED_S * 1000 ? left_ms : ABANDONED_S * 1000, 0);
	jobs_start(j->packages);
}

static void on_deadline(uv_timer_t *timer)
{
	struct job *j = timer->data;
	error_set(&j->error, -ETIMEDOUT, "the installer did not end in time");
	error_slug(&j->error, "package_timeout");
	job_finish(j);
}

void job_joined(struct job *j)
{
	if (!j->abandoned)
		return;
	j->abandoned = false;
	uint64_t now = clock_now_ns();
	uv_timer_start(&j->deadline, on_deadline,
		j->deadline_ns > now ? (j->deadline_ns - now) / NSEC_PER_MSEC : 0, 0);
}

void job_stop(struct job *j)
{
	if (j->finished)
		return;
	error_set(&j->error, -ESHUTDOWN, "the server is about to end");
	error_slug(&j->error, "draining");
	if (j->running) {
		job_finish(j);
		return;
	}
	tell_failure(j);
	job_close(j);
}

/* ---- the process ---------------------------------------------------------------------------- */

/* The request as something the child can read to its end. */
static int request_file(const struct job *j)
{
	_cleanup_fd_ int fd = memfd_create("request", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = fd_write_full(fd, j->request, j->request_len);
	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return r < 0 ? r : -errno;
	return TAKE_FD(fd);
}

static int spawn(struct job *j)
{
	char *argv[] = { (char *)"glovebox", (char *)"installer", NULL };
	char *envp[] = { (char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LANG=C.UTF-8",
		NULL };
	int out[2];
	_cleanup_fd_ int in = request_file(j);

	if (in < 0)
		return in;
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_fd_ int far = out[1];
	j->out = out[0];
	fd_set_nonblock(j->out, 1);
	int fds[3] = { in, far, STDERR_FILENO };
	j->pidfd = process_spawn("/proc/self/exe", argv, envp, fds, 3, NULL);
	return j->pidfd < 0 ? j->pidfd : 0;
}

static void job_start(struct job *j)
{
	struct packages *p = j->packages;
	int r = spawn(j);

	j->running = true;
	p->stats.running++;
	if (r == 0)
		r = uv_poll_init(p->loop, &j->out_poll, j->out);
	if (r < 0) {
		error_set_errno(&j->error, r, "starting the installer");
		error_slug(&j->error, "package_failed");
		p->stats.running--;
		p->stats.failed++;
		if (j->pidfd >= 0)
			process_kill_wait(j->pidfd);
		tell_failure(j);
		job_free(j);
		return;
	}

	uv_timer_init(p->loop, &j->deadline);
	j->out_poll.data = j->deadline.data = j;
	j->open_handles = 2;
	uv_poll_start(&j->out_poll, UV_READABLE, on_out);
	uint64_t patience_ms = (uint64_t)((p->settings->timeout_s + END_EXTRA_S) * 1e3);
	j->deadline_ns = clock_now_ns() + patience_ms * NSEC_PER_MSEC;
	uv_timer_start(&j->deadline, on_deadline, patience_ms, 0);
}

/*
 * An installation that nobody waits for gives its place to one that somebody does; NULL when there
 * is none.
 */
static struct job *abandoned_job(struct packages *p)
{
	struct job *j, *found = NULL;
	bool waiting = false;
	TAILQ_FOREACH (j, &p->jobs, link) {
		waiting |= !j->running;
		if (j->abandoned && !j->finished)
			found = j;
	}
	return waiting ? found : NULL;
}

void jobs_start(struct packages *p)
{
	struct job *idle = p->stats.running >= INSTALLERS_MAX && !p->destroying ? abandoned_job(p)
										: NULL;
	if (idle) {
		abandon(idle); /* comes here again */
		return;
	}
	for (struct job *j = TAILQ_FIRST(&p->jobs), *next;
		j && p->stats.running < INSTALLERS_MAX && !p->destroying; j = next) {
		next = TAILQ_NEXT(j, link);
		if (!j->running)
			job_start(j);
	}
}
