#include "dialects/common/reset_packages.h"

#include <errno.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/provision.h"
#include "packages/packages.h"

struct reset_packages {
	struct api *api;
	struct session_params params;
	struct packages_wait *wait;
	reset_packages_done done;
	void *userdata;
	bool *over; /* set when it ends inside packages_ask() */
};

bool reset_packages_needed(const struct api *a, const struct session_params *params)
{
	return provision_params_needed(a, params);
}

void reset_packages_release(struct session_params *params)
{
	struct run_request run = { .session = *params };
	provision_finish(&run);
	*params = (struct session_params){ 0 };
}

static void finish(struct reset_packages *o, const struct error *e)
{
	struct session_params params = o->params;
	reset_packages_done done = o->done;
	void *userdata = o->userdata;
	if (o->over)
		*o->over = true;
	free(o);
	done(userdata, &params, e);
	reset_packages_release(&params);
}

static void on_done(void *userdata, const struct packages_answer *a)
{
	struct reset_packages *o = userdata;
	struct error e = { 0 };
	o->wait = NULL;
	if (a->error)
		finish(o, a->error);
	else if (provision_take(o->api, a, &o->params) < 0)
		finish(o, (error_set(&e, -ENOMEM, "out of memory"), &e));
	else
		finish(o, NULL);
}

void reset_packages_begin(struct api *a, struct session_params *params, reset_packages_done done,
	void *userdata, struct reset_packages **ret)
{
	static const struct packages_listener listener = { .on_done = on_done };
	struct error e = { 0 };
	bool over = false;
	struct reset_packages *o = calloc(1, sizeof(*o));

	*ret = NULL;
	if (!o) {
		error_set(&e, -ENOMEM, "out of memory");
		done(userdata, params, &e);
		reset_packages_release(params);
		return;
	}

	*o = (struct reset_packages){
		.api = a, .params = *params, .done = done, .userdata = userdata, .over = &over
	};
	*params = (struct session_params){ 0 };
	char client[GUARD_CLIENT_LEN + 1];
	guard_client(&a->guard, o->params.owner, client);
	struct packages_request q = { .packages = o->params.want_packages,
		.imports = o->params.additional_imports,
		.client = client };
	struct packages_wait *wait = NULL;
	int r = packages_ask(a->packages, &q, &listener, o, &e, &wait);
	if (over)
		return;
	o->over = NULL;
	o->wait = wait;
	if (r < 0)
		finish(o, &e);
	else
		*ret = o;
}

void reset_packages_forget(struct reset_packages *o)
{
	if (!o)
		return;
	packages_forget(o->wait);
	reset_packages_release(&o->params);
	free(o);
}
