/*
 * The packages a dialect's session shall have, before it is made. As provision.h, for askers that
 * are no HTTP request of our own API: parameters go in, and come back with their packages when
 * those are there.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct api;
struct reset_packages;
struct session_params;

/* Must packages be looked after for these parameters? */
bool reset_packages_needed(const struct api *a, const struct session_params *params);

/* `params` is the caller's after the call, also when it failed: what it does not take must go to
 * reset_packages_release(). */
typedef void (*reset_packages_done)(
	void *userdata, struct session_params *params, const struct error *e);

/*
 * Takes the parameters over (they are empty after; `owner` says for whom packages are) and calls
 * done once: now, or in a later turn. *ret is for reset_packages_forget(), and NULL when done was
 * called already.
 */
void reset_packages_begin(struct api *a, struct session_params *params, reset_packages_done done,
	void *userdata, struct reset_packages **ret);

/* Nobody waits any more: done is not called, all is freed. NULL is fine. */
void reset_packages_forget(struct reset_packages *o);

/* Frees parameters with the packages they hold. */
void reset_packages_release(struct session_params *params);
