/* One event of the server: kept in one block of memory, written as JSON when it is sent. */
#pragma once

#include "session/cells/session_cells.h"

struct buffer;

enum { HUB_ID_MAX = 48, HUB_NAME_MAX = 64 };

struct hub_event {
	TAILQ_ENTRY(hub_event) link;
	uint64_t number, owner, wall_ns;
	size_t bytes;
	enum session_event_kind kind;
	char session[SESSION_ID_LEN + 1];
	char id[HUB_NAME_MAX]; /* of a checkpoint or a session, or "" */
	unsigned cell;
	uint64_t record, figure;
	enum stream stream;
	const char *dialect;
	enum cell_status status;
	double wall_ms;
	/* texts behind the struct; what was cut is counted */
	size_t name_len, text_len, error_len, text_cut;
	bool has_name, has_text, has_error;
	char data[]; /* name, text, error */
};

/* NULL without memory. Freed with free(). */
struct hub_event *hub_event_create(const struct session_event *from);

/* The JSON object. */
int hub_event_write(const struct hub_event *ev, const char *id, struct buffer *out);
