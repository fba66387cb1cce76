#include "api/run_jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "api/call.h"
#include "api/provision.h"
#include "api/run_files.h"
#include "base/clock.h"
#include "base/text.h"
#include "packages/packages.h"

enum { FEWEST_JOBS = 4, JOBS_PER_CPU = 2, POLL_MS = 1, MOST_RETRY_MS = 32 };

enum job_state {
	JOB_QUEUED,   /* → PACKAGES or OPENING, when there is a place and room for a session */
	JOB_PACKAGES, /* → OPENING, when what it needs is installed */
	JOB_OPENING,  /* → OPEN, when its files can be written */
	JOB_OPEN,
};

struct job {
	struct jobs *home;
	enum job_state state;
	struct run_request run;                               /* session and files alone */
	struct run_files_step files;                          /* of them */
	uint64_t owner, submitted_ns, opened_ns, deadline_ns; /* deadline 0: none */
	uint64_t blocked_ns;  /* since when there is no room for its session; 0: there is */
	uint64_t passed_over; /* the turn in which it is not tried (again) */
	bool provided;        /* its packages are there */
	const struct job_ops *ops;
	void *userdata;
	struct packages_wait *packages;
	char session[SESSION_ID_LEN + 1];
	TAILQ_ENTRY(job) link;
};

TAILQ_HEAD(job_list, job);

struct jobs {
	struct api *api;
	uv_timer_t timer;
	unsigned max, running;
	struct job_list queue, active; /* active: has a place */
	uint64_t turn;
	unsigned retry_ms; /* until jobs without room are tried again; doubles, until a job ends */
	bool no_room;      /* in this turn, for anyone */
	bool blocked;      /* in this turn, for someone */
	struct job *next;  /* of the walk through a list: callbacks may end any job */
};

/* ---- life ------------------------------------------------------------------- */

static void on_tick(uv_timer_t *timer);

static void wake(struct jobs *j, unsigned ms)
{
	uv_timer_start(&j->timer, on_tick, ms, 0);
}

int jobs_create(struct api *a, uv_loop_t *loop, unsigned max, struct jobs **ret)
{
	struct jobs *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN) * JOBS_PER_CPU;
	j->max = max ? max : cpus > FEWEST_JOBS ? (unsigned)cpus : FEWEST_JOBS;
	j->api = a;
	TAILQ_INIT(&j->queue);
	TAILQ_INIT(&j->active);
	j->retry_ms = POLL_MS;
	uv_timer_init(loop, &j->timer);
	j->timer.data = j;
	*ret = j;
	return 0;
}

unsigned jobs_max(const struct jobs *j)
{
	return j->max;
}

static void job_free(struct job *job)
{
	bool queued = job->state == JOB_QUEUED;
	if (job->home->next == job)
		job->home->next = TAILQ_NEXT(job, link);
	TAILQ_REMOVE(queued ? &job->home->queue : &job->home->active, job, link);
	if (!queued)
		job->home->running--;
	packages_forget(job->packages);
	run_files_step_finish(&job->files);
	provision_finish(&job->run);
	free(job);
}

static void free_jobs(uv_handle_t *timer)
{
	free(timer->data);
}

void jobs_destroy(struct jobs *j)
{
	struct job *job;
	if (!j)
		return;
	while ((job = TAILQ_FIRST(&j->queue)) || (job = TAILQ_FIRST(&j->active)))
		job_free(job);
	uv_close((uv_handle_t *)&j->timer, free_jobs);
}

int job_submit(struct jobs *j, struct run_request *run, uint64_t owner, double patience_s,
	const struct job_ops *ops, void *userdata, struct error *e, struct job **ret)
{
	struct job *job = calloc(1, sizeof(*job));
	if (!job)
		return error_set(e, -ENOMEM, "out of memory");

	job->home = j;
	job->owner = owner;
	job->ops = ops;
	job->userdata = userdata;
	job->submitted_ns = clock_now_ns();
	if (patience_s > 0)
		job->deadline_ns = job->submitted_ns + (uint64_t)(patience_s * 1e9);
	job->run.session = run->session;
	job->run.files = run->files;
	run->session = (struct session_params){ 0 };
	run->files = (struct field_files){ 0 };

	TAILQ_INSERT_TAIL(&j->queue, job, link);
	wake(j, 0);
	*ret = job;
	return 0;
}

