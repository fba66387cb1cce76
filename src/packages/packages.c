#include "packages/packages.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "json/json_read.h"
#include "packages/store.h"

enum {
	INSTALLERS_MAX = 2,     /* at once; others wait */
	LINE_BYTES = 1 << 20,   /* of what an installer says */
	READ_BYTES = 16 * 1024,
	END_EXTRA_S = 60,       /* an installer gets so much more than an installation */
	HOLDS_KNOWN_MAX = 1024, /* sets of which is remembered that they are whole */
	CHECK_AGAIN_S = 60,     /* then a set that nobody has is looked at again */
	WAITING_MAX = 4096,     /* listeners of one process */
};

struct packages_wait {
	TAILQ_ENTRY(packages_wait) link;
	struct job *job;
	const struct packages_listener *listener;
	void *userdata;
};
TAILQ_HEAD(wait_list, packages_wait);

/* One installation under way, or waiting for its turn. */
struct job {
	TAILQ_ENTRY(job) link;
	struct packages *packages;
	char key[SHA256_HEX + 1];
	char *request;
	size_t request_len;
	struct wait_list waits;
	bool running, finished;
	int pidfd, out;
	uv_poll_t out_poll;
	uv_timer_t deadline;
	unsigned open_handles;
	struct buffer line;
	struct error error;
	char *log, *report; /* of a failure */
};
TAILQ_HEAD(job_list, job);

struct packages_hold {
	TAILQ_ENTRY(packages_hold) link;
	struct packages *packages;
	char id[STORE_ID_LEN + 1];
	int fd; /* the lock, while somebody has it */
	unsigned refs, uses;
	bool template;
	uint64_t checked_ns;
};
TAILQ_HEAD(hold_list, packages_hold);

struct packages {
	uv_loop_t *loop;
	const struct packages_settings *settings;
	char *state_dir, *shown;
	struct store *store;
	struct job_list jobs;
	struct hold_list holds;
	unsigned n_waits, n_holds;
	struct packages_wait *asking; /* of the packages_ask() under way, until it is answered */
	bool destroying;
	struct packages_stats stats;
};

static void start_jobs(struct packages *p);

/* ---- holding ------------------------------------------------------------------------ */

static struct packages_hold *find_hold(struct packages *p, const char *set)
{
	struct packages_hold *h;
	TAILQ_FOREACH(h, &p->holds, link)
		if (text_eq(h->id, set))
			return h;
	return NULL;
}

static void drop_hold(struct packages_hold *h)
{
	TAILQ_REMOVE(&h->packages->holds, h, link);
	h->packages->n_holds--;
	fd_close(h->fd);
	free(h);
}

static struct packages_hold *new_hold(struct packages *p, const char *set)
{
	struct packages_hold *h;
	if (p->n_holds >= HOLDS_KNOWN_MAX) /* forget one that nobody has */
		TAILQ_FOREACH(h, &p->holds, link)
			if (!h->refs) {
				drop_hold(h);
				break;
			}
	if (!(h = calloc(1, sizeof(*h))))
		return NULL;
	h->packages = p;
	h->fd = -1;
	snprintf(h->id, sizeof(h->id), "%s", set);
	TAILQ_INSERT_TAIL(&p->holds, h, link);
	p->n_holds++;
	return h;
}

/* Takes the lock. A set that was not looked at for a while is compared with its list; a damaged one is removed: then it is not there. */
static int acquire(struct packages *p, struct packages_hold *h)
{
	_cleanup_free_ char *record = NULL;
	struct error why = { 0 };
	uint64_t now = clock_now_ns();
	size_t len;
	int r = store_set_hold(p->store, h->id, &h->fd, &record, &len);
	if (r == 0 && (!h->checked_ns || now - h->checked_ns > CHECK_AGAIN_S * NSEC_PER_SEC))
		r = store_check(p->store, h->id, false, &why);
	if (r < 0) {
		fd_close_clear(&h->fd);
		if (why.err == -EUCLEAN && store_remove(p->store, h->id, NULL) == 0)
			p->stats.repaired++;
		return r;
	}
	h->checked_ns = now;
	store_set_used(p->store, h->id);
	return 0;
}

