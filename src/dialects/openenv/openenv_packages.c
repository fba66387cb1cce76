/*
 * Resets that ask for packages, or for modules that may have to be installed: they are answered
 * when those are there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/common/reset_packages.h"
#include "dialects/openenv/openenv.h"

struct env_packages {
	struct env *env;
	struct reset_packages *wait;
	struct reset_request request; /* its session and episode are our own */
	char *episode;
	env_reset_done done; /* NULL: nobody waits */
	void *userdata;
	bool *over; /* set when it ends inside reset_packages_begin() */
};

void env_packages_destroy(struct env_packages *o)
{
	if (!o)
		return;
	if (o->over)
		*o->over = true;
	reset_packages_forget(o->wait);
	reset_finish(&o->request);
	free(o->episode);
	free(o);
}

void env_packages_forget(struct env *e)
{
	if (e->packages)
		e->packages->done = NULL;
}

void env_packages_cancel(struct env *e, const char *why)
{
	struct env_packages *o = e->packages;
	struct error err = { 0 };
	struct pydantic p;
	if (!o)
		return;
	e->packages = NULL;
	pydantic_init(&p, NULL, true);
	error_set(&err, -EIDRM, "the environment ended: %s", why);
	error_slug(&err, "session_gone");
	if (o->done)
		o->done(e, o->userdata, -EIDRM, &p, &err);
	env_packages_destroy(o);
	pydantic_finish(&p);
}

static void on_packages(void *userdata, struct session_params *params, const struct error *failed)
{
	struct env_packages *o = userdata;
	struct env *e = o->env;
	struct error err = { 0 };
	struct pydantic p;
	int result = failed ? failed->err : 0;

	pydantic_init(&p, NULL, true);
	o->wait = NULL;
	o->request.given = params;
	if (!result)
		result = env_reset(e, &o->request, &p, &err);
	e->packages = NULL;
	/* What is done may end the env. */
	if (o->done)
		o->done(e, o->userdata, result, &p, failed ? failed : &err);
	env_packages_destroy(o);
	pydantic_finish(&p);
}

static struct env_packages *env_packages_create(struct env *e, const struct reset_request *r,
	env_reset_done done, void *userdata, bool *over)
{
	struct env_packages *o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	*o = (struct env_packages){
		.env = e, .request = *r, .done = done, .userdata = userdata, .over = over
	};
	o->request.session = json_incref(r->session);
	o->episode = r->episode ? strdup(r->episode) : NULL;
	o->request.episode = o->episode;
	return o;
}

static int start(struct env *e, const struct reset_request *r, struct session_params *params,
	env_reset_done done, void *userdata, struct error *err)
{
	struct reset_packages *wait = NULL;
	bool over = false;

	if (e->packages) {
		error_set(err, -EBUSY, "another reset of this environment waits for its packages");
		return error_remedy(err, "Wait for its answer.");
	}

	struct env_packages *o = env_packages_create(e, r, done, userdata, &over);
	if (!o)
		return error_set(err, -ENOMEM, "out of memory");
	e->packages = o;
	params->owner = e->owner;
	reset_packages_begin(e->home->api, params, on_packages, o, &wait);
	if (over)
		return 0;
	o->over = NULL;
	o->wait = wait;
	return 0;
}

void env_reset_with_packages(struct env *e, const struct reset_request *r, struct pydantic *p,
	env_reset_done done, void *userdata)
{
	struct session_params params = { 0 };
	struct error err = { 0 };
	int result = reset_read_params(r, p, &err, &params);
	bool waits = !result && reset_packages_needed(e->home->api, &params);
	if (waits) {
		result = start(e, r, &params, done, userdata, &err);
		waits = !result;
	} else if (!result) {
		result = env_reset(e, r, p, &err);
	}
	reset_packages_release(&params);
	if (!waits)
		done(e, userdata, result, p, &err);
}
