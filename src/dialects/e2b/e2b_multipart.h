/*
 * A multipart/form-data body that comes in pieces of any size: its parts named "file", one after
 * another. No I/O; it keeps the head of a part, or as many bytes as a boundary has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum { MULTIPART_BOUNDARY_MAX = 256 };

/* Each returns 0, or a negative errno that ends the reading. */
struct multipart_events {
	int (*on_part)(void *owner, const char *file_name); /* "" when it has none */
	int (*on_data)(void *owner, const char *data, size_t len);
	int (*on_end)(void *owner);
};

enum multipart_state {
	MULTIPART_START, /* before the first boundary */
	MULTIPART_MARK,  /* behind a boundary */
	MULTIPART_HEAD,
	MULTIPART_BODY,
	MULTIPART_DONE
};

struct multipart {
	const struct multipart_events *events;
	void *owner;
	enum multipart_state state;
	bool wanted; /* the part that is read is a file */
	struct buffer pending;
	char mark[MULTIPART_BOUNDARY_MAX + 8];
	size_t mark_len;
};

/* `type` is the Content-Type. -EINVAL: it names no boundary. */
int multipart_init(
	struct multipart *m, const char *type, const struct multipart_events *events, void *owner);
void multipart_finish(struct multipart *m);

/* -EINVAL: not such a body; -ENOMEM; or what an event returned. */
int multipart_add(struct multipart *m, const char *data, size_t len);
bool multipart_is_whole(const struct multipart *m);
