#include "dialects/dialects.h"

#include <stddef.h>

const struct dialect *const dialects[] = {
	&dialect_openenv,
	&dialect_jupyter,
	&dialect_mcp,
	&dialect_trainers,
	&dialect_librechat,
	&dialect_e2b,
	NULL,
};
