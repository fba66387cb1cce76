#include "api/provision.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/api_words.h"
#include "api/call.h"
#include "api/routes.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "packages/names.h"
#include "packages/packages.h"
#include "json/json_write.h"

struct provision {
	struct call *call;
	struct packages_wait *wait;
	struct run_request run;
	void (*then)(struct call *c, struct run_request *run, bool begun);
	bool stream, begun;
	bool *over; /* set when it ends inside packages_ask() */
};

bool provision_params_needed(const struct api *a, const struct session_params *p)
{
	bool packages = p->want_packages && p->want_packages[0],
	     imports = p->additional_imports && p->additional_imports[0];
	/* Where there are no packages, imports are a matter of the profile alone. */
	return a->packages && (packages || (imports && packages_enabled(a->packages)));
}

bool provision_needed(const struct call *c, const struct session_params *p)
{
	return provision_params_needed(c->api, p);
}

void provision_finish(struct run_request *run)
{
	session_package_free(run->session.packages);
	free(run->session.packages_report);
	for (char **m = run->session.template_modules; m && *m; m++)
		free(*m);
	free(run->session.template_modules);
	run->session.template_modules = NULL;
	run->session.packages = NULL;
	run->session.packages_report = NULL;
	fields_finish(&run_fields, run);
	*run = (struct run_request){ 0 };
}

static void destroy(struct provision *p)
{
	if (p->over)
		*p->over = true;
	packages_forget(p->wait);
	provision_finish(&p->run);
	free(p);
}

static void on_gone(struct call *c)
{
	struct provision *p = c->work;
	c->work = NULL;
	c->ops = NULL;
	destroy(p);
}

static const struct call_ops provision_ops = { .on_gone = on_gone };

/* ---- telling ------------------------------------------------------------------ */

static void on_progress(
	void *userdata, const char *phase, const char *text, unsigned done, unsigned total)
{
	struct provision *p = userdata;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	if (!p->stream)
		return;
	if (!p->begun)
		http_sse_begin(p->call->x);
	p->begun = true;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "type", "packages");
	json_field_cstr(&w, "phase", phase);
	json_field_cstr(&w, "text", text);
	if (total) {
		json_field_uint(&w, "done", done);
		json_field_uint(&w, "total", total);
	}

	json_close(&w);
	if (json_writer_end(&w) == 0)
		http_sse_event(p->call->x, "packages", NULL, b.data, b.len);
}

static void put_problem(struct json_writer *w, const struct call *c, const struct error *e,
	const struct packages_answer *a)
{
	char remedy[EDGE_TEXT_MAX];
	json_open_object(w);
	json_field_cstr(w, "type", "about:blank");
	json_field_cstr(w, "title", "the packages are not available");
	json_field_int(w, "status", call_status_of(e));
	json_field_cstr(w, "code", e->slug);
	json_field_cstr(w, "detail", e->text);
	json_field_cstr(w, "remediation", api_remedy(e->remedy, remedy));
	json_field_cstr(w, "request_id", http_request_id(c->x));
	if (a && a->report)
		json_field_raw(w, "packages", a->report, strlen(a->report));
	if (a && a->log)
		json_field_raw(w, "log", a->log, strlen(a->log));
	json_close(w);
}

static void answer_problem(
	struct call *c, const struct error *e, const struct packages_answer *a, bool begun)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	put_problem(&w, c, e, a);
	if (json_writer_end(&w) < 0)
		b.len = 0;
	if (begun) {
		http_sse_event(c->x, "error", NULL, b.data, b.len);
		call_finish_stream(c);
	} else {
		call_respond_as(c, call_status_of(e), "application/problem+json", &b);
	}
}

void provision_answer_error(struct call *c, const struct error *e, bool begun)
{
	if (begun)
		answer_problem(c, e, NULL, begun);
	else
		call_error(c, e);
}

static void fail(struct provision *p, const struct error *e, const struct packages_answer *a)
{
	struct call *c = p->call;
	bool begun = p->begun;
	c->work = NULL;
	c->ops = NULL;
	destroy(p);
	answer_problem(c, e, a, begun);
}

/* ---- what came of it -------------------------------------------------------------- */

static char **copy_list(char *const *list)
{
	size_t n = 0;
	while (list[n])
		n++;
	char **copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		if (!(copy[i] = strdup(list[i])))
			break; /* shorter, then */
	return copy;
}

struct session_package *provision_package(
	struct packages *packages, const char *set, const char *path)
{
	struct session_package *one = calloc(1, sizeof(*one));
	if (!one || !(one->path = strdup(path)) || !(one->hold = packages_hold(packages, set))) {
		session_package_free(one);
		return NULL;
	}
	one->retain = packages_retain;
	one->release = packages_release;
	return one;
}

int provision_take(struct api *api, const struct packages_answer *a, struct session_params *params)
{
	params->packages_report = a->report ? strdup(a->report) : NULL;
	params->packages_replace = a->replaces;
	/* A module that was misspelt is allowed under its right name, not under the wrong one. */
	if (names_correct_imports(params->additional_imports) < 0)
		return -ENOMEM;
	if (!a->set)
		return 0;
	if (!(params->packages = provision_package(api->packages, a->set, a->path)))
		return -ENOMEM;
	if (a->template)
		params->template_modules = copy_list(a->modules);
	return 0;
}

static void on_done(void *userdata, const struct packages_answer *a)
{
	struct provision *p = userdata;
	struct error e = { 0 };

	p->wait = NULL;
	if (a->error) {
		fail(p, a->error, a);
		return;
	}

	if (provision_take(p->call->api, a, &p->run.session) < 0) {
		error_set(&e, -ENOMEM, "out of memory");
		fail(p, &e, NULL);
		return;
	}

	struct call *c = p->call;
	struct run_request run = p->run;
	void (*then)(struct call *, struct run_request *, bool) = p->then;
	bool begun = p->begun;
	p->run = (struct run_request){ 0 };
	c->work = NULL;
	c->ops = NULL;
	destroy(p);
	then(c, &run, begun);
}

void provision(struct call *c, struct run_request *run,
	void (*then)(struct call *c, struct run_request *run, bool begun))
{
	static const struct packages_listener listener = { on_progress, on_done };
	struct error e = { 0 };
	bool over = false;
	struct provision *p = calloc(1, sizeof(*p));

	if (!p) {
		provision_finish(run);
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	*p = (struct provision){ .call = c, .run = *run, .then = then, .over = &over };
	*run = (struct run_request){ 0 };
	p->stream = c->route->flags & ROUTE_EVENTS && call_accepts(c, "text/event-stream");
	c->ops = &provision_ops;
	c->work = p;
	char client[GUARD_CLIENT_LEN + 1];
	guard_client(&c->api->guard, c->owner, client);
	struct packages_request q = { .packages = p->run.session.want_packages,
		.imports = p->run.session.additional_imports,
		.client = client };
	struct packages_wait *wait = NULL;
	int r = packages_ask(c->api->packages, &q, &listener, p, &e, &wait);
	if (over)
		return;
	p->over = NULL;
	p->wait = wait;
	if (r < 0)
		fail(p, &e, NULL);
}
