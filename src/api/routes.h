/*
 * The addresses as one table, of the API's own rows and of the dialects': the table dispatches
 * requests, answers 404 and 405 with the address that was probably meant, and is written out as
 * /openapi.json and /docs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "http/http.h"

struct call;
struct fields;
struct shape;

enum route_flags {
	ROUTE_PUBLIC = 1 << 0,     /* needs no token */
	ROUTE_WEBSOCKET = 1 << 1,  /* answers 101 */
	ROUTE_EVENTS = 1 << 2,     /* answers text/event-stream when asked to */
	ROUTE_RAW_BODY = 1 << 3,   /* the body is a file, not JSON */
	ROUTE_ANY_QUERY = 1 << 4,  /* query parameters that nobody knows are let pass (dialects) */
	ROUTE_ANY_TYPE = 1 << 5,   /* the body is JSON whatever its Content-Type says (dialects) */
	ROUTE_LIVE_KEY = 1 << 7,   /* the key of a link to a live view opens it (live_links.h) */
	ROUTE_API_KEY = 1 << 8,    /* the token may be the header X-API-Key (dialects) */
	ROUTE_IDEMPOTENT = 1 << 9, /* the header Idempotency-Key counts (idempotency.h) */
	ROUTE_LOGIN = 1 << 10,     /* the token may be the cookie of a login (login.h; dialects) */
	/* any Content-Encoding: the body goes on to another server, or begin() looks at the header */
	ROUTE_FOREIGN_BODY = 1 << 12,
	/*
	 * the address is not of the API's origin: Host and Origin are not checked, and OPTIONS is a
	 * method like others
	 */
	ROUTE_FOREIGN = 1 << 13 | ROUTE_FOREIGN_BODY,
	/* a link that was made with POST …/share reads it: Authorization: Share KEY */
	ROUTE_SHARED = 1 << 11,
	ROUTE_QUERY_TOKEN = 1 << 6, /* the token may be the query parameter `token` (dialects) */
};

struct route {
	enum http_method method;
	/*
	 * "/v1/sessions/{id}/files/{path}": {id} is one part, {part} another one, {path} all that
	 * is left
	 */
	const char *pattern;
	unsigned flags;
	void (*handle)(struct call *c);
	enum http_body_mode (*begin)(
		struct call *c); /* at the head already; NULL: the body is kept for handle */
	/* the shape of its errors; NULL: problem+json (dialects) */
	const struct http_problem_form *problem_form;
	const char *operation; /* operationId */
	const char *summary;
	const char *description;      /* may be NULL */
	const struct fields *request; /* JSON body; may be NULL */
	const struct fields *query;   /* may be NULL */
	int status;                   /* of success */
	const char *content_type;     /* of success; NULL when there is no body */
	const struct shape *shape;    /* of a JSON answer; may be NULL */
	const char *example;          /* a curl command, "$URL" for the server; may be NULL */
};

/* The API's own rows (routes_*.c); the last row of each has no pattern. */
extern const struct route session_routes[], screen_routes[], workspace_routes[], console_routes[],
	process_routes[], port_routes[], volume_routes[], service_routes[];

struct dialect;

struct route_table {
	const struct route **rows;
	size_t n;
	const char **patterns; /* of the rows; NULL at the end */
};

/* Collects the API's rows and those of the dialects (NULL at the end, or NULL). -ENOMEM. */
int routes_init(struct route_table *t, const struct dialect *const *dialects);
void routes_finish(struct route_table *t); /* NULLs are fine */

/* What a path matched. Texts are decoded; sizes are those of struct call. */
struct route_match {
	const struct route *route; /* NULL: see path_known */
	size_t index;              /* of the route in the table */
	bool path_known;           /* the path is one of ours, the method is not */
	char *id;                  /* out buffers of the caller; */
	size_t id_size;
	char *path;
	size_t path_size;
};

/*
 * Finds the route of a method and a still percent-encoded path. 0 with m->route set; -ENOENT
 * (m->path_known false) or -EOPNOTSUPP (true); -EINVAL when a part is wrongly encoded or too long.
 * HEAD finds GET.
 */
int routes_match(const struct route_table *t, enum http_method method, const char *path,
	struct route_match *m);

/* "GET, HEAD, POST" for a path that is known. Returns buf. */
char *routes_allow(const struct route_table *t, const char *path, char *buf, size_t size);

/* The pattern that was probably meant, or NULL. */
const char *routes_nearest(const struct route_table *t, const char *path);