struct packages_hold *packages_hold(struct packages *p, const char *set)
{
	struct packages_hold *h = find_hold(p, set);
	if (!h && !(h = new_hold(p, set)))
		return NULL;
	if (!h->refs && acquire(p, h) < 0) {
		drop_hold(h);
		return NULL;
	}
	h->refs++;
	return h;
}

void packages_retain(void *hold)
{
	struct packages_hold *h = hold;
	h->refs++;
}

/* What is known about the set stays; the lock is given back. */
void packages_release(void *hold)
{
	struct packages_hold *h = hold;
	if (h && --h->refs == 0)
		fd_close_clear(&h->fd);
}

void packages_give_template(struct packages_hold *h)
{
	h->template = true;
}

/* ---- answers --------------------------------------------------------------------------- */

static char *dump(const json_t *value)
{
	return value ? json_dumps(value, JSON_COMPACT) : NULL;
}

/* The report as it is answered: the record's, with what this answer adds. */
static char *full_report(const json_t *record, bool cached)
{
	_cleanup_json_ json_t *all = json_object();
	const json_t *set = json_object_get(record, "set");
	json_object_set_new(all, "set", set ? json_copy((json_t *)set) : json_null());
	json_object_set_new(all, "cached", json_boolean(cached));
	json_object_set(all, "seconds", json_object_get(record, "seconds"));
	json_object_update(all, json_object_get(record, "report"));
	return dump(all);
}

/* What the index did not have, or could not say, is asked again after a while. */
static bool too_old(const json_t *record)
{
	uint64_t until = (uint64_t)json_integer_value(json_object_get(record, "until"));
	return until && clock_wall_ns() / NSEC_PER_SEC >= until;
}

/* Looks the request up; -ENOENT when it is not answered, or its set is gone or damaged. */
static int look_up(struct packages *p, const char *key, json_t **ret_record, struct packages_hold **ret_hold)
{
	_cleanup_free_ char *json = NULL;
	_cleanup_json_ json_t *record = NULL;
	size_t len;
	if (store_request_read(p->store, key, &json, &len) < 0 || json_read(json, len, NULL, &record) < 0 || !json_is_object(record) ||
		too_old(record))
		return -ENOENT;
	const char *set = json_string_value(json_object_get(record, "set"));
	struct packages_hold *hold = set ? packages_hold(p, set) : NULL;
	if (set && !hold)
		return -ENOENT;
	*ret_record = TAKE_PTR(record);
	*ret_hold = hold;
	return 0;
}

static void tell(const struct packages_listener *listener, void *userdata, const json_t *record, struct packages_hold *hold, bool cached)
{
	char path[64];
	_cleanup_free_ char *report = full_report(record, cached);
	const json_t *list = json_object_get(record, "modules");
	_cleanup_free_ char **modules = calloc(json_array_size(list) + 1, sizeof(*modules));
	for (size_t i = 0; modules && i < json_array_size(list); i++)
		modules[i] = (char *)json_string_value(json_array_get(list, i));
	struct packages_answer a = { .report = report, .modules = modules, .cached = cached,
		.replaces = json_is_true(json_object_get(record, "replaces")) };
	if (hold) {
		snprintf(path, sizeof(path), "/packages/%s", hold->id);
		a.set = hold->id;
		a.path = path;
		hold->uses++;
		const unsigned after = hold->packages->settings->template_after;
		a.template = modules && (hold->template || (after && hold->uses > after));
	}
	listener->on_done(userdata, &a);
}

/* ---- the installer's process -------------------------------------------------------------- */

static void free_job(struct job *j)
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
		free_job(j);
}

static void close_job(struct job *j)
{
	if (!j->open_handles) { /* it never ran */
		free_job(j);
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
		tell(w->listener, w->userdata, record, hold, false);
		free(w);
	}
}

