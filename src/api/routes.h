/*
 * The API's addresses as one table: it dispatches requests, answers 404 and 405 with what was probably meant,
 * and is written out as /openapi.json and /docs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "http/http.h"

struct call;
struct fields;
struct shape;

enum route_flags {
	ROUTE_PUBLIC = 1 << 0,    /* needs no token */
	ROUTE_WEBSOCKET = 1 << 1, /* answers 101 */
	ROUTE_EVENTS = 1 << 2,    /* answers text/event-stream when asked to */
	ROUTE_RAW_BODY = 1 << 3,  /* the body is a file, not JSON */
	ROUTE_ANY_QUERY = 1 << 4, /* query parameters that nobody knows are let pass (dialects) */
	ROUTE_ANY_TYPE = 1 << 5,  /* the body is JSON whatever its Content-Type says (dialects) */
	ROUTE_LIVE_KEY = 1 << 7,    /* the key of a link to a live view opens it (live_links.h) */
	ROUTE_QUERY_TOKEN = 1 << 6, /* the token may be the query parameter `token` (dialects) */
};

struct route {
	enum http_method method;
	const char *pattern; /* "/v1/sessions/{id}/files/{path}": {id} is one part, {path} all that is left */
	unsigned flags;
	void (*handle)(struct call *c);
	enum http_body_mode (*begin)(
		struct call *c); /* at the head already; NULL: the body is kept for handle */
	const char *operation;   /* operationId */
	const char *summary;
	const char *description;      /* may be NULL */
	const struct fields *request; /* JSON body; may be NULL */
	const struct fields *query;   /* may be NULL */
	int status;                   /* of success */
	const char *content_type;     /* of success; NULL when there is no body */
	const struct shape *shape;    /* of a JSON answer; may be NULL */
	const char *example;          /* a curl command, "$URL" for the server; may be NULL */
};

extern const struct route routes[];
extern const size_t routes_count;

/* What a path matched. Texts are decoded; sizes are those of struct call. */
struct route_match {
	const struct route *route; /* NULL: see path_known */
	bool path_known;           /* the path is one of ours, the method is not */
	char *id;                  /* out buffers of the caller; */
	size_t id_size;
	char *path;
	size_t path_size;
};

/*
 * Finds the route of a method and a still percent-encoded path. 0 with m->route set; -ENOENT (m->path_known
 * false) or -EOPNOTSUPP (true); -EINVAL when a part is wrongly encoded or too long. HEAD finds GET.
 */
int routes_match(enum http_method method, const char *path, struct route_match *m);

/* "GET, HEAD, POST" for a path that is known. Returns buf. */
char *routes_allow(const char *path, char *buf, size_t size);

/* The pattern that was probably meant, or NULL. */
const char *routes_nearest(const char *path);
