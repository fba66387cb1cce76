/* Files of a run: put into the workspace before its code, read back after it. */
#pragma once

#include "api/schema/fields.h"
#include "api/workspace.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/limits.h"

struct session;

/*
 * How far a walk through the files came: each call below works for about a millisecond, so that
 * others do not wait for large files. Zero it at first; run_files_step_finish() gives up.
 */
struct run_files_step {
	size_t file, at;
	bool open;
	struct workspace_upload upload;
};
void run_files_step_finish(struct run_files_step *step);

/*
 * Looks at the base64 of files whose content is base64. 1: call again in another turn; 0: it is
 * sound, and the step can be used for run_files_put(); -EINVAL.
 */
int run_files_check(const struct field_files *files, struct run_files_step *step, struct error *e);

/*
 * Writes all files, which were checked, below /workspace; its directory must be there
 * (session_workspace_fd()). The next cell does not report them as changes. 1: call again in another
 * turn, with the same session; 0: they are there.
 */
int run_files_put(struct session *s, const struct field_files *files, struct run_files_step *step,
	struct error *e);

/*
 * Appends the content of a file below /workspace. -EFBIG (slug "file_too_large") when the buffer's
 * maximum is less than the file.
 */
int run_files_read(struct session *s, const char *path, struct error *e, struct buffer *out);

/*
 * What the files of one answer may have together. Every one of them is read in the same turn of the
 * loop, so that a list that names a large file many times must not be followed to its end.
 */
struct run_files_budget {
	size_t bytes;
	unsigned files;
};
#define RUN_FILES_BUDGET                               \
	{                                              \
		LIMIT_RUN_FILES_BYTES, LIMIT_RUN_FILES \
	}

/*
 * run_files_read() into a buffer that is counted, within the budget. False: not there, or too
 * large.
 */
bool run_files_fetch(
	struct session *s, const char *path, struct run_files_budget *budget, struct buffer *out);

/* Adds a file, which takes the content over. The path must be sound. -ENOMEM. */
int run_files_add(struct field_files *files, const char *path, struct field_text *content);
