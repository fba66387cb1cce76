#include "dialects/dialect.h"

#include "api/call.h"

const struct dialect *const dialects[DIALECT_COUNT] = {
	[DIALECT_OPENENV] = &dialect_openenv,
	[DIALECT_JUPYTER] = &dialect_jupyter,
	[DIALECT_MCP] = &dialect_mcp,
};

void *dialect_state(const struct api *a, enum dialect_id id)
{
	return a->dialects[id];
}
