/* A schema of a client, and a value of a guest held to it: two JSON texts with a NUL between. */
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "json/json_read.h"
#include "json/json_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *cut = size ? memchr(data, 0, size) : NULL;
	_cleanup_json_ json_t *schema = NULL, *value = NULL;
	struct error e = { 0 };
	if (!cut)
		return 0;
	size_t len = (size_t)(cut - text);
	if (json_read(text, len, NULL, &schema) < 0 || schema_check(schema, "schema", &e) < 0)
		return 0;
	if (json_read(cut + 1, size - len - 1, NULL, &value) < 0)
		return 0;
	if (json_is_object(value))
		schema_fill_defaults(schema, value);
	schema_validate(schema, value, &e);
	return 0;
}
