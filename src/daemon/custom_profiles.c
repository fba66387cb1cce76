#include "daemon/custom_profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "daemon/config.h"
#include "profile/profiles.h"

/*
 * coding_env runs code under smolagents' rules; who chose others for the server means them here
 * too.
 */
const char *own_profiles_openenv(const struct config *c)
{
	if (c->openenv_profile)
		return c->openenv_profile;
	return c->profile ? c->profile : "smolagents";
}

int own_profiles_check(const struct profiles *p, const struct config *c, struct error *e)
{
	_cleanup_(profile_choice_finish) struct profile_choice usual = { 0 }, openenv = { 0 };
	int r = profiles_choose(p, NULL, c->profile, c->additional_imports, false, e, &usual);
	if (r < 0)
		return r;
	r = profiles_choose(
		p, own_profiles_openenv(c), NULL, c->additional_imports, true, e, &openenv);
	return r < 0 ? error_wrap(e, "openenv-profile") : 0;
}
