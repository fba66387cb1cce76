/*
 * A tree of the reader as JSON text again. jansson's own json_dumps() takes 12 ns for each byte and
 * has no maximum.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct json_writer;

/* Writes the value. Numbers keep their kind: 1.0 is not written as 1. */
void json_put_tree(struct json_writer *w, const json_t *value);

/*
 * The text of a value, NUL-terminated and the caller's; ret_len may be NULL. -ENOBUFS: it would
 * have more than max bytes, which is found out without writing more than these; -ENOMEM.
 */
int json_dump(const json_t *value, size_t max, char **ret, size_t *ret_len);
