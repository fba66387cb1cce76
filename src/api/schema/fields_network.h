/* Decoder of FIELD_NETWORK, for fields.c. `path` names the value in errors. */
#pragma once

#include <jansson.h>

#include "base/error.h"

struct network_policy;

int fields_decode_network(
	const json_t *v, const char *path, struct network_policy *to, struct error *e);
