/* A job of one cell: a whole program, its outcome, and the end of its session. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/program_imports.h"
#include "api/provision.h"
#include "api/run_jobs.h"
#include "base/text.h"

struct job_run {
	struct job *job;
	struct cell *cell;
	struct run_request run; /* the cell's part */
	job_run_done done;
	void *userdata;
	bool executing, dead;
};

static void destroy(struct job_run *r)
{
	if (r->job)
		job_end(r->job);
	r->job = NULL;
	if (r->executing) {
		r->dead = true;
		return;
	}
	provision_finish(&r->run);
	free(r);
}

static void tell(struct job_run *r, const struct job_outcome *outcome)
{
	r->done(r->userdata, outcome);
	destroy(r);
}

static void on_fail(void *userdata, const struct error *e)
{
	struct job_run *r = userdata;
	r->job = NULL;
	tell(r, &(struct job_outcome){ .error = e });
}

/* There was no interpreter for it, and it was not begun. */
static bool never_ran(const struct observation *o)
{
	return !o->cell && o->error && text_eq(o->error->code, "no_guest");
}

static void on_done(void *userdata, const struct observation *o)
{
	struct job_run *r = userdata;
	struct error e = { 0 };
	struct job_outcome outcome = { .o = o, .waited_s = job_waited_s(r->job) };
	r->cell = NULL;
	if (never_ran(o)) {
		error_set(&e, -EAGAIN, "no interpreter could be started: %s", o->error->message);
		error_slug(&e, "no_resources");
		outcome = (struct job_outcome){ .error = &e };
	}
	outcome.session = job_session(r->job);
	tell(r, &outcome);
}

static void on_open(void *userdata, struct session *s)
{
	static const struct cell_observer observer = { .on_done = on_done };
	struct job_run *r = userdata;
	struct error e = { 0 };
	struct cell *cell = NULL;
	struct cell_request q;

	execute_cell_request(&r->run.execute, &q);
	q.final = q.film = true;
	q.arguments = r->run.arguments;
	if (q.on_block == ON_BLOCK_LEAVE)
		q.on_block = ON_BLOCK_CLOSE; /* there is no later cell */
	r->executing = true;
	int result = session_execute(s, NULL, &q, &observer, r, &e, &cell);
	r->executing = false;
	if (r->dead) {
		destroy(r);
		return;
	}

	if (result < 0)
		tell(r, &(struct job_outcome){ .error = &e });
	else
		r->cell = cell;
}

int job_run_start(struct jobs *j, struct run_request *run, uint64_t owner, double patience_s,
	job_run_done done, void *userdata, struct error *e, struct job_run **ret)
{
	static const struct job_ops ops = { on_open, on_fail };
	struct job_run *r = calloc(1, sizeof(*r));

	if (!r) {
		provision_finish(run);
		return error_set(e, -ENOMEM, "out of memory");
	}

	/*
	 * Nobody else will use it: a picture that is asked for says that there is something to see.
	 */
	run->session.has_display |= run->execute.capture_screenshot ||
				    run->execute.has_screenshot || run->execute.record;
	run->session.standard_imports = run_imports_are_standard(run);
	r->done = done;
	r->userdata = userdata;
	int result = job_submit(j, run, owner, patience_s, &ops, r, e, &r->job);
	r->run = *run;
	*run = (struct run_request){ 0 };
	if (result < 0)
		destroy(r);
	else
		*ret = r;
	return result;
}

void job_run_cancel(struct job_run *r)
{
	if (r->cell)
		cell_abandon(r->cell);
	destroy(r);
}
