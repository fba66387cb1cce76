/*
 * A member set in a configuration file of somebody else's: JSON as editors write it, with comments
 * and commas at the end of lists. Only the member changes; comments, order and layout of the rest
 * stay.
 */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

enum { CONFIG_MERGE_MAX = 16 * 1024 * 1024 }; /* bytes of a file */

/*
 * Sets text[member][name] = value, where `value` is JSON text, and appends the new text. An empty
 * text counts as {}. -EINVAL when the text cannot be read, or a member is no object.
 */
int config_merge(const char *text, size_t len, const char *member, const char *name,
	const char *value, struct error *e, struct buffer *ret);