void job_end(struct job *job)
{
	struct jobs *j = job->home;
	if (job->session[0])
		api_end_later(j->api, job->session);
	job_free(job);
	j->retry_ms = POLL_MS; /* there will be room when the session has ended */
	wake(j, 0);
}

struct session *job_session(const struct job *job)
{
	struct session *s;
	return session_find(job->home->api->sessions, job->session, NULL, &s) < 0 ? NULL : s;
}

double job_waited_s(const struct job *job)
{
	return (double)(job->opened_ns - job->submitted_ns) / 1e9;
}

static void fail(struct job *job, const struct error *e)
{
	const struct job_ops *ops = job->ops;
	void *userdata = job->userdata;
	job_end(job);
	ops->on_fail(userdata, e);
}

/* ---- a session ----------------------------------------------------------------- */

static void open_job(struct job *job)
{
	struct error e = { 0 };
	struct session *s;
	int r = session_find(job->home->api->sessions, job->session, &e, &s);
	if (!r && job->run.files.n)
		r = run_files_put(s, &job->run.files, &job->files, &e);
	if (r > 0)
		return; /* goes on in the next turn */
	if (r < 0) {
		fail(job, &e);
		return;
	}
	job->state = JOB_OPEN;
	job->opened_ns = clock_now_ns();
	provision_finish(&job->run);
	job->ops->on_open(job->userdata, s);
}

/* Something that passes: other sessions end, memory is given back. */
static bool is_shortage(const struct error *e)
{
	static const char *const slugs[] = { "too_many_sessions", "server_full", "no_resources",
		"server_memory", "starting", NULL };
	for (const char *const *s = slugs; *s; s++)
		if (text_eq(e->slug, *s))
			return true;
	return false;
}

/* ret_own: it is the token's quota that is used up. */
static int create_session(struct job *job, bool *ret_own, struct error *e)
{
	struct api *a = job->home->api;
	struct session_info info;
	struct session *s;
	int r = api_check_open(a, e);

	if (!r)
		r = api_peek_quota(a, job->owner, 1, e);
	*ret_own = r < 0;
	if (!r) {
		job->run.session.owner = job->owner;
		job->run.session.may_wait = true;
		r = session_create(a->sessions, &job->run.session, e, &s);
	}

	if (r < 0)
		return r;
	job->run.session = (struct session_params){ 0 };
	session_info(s, &info);
	snprintf(job->session, sizeof(job->session), "%s", info.id);
	return 0;
}

/* Gives its place up to others: a token whose quota is used up must not keep all places. */
static void step_back(struct job *job, bool own)
{
	struct jobs *j = job->home;
	struct job *later = TAILQ_FIRST(&j->queue), *other;
	if (j->next == job)
		j->next = TAILQ_NEXT(job, link);
	TAILQ_REMOVE(&j->active, job, link);
	j->running--;
	job->state = JOB_QUEUED;
	while (later && later->submitted_ns <= job->submitted_ns)
		later = TAILQ_NEXT(later, link);
	if (later)
		TAILQ_INSERT_BEFORE(later, job, link);
	else
		TAILQ_INSERT_TAIL(&j->queue, job, link);

	j->blocked = true;
	job->passed_over = j->turn;
	if (!own)
		j->no_room = true;
	else
		TAILQ_FOREACH (other, &j->queue, link)
			if (other->owner == job->owner)
				other->passed_over = j->turn;
}

/* Without room for a session the job waits in the queue, and is tried again. */
static void make_session(struct job *job)
{
	struct error e = { 0 };
	uint64_t now = clock_now_ns();
	bool own = false;

	job->state = JOB_OPENING;
	if (create_session(job, &own, &e) == 0) {
		job->blocked_ns = 0;
		return;
	}

	if (!job->blocked_ns)
		job->blocked_ns = now;
	if (!is_shortage(&e) || now - job->blocked_ns > LIMIT_START_SECONDS * NSEC_PER_SEC)
		fail(job, &e);
	else
		step_back(job, own);
}

static void on_packages(void *userdata, const struct packages_answer *a)
{
	struct job *job = userdata;
	struct error e = { 0 };
	job->packages = NULL;
	if (a->error)
		fail(job, a->error);
	else if (provision_take(job->home->api, a, &job->run.session) < 0) {
		error_set(&e, -ENOMEM, "out of memory");
		fail(job, &e);
	} else {
		job->state = JOB_OPENING;
		job->provided = true;
		wake(job->home, 0);
	}
}

