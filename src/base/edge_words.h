/*
 * Words that depend on where an error is shown. Lower layers write {memory_bytes} or
 * {start:max-timeout 60} into a remedy; each edge (HTTP, the command line, a dialect) has a table
 * with its own words for these, such as `limits.memory_bytes` or `--memory`.
 *
 * So no lower layer names a route, a field of a request or an option, and the command line never
 * tells a person to POST.
 */
#pragma once

#include <stddef.h>

enum { EDGE_TEXT_MAX = 1536 }; /* of an expanded remedy */

struct edge_word {
	const char *name;
	const char *text; /* "%" stands for what follows the colon */
};

struct edge {
	const struct edge_word *words; /* a name of NULL at the end */
	const struct edge *otherwise;  /* for words that the table lacks; or NULL */
};

/*
 * Copies the text with its words replaced; braces around other words stay. Returns buf; cut at its
 * size.
 */
const char *edge_expand(const struct edge *edge, const char *text, char *buf, size_t size);
