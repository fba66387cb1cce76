/* All dialects, for the daemon to give to the API. */
#pragma once

#include "api/dialect.h"

extern const struct dialect dialect_openenv, dialect_jupyter, dialect_mcp, dialect_trainers,
	dialect_librechat, dialect_e2b;
extern const struct dialect *const dialects[]; /* NULL at the end */
