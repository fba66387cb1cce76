#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/provision.h"
#include "api/run_files.h"
#include "dialects/trainers/trainers.h"
#include "json/json_read.h"

struct script_call {
	struct call *call;
	struct job_run *run;
	const struct script_ops *ops;
	void *extra;
	/* before it runs: its files are looked at */
	struct run_request request;
	struct run_files_step files;
	double patience_s;
};

static void destroy(struct script_call *s)
{
	if (s->ops->free_extra)
		s->ops->free_extra(s->extra);
	provision_finish(&s->request);
	free(s);
}

static void on_gone(struct call *c)
{
	struct script_call *s = c->work;
	if (s->run)
		job_run_cancel(s->run);
	c->work = NULL;
	c->ops = NULL;
	destroy(s);
}

static const struct call_ops ops = { .on_gone = on_gone };

static void on_done(void *userdata, const struct job_outcome *outcome)
{
	struct script_call *s = userdata;
	struct call *c = s->call;
	c->work = NULL;
	c->ops = NULL;
	s->ops->answer(c, s->extra, outcome);
	destroy(s);
}

/* Without a session for it: answered as a program that could not run. */
static void fail(struct script_call *s, const struct error *e)
{
	on_done(s, &(struct job_outcome){ .error = e });
}

static void check_files(struct call *c)
{
	struct script_call *s = c->work;
	struct error e = { 0 };
	int r = run_files_check(&s->request.files, &s->files, &e);
	if (r == 0)
		r = job_run_start(c->api->jobs, &s->request, c->owner, s->patience_s, on_done, s,
			&e, &s->run);
	if (r > 0)
		call_later(c, check_files);
	else if (r < 0)
		fail(s, &e);
}

void script_call_start(struct call *c, struct run_request *run, size_t bytes, double patience_s,
	const struct script_ops *script, void *extra)
{
	struct error e = { 0 };
	struct script_call *s = calloc(1, sizeof(*s));

	http_drop_body(c->x);
	if (!s) {
		provision_finish(run);
		if (script->free_extra)
			script->free_extra(extra);
		call_no_memory(c);
		return;
	}

	*s = (struct script_call){ .call = c, .ops = script, .extra = extra };
	if (hold_set(&c->held, bytes) < 0) {
		error_set(&e, -ENOBUFS,
			"the server has reached its limit on memory held for clients");
		error_slug(&e, "queue_timeout"); /* so that the client tries again */
		provision_finish(run);
		fail(s, &e);
		return;
	}

	c->ops = &ops;
	c->work = s;
	s->request = *run;
	s->patience_s = patience_s;
	*run = (struct run_request){ 0 };
	check_files(c);
}

json_t *script_call_body(struct call *c, size_t *ret_len, struct error *e)
{
	json_t *tree = NULL;
	const char *body = http_body(c->x, ret_len);
	if (json_read(body, *ret_len, e, &tree) < 0)
		return NULL;
	if (json_is_object(tree))
		return tree;
	error_set(e, -EINVAL, "the body must be a JSON object");
	json_decref(tree);
	return NULL;
}

int script_set_text(struct field_text *to, const char *text, size_t len)
{
	char *copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text ? text : "", text ? len : 0);
	copy[text ? len : 0] = '\0';
	*to = (struct field_text){ copy, text ? len : 0 };
	return 0;
}
