/*
 * The server's settings for packages. Texts and NULL-terminated lists belong to the caller that
 * fills in the struct.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum packages_mode {
	PACKAGES_INSTALL, /* what is not in the store is installed */
	PACKAGES_STORE,   /* only what is in the store already, or comes with the system */
	PACKAGES_OFF,     /* requests for packages are refused */
};

struct packages_settings {
	int mode;    /* enum packages_mode */
	char *index; /* NULL: pip's own, https://pypi.org/simple */
	char **extra_index, **find_links, **trusted_host;
	/* others that files come from, HOST or HOST:PORT: the installer reaches nothing else */
	char **hosts;
	char *proxy, *constraints;
	/* the program; NULL: the system's when there is one; "no": pip alone */
	char *uv;
	char **allow, **deny; /* patterns of names; an empty allow list allows all */
	bool offline;         /* find_links only, no index */
	bool build;           /* source packages too: their code runs while they are built */
	bool isolate;         /* builds fetch setuptools and other build tools from the index */
	bool require_hashes;
	bool strict;          /* the server does not start without what additional-imports names */
	double timeout_s;     /* of one installation */
	uint64_t max_bytes;   /* of one set, unpacked */
	uint64_t store_bytes; /* gc: least used sets go beyond it */
	double store_age_s;   /* gc: sets that were not used for this time are removed */
	/* sets that have a template from the start: requirements with '+' between them */
	char **warm;
	/* sessions that ask for a set before it gets a template of its own; 0: never */
	unsigned template_after;
	uint64_t template_bytes; /* memory of all those templates together */
};
