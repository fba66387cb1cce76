#include "json/json_tree.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_read.h"

void json_tree_init(struct json_tree *t)
{
	*t = (struct json_tree){ 0 };
	buffer_init(&t->name, 0);
}

void json_tree_finish(struct json_tree *t)
{
	json_discard(t->root);
	t->root = NULL;
	buffer_finish(&t->name);
}

int json_tree_name(struct json_tree *t, const char *name, size_t len)
{
	if (memchr(name, '\0', len))
		return -EINVAL;

	t->name.len = 0;
	if (buffer_append(&t->name, name, len) < 0 || !buffer_cstr(&t->name))
		return -ENOMEM;

	const json_t *object = t->open[t->depth - 1];
	if (json_object_get(object, t->name.data))
		return -EEXIST;
	return json_object_size(object) < LIMIT_JSON_NAMES ? 0 : -E2BIG;
}

/* Takes the value. */
static int put(struct json_tree *t, json_t *value)
{
	if (!value)
		return -ENOMEM;
	if (!t->depth) {
		t->root = value;
		return 0;
	}

	json_t *parent = t->open[t->depth - 1];
	int r = json_is_object(parent) ? json_object_set_new_nocheck(parent, t->name.data, value)
				       : json_array_append_new(parent, value);
	return r < 0 ? -ENOMEM : 0;
}

int json_tree_string(struct json_tree *t, const char *text, size_t len)
{
	return put(t, json_stringn_nocheck(text, len));
}

/*
 * How jansson (2.7 and later) keeps a string. Its API copies the text of a new string, which takes
 * milliseconds when it is long; own_string() checks what it finds here before it relies on it.
 */
struct jansson_string {
	json_t json;
	char *value;
	size_t length;
};

/* A string whose text is this memory; NULL: this jansson keeps its strings in another way. */
static json_t *own_string(char *text, size_t len)
{
	static const char sample[] = "sample";
	json_malloc_t allocate;
	json_free_t release;
	json_t *value = json_stringn_nocheck(sample, sizeof(sample) - 1);
	struct jansson_string *s = (struct jansson_string *)value;

	json_get_alloc_funcs(&allocate, &release);
	if (!value || release != free || s->value != json_string_value(value) ||
		s->length != sizeof(sample) - 1) {
		json_decref(value);
		return NULL;
	}
	free(s->value);
	s->value = text;
	s->length = len;
	return value;
}

int json_tree_take_string(struct json_tree *t, struct buffer *text)
{
	size_t len = text->len;
	if (!buffer_cstr(text))
		return -ENOMEM;
	json_t *value = own_string(text->data, len);
	if (!value)
		return json_tree_string(t, text->data, len);
	buffer_take(text, NULL);
	return put(t, value);
}

int json_tree_number(struct json_tree *t, const char *text, size_t len)
{
	char copy[JSON_NUMBER_MAX + 1];
	assert(len <= JSON_NUMBER_MAX);
	memcpy(copy, text, len);
	copy[len] = '\0';
	errno = 0;
	if (strpbrk(copy, ".eE")) {
		double real = strtod(copy, NULL);
		return isinf(real) ? -ERANGE : put(t, json_real(real));
	}

	long long whole = strtoll(copy, NULL, 10);
	return errno == ERANGE ? -ERANGE : put(t, json_integer(whole));
}

int json_tree_word(struct json_tree *t, char first)
{
	return put(t, first == 't' ? json_true() : first == 'f' ? json_false() : json_null());
}

int json_tree_open(struct json_tree *t, bool object)
{
	json_t *value = object ? json_object() : json_array();
	int r = put(t, value);
	if (r < 0)
		return r;

	assert(t->depth < LIMIT_JSON_DEPTH);
	t->open[t->depth++] = value;
	return 0;
}

void json_tree_close(struct json_tree *t)
{
	t->depth--;
}

json_t *json_tree_take(struct json_tree *t)
{
	json_t *root = t->root;
	t->root = NULL;
	return root;
}
