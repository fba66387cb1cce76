#include "cli/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_words.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "http/http_client.h"
#include "json/json_read.h"

enum { SILENCE_MS = 30000, TARGET_MAX = 1024, PAGES_MAX = 1000 };

struct client {
	struct http_client *http;
	char *url;
};

int client_create(const struct client_options *o, struct error *e, struct client **ret)
{
	struct client *c = calloc(1, sizeof(*c));
	int r = c && (c->url = strdup(o->url)) ? 0 : error_set_errno(e, -ENOMEM, "the client");
	if (r == 0)
		r = http_client_create(o->url, e, &c->http);
	if (r == 0 && o->token)
		r = http_client_set_token(c->http, o->token);
	if (r < 0) {
		client_destroy(c);
		return r;
	}
	*ret = c;
	return 0;
}

void client_destroy(struct client *c)
{
	if (!c)
		return;
	http_client_destroy(c->http);
	free(c->url);
	free(c);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));
	return s ? s : "";
}

/* What the API says about its routes, for which the command line has verbs (cli_words.c). */
static const char *const routes[] = { "find_session", "look_at_session", "create_volume",
	"end_sessions", "list_checkpoints", "list_processes", "resume", "undo" };

/* Finds the first words about a route in the text; NULL if there are none. */
static const char *find_route(const char *text, const char **ret_name, size_t *ret_len)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++)
		for (const struct edge_word *w = api_words.words; w->name; w++) {
			const char *at = text_eq(w->name, routes[i]) ? strstr(text, w->text) : NULL;
			if (at) {
				*ret_name = w->name;
				*ret_len = strlen(w->text);
				return at;
			}
		}
	return NULL;
}

/* A remedy of the API, with {placeholders} that cli_show_error() expands. */
static int remedy_of(const char *text, struct error *e)
{
	const char *name;
	size_t len;
	const char *at = find_route(text, &name, &len);
	if (!at)
		return error_remedy(e, "%s", text);
	return error_remedy(e, "%.*s{%s}%s", (int)(at - text), text, name, at + len);
}

/* From problem+json to an error; an answer that is none says at least its status. */
static int problem(const struct client *c, int status, const json_t *body, struct error *e)
{
	int err = status == 404 || status == 410   ? -ENOENT
		  : status == 401 || status == 403 ? -EACCES
						   : -EREMOTEIO;
	const char *detail = text_of(body, "detail"), *remedy = text_of(body, "remediation");

	if (*detail)
		error_set(e, err, "%s", detail);
	else
		error_set(e, err, "%s answered with status %d", c->url, status);
	error_slug(e, text_of(body, "code"));
	if (status == 401)
		return error_remedy(e, "give the server's token with --token or GLOVEBOX_TOKEN");
	if (text_eq(e->slug, "node_needed"))
		return error_remedy(e,
			"this is a router of several servers: give the id of a session instead of its name, or the "
			"address of one server with --url");
	if (*remedy)
		remedy_of(remedy, e);
	return err;
}

static int unreachable(int r, struct error *e)
{
	if (r == -ECONNREFUSED || r == -ENOENT || r == -EADDRNOTAVAIL)
		error_remedy(e,
			"is the server running? Start it with `glovebox serve`, or give the address of "
			"another server with --url");
	return r;
}

int client_call(
	struct client *c, const char *method, const char *target, struct error *e, json_t **ret)
{
	return client_send(c, method, target, NULL, e, ret);
}

int client_send(struct client *c, const char *method, const char *target, const char *json,
	struct error *e, json_t **ret)
{
	_cleanup_http_response_ struct http_client_response response = { 0 };
	_cleanup_json_ json_t *body = NULL;
	struct http_client_request request = { .method = method,
		.target = target,
		.silence_ms = SILENCE_MS,
		.body = json,
		.body_len = json ? strlen(json) : 0 };
	int r = http_client_call(c->http, &request, e, &response);

