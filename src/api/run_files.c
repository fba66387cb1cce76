#include "api/run_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/workspace.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "session/session.h"

static int put_file(struct session *s, const struct field_file *file, struct error *e)
{
	struct workspace_upload u = WORKSPACE_UPLOAD_INIT;
	uid_t uid;
	gid_t gid;
	bool replaced;

	session_owner(s, &uid, &gid);
	int r = workspace_upload_begin(
		&u, session_workspace_fd(s), file->path, uid, gid, LIMIT_RUN_FILES_BYTES, e);
	if (!r)
		r = session_charge_upload(s, file->content.len, e);
	if (!r)
		r = workspace_upload_write(&u, file->content.data, file->content.len, e);
	if (!r)
		r = workspace_upload_commit(&u, e, &replaced);
	workspace_upload_finish(&u);
	return r;
}

int run_files_put(struct session *s, const struct field_files *files, struct error *e)
{
	for (size_t i = 0; i < files->n; i++) {
		int r = put_file(s, &files->file[i], e);
		if (r < 0)
			return r;
	}
	if (files->n)
		session_files_touched(s);
	return 0;
}

static int refuse_large(const char *path, struct error *e)
{
	error_set(e, -EFBIG, "%s is too large to be part of an answer", path);
	return error_slug(e, "file_too_large");
}

int run_files_read(struct session *s, const char *path, struct error *e, struct buffer *out)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r = workspace_open(session_workspace_fd(s), path, e, &fd, &st);

	if (r < 0)
		return r;
	if (out->max && (uint64_t)st.st_size > out->max)
		return refuse_large(path, e);
	for (;;) {
		if (buffer_reserve(out, 64 * 1024) < 0)
			return refuse_large(path, e);
		ssize_t n = read(fd, out->data + out->len, 64 * 1024);
		if (n < 0)
			return error_set_errno(e, -errno, "%s cannot be read", path);
		if (n == 0)
			return 0;
		out->len += (size_t)n;
	}
}

bool run_files_fetch(
	struct session *s, const char *path, struct run_files_budget *budget, struct buffer *out)
{
	*out = (struct buffer)BUFFER_COUNTED(budget->bytes);
	if (!budget->files || !budget->bytes)
		return false;
	budget->files--;
	int r = run_files_read(s, path, NULL, out);
	budget->bytes -= out->len;
	return r == 0;
}

int run_files_add(struct field_files *files, const char *path, struct field_text *content)
{
	struct field_file *more = reallocarray(files->file, files->n + 1, sizeof(files->file[0]));
	if (!more)
		return -ENOMEM;
	files->file = more;
	char *name = strdup(path);
	if (!name)
		return -ENOMEM;
	files->file[files->n++] = (struct field_file){ .path = name, .content = *content };
	*content = (struct field_text){ 0 };
	return 0;
}
