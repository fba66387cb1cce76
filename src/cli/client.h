/* For the verbs that call a server: its address, the token, and its answers as JSON trees. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "options/options.h"

struct client;

/* The options these verbs share; the first member of their own struct. */
struct client_options {
	char *url, *token;
};

/* clang-format off */
#define CLIENT_ROWS(type) \
	{ "url", 'u', OPTION_TEXT, offsetof(type, client.url), .value = "URL", .fallback = "http://127.0.0.1:8000", \
	  .help = "address of the server (also GLOVEBOX_URL); unix:/path for a socket file" }, \
	{ "token", 0, OPTION_TEXT, offsetof(type, client.token), .value = "TOKEN", \
	  .help = "token of the server (also GLOVEBOX_TOKEN)" }
/* clang-format on */

int client_create(const struct client_options *o, struct error *e, struct client **ret);
void client_destroy(struct client *c);
static inline void client_cleanup(struct client **c)
{
	client_destroy(*c);
}

/*
 * Calls and reads the JSON answer (*ret, the caller's; NULL when the answer has no body). An answer
 * of 400 and above is an error with the problem's detail as text, its remediation as remedy and its
 * code as slug: -ENOENT for 404 and 410, -EACCES for 401 and 403, -EREMOTEIO otherwise.
 */
int client_call(
	struct client *c, const char *method, const char *target, struct error *e, json_t **ret);

/* The same with a JSON body (NULL for none). */
int client_send(struct client *c, const char *method, const char *target, const char *json,
	struct error *e, json_t **ret);

/*
 * Any request, with the errors of client_call(). *ret (all zeros before) is the caller's, also
 * after an error.
 */
struct http_client_request;
struct http_client_response;
int client_exchange(struct client *c, const struct http_client_request *request, struct error *e,
	struct http_client_response *ret);

/*
 * The same with the answer piece by piece, as http_client_request.on_data gets it; waits for each
 * piece without a limit. accept: the media type that is wanted, or NULL.
 */
struct buffer;
int client_stream(struct client *c, const char *method, const char *target, const char *accept,
	const struct buffer *body, int (*on_data)(const char *data, size_t len, void *userdata),
	void *userdata, struct error *e);

/*
 * The id (malloc'd) for a word of the user's: an id as it is; a name is looked up (-ENOENT, or
 * -EEXIST when several sessions have it).
 */
int client_find_session(struct client *c, const char *word, struct error *e, char **ret_id);

/* All sessions, page after page, as one array (the caller's); with their `usage` if asked for. */
int client_sessions(struct client *c, bool usage, struct error *e, json_t **ret);
