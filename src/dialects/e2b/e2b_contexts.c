/*
 * Contexts: interpreters of a sandbox. One of bash is an interpreter of Python that runs its cells
 * as %%shell cells.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"
#include "session/cells/session_cells.h"
#include "session/contexts/contexts.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define KEY_LANGUAGE "e2b_language"

bool e2b_is_language(const char *language)
{
	return text_eq(language, "python") || text_eq(language, "bash");
}

const char *e2b_language(const struct session *s)
{
	struct session_info i;
	session_info(s, &i);
	return session_is_context(s) && i.metadata &&
			       strstr(i.metadata, "\"" KEY_LANGUAGE "\":\"bash\"")
		       ? "bash"
		       : "python";
}

/* In the context's own metadata, which nobody else sees. */
static void set_language(struct session *context, const char *language)
{
	_cleanup_json_ json_t *kept = json_pack("{s:s}", KEY_LANGUAGE, language);
	struct session_update u = { .has_metadata = true,
		.metadata = json_dumps(kept, JSON_COMPACT) };
	session_update(context, &u);
}

static void put_context(struct json_writer *w, const struct session *s)
{
	struct session_info i;
	const char *cwd = session_context_cwd(s);
	session_info(s, &i);
	json_open_object(w);
	json_field_cstr(w, "id", session_is_context(s) ? e2b_sandbox_id(i.id) : CONTEXT_DEFAULT);
	json_field_cstr(w, "language", e2b_language(s));
	json_field_cstr(w, "cwd", text_eq(cwd, "/workspace") ? E2B_HOME : cwd);
	json_close(w);
}

static void list_contexts(struct call *c, struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_array(&w);
	put_context(&w, s);
	for (struct session *x = session_context_next(s, NULL); x; x = session_context_next(s, x))
		put_context(&w, x);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void create_context(struct call *c, struct session *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct error e = { 0 };
	struct session *made;
	json_t *tree = NULL;
	size_t len;
	const char *text = http_body(c->x, &len);

	json_read(text, len, NULL, &tree);
	_cleanup_json_ json_t *body = tree;
	const char *language = json_string_value(json_object_get(body, "language"));
	const char *cwd = json_string_value(json_object_get(body, "cwd"));
	if (language && !e2b_is_language(language)) {
		e2b_plain(c, 400, E2B_NO_LANGUAGE);
		return;
	}

	if (session_context_create(s, cwd && *cwd ? cwd : NULL, &e, &made) < 0) {
		e2b_plain(c, call_status_of(&e), e.text);
		return;
	}

	if (language && text_eq(language, "bash"))
		set_language(made, language);
	json_writer_init(&w, &b);
	put_context(&w, made);
	call_respond(c, 200, &w, &b);
}

/* As a client names it: the part of its id behind "s_", or the default one. */
struct session *e2b_find_context(struct session *s, const char *name, size_t len)
{
	char id[SESSION_ID_LEN + 1];
	struct session *found = NULL;
	if (len >= SESSION_ID_LEN - 1)
		return NULL;
	bool is_default = len == strlen(CONTEXT_DEFAULT) && !memcmp(name, CONTEXT_DEFAULT, len);
	snprintf(id, sizeof(id), "%s%.*s", is_default ? "" : "s_", (int)len, name);
	session_context_find(s, id, NULL, &found);
	return found;
}

void e2b_contexts(struct call *c, struct session *s)
{
	static const char base[] = "/contexts";
	const char *path = http_path(c->x) + sizeof(base) - 1;
	enum http_method method = http_method(c->x);
	struct error e = { 0 };

	if (!*path && method == HTTP_METHOD_GET) {
		list_contexts(c, s);
		return;
	}

	if (!*path && method == HTTP_METHOD_POST) {
		create_context(c, s);
		return;
	}

	size_t len = *path == '/' ? strcspn(path + 1, "/") : 0;
	struct session *found = len ? e2b_find_context(s, path + 1, len) : NULL;
	bool restart = len && text_eq(path + 1 + len, "/restart");
	if (!found)
		e2b_plain(c, 404, "Context was not found");
	else if (restart && session_reset(found, &e) < 0)
		e2b_plain(c, 409, e.text);
	else if (!restart && !session_is_context(found))
		e2b_plain(c, 400, "The default context cannot be removed; restart it instead");
	else {
		if (!restart)
			session_end(found, "it was removed");
		call_respond_static(c, 200, "application/json", "null", 4);
	}
}