/* It said all it had to say, or is gone. */
static void finish_job(struct job *j)
{
	struct packages *p = j->packages;
	_cleanup_json_ json_t *record = NULL;
	struct packages_hold *hold = NULL;
	if (j->finished)
		return;
	j->finished = true;
	process_kill_wait(j->pidfd); /* it has ended, or is to; nothing of it may outlive its answer */
	p->stats.running--;
	if (!j->error.err && look_up(p, j->key, &record, &hold) < 0) {
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
	close_job(j);
	start_jobs(p);
}

static void take_error(struct job *j, const json_t *line)
{
	const json_t *e = json_object_get(line, "error");
	const char *text = json_string_value(json_object_get(e, "text")), *remedy = json_string_value(json_object_get(e, "remedy")),
		   *code = json_string_value(json_object_get(e, "code"));
	error_set(&j->error, -EIO, "%s", text ? text : "the installation failed");
	error_remedy(&j->error, "%s", remedy ? remedy : "");
	error_slug(&j->error, code ? code : "package_failed");
	free(j->log);
	free(j->report);
	j->log = dump(json_object_get(e, "log"));
	j->report = dump(json_object_get(line, "report"));
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
	const char *phase = json_string_value(json_object_get(line, "phase")), *what = json_string_value(json_object_get(line, "text"));
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
	ssize_t n = buffer_reserve(&j->line, READ_BYTES) < 0 ? 0 : read(j->out, j->line.data + j->line.len, READ_BYTES);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		finish_job(j);
		return;
	}
	j->line.len += (size_t)n;
	for (char *end; (end = j->line.len ? memchr(j->line.data, '\n', j->line.len) : NULL);) {
		size_t len = (size_t)(end - j->line.data);
		take_line(j, j->line.data, len);
		buffer_consume(&j->line, len + 1);
	}
}

static void on_deadline(uv_timer_t *timer)
{
	struct job *j = timer->data;
	error_set(&j->error, -ETIMEDOUT, "the installer did not end in time");
	error_slug(&j->error, "package_timeout");
	finish_job(j);
}

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
	char *envp[] = { (char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LANG=C.UTF-8", NULL };
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

static void start_job(struct job *j)
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
		free_job(j);
		return;
	}
	uv_timer_init(p->loop, &j->deadline);
	j->out_poll.data = j->deadline.data = j;
	j->open_handles = 2;
	uv_poll_start(&j->out_poll, UV_READABLE, on_out);
	uv_timer_start(&j->deadline, on_deadline, (uint64_t)((p->settings->timeout_s + END_EXTRA_S) * 1e3), 0);
}

static void start_jobs(struct packages *p)
{
	for (struct job *j = TAILQ_FIRST(&p->jobs), *next; j && p->stats.running < INSTALLERS_MAX && !p->destroying; j = next) {
		next = TAILQ_NEXT(j, link);
		if (!j->running)
			start_job(j);
	}
}

/* ---- asking ----------------------------------------------------------------------------------- */

static struct job *find_job(struct packages *p, const char *key)
{
	struct job *j;
	TAILQ_FOREACH(j, &p->jobs, link)
		if (!j->finished && text_eq(j->key, key))
			return j;
	return NULL;
}

static struct job *new_job(struct packages *p, const char *key, struct buffer *request)
{
	struct job *j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->packages = p;
	snprintf(j->key, sizeof(j->key), "%s", key);
	j->request = buffer_take(request, &j->request_len);
	j->pidfd = j->out = -1;
	buffer_init(&j->line, LINE_BYTES);
	TAILQ_INIT(&j->waits);
	TAILQ_INSERT_TAIL(&p->jobs, j, link);
	return j;
}