static void on_progress(
	void *userdata, const char *phase, const char *text, unsigned done, unsigned total)
{
	(void)userdata, (void)phase, (void)text, (void)done, (void)total;
}

static void ask_packages(struct job *job)
{
	static const struct packages_listener listener = { on_progress, on_packages };
	struct api *a = job->home->api;
	struct error e = { 0 };
	char client[GUARD_CLIENT_LEN + 1];

	guard_client(&a->guard, job->owner, client);
	struct packages_request q = { .packages = job->run.session.want_packages,
		.imports = job->run.session.additional_imports,
		.client = client };
	struct packages_wait *wait = NULL;
	job->state = JOB_PACKAGES;
	int r = packages_ask(a->packages, &q, &listener, job, &e, &wait);
	if (r < 0)
		fail(job, &e);
	else if (wait)
		job->packages = wait;
}

/* ---- turns ------------------------------------------------------------------------ */

static void begin(struct job *job)
{
	struct jobs *j = job->home;
	TAILQ_REMOVE(&j->queue, job, link);
	TAILQ_INSERT_TAIL(&j->active, job, link);
	j->running++;
	job->state = JOB_OPENING;
	if (!job->provided && provision_params_needed(j->api, &job->run.session))
		ask_packages(job);
	else
		make_session(job);
}

/* A session without files to be written can take its cell while it starts. */
static bool can_open(const struct job *job)
{
	struct session *s;
	if (!job->session[0] || !job->run.files.n)
		return job->session[0];
	if (session_find(job->home->api->sessions, job->session, NULL, &s) < 0)
		return true; /* open_job() tells why */
	return session_workspace_fd(s) >= 0;
}

static void look_at_active(struct jobs *j)
{
	for (struct job *job = TAILQ_FIRST(&j->active); job; job = j->next) {
		j->next = TAILQ_NEXT(job, link);
		if (job->state != JOB_OPENING)
			continue;
		if (!job->session[0])
			make_session(job);
		/* a job that failed is gone, and is not looked at again */
		else if (can_open(job))
			open_job(job);
	}
}

static void drop_late(struct jobs *j, struct job_list *list)
{
	struct error e = { 0 };
	uint64_t now = clock_now_ns();
	error_set(&e, -ETIME, "the program waited too long to be started");
	error_remedy(
		&e, "Try again in some seconds, send fewer programs at once, or raise --max-runs.");
	error_slug(&e, "queue_timeout");
	for (struct job *job = TAILQ_FIRST(list); job; job = j->next) {
		j->next = TAILQ_NEXT(job, link);
		if (job->deadline_ns && now >= job->deadline_ns && job->state != JOB_OPEN)
			fail(job, &e);
	}
}

/* The first one in the queue that was not tried in this turn. */
static struct job *next_queued(const struct jobs *j)
{
	struct job *job = TAILQ_FIRST(&j->queue);
	while (job && job->passed_over == j->turn)
		job = TAILQ_NEXT(job, link);
	return job;
}

/*
 * Sets the time of the next check: soon while sessions are being opened, later while no session can
 * be made, and in time for jobs whose wait expires.
 */
static void plan(struct jobs *j)
{
	struct job *job;
	bool opening = false, impatient = !TAILQ_EMPTY(&j->queue);

	TAILQ_FOREACH (job, &j->active, link) {
		opening |= job->state == JOB_OPENING;
		impatient |= job->state == JOB_PACKAGES && job->deadline_ns;
	}

	if (uv_is_active((uv_handle_t *)&j->timer))
		return; /* a callback asked for the next turn */
	if (opening)
		wake(j, POLL_MS);
	else if (j->blocked)
		wake(j, j->retry_ms);
	else if (impatient)
		wake(j, MOST_RETRY_MS);
}

static void on_tick(uv_timer_t *timer)
{
	struct jobs *j = timer->data;
	struct job *job;
	j->turn++;
	j->no_room = j->blocked = false;
	drop_late(j, &j->queue);
	drop_late(j, &j->active);
	while (j->running < j->max && !j->no_room && (job = next_queued(j)))
		begin(job);
	look_at_active(j);

	if (j->blocked && j->retry_ms < MOST_RETRY_MS)
		j->retry_ms *= 2;
	plan(j);
}
