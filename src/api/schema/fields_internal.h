/*
 * Declarations shared by the files of the decoder: fields.c (objects), fields_values.c (values),
 * fields_place.c (errors).
 */
#pragma once

#include <jansson.h>

#include "api/schema/fields.h"
#include "base/error.h"

enum { PLACE_PATH_MAX = 160 };

/*
 * The path of the value that is decoded, for errors. Cut when it is long; control characters of
 * names are replaced.
 */
struct place {
	char path[PLACE_PATH_MAX];
	struct error *e;
};

void place_member(struct place *p, const struct place *parent, const char *key);
void place_item(struct place *p, const struct place *parent, size_t index);

/* Each fills in the error and returns its negative errno. */
__attribute__((format(printf, 2, 3))) int place_wrong(const struct place *p, const char *fmt, ...);
int place_unknown(
	const struct fields *f, const struct place *p, const char *name, const char *slug);
int place_missing(const struct field *f, const struct place *parent, const char *slug);
int place_no_memory(const struct place *p);

/* Letters, digits and underscores, not a digit first. */
bool place_is_name(const char *s);

/* "a list", "null": the type of a value; and the value itself when it is a number. */
const char *place_type_name(const json_t *v);
char *place_given(const json_t *v, char buf[48]);

int fields_decode_value(const struct field *f, const json_t *v, void *to, const struct place *p);
int fields_decode_object(
	const struct fields *f, const json_t *object, void *base, const struct place *p);