	if (r < 0)
		return unreachable(r, e);
	r = response.body.len ? json_read(response.body.data, response.body.len, e, &body) : 0;
	if (response.status >= 400)
		return problem(c, response.status, body, e);
	if (r < 0) {
		error_wrap(e, "the answer of %s", c->url);
		return error_remedy(e, "is there a Glovebox server at this address?");
	}

	*ret = TAKE_PTR(body);
	return 0;
}

int client_exchange(struct client *c, const struct http_client_request *request, struct error *e,
	struct http_client_response *ret)
{
	_cleanup_json_ json_t *answer = NULL;
	int r = http_client_call(c->http, request, e, ret);

	if (r < 0)
		return unreachable(r, e);
	if (ret->status < 400)
		return 0;
	if (ret->body.len && json_read(ret->body.data, ret->body.len, e, &answer) < 0)
		answer = NULL;
	return problem(c, ret->status, answer, e);
}

int client_stream(struct client *c, const char *method, const char *target, const char *accept,
	const struct buffer *body, int (*on_data)(const char *data, size_t len, void *userdata),
	void *userdata, struct error *e)
{
	_cleanup_http_response_ struct http_client_response response = { 0 };
	struct http_client_request request = { .method = method,
		.target = target,
		.accept = accept,
		.body = body->data,
		.body_len = body->len,
		.on_data = on_data,
		.userdata = userdata };
	return client_exchange(c, &request, e, &response);
}

int client_sessions(struct client *c, bool usage, struct error *e, json_t **ret)
{
	_cleanup_json_ json_t *all = json_array();
	const char *more = usage ? "&usage=true" : "";
	char target[TARGET_MAX];
	snprintf(target, sizeof(target), "/v1/sessions?limit=1000%s", more);

	for (unsigned pages = 0; pages < PAGES_MAX; pages++) {
		_cleanup_json_ json_t *page = NULL;
		int r = client_call(c, "GET", target, e, &page);
		if (r < 0)
			return r;
		json_array_extend(all, json_object_get(page, "sessions"));
		const json_t *next = json_object_get(page, "next");
		if (!json_is_integer(next))
			break;
		snprintf(target, sizeof(target), "/v1/sessions?limit=1000&cursor=%lld%s",
			(long long)json_integer_value(next), more);
	}

	*ret = TAKE_PTR(all);
	return 0;
}

static bool looks_like_id(const char *word)
{
	return text_starts(word, "s_") &&
	       strspn(word, "abcdefghijklmnopqrstuvwxyz234567_") == strlen(word);
}

int client_find_session(struct client *c, const char *word, struct error *e, char **ret_id)
{
	_cleanup_buffer_ struct buffer target = BUFFER_INIT(LIMIT_TARGET_BYTES);
	_cleanup_json_ json_t *answer = NULL;
	const char *id = word;

	if (!looks_like_id(word)) {
		buffer_append_str(&target, "/v1/sessions?limit=2&name=");
		if (http_percent_encode(&target, word) < 0 || !buffer_cstr(&target))
			return error_set(
				e, -EINVAL, "'%.60s' is too long for a session's name", word);
		int r = client_call(c, "GET", target.data, e, &answer);
		if (r < 0)
			return r;
		const json_t *found = json_object_get(answer, "sessions");
		if (json_array_size(found) == 0) {
			error_set(e, -ENOENT, "no session has the id or name '%.60s'", word);
			return error_remedy(e, "`glovebox ps` lists the sessions");
		}
		if (json_array_size(found) > 1) {
			error_set(e, -EEXIST, "several sessions have the name '%.60s'", word);
			return error_remedy(e, "give an id; `glovebox ps` lists the sessions");
		}
		id = text_of(json_array_get(found, 0), "id");
	}

	*ret_id = strdup(id);
	return *ret_id ? 0 : error_set_errno(e, -ENOMEM, "the session's id");
}
