/*
 * Requests out of bytes: a pull parser around llhttp that does no I/O and calls nobody back.
 *
 * 	struct http_input in = { data, len };
 * 	while ((event = http_parser_next(&p, &in)) != HTTP_EVENT_MORE) …
 *
 * Each call consumes input up to the next event. Keep calling, also with an empty input, until
 * HTTP_EVENT_MORE: only then is everything said. A caller that wants to wait simply does not call;
 * the rest of the input is still its own.
 *
 * What passes is sound: HTTP/1.0 or 1.1, one sane Host, one way of framing, no folded lines, no
 * control characters, a target that starts with '/' (or is "*" for OPTIONS), a known method, and
 * within the limits of base/limits.h. All else is HTTP_EVENT_BAD with the answer to give; the
 * connection cannot be used after it.
 */
#pragma once

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "http/http.h"

enum http_event {
	HTTP_EVENT_MORE, /* the input is used up */
	HTTP_EVENT_HEAD, /* p->head is complete; valid until the call after HTTP_EVENT_DONE */
	HTTP_EVENT_BODY, /* p->body, p->body_len: a piece of the body, inside the input */
	HTTP_EVENT_DONE, /* the message is complete */
	HTTP_EVENT_BAD   /* p->bad says why; comes again for every further call */
};

struct http_input {
	const char *data;
	size_t len;
};

struct http_head {
	enum http_method method;
	unsigned minor;  /* HTTP/1.minor */
	bool keep_alive; /* the client does not mind another exchange */
	bool chunked;
	bool expects_continue;
	bool websocket; /* Upgrade names websocket */
	bool connection_upgrade;
	int64_t content_length;   /* -1 when chunked, 0 without a body */
	size_t path_len, path_at; /* of the target; where a copy of the path alone stands */
	/*
	 * private: texts one after another, each NUL-terminated, found by offsets while the buffer
	 * may still move
	 */
	struct buffer bytes;
	struct {
		uint32_t name, value;
	} header[LIMIT_HEADER_COUNT];
	unsigned n_headers;
};

/* The answer to a request that cannot be served. Static texts. */
struct http_refusal {
	int status;
	const char *code, *detail, *remedy;
};

struct http_parser {
	struct http_head head;
	const char *body;
	size_t body_len;
	struct http_refusal bad;
	bool started; /* bytes of a message have come, and it is not complete */
	/* private */
	llhttp_t engine;
	enum http_event pending;
	bool head_done;
	size_t header_bytes, extension_bytes;
	char first
		[24]; /* how the message starts, to tell an unknown method from something that is not HTTP
			 */
	unsigned first_len;
	char last;     /* byte of the head so far, */
	bool in_lines; /* when there is one */
};

void http_parser_init(struct http_parser *p);
void http_parser_finish(struct http_parser *p);
enum http_event http_parser_next(struct http_parser *p, struct http_input *in);

const char *http_head_target(const struct http_head *h); /* "" before the head is complete */
const char *http_head_path(const struct http_head *h);   /* the target before the '?' */
const char *http_head_find(
	const struct http_head *h, const char *name); /* the first of that name; NULL when absent */

/* Whether a comma-separated header value holds the token (any case). value may be NULL. */
bool http_list_has(const char *value, const char *token);
