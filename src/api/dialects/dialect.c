#include "api/dialects/dialect.h"

#include <errno.h>

#include "api/call.h"

const struct dialect *const dialects[DIALECT_COUNT] = {
	[DIALECT_OPENENV] = &dialect_openenv,
	[DIALECT_JUPYTER] = &dialect_jupyter,
};

int dialect_check_params(const struct session_params *p, struct error *e)
{
	if (!p->want_packages || !p->want_packages[0])
		return 0;
	error_set(e, -EINVAL, "$.packages: packages are not installed here; run `!pip install NAME` as a step of its own");
	error_remedy(e, "Or have them on the server: glovebox packages add NAME.");
	error_slug(e, "invalid_field");
	return -EINVAL;
}

void *dialect_state(const struct api *a, enum dialect_id id)
{
	return a->dialects[id];
}