static int check_mode(const struct packages *p, bool off, struct error *e)
{
	if (p->settings->mode == PACKAGES_OFF && off) {
		error_set(e, -EPERM, "this server gives no packages");
		error_remedy(e, "Use what is there, or start the server with --packages install.");
		return error_slug(e, "package_refused");
	}
	if (p->settings->mode == PACKAGES_STORE && !off) {
		error_set(e, -EPERM, "these packages are not in the server's store, and it installs none on request");
		error_remedy(e, "Its operator can add them: glovebox packages add NAME…");
		return error_slug(e, "package_refused");
	}
	return 0;
}

int packages_ask(struct packages *p, const struct packages_request *q, const struct packages_listener *listener, void *userdata,
	struct error *e, struct packages_wait **ret)
{
	_cleanup_buffer_ struct buffer request = BUFFER_INIT(REQUEST_BYTES_MAX);
	_cleanup_json_ json_t *record = NULL;
	struct packages_hold *hold = NULL;
	char key[SHA256_HEX + 1];
	int r = check_mode(p, true, e);
	if (r == 0)
		r = packages_request_write(p->settings, p->state_dir, q, e, &request, key);
	if (r < 0)
		return r;
	p->stats.asked++;
	*ret = NULL;
	if (!q->refresh && look_up(p, key, &record, &hold) == 0) {
		p->stats.hits++;
		tell(listener, userdata, record, hold, true);
		packages_release(hold);
		return 0;
	}
	if ((r = check_mode(p, false, e)) < 0)
		return r;
	struct job *j = find_job(p, key);
	struct packages_wait *w = p->n_waits < WAITING_MAX ? calloc(1, sizeof(*w)) : NULL;
	if (!w || (!j && !(j = new_job(p, key, &request)))) {
		free(w);
		return error_set(e, -ENOMEM, "too many wait for packages");
	}
	*w = (struct packages_wait){ .job = j, .listener = listener, .userdata = userdata };
	TAILQ_INSERT_TAIL(&j->waits, w, link);
	p->n_waits++;
	p->asking = w;
	start_jobs(p);
	*ret = p->asking;
	p->asking = NULL;
	return 0;
}

void packages_forget(struct packages_wait *w)
{
	if (!w)
		return;
	TAILQ_REMOVE(&w->job->waits, w, link);
	w->job->packages->n_waits--;
	free(w);
}

/* ---- life ------------------------------------------------------------------------------------ */

int packages_create(uv_loop_t *loop, const struct packages_settings *settings, const char *state_dir, struct error *e,
	struct packages **ret)
{
	struct packages *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(e, -ENOMEM, "out of memory");
	p->loop = loop;
	p->settings = settings;
	TAILQ_INIT(&p->jobs);
	TAILQ_INIT(&p->holds);
	int r = store_open(state_dir, e, &p->store);
	if (r == 0 && (!(p->state_dir = strdup(state_dir)) || asprintf(&p->shown, "%s\tpackages", store_tree(p->store)) < 0))
		r = error_set(e, -ENOMEM, "out of memory");
	if (r < 0) {
		packages_destroy(p);
		return r;
	}
	*ret = p;
	return 0;
}

void packages_destroy(struct packages *p)
{
	if (!p)
		return;
	p->destroying = true;
	for (struct job *j; (j = TAILQ_FIRST(&p->jobs));) {
		TAILQ_REMOVE(&p->jobs, j, link);
		for (struct packages_wait *w; (w = TAILQ_FIRST(&j->waits));)
			packages_forget(w);
		j->packages = NULL;
		if (j->finished)
			continue; /* its handles are being closed */
		if (j->pidfd >= 0)
			process_kill_wait(j->pidfd);
		close_job(j);
	}
	while (!TAILQ_EMPTY(&p->holds))
		drop_hold(TAILQ_FIRST(&p->holds));
	store_close(p->store);
	free(p->state_dir);
	free(p->shown);
	free(p);
}

bool packages_enabled(const struct packages *p)
{
	return p->settings->mode != PACKAGES_OFF;
}

const char *packages_shown(const struct packages *p)
{
	return p->shown;
}

const struct packages_stats *packages_stats(const struct packages *p)
{
	return &p->stats;
}
