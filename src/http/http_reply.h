/*
 * Answers of another server out of bytes: llhttp in its strict mode, for a server that is not trusted. No I/O. Bytes go in with http_reply_feed(), in any
 * pieces; events come out through the handler, within the call.
 *
 *	on_head ─► on_body … ─► on_end          interim answers (1xx but 101) are dropped
 *	on_head with status 101                 what follows belongs to the new protocol and comes as on_body
 *
 * After an error, and after on_end, nothing more may be fed.
 */
#pragma once

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/limits.h"

struct http_reply;

struct http_reply_handler {
	/*
	 * Status and headers are complete. False ends the parsing (http_reply_feed() returns
	 * -ECANCELED).
	 */
	bool (*on_head)(struct http_reply *p, void *userdata);
	bool (*on_body)(struct http_reply *p, const char *data, size_t len, void *userdata);
	bool (*on_end)(struct http_reply *p, void *userdata);
};

struct http_reply {
	int status;
	int64_t content_length; /* -1: not known */
	/* private */
	const struct http_reply_handler *handler;
	void *userdata;
	llhttp_t engine;
	struct buffer bytes; /* names and values, each NUL-terminated */
	struct {
		uint32_t name, value;
	} header[LIMIT_PORT_HEADERS];
	unsigned n_headers;
	uint32_t name_at; /* where the next name begins */
	bool to_head;     /* of a request HEAD: there is no body */
	bool head_done, done, upgraded, cancelled, no_memory;
};

/* `to_head`: the request was HEAD. */
void http_reply_init(struct http_reply *p, bool to_head, const struct http_reply_handler *handler,
	void *userdata);
void http_reply_finish(struct http_reply *p);

/*
 * -EPROTO: not an answer; -E2BIG: its head is longer than LIMIT_PORT_HEAD_BYTES or has more than
 * LIMIT_PORT_HEADERS; -ENOMEM: no memory for its head; -ECANCELED.
 */
int http_reply_feed(struct http_reply *p, const char *data, size_t len);
/*
 * The connection ended: on_end follows when that is the end of the body. -EPROTO when the answer is
 * not complete.
 */
int http_reply_eof(struct http_reply *p);

/* The i-th header, within on_head; false when there are not as many. */
bool http_reply_header(
	const struct http_reply *p, unsigned i, const char **ret_name, const char **ret_value);
