/*
 * A small blocking HTTP/1.1 client for the command line: one connection, one request at a time.
 *
 * The connection is opened at the first request, kept alive, and opened again when the server
 * closed it in between. Not for the daemon: every call blocks, up to the request's time limits.
 * SIGPIPE is never raised.
 */
#pragma once

#include <stddef.h>

#include "base/buffer.h"

struct error;
struct http_client;

/*
 * address: "127.0.0.1:8000", "[::1]:8000", "host:8000", "http://host:8000" or "unix:/path". Does
 * not connect yet.
 */
int http_client_create(const char *address, struct error *e, struct http_client **ret);
void http_client_destroy(struct http_client *c);

/* The bearer token of all requests; copied, NULL for none. */
int http_client_set_token(struct http_client *c, const char *token);

struct http_client_request {
	const char *method;       /* "GET" */
	const char *target;       /* "/v1/sessions?limit=3", percent-encoded already */
	const char *accept;       /* or NULL */
	const char *content_type; /* of the body; NULL: application/json */
	const char *headers;      /* further header lines, each ended by "\r\n"; or NULL */
	const void *body;         /* NULL: none */
	size_t body_len;
	unsigned connect_ms; /* 0: 5 s */
	unsigned silence_ms; /* longest wait for the next byte; 0: no limit */
	int cancel_fd;       /* ends the call with -ECANCELED once it is readable; 0: none */
	size_t max_body;     /* of the answer, when it is kept; 0: LIMIT_CLIENT_BODY_BYTES */
	/*
	 * Gets the body of a 2xx answer piece by piece instead of keeping it (for event streams and
	 * files); a negative errno from it ends the call with that. Other answers are kept as
	 * usual. May be NULL.
	 */
	int (*on_data)(const char *data, size_t len, void *userdata);
	void *userdata;
};

struct http_client_response {
	int status;
	char content_type[128]; /* "" when there is none */
	char request_id[72];
	unsigned retry_after_s; /* 0 when not said */
	struct buffer body;     /* kept content; buffer_cstr() is always possible */
};
#define _cleanup_http_response_ __attribute__((cleanup(http_client_response_finish)))

/*
 * Sends and waits for the whole answer. 0 for any status; ret (zeroed or finished before) is the
 * caller's to finish. Errors: -ECONNREFUSED and what else connect() says (with a remedy),
 * -ETIMEDOUT, -ECONNRESET, -EPROTO (not HTTP), -EFBIG (more than max_body).
 */
int http_client_call(struct http_client *c, const struct http_client_request *request,
	struct error *e, struct http_client_response *ret);
void http_client_response_finish(struct http_client_response *r);

/* Appends s percent-encoded as one path segment or query value. */
int http_percent_encode(struct buffer *out, const char *s);
