#include "dialects/common/reset_packages.h"

#include <errno.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/provision.h"
#include "packages/packages.h"

struct outfit {
	struct api *api;
	struct session_params params;
	struct packages_wait *wait;
	outfit_done done;
	void *userdata;
	bool *over; /* set when it ends inside packages_ask() */
};

bool outfit_needed(const struct api *a, const struct session_params *params)
{
	return provision_params_needed(a, params);
}

void outfit_release(struct session_params *params)
{
	struct run_request run = { .session = *params };
	provision_finish(&run);
	*params = (struct session_params){ 0 };
}

static void finish(struct outfit *o, const struct error *e)
{
	struct session_params params = o->params;
	outfit_done done = o->done;
	void *userdata = o->userdata;
	if (o->over)
		*o->over = true;
	free(o);
	done(userdata, &params, e);
	outfit_release(&params);
}

static void on_done(void *userdata, const struct packages_answer *a)
{
	struct outfit *o = userdata;
	struct error e = { 0 };
	o->wait = NULL;
	if (a->error)
		finish(o, a->error);
	else if (provision_take(o->api, a, &o->params) < 0)
		finish(o, (error_set(&e, -ENOMEM, "the server is short of memory"), &e));
	else
		finish(o, NULL);
}

void outfit_begin(
	struct api *a, struct session_params *params, outfit_done done, void *userdata, struct outfit **ret)
{
	static const struct packages_listener listener = { .on_done = on_done };
	struct error e = { 0 };
	bool over = false;
	struct outfit *o = calloc(1, sizeof(*o));
	*ret = NULL;
	if (!o) {
		error_set(&e, -ENOMEM, "the server is short of memory");
		done(userdata, params, &e);
		outfit_release(params);
		return;
	}
	*o = (struct outfit){
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

void outfit_forget(struct outfit *o)
{
	if (!o)
		return;
	packages_forget(o->wait);
	outfit_release(&o->params);
	free(o);
}
