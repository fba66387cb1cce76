#include "api/run_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/text.h"
#include "session/session.h"

/* Of a file in one go; a multiple of what base64 makes of them. */
enum { PIECE_BYTES = 48 * 1024, PIECE_DIGITS = PIECE_BYTES / 3 * 4, QUAD = 4 };
enum { SLICE_NS = 1000 * 1000 };

/* ---- base64 ------------------------------------------------------------------ */

static bool last_quad_is_sound(const struct field_text *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	return text_base64_decode(&b, c->data + c->len - QUAD, QUAD) == 0;
}

/* A piece of the file. 1: there is more of it; 0: it is sound. */
static int check_piece(const struct field_file *file, size_t *at)
{
	const struct field_text *c = &file->content;
	size_t left = file->base64 ? c->len - QUAD - *at : 0,
	       n = left < PIECE_DIGITS ? left : PIECE_DIGITS;

	if (text_base64_digits(c->data + *at, n) < n)
		return -EINVAL;
	*at += n;
	if (n < left)
		return 1;
	return file->base64 && !last_quad_is_sound(c) ? -EINVAL : 0;
}

int run_files_check(const struct field_files *files, struct run_files_step *step, struct error *e)
{
	uint64_t began = clock_now_ns();
	while (step->file < files->n) {
		const struct field_file *file = &files->file[step->file];
		int r = check_piece(file, &step->at);
		if (r < 0) {
			error_set(e, -EINVAL,
				"$.files.%.100s: is not base64 (the standard alphabet, padded with =)",
				file->path);
			return error_slug(e, "invalid_field"), -EINVAL;
		}
		if (r == 0) {
			step->file++;
			step->at = 0;
		}
		if (clock_now_ns() - began > SLICE_NS)
			return 1;
	}
	*step = (struct run_files_step){ 0 };
	return 0;
}

/* ---- writing ----------------------------------------------------------------- */

static int begin_file(struct session *s, const struct field_file *file, struct run_files_step *step,
	struct error *e)
{
	uid_t uid;
	gid_t gid;

	session_owner(s, &uid, &gid);
	int r = workspace_upload_begin(&step->upload, session_workspace_fd(s), file->path, uid, gid,
		LIMIT_RUN_FILES_BYTES, e);
	if (r < 0)
		return r;
	step->open = true;
	step->at = 0;
	return session_charge_upload(s, field_file_bytes(file), e);
}

/* 1: there is more of the file; 0: it is in its place. */
static int put_piece(const struct field_file *file, struct run_files_step *step, struct error *e)
{
	const struct field_text *c = &file->content;
	size_t left = c->len - step->at, most = file->base64 ? PIECE_DIGITS : PIECE_BYTES,
	       n = left < most ? left : most;
	_cleanup_buffer_ struct buffer decoded = BUFFER_INIT(0);
	bool replaced;
	int r = 0;

	if (file->base64 && text_base64_decode(&decoded, c->data + step->at, n) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	if (n && file->base64)
		r = workspace_upload_write(&step->upload, decoded.data, decoded.len, e);
	else if (n)
		r = workspace_upload_write(&step->upload, c->data + step->at, n, e);
	step->at += n;
	if (r < 0 || n < left)
		return r < 0 ? r : 1;

	r = workspace_upload_commit(&step->upload, e, &replaced);
	run_files_step_finish(step);
	return r;
}

int run_files_put(struct session *s, const struct field_files *files, struct run_files_step *step,
	struct error *e)
{
	uint64_t began = clock_now_ns();
	while (step->file < files->n) {
		const struct field_file *file = &files->file[step->file];
		int r = step->open ? 0 : begin_file(s, file, step, e);
		if (r == 0)
			r = put_piece(file, step, e);
		if (r < 0) {
			run_files_step_finish(step);
			return r;
		}
		step->file += r == 0;
		if (step->file < files->n && clock_now_ns() - began > SLICE_NS)
			return 1;
	}
	if (files->n)
		session_files_touched(s);
	return 0;
}

void run_files_step_finish(struct run_files_step *step)
{
	if (step->open)
		workspace_upload_finish(&step->upload);
	step->open = false;
}

/* ---- reading ----------------------------------------------------------------- */

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
