/* Tools about files below /workspace, and the content that a file becomes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/call.h"
#include "dialects/mcp/mcp.h"
#include "dialects/mcp/mcp_files.h"
#include "api/workspace.h"
#include "base/cleanup.h"
#include "base/text.h"

enum { READ_DEFAULT = 30000, LIST_MAX = 1000, LIST_SCAN = 2048 };

/* "/workspace/a", "./a" and "a" are the same file. */
static const char *below(const char *path)
{
	static const char root[] = "/workspace";
	size_t n = sizeof(root) - 1;
	if (!strncmp(path, root, n) && (!path[n] || path[n] == '/'))
		path += n;
	while (*path == '/' || (path[0] == '.' && path[1] == '/'))
		path += *path == '/' ? 1 : 2;
	return path;
}

static void begin_structured(const struct mcp_request *r, struct json_writer *w, struct buffer *b)
{
	json_writer_init(w, b);
	json_open_object(w);
	json_field_cstr(w, "session_id", r->session);
}

static void end_structured(struct json_writer *w)
{
	json_field_null(w, "error");
	json_close(w);
}

/* ---- write_file ---------------------------------------------------------------------------- */

static int put_file(struct session *s, const char *path, const char *data, size_t len, struct error *e)
{
	struct workspace_upload u = WORKSPACE_UPLOAD_INIT;
	uid_t uid;
	gid_t gid;
	bool replaced;

	session_owner(s, &uid, &gid);
	int r = workspace_check_path(path, strlen(path), e);
	if (!r)
		r = workspace_upload_begin(&u, session_workspace_fd(s), path, uid, gid, len, e);
	if (!r)
		r = session_charge_upload(s, len, e);
	if (!r)
		r = workspace_upload_write(&u, data, len, e);
	if (!r)
		r = workspace_upload_commit(&u, e, &replaced);
	workspace_upload_finish(&u);
	if (!r)
		session_files_touched(s);
	return r;
}

static void write_in(struct mcp_request *r, struct session *s)
{
	_cleanup_buffer_ struct buffer bytes = BUFFER_INIT(0), text = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	const struct mcp_arguments *a = r->arguments;
	const char *data = a->content.data, *path = below(a->path);
	size_t len = a->content.len;
	struct error e = { 0 };
	struct json_writer w;

	if (a->encoding == 1) {
		if (text_base64_decode(&bytes, data, len) < 0) {
			mcp_tool_error(r, "content is not base64", "Encode the bytes in standard base64 with padding, or leave encoding out.");
			return;
		}
		data = bytes.data ? bytes.data : "";
		len = bytes.len;
	}
	if (put_file(s, path, data, len, &e) < 0) {
		mcp_tool_error(r, e.text, e.remedy);
		return;
	}

	buffer_printf(&text, "wrote /workspace/%s (%zu B)\nsession_id: %s", path, len, r->session);
	begin_structured(r, &w, &structured);
	json_field_cstr(&w, "path", path);
	json_field_uint(&w, "size", len);
	end_structured(&w);
	mcp_tool_done(r, &text, &structured, false);
}

void mcp_call_write_file(struct mcp_request *r, struct session *s)
{
	(void)s;
	mcp_with_session(r, true, write_in);
}

/* ---- reading ---------------------------------------------------------------------------------- */

void mcp_file_finish(struct mcp_file *f)
{
	buffer_finish(&f->data);
}

static const char *picture_type(const struct buffer *b)
{
	static const struct {
		const char *magic, *mime;
		size_t len;
	} types[] = {
		{ "\x89PNG\r\n\x1a\n", "image/png", 8 },
		{ "\xff\xd8\xff", "image/jpeg", 3 },
		{ "GIF8", "image/gif", 4 },
	};
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (b->len >= types[i].len && !memcmp(b->data, types[i].magic, types[i].len))
			return types[i].mime;
	return b->len >= 12 && !memcmp(b->data, "RIFF", 4) && !memcmp(b->data + 8, "WEBP", 4) ? "image/webp" : NULL;
}

static int read_part(int fd, uint64_t offset, size_t limit, struct buffer *b, struct error *e)
{
	if (buffer_reserve(b, limit) < 0)
		return error_set(e, -ENOMEM, "the server is out of memory");
	while (b->len < limit) {
		ssize_t n = pread(fd, b->data + b->len, limit - b->len, (off_t)(offset + b->len));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set_errno(e, -errno, "reading the file");
		if (!n)
			break;
		b->len += (size_t)n;
	}
	return 0;
}

int mcp_file_read(struct session *s, const char *path, uint64_t offset, uint64_t limit, struct mcp_file *ret, struct error *e)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r = workspace_check_path(path, strlen(path), e);
	if (!r)
		r = workspace_open(session_workspace_fd(s), path, e, &fd, &st);
	if (r < 0)
		return r;

	ret->size = (uint64_t)st.st_size;
	ret->offset = offset;
	bool whole = !offset && !limit;
	size_t most = whole && ret->size <= MCP_IMAGE_MAX * 3 / 4 ? (size_t)ret->size : limit ? (size_t)limit : READ_DEFAULT;
	r = read_part(fd, offset, most, &ret->data, e);
	if (r < 0)
		return r;
	ret->mime = whole && ret->data.len == ret->size ? picture_type(&ret->data) : NULL;
	if (!ret->mime && whole && ret->data.len > READ_DEFAULT)
		ret->data.len = READ_DEFAULT;
	size_t fit = json_utf8_whole(ret->data.data, ret->data.len);
	if (!ret->mime && fit && offset + ret->data.len < ret->size) /* a page must not end inside a character */
		ret->data.len = fit;
	ret->truncated = offset + ret->data.len < ret->size;
	ret->is_text = !ret->mime && text_is_utf8(ret->data.data ? ret->data.data : "", ret->data.len) &&
		       !(ret->data.len && memchr(ret->data.data, '\0', ret->data.len));
	return 0;
}

