#include "dialects/common/picture_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/memory_account.h"
#include "base/process.h"
#include "display/image/fitter.h"

enum { RUNNING_MAX = 4, PATIENCE_MS = 20000, READ_BYTES = 64 * 1024 };

struct picture_job {
	TAILQ_ENTRY(picture_job) link; /* in `waiting` */
	uv_loop_t *loop;
	picture_job_done done; /* NULL once it was cancelled */
	void *userdata;
	uint32_t side, max_bytes;
	struct buffer in, out;
	struct hold held;
	int pidfd, fd;
	unsigned handles; /* of libuv, that are open */
	bool started;
	uv_poll_t poll;
	uv_timer_t deadline;
};

/* The process has one thread and one loop. */
static TAILQ_HEAD(, picture_job) waiting = TAILQ_HEAD_INITIALIZER(waiting);
static unsigned running;

static void start_next(void);

static void job_free(struct picture_job *j)
{
	fd_close(j->fd);
	fd_close(j->pidfd);
	buffer_finish(&j->in);
	buffer_finish(&j->out);
	hold_set(&j->held, 0);
	free(j);
}

static void on_closed(uv_handle_t *handle)
{
	struct picture_job *j = handle->data;
	if (--j->handles == 0)
		job_free(j);
}

/* Ends the process and gives its place to the next job. */
static void stop(struct picture_job *j)
{
	process_kill_wait(j->pidfd);
	uv_close((uv_handle_t *)&j->poll, on_closed);
	uv_close((uv_handle_t *)&j->deadline, on_closed);
	running--;
	start_next();
}

static void finish(struct picture_job *j, bool whole)
{
	picture_job_done done = j->done;
	const char *mime = !whole || j->out.len < 2        ? NULL
			   : j->out.data[0] == FITTER_JPEG ? "image/jpeg"
							   : "image/png";
	j->done = NULL;
	if (done)
		done(j->userdata, mime, mime ? j->out.data + 1 : NULL, mime ? j->out.len - 1 : 0);
	stop(j);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct picture_job *j = poll->data;
	(void)status, (void)events;
	ssize_t n = buffer_reserve(&j->out, READ_BYTES) < 0
			    ? -1
			    : read(j->fd, j->out.data + j->out.len, READ_BYTES);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		j->out.len += (size_t)n;
	else
		finish(j, n == 0);
}

static void on_deadline(uv_timer_t *timer)
{
	finish(timer->data, false);
}

/* ---- the process ---------------------------------------------------------------------------- */

static int input_file(const struct buffer *in)
{
	_cleanup_fd_ int fd = memfd_create("picture", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = fd_write_full(fd, in->data, in->len);
	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return r < 0 ? r : -errno;
	return TAKE_FD(fd);
}

static int spawn(struct picture_job *j)
{
	char side[16], bytes[16];
	char *argv[] = { (char *)"glovebox", (char *)"picture-fitter", side, bytes, NULL };
	char *envp[] = { NULL };
	int pipes[2];
	_cleanup_fd_ int in = input_file(&j->in), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (in < 0 || null < 0)
		return in < 0 ? in : -errno;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_fd_ int far = pipes[1];
	j->fd = pipes[0];
	fd_set_nonblock(j->fd, 1);
	snprintf(side, sizeof(side), "%u", j->side);
	snprintf(bytes, sizeof(bytes), "%u", j->max_bytes);

	int fds[3] = { in, far, null };
	j->pidfd = process_spawn("/proc/self/exe", argv, envp, fds, 3, NULL);
	return j->pidfd < 0 ? j->pidfd : 0;
}

static void on_failed(uv_timer_t *timer)
{
	struct picture_job *j = timer->data;
	picture_job_done done = j->done;
	j->done = NULL;
	if (done)
		done(j->userdata, NULL, NULL, 0);
	uv_close((uv_handle_t *)timer, on_closed);
}

static void start(struct picture_job *j)
{
	j->started = true;
	uv_timer_init(j->loop, &j->deadline);
	j->deadline.data = j->poll.data = j;
	j->handles = 1;
	int r = spawn(j);
	if (r == 0 && (r = uv_poll_init(j->loop, &j->poll, j->fd)) < 0)
		process_kill_wait(j->pidfd);
	if (r < 0) {
		uv_timer_start(&j->deadline, on_failed, 0, 0);
		return;
	}

	j->handles = 2;
	running++;
	buffer_finish(&j->in);
	uv_poll_start(&j->poll, UV_READABLE, on_readable);
	uv_timer_start(&j->deadline, on_deadline, PATIENCE_MS, 0);
}

static void start_next(void)
{
	struct picture_job *j;
	while (running < RUNNING_MAX && (j = TAILQ_FIRST(&waiting))) {
		TAILQ_REMOVE(&waiting, j, link);
		start(j);
	}
}

int picture_job_start(uv_loop_t *loop, const struct buffer *picture, uint32_t side,
	uint32_t max_bytes, picture_job_done done, void *userdata, struct picture_job **ret)
{
	struct picture_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;

	*j = (struct picture_job){ .loop = loop,
		.done = done,
		.userdata = userdata,
		.side = side,
		.max_bytes = max_bytes,
		.in = BUFFER_INIT(FITTER_INPUT_MAX),
		.out = BUFFER_INIT((size_t)max_bytes + READ_BYTES * 2),
		.pidfd = -1,
		.fd = -1 };
	int r = hold_set(&j->held, picture->len + max_bytes);
	if (!r)
		r = buffer_append(&j->in, picture->data, picture->len);
	if (r < 0) {
		job_free(j);
		return r;
	}
	TAILQ_INSERT_TAIL(&waiting, j, link);
	*ret = j;
	start_next();
	return 0;
}

void picture_job_cancel(struct picture_job *j)
{
	if (!j)
		return;
	j->done = NULL;
	if (!j->started) {
		TAILQ_REMOVE(&waiting, j, link);
		job_free(j);
	} else if (j->pidfd >= 0 && j->handles == 2) {
		stop(j);
	} /* else on_failed() is about to free it */
}
