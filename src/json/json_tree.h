/*
 * Builds jansson's tree from the pieces that the scan of json_read.c finds. Strings come decoded.
 * jansson's own parser takes 12 ns for each byte, a hundred times as long as copying a string.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/limits.h"

/* Digits and signs of a number. */
enum { JSON_NUMBER_MAX = 1024 };

struct json_tree {
	/* private */
	json_t *root;
	json_t *open
		[LIMIT_JSON_DEPTH]; /* the containers around the next value; their parents own them */
	unsigned depth;
	struct buffer name; /* of the next value, when it is in an object */
};

void json_tree_init(struct json_tree *t);
void json_tree_finish(struct json_tree *t);

/*
 * The name of the next value. -EEXIST: it is there already; -EINVAL: it has a NUL; -E2BIG: the
 * object has LIMIT_JSON_NAMES; -ENOMEM.
 */
int json_tree_name(struct json_tree *t, const char *name, size_t len);

/*
 * Adds a string with the whole content of the buffer. The tree takes over the memory of the buffer
 * if possible; the buffer is empty afterwards. -ENOMEM.
 */
int json_tree_take_string(struct json_tree *t, struct buffer *text);

/* -ENOMEM; of a number also -ERANGE. A container stays open until json_tree_close(). */
int json_tree_string(struct json_tree *t, const char *text, size_t len);
int json_tree_number(struct json_tree *t, const char *text, size_t len);
int json_tree_word(struct json_tree *t, char first); /* true, false or null, by its first letter */
int json_tree_open(struct json_tree *t, bool object);
void json_tree_close(struct json_tree *t);

/* The whole tree, the caller's. */
json_t *json_tree_take(struct json_tree *t);
