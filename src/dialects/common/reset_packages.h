/*
 * The packages a dialect's session shall have, before it is made. As provision.h, for askers that are no HTTP
 * request of our own API: parameters go in, and come back with their packages when those are there.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct api;
struct outfit;
struct session_params;

/* Must packages be looked after for these parameters? */
bool outfit_needed(const struct api *a, const struct session_params *params);

/* `params` is the caller's after the call, also when it failed: what it does not take must go to
 * outfit_release(). */
typedef void (*outfit_done)(void *userdata, struct session_params *params, const struct error *e);

/*
 * Takes the parameters over (they are empty after; `owner` says for whom packages are) and calls done once: now, or in a later turn. *ret is for
 * outfit_forget(), and NULL when done was called already.
 */
void outfit_begin(
	struct api *a, struct session_params *params, outfit_done done, void *userdata, struct outfit **ret);

/* Nobody waits any more: done is not called, all is freed. NULL is fine. */
void outfit_forget(struct outfit *o);

/* Frees parameters with the packages they hold. */
void outfit_release(struct session_params *params);
