/*
 * Validation errors as pydantic 2 words them, for clients that were written against servers which
 * use it. An error is {"type", "loc", "msg", "input", "ctx"?, "url"?}; several are a list.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A list of errors in the making. Running out of memory leaves errors out, never adds one. */
struct pydantic {
	json_t *errors;   /* an array */
	const char *root; /* first element of every loc, or NULL ("body" in FastAPI's own checks) */
	bool urls;        /* with "url", as pydantic gives it; FastAPI leaves it out */
};

void pydantic_init(struct pydantic *p, const char *root, bool urls);
void pydantic_finish(struct pydantic *p);
size_t pydantic_count(const struct pydantic *p);

/* The list as compact JSON, the caller's to free; NULL without memory. */
char *pydantic_text(const struct pydantic *p);

/*
 * Adds one. `field` may be NULL (the value itself is wrong), `input` is borrowed, `ctx` (may be
 * NULL) is taken over.
 */
void pydantic_add(struct pydantic *p, const char *type, const char *field, const char *msg,
	json_t *input, json_t *ctx);

void pydantic_missing(struct pydantic *p, const char *field, json_t *input);

/*
 * Members of an object as pydantic's models read them. Each returns the member when it is there,
 * not null (where null is allowed) and right; else NULL, with an error added when it is wrong.
 */
json_t *pydantic_string(
	struct pydantic *p, json_t *object, const char *field, bool nullable, size_t max_length);
json_t *pydantic_dict(struct pydantic *p, json_t *object, const char *field, bool required);
json_t *pydantic_bool(struct pydantic *p, json_t *object, const char *field);
/* Whole numbers from 0; a text of digits counts, as it does for pydantic. */
bool pydantic_seed(struct pydantic *p, json_t *object, const char *field, unsigned long long *ret);
/* Numbers above 0; numbers from 0 to max. */
bool pydantic_positive(struct pydantic *p, json_t *object, const char *field, double *ret);
bool pydantic_up_to(struct pydantic *p, json_t *object, const char *field, double max, double *ret);

/* Adds an error for every member that is not in the list (NULL at the end). */
void pydantic_forbid_extra(struct pydantic *p, json_t *object, const char *const *known);
