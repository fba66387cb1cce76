/*
 * A request for packages as it goes to the installer (JSON on its standard input), and the key under which its answer is kept: all that
 * decides the answer is in the key, also the system's own packages and the index.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/sha256.h"
#include "packages/settings.h"

enum { REQUEST_BYTES_MAX = 8 << 20, REQUEST_NAMES_MAX = 256 };

struct packages_request {
	char *const *packages; /* requirements, NULL at the end; or NULL */
	char *const *imports;  /* modules; or NULL */
	bool build;            /* source packages too, whatever the settings say */
	bool refresh;          /* ask the index again */
};

/* Writes the JSON and its key. -E2BIG ("too_many_packages"), or an error about the constraints file. */
int packages_request_write(const struct packages_settings *settings, const char *state_dir, const struct packages_request *q,
	struct error *e, struct buffer *out, char ret_key[SHA256_HEX + 1]);
