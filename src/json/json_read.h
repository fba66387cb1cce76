/*
 * The strict JSON reader: text from outside becomes a tree, or an error that says where and why.
 *
 * Stricter than the grammar where that protects somebody: duplicate names in an object, unpaired
 * surrogates, a byte order mark, invalid UTF-8, more than LIMIT_JSON_DEPTH levels and more than
 * LIMIT_JSON_VALUES values are refused. "\u0000" inside a string is allowed; whoever decodes a
 * field refuses it where it does harm. Nothing here recurses.
 *
 * The tree is jansson's: use json_object_get(), json_string_value(), json_string_length(),
 * json_object_foreach() …
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct error;

/*
 * json_decref() for a tree that may be large: beyond a few hundred values the rest is freed later,
 * in slices (base/deferred.h). NULL is fine.
 */
void json_discard(json_t *tree);

static inline void json_cleanup_tree(json_t **tree)
{
	json_discard(*tree);
}
#define _cleanup_json_ __attribute__((cleanup(json_cleanup_tree)))

/*
 * Parses one JSON text (any value at the top) of exactly len bytes. The tree is the caller's:
 * json_decref(). Errors: -EINVAL with slug "malformed_json" ("malformed JSON at line 3, column 7:
 * …"), "invalid_utf8", "duplicate_field", "json_too_deep" or "json_too_large"; -ENOMEM. Lines and
 * columns count from 1, columns in characters.
 */
int json_read(const char *text, size_t len, struct error *e, json_t **ret);

/*
 * The same in steps, for texts that take longer than one turn of the loop may: the text must stay
 * where it is until the reader is destroyed. A step reads about `bytes`. 1: there is more; 0:
 * json_reader_take() gives the tree; negative: the errors of json_read(). NULL: no memory.
 */
struct json_reader;
struct json_reader *json_reader_create(const char *text, size_t len);
void json_reader_destroy(struct json_reader *r); /* NULL is fine */
int json_reader_step(struct json_reader *r, size_t bytes, struct error *e);
json_t *json_reader_take(struct json_reader *r);

/*
 * The result of reading a text, kept for the next json_read() of the same bytes in the same place:
 * whoever reads a large text in steps passes the result on so to code that reads it at once. It
 * takes the tree (NULL: `e` is the error). json_read_forget() must follow before the text changes.
 * One text at a time.
 */
void json_read_keep(const char *text, size_t len, json_t *tree, const struct error *e);
void json_read_forget(void);

/*
 * Whether the bytes are one JSON text that json_read() would take, but for duplicate names and the
 * number of values: for JSON that comes from a guest and is passed on as it is. Makes no tree. Size
 * is the caller's to bound. Same errors.
 */
int json_validate(const char *text, size_t len, struct error *e);
