/*
 * A request for packages as it goes to the installer (JSON on its standard input), and the keys
 * under which its answer is kept: all that decides the answer is in a key, also the system's own
 * packages and the index.
 *
 * An answer without built packages is everybody's, and so is one that the operator asked for. An
 * answer with packages that were built for a client is that client's alone: code of the packages
 * ran, and may have changed what is in the set.
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
	const char *client;    /* who asks, the same text after every start; NULL: the operator */
};

struct request_keys {
	char shared[SHA256_HEX + 1]; /* of an answer for everybody */
	char own[SHA256_HEX + 1];    /* of an answer for this client alone; "" for the operator */
};

/*
 * Writes the JSON and its keys. -E2BIG ("too_many_packages"), or an error about the constraints
 * file.
 */
int packages_request_write(const struct packages_settings *settings, const char *state_dir,
	const struct packages_request *q, struct error *e, struct buffer *out,
	struct request_keys *ret_keys);
