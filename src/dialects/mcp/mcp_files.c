/* Tools about files below /workspace, and the content that a file becomes. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/call.h"
#include "api/workspace.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/common/picture_job.h"
#include "dialects/mcp/mcp.h"
#include "dialects/mcp/mcp_files.h"
#include "dialects/mcp/mcp_gallery.h"
#include "http/http_client.h"

enum {
	READ_DEFAULT = 30000,
	LIST_MAX = 1000,
	LIST_SCAN = 2048,
	PICTURE_BYTES = 16 * 1024 * 1024 /* of a picture file that is read */
};

/*
 * "/workspace/a", "./a" and "a" are the same file. NULL for an absolute path elsewhere, which was
 * answered.
 */
static const char *below(struct mcp_request *r, const char *path)
{
	static const char root[] = "/workspace";
	size_t n = sizeof(root) - 1;
	char text[128];

	if (!strncmp(path, root, n) && (!path[n] || path[n] == '/')) {
		path += n;
	} else if (*path == '/') {
		snprintf(text, sizeof(text), "%.80s is not below /workspace", path);
		mcp_tool_error(r, text,
			"Give a path below /workspace, such as data/a.csv; reach other files with run_shell.");
		return NULL;
	}

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

static int put_file(
	struct session *s, const char *path, const char *data, size_t len, struct error *e)
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
	_cleanup_buffer_ struct buffer bytes = BUFFER_INIT(0), text = BUFFER_INIT(0),
				       structured = BUFFER_INIT(0);
	const struct mcp_arguments *a = r->arguments;
	const char *data = a->content.data, *path = below(r, a->path);
	size_t len = a->content.len;
	struct error e = { 0 };
	struct json_writer w;

	if (!path)
		return;
	if (a->encoding == 1) {
		if (text_base64_decode(&bytes, data, len) < 0) {
			mcp_tool_error(r, "content is not base64",
				"Encode the bytes in standard base64 with padding, or leave encoding out.");
			return;
		}
		data = bytes.data ? bytes.data : "";
		len = bytes.len;
	}
	if (put_file(s, path, data, len, &e) < 0) {
		mcp_tool_error_of(r, &e);
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
	if (below(r, r->arguments->path)) /* before a session is made for it */
		mcp_with_session(r, true, write_in);
}

/* ---- reading ------------------------------------------------------------------------ */

void mcp_file_finish(struct mcp_file *f)
{
	buffer_finish(&f->data);
}

static int read_part(int fd, uint64_t offset, size_t limit, struct buffer *b, struct error *e)
{
	if (buffer_reserve(b, limit) < 0)
		return error_set(e, -ENOMEM, "out of memory");
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

static bool looks_like_picture(const struct buffer *b)
{
	static const char *const magic[] = { "\x89PNG", "\xff\xd8\xff", "GIF8", "RIFF" };
	for (size_t i = 0; i < ARRAY_LEN(magic); i++)
		if (b->len > strlen(magic[i]) && !memcmp(b->data, magic[i], strlen(magic[i])))
			return true;
	return false;
}

/* A picture is read whole, also where other files are read in pages. */
static int read_picture(int fd, struct mcp_file *f, struct error *e)
{
	uint32_t width, height;
	size_t page = f->data.len;
	if (!looks_like_picture(&f->data) || f->size > PICTURE_BYTES)
		return 0;

	int r = page < f->size ? read_part(fd, 0, (size_t)f->size, &f->data, e) : 0;
	if (r < 0)
		return r;
	f->mime = picture_size((const uint8_t *)f->data.data, f->data.len, &width, &height);
	if (!f->mime)
		f->data.len = page;
	return 0;
}

int mcp_file_read(struct session *s, const char *path, uint64_t offset, uint64_t limit,
	struct mcp_file *ret, struct error *e)
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
	bool whole = !offset && (!limit || limit >= ret->size);
	r = read_part(fd, offset, limit ? (size_t)limit : READ_DEFAULT, &ret->data, e);
	if (r < 0)
		return r;
	if (whole)
		r = read_picture(fd, ret, e);
	if (r < 0)
		return r;
	size_t fit = json_utf8_whole(ret->data.data, ret->data.len);
	/* a page must not end inside a character */
	if (!ret->mime && fit && offset + ret->data.len < ret->size)
		ret->data.len = fit;
	ret->truncated = offset + ret->data.len < ret->size;
	ret->is_text = !ret->mime &&
		       text_is_utf8(ret->data.data ? ret->data.data : "", ret->data.len) &&
		       !(ret->data.len && memchr(ret->data.data, '\0', ret->data.len));
	return 0;
}

int mcp_file_uri(struct buffer *b, const char *session, const char *path)
{
	char part[NAME_MAX + 1];
	int r = buffer_printf(b, MCP_SCHEME "%s", session);
	while (!r && *path) {
		size_t n = strcspn(path, "/");
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		r = buffer_append_char(b, '/');
		if (!r)
			r = http_percent_encode(b, part);
		path += n + (path[n] == '/');
	}
	return r;
}

static void put_blob(struct json_writer *w, const struct mcp_request *r, const char *path,
	const struct mcp_file *f)
{
	_cleanup_buffer_ struct buffer uri = BUFFER_INIT(0);
	mcp_file_uri(&uri, r->session, path);
	json_open_object(w);
	json_field_cstr(w, "type", "resource");
	json_key(w, "resource");
	json_open_object(w);
	json_field_text(w, "uri", uri.data, uri.len);
	json_field_cstr(w, "mimeType", "application/octet-stream");
	json_field_base64(w, "blob", f->data.data, f->data.len);
	json_close(w);
	json_close(w);
}

static void put_file_content(struct json_writer *w, const struct mcp_request *r, const char *path,
	const struct mcp_file *f)
{
	_cleanup_buffer_ struct buffer note = BUFFER_INIT(0);
	if (f->is_text)
		mcp_put_text(w, f->data.data ? f->data.data : "", f->data.len);
	else
		put_blob(w, r, path, f);
	if (f->offset >= f->size && f->size) {
		buffer_printf(&note,
			"offset %" PRIu64 " is beyond the end: the file has %" PRIu64 " bytes",
			f->offset, f->size);
		mcp_put_text(w, note.data, note.len);
	} else if (f->truncated) {
		buffer_printf(&note, "%zu of %" PRIu64 " bytes; read on with offset %" PRIu64,
			f->data.len, f->size, f->offset + f->data.len);
		mcp_put_text(w, note.data, note.len);
	}
}

static void send_file(struct mcp_request *r, const char *path, const struct mcp_file *f)
{
	_cleanup_buffer_ struct buffer content = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct json_writer w;

	begin_structured(r, &w, &structured);
	json_field_cstr(&w, "path", path);
	json_field_uint(&w, "size", f->size);
	json_field_uint(&w, "offset", f->offset);
	json_field_bool(&w, "truncated", f->truncated);
	end_structured(&w);
	if (f->mime) {
		struct mcp_gallery *g = mcp_gallery_create();
		mcp_gallery_add(g, f->data.data, f->data.len);
		mcp_gallery_send(r, g, NULL, &structured, false);
		return;
	}

	json_writer_init(&w, &content);
	json_open_array(&w);
	put_file_content(&w, r, path, f);
	json_close(&w);
	mcp_send_result(r, &content, &structured, false);
}

/* A page that would make the result too long ends earlier. */
static void fit_page(struct mcp_file *f)
{
	size_t fit = f->is_text ? mcp_json_fit(f->data.data, f->data.len, MCP_CONTENT_JSON)
				: MCP_CONTENT_JSON / 4 * 3;
	if (f->mime || fit >= f->data.len)
		return;
	f->data.len = fit;
	f->truncated = true;
}

void mcp_call_read_file(struct mcp_request *r, struct session *s)
{
	struct mcp_file f = { 0 };
	const char *path = below(r, r->arguments->path);
	struct error e = { 0 };

	if (!path)
		return;
	if (session_workspace_fd(s) < 0) {
		mcp_with_session(r, true, mcp_call_read_file);
		return;
	}
	if (mcp_file_read(s, path, r->arguments->offset, r->arguments->limit, &f, &e) < 0) {
		mcp_tool_error_of(r, &e);
	} else {
		fit_page(&f);
		send_file(r, path, &f);
	}
	mcp_file_finish(&f);
}

/* ---- list_files --------------------------------------------------------------------- */

/* False: some entries are left. */
static bool put_entries(struct workspace_walk *walk, struct buffer *text, struct json_writer *w,
	const struct buffer *written)
{
	const struct workspace_entry *entry;
	size_t n = 0;

	json_key(w, "files");
	json_open_array(w);
	while ((entry = workspace_walk_next(walk))) {
		/* the text has the paths once more */
		if (n++ == LIST_MAX || written->len > MCP_CONTENT_JSON / 2)
			break;
		buffer_printf(text,
			entry->kind == WORKSPACE_DIRECTORY ? "%s/\n" : "%s (%" PRIu64 " B)\n",
			entry->path, entry->size);
		json_open_object(w);
		json_field_text(w, "path", entry->path, strlen(entry->path));
		json_field_uint(w, "size", entry->size);
		json_field_cstr(w, "type", workspace_kind_name(entry->kind));
		json_close(w);
	}

	json_close(w);
	if (!workspace_walk_count(walk))
		buffer_append_str(text, "(no files)\n");
	return !entry;
}

void mcp_call_list_files(struct mcp_request *r, struct session *s)
{
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct workspace_walk *walk = NULL;
	struct error e = { 0 };
	struct json_writer w;
	bool recursive = !r->arguments->has_recursive || r->arguments->recursive;
	const char *path = r->arguments->path ? below(r, r->arguments->path) : "";

	if (!path)
		return;
	if (session_workspace_fd(s) < 0) {
		mcp_with_session(r, true, mcp_call_list_files);
		return;
	}
	if (workspace_walk_create(session_workspace_fd(s), path, recursive, &e, &walk) < 0) {
		mcp_tool_error_of(r, &e);
		return;
	}
	/* more than a model reads, and than one turn of the loop should take */
	if (workspace_walk_step(walk, LIST_SCAN) != 0)
		workspace_walk_stop(walk);

	begin_structured(r, &w, &structured);
	bool cut = !put_entries(walk, &text, &w, &structured) || workspace_walk_truncated(walk);
	json_field_bool(&w, "truncated", cut);
	end_structured(&w);
	if (cut)
		buffer_append_str(
			&text, "… there are more files; list a directory of them with path\n");
	workspace_walk_destroy(walk);
	mcp_tool_done(r, &text, &structured, false);
}
