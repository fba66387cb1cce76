#include <stdlib.h>

#include "base/deferred.h"
#include "base/limits.h"
#include "json/json_read.h"

/* Values freed at once, and in one slice of what is left for later. */
enum { AT_ONCE = 256, SLICE = 256 };

/* Strings from this size on are freed in slices. */
enum { LARGE_STRING = 1024 * 1024 };

/* The path to the value that is freed next: each container was a member of the one before. */
struct path {
	unsigned depth;
	json_t *open[LIMIT_JSON_DEPTH];
};

struct dead_tree {
	struct deferred work;
	struct path path;
};

struct dead_string {
	struct deferred work;
	json_t *string;
	size_t at;
};

/* Somebody else may still use a part of the tree: that part stays. */
static bool is_only_ours(const json_t *v)
{
	return v->refcount == 1;
}

static bool free_string_slice(struct deferred *work)
{
	struct dead_string *d = (struct dead_string *)work;
	if (deferred_drop_pages(
		    (char *)json_string_value(d->string), json_string_length(d->string), &d->at))
		return true;
	json_decref(d->string);
	free(d);
	return false;
}

static void free_leaf(json_t *v)
{
	bool large = json_is_string(v) && json_string_length(v) >= LARGE_STRING;
	struct dead_string *d = large && is_only_ours(v) ? malloc(sizeof(*d)) : NULL;
	if (!d) {
		json_decref(v);
		return;
	}
	*d = (struct dead_string){ .work.step = free_string_slice, .string = v };
	deferred_add(&d->work);
}

/* Removes a member of the container and returns it, the caller's; NULL when there is none. */
static json_t *take_member(json_t *container)
{
	json_t *member = NULL;
	if (json_is_array(container) && json_array_size(container)) {
		size_t last = json_array_size(container) - 1;
		member = json_incref(json_array_get(container, last));
		json_array_remove(container, last);
	} else if (json_is_object(container)) {
		void *at = json_object_iter(container);
		if (at) {
			member = json_incref(json_object_iter_value(at));
			json_object_del(container, json_object_iter_key(at));
		}
	}
	return member;
}

/* Frees so many values. True: there is more. */
static bool free_values(struct path *p, unsigned n)
{
	while (n-- && p->depth) {
		json_t *member = take_member(p->open[p->depth - 1]);
		bool nested = member && (json_is_array(member) || json_is_object(member)) &&
			      is_only_ours(member) && p->depth < LIMIT_JSON_DEPTH;
		if (nested)
			p->open[p->depth++] = member;
		else if (member)
			free_leaf(member);
		else
			json_decref(p->open[--p->depth]);
	}
	return p->depth > 0;
}

static bool free_slice(struct deferred *work)
{
	struct dead_tree *d = (struct dead_tree *)work;
	if (free_values(&d->path, SLICE))
		return true;
	free(d);
	return false;
}

static void free_rest(const struct path *p)
{
	struct dead_tree *d = malloc(sizeof(*d));
	if (!d) {
		for (unsigned i = 0; i < p->depth; i++)
			json_decref(p->open[i]);
		return;
	}
	*d = (struct dead_tree){ .work.step = free_slice, .path = *p };
	deferred_add(&d->work);
}

void json_discard(json_t *tree)
{
	struct path p = { .depth = 1, .open = { tree } };
	if (!json_is_array(tree) && !json_is_object(tree)) {
		if (tree)
			free_leaf(tree);
	} else if (!is_only_ours(tree)) {
		json_decref(tree);
	} else if (free_values(&p, AT_ONCE)) {
		free_rest(&p);
	}
}
