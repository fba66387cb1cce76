/* The verbs that talk to a server: where it is, who we are, and its answers as trees. */
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
	  .help = "the server, also as GLOVEBOX_URL; unix:/path for a socket file" }, \
	{ "token", 0, OPTION_TEXT, offsetof(type, client.token), .value = "TOKEN", \
	  .help = "its token, also as GLOVEBOX_TOKEN" }
/* clang-format on */

int client_create(const struct client_options *o, struct error *e, struct client **ret);
void client_destroy(struct client *c);
static inline void client_cleanup(struct client **c)
{
	client_destroy(*c);
}

/*
 * Calls and reads the JSON answer (*ret, the caller's; NULL when the answer has no body). An answer of 400
 * and above is an error with the problem's detail as text, its remediation as remedy and its code as slug:
 * -ENOENT for 404 and 410, -EACCES for 401 and 403, -EREMOTEIO otherwise.
 */
int client_call(struct client *c, const char *method, const char *target, struct error *e, json_t **ret);

/* The same with a JSON body (NULL for none). */
int client_send(struct client *c, const char *method, const char *target, const char *json, struct error *e, json_t **ret);

/* The id (malloc'd) for a word of the user's: an id as it is; a name is looked up (-ENOENT, or -EEXIST when
 * several sessions have it). */
int client_find_session(struct client *c, const char *word, struct error *e, char **ret_id);

/* All sessions, page after page, as one array (the caller's). */
int client_sessions(struct client *c, struct error *e, json_t **ret);
