/*
 * JSON Schema, the part of it that describes the arguments and results of functions, bounded in depth and in work.
 *
 *   type            one word or a list: null, boolean, integer, number, string, array, object; "any" is everything
 *   properties, required, additionalProperties (true, false or a schema), default
 *   items           one schema for all
 *   enum, const, anyOf, nullable
 *   minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, minItems, maxItems
 *
 * Words that only describe (title, description, examples, format, …) are passed over. Everything else, such as $ref,
 * oneOf, allOf, not, pattern, is refused by schema_check(): a rule that is not enforced is worse than an error.
 *
 * Values may hold typed markers, objects like {"__type__": "tuple", "data": […]}: such a value is taken as what it stands for
 * (a tuple as an array, a Decimal as a number, a date as a string).
 */
#pragma once

#include <jansson.h>

struct error;

/*
 * Whether this is a schema we can hold values to. -EINVAL with slug "invalid_schema"; the text
 * begins with `where` and the path.
 */
int schema_check(const json_t *schema, const char *where, struct error *e);

/*
 * Holds a value to a schema that schema_check() took. -EINVAL with slug "schema_mismatch"; the text
 * begins with the path of what is wrong ("$.limit: must be …"). -E2BIG when deciding takes more
 * than LIMIT_SCHEMA_STEPS steps.
 */
int schema_validate(const json_t *schema, const json_t *value, struct error *e);

/* Adds the defaults of properties that the object lacks. -ENOMEM. */
int schema_fill_defaults(const json_t *schema, json_t *object);
