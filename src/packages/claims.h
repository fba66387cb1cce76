/*
 * Checks the report of the installer's jail about an installation. Code of source packages may have
 * run in the jail, so nothing of it is believed: texts that go into pip's files and into the
 * store's records have the shape they must have, and whether a package must be built is decided
 * from its address, not from what the jail says about it.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "json/json_read.h"

enum { CLAIMS_PACKAGES_MAX = 2000, CLAIMS_MODULES_MAX = 20000 };

/*
 * {"by": "pip" or "uv", "packages": […]} → the same with known members only; every package has
 * name, version, sha256, source, requested, replaces (the version in `dists`, or null), and by pip
 * url. -EPROTO. *ret_source: a package must be built.
 */
int claims_resolved(
	const json_t *said, const json_t *dists, struct error *e, json_t **ret, bool *ret_source);

/* Puts the hashes that the fetched files have into the packages of claims_resolved(). -EPROTO. */
int claims_fetched(const json_t *said, json_t *resolved, struct error *e);

/* A list of identifiers → a list of those that are; never NULL unless memory is short. */
json_t *claims_modules(const json_t *said);

/* Is the address one of a wheel, which pip fetches without running code of it? */
bool claims_is_wheel(const char *url);

/*
 * The list as one text, the same for equal lists in any order: "name version hash" lines. malloc'd;
 * NULL when a package has no hash.
 */
char *claims_identity(const json_t *packages);