static void put_blob(struct json_writer *w, const struct mcp_request *r, const char *path, const struct mcp_file *f)
{
	char uri[SESSION_ID_LEN + LIMIT_PATH_BYTES + 16];
	snprintf(uri, sizeof(uri), "glovebox://%s/%s", r->session, path);
	json_open_object(w);
	json_field_cstr(w, "type", "resource");
	json_key(w, "resource");
	json_open_object(w);
	json_field_text(w, "uri", uri, strlen(uri));
	json_field_cstr(w, "mimeType", "application/octet-stream");
	json_field_base64(w, "blob", f->data.data, f->data.len);
	json_close(w);
	json_close(w);
}

static void put_file_content(struct json_writer *w, const struct mcp_request *r, const char *path, const struct mcp_file *f)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0), note = BUFFER_INIT(0);
	if (f->mime && text_base64(&b, f->data.data, f->data.len) == 0)
		mcp_put_image(w, f->mime, b.data, b.len);
	else if (f->is_text)
		mcp_put_text(w, f->data.data ? f->data.data : "", f->data.len);
	else
		put_blob(w, r, path, f);
	if (f->truncated) {
		buffer_printf(&note, "%zu of %" PRIu64 " bytes; read on with offset %" PRIu64, f->data.len, f->size, f->offset + f->data.len);
		mcp_put_text(w, note.data, note.len);
	}
}

void mcp_call_read_file(struct mcp_request *r, struct session *s)
{
	_cleanup_buffer_ struct buffer content = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct mcp_file f = { 0 };
	const char *path = below(r->arguments->path);
	struct error e = { 0 };
	struct json_writer w;

	if (session_workspace_fd(s) < 0) {
		mcp_with_session(r, true, mcp_call_read_file);
		return;
	}
	if (mcp_file_read(s, path, r->arguments->offset, r->arguments->limit, &f, &e) < 0) {
		mcp_file_finish(&f);
		mcp_tool_error(r, e.text, e.remedy);
		return;
	}

	json_writer_init(&w, &content);
	json_open_array(&w);
	put_file_content(&w, r, path, &f);
	json_close(&w);
	begin_structured(r, &w, &structured);
	json_field_cstr(&w, "path", path);
	json_field_uint(&w, "size", f.size);
	json_field_uint(&w, "offset", f.offset);
	json_field_bool(&w, "truncated", f.truncated);
	end_structured(&w);
	mcp_file_finish(&f);
	mcp_send_result(r, &content, &structured, false);
}

/* ---- list_files -------------------------------------------------------------------------------- */

static void put_entries(struct workspace_walk *walk, struct buffer *text, struct json_writer *w)
{
	json_key(w, "files");
	json_open_array(w);
	for (size_t i = 0; i < LIST_MAX; i++) {
		const struct workspace_entry *entry = workspace_walk_next(walk);
		if (!entry)
			break;
		buffer_printf(text, entry->kind == WORKSPACE_DIRECTORY ? "%s/\n" : "%s (%" PRIu64 " B)\n", entry->path, entry->size);
		json_open_object(w);
		json_field_text(w, "path", entry->path, strlen(entry->path));
		json_field_uint(w, "size", entry->size);
		json_field_cstr(w, "type", workspace_kind_name(entry->kind));
		json_close(w);
	}
	json_close(w);
	if (!workspace_walk_count(walk))
		buffer_append_str(text, "(no files)\n");
}

void mcp_call_list_files(struct mcp_request *r, struct session *s)
{
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct workspace_walk *walk = NULL;
	struct error e = { 0 };
	struct json_writer w;
	bool recursive = !r->arguments->has_recursive || r->arguments->recursive;

	if (session_workspace_fd(s) < 0) {
		mcp_with_session(r, true, mcp_call_list_files);
		return;
	}
	if (workspace_walk_create(session_workspace_fd(s), r->arguments->path ? below(r->arguments->path) : "", recursive, &e, &walk) < 0) {
		mcp_tool_error(r, e.text, e.remedy);
		return;
	}
	if (workspace_walk_step(walk, LIST_SCAN) != 0) /* more than a model reads, and than one turn of the loop should take */
		workspace_walk_stop(walk);

	bool cut = workspace_walk_truncated(walk) || workspace_walk_count(walk) > LIST_MAX;
	begin_structured(r, &w, &structured);
	put_entries(walk, &text, &w);
	json_field_bool(&w, "truncated", cut);
	end_structured(&w);
	if (cut)
		buffer_append_str(&text, "… there are more files; list a directory of them with path\n");
	workspace_walk_destroy(walk);
	mcp_tool_done(r, &text, &structured, false);
}
