/* Files of sessions as MCP resources: glovebox://SESSION/PATH. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/workspace.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"
#include "dialects/mcp/mcp_files.h"

enum {
	RESOURCES_MAX = 1000,
	RESOURCES_SCAN = 2048,
	RESOURCE_BYTES = 4 * 1024 * 1024,
	OPEN_COST = 16 /* entries that opening a workspace is worth */
};

static void put_resource(
	struct json_writer *w, const char *session, const struct workspace_entry *entry)
{
	_cleanup_buffer_ struct buffer uri = BUFFER_INIT(0);
	mcp_file_uri(&uri, session, entry->path);
	json_open_object(w);
	json_field_text(w, "uri", uri.data, uri.len);
	json_field_text(w, "name", entry->path, strlen(entry->path));
	json_field_uint(w, "size", entry->size);
	json_close(w);
}

/*
 * Files of one session, as far as one turn of the loop allows. Returns how many entries were looked
 * at.
 */
static unsigned put_files_of(
	struct json_writer *w, struct session *s, const char *id, unsigned scan, unsigned *n)
{
	struct workspace_walk *walk = NULL;
	const struct workspace_entry *entry;

	if (workspace_walk_create(session_workspace_fd(s), "", true, NULL, &walk) < 0)
		return OPEN_COST;
	if (workspace_walk_step(walk, scan) != 0)
		workspace_walk_stop(walk);
	while (*n < RESOURCES_MAX && (entry = workspace_walk_next(walk))) {
		if (entry->kind == WORKSPACE_FILE) {
			put_resource(w, id, entry);
			(*n)++;
		}
	}

	unsigned looked = (unsigned)workspace_walk_count(walk) + OPEN_COST;
	workspace_walk_destroy(walk);
	return looked;
}

/*
 * Files of the owner's sessions that were made after the session with number `after`, until the
 * page is full. Returns the number of the last session on the page when sessions are left, else 0.
 */
static uint64_t put_session_files(
	struct json_writer *w, const struct mcp_request *r, uint64_t after)
{
	struct sessions *table = r->home->api->sessions;
	struct session_info info;
	uint64_t last = after;
	unsigned looked = 0, n = 0;

	for (struct session *s = sessions_next(table, NULL); s; s = sessions_next(table, s)) {
		session_info(s, &info);
		if (info.serial <= after || info.owner != r->owner || session_workspace_fd(s) < 0)
			continue;
		if (n >= RESOURCES_MAX || looked >= RESOURCES_SCAN)
			return last;
		looked += put_files_of(w, s, info.id, RESOURCES_SCAN - looked, &n);
		last = info.serial;
	}

	return 0;
}

/* A cursor is the number of the last session on the page before. */
static bool read_cursor(const struct mcp_request *r, uint64_t *ret)
{
	const json_t *cursor = json_object_get(r->params, "cursor");
	const char *text = json_string_value(cursor);
	*ret = 0;
	return !cursor || (text && text_parse_u64(text, 1, UINT64_MAX, ret) == 0);
}

void mcp_resources_list(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	char next[32];
	uint64_t after;
	if (!read_cursor(r, &after)) {
		mcp_fail(r, MCP_INVALID_PARAMS, 200,
			"unknown cursor: send the nextCursor of the page before", NULL);
		return;
	}

	mcp_begin_result(r, &w, &b);
	json_key(&w, "resources");
	json_open_array(&w);
	after = put_session_files(&w, r, after);
	json_close(&w);
	if (after) {
		snprintf(next, sizeof(next), "%" PRIu64, after);
		json_field_cstr(&w, "nextCursor", next);
	}
	json_field_uint(&w, "ttlMs", 0);
	json_field_cstr(&w, "cacheScope", "private");
	mcp_respond(r, &w, &b);
}

void mcp_resources_templates(struct mcp_request *r)
{
	static const char template[] =
		"[{\"uriTemplate\":\"" MCP_SCHEME "{session_id}/{path}\",\"name\":\"file\","
		"\"title\":\"File of a session\",\"description\":\"A file below /workspace of a session.\"}]";
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	mcp_begin_result(r, &w, &b);
	json_field_raw(&w, "resourceTemplates", template, sizeof(template) - 1);
	json_field_uint(&w, "ttlMs", 300000);
	json_field_cstr(&w, "cacheScope", "public");
	mcp_respond(r, &w, &b);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Splits "glovebox://s_…/a/b" into the session and the path. */
static bool split_uri(const char *uri, char session[SESSION_ID_LEN + 1], char *path, size_t size)
{
	size_t n;
	if (!uri || !text_starts(uri, MCP_SCHEME))
		return false;
	uri += strlen(MCP_SCHEME);
	n = strcspn(uri, "/");
	if (n != SESSION_ID_LEN || !uri[n])
		return false;
	memcpy(session, uri, n);
	session[n] = '\0';
	return http_percent_decode(uri + n + 1, strlen(uri + n + 1), false, path, size) == 0;
}

static void put_contents(struct json_writer *w, const char *uri, const struct mcp_file *f)
{
	json_key(w, "contents");
	json_open_array(w);
	json_open_object(w);
	json_field_text(w, "uri", uri, strlen(uri));
	json_field_cstr(w, "mimeType",
		f->mime      ? f->mime
		: f->is_text ? "text/plain"
			     : "application/octet-stream");
	if (f->is_text)
		json_field_text(w, "text", f->data.data ? f->data.data : "", f->data.len);
	else
		json_field_base64(w, "blob", f->data.data, f->data.len);
	json_close(w);
	json_close(w);
}

static void not_found(struct mcp_request *r, const char *text)
{
	mcp_fail(r, r->modern ? MCP_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND, 200, text, NULL);
}

void mcp_resources_read(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	const char *uri = json_string_value(json_object_get(r->params, "uri"));
	char id[SESSION_ID_LEN + 1], path[LIMIT_PATH_BYTES + 1];
	struct mcp_file f = { 0 };
	struct error e = { 0 };
	struct json_writer w;
	struct session *s;

	if (!split_uri(uri, id, path, sizeof(path))) {
		not_found(r, "unknown resource: the form is " MCP_SCHEME "SESSION_ID/PATH");
		return;
	}

	int err = api_session(r->home->api, id, r->owner, &e, &s);
	if (!err && session_workspace_fd(s) < 0)
		err = error_set(&e, -ENOENT, "the session has not started yet");
	if (!err)
		err = mcp_file_read(s, path, 0, RESOURCE_BYTES, &f, &e);
	if (!err && f.truncated)
		err = error_set(&e, -EFBIG,
			"the file is larger than 4 MB: page through it with the tool read_file");
	if (err < 0) {
		mcp_file_finish(&f);
		not_found(r, e.text);
		return;
	}

	mcp_begin_result(r, &w, &b);
	put_contents(&w, uri, &f);
	json_field_uint(&w, "ttlMs", 0);
	json_field_cstr(&w, "cacheScope", "private");
	mcp_file_finish(&f);
	mcp_respond(r, &w, &b);
}
