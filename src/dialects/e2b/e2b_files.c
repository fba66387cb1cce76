/*
 * GET /files: one whole file. Below the workspace it is read as the native API reads it; elsewhere
 * a script in the sandbox prints it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/workspace.h"
#include "base/fds.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"

static const char read_script[] =
	"[ -e \"$1\" ] || exit 44; [ -d \"$1\" ] && exit 46; [ -p \"$1\" ] && { echo \"$1 is a pipe\" >&2; exit 1; }; exec cat -- \"$1\"";

void e2b_files_failure(struct call *c, int code, const struct buffer *err)
{
	char buf[E2B_FAILURE_TEXT];
	const char *text = e2b_shell_failure(code, err, buf);
	if (code == E2B_SHELL_TOO_MUCH)
		e2b_error(c, 413,
			"outside of " E2B_HOME
			" files are read up to 16 MiB. Copy the file to " E2B_HOME
			" and read it there");
	else if (code == 44)
		e2b_error(c, 404, "path does not exist");
	else if (code == 46)
		e2b_error(c, 400, "path is a directory");
	else
		e2b_error(c,
			strstr(text, "No space left") ? 507
			: strstr(text, "denied")      ? 403
						      : 500,
			text);
}

void e2b_files_fail(struct call *c, const struct error *e)
{
	if (text_eq(e->slug, "file_not_found"))
		e2b_error(c, 404, "path does not exist");
	else if (text_eq(e->slug, "is_a_directory"))
		e2b_error(c, 400, "path is a directory");
	else
		e2b_fail(c, e);
}

bool e2b_files_refused(const struct error *e)
{
	return text_eq(e->slug, "path_refused") || text_eq(e->slug, "invalid_path") ||
	       text_eq(e->slug, "not_a_file");
}

static void on_read(struct call *c, void *userdata, int code, const struct buffer *out,
	const struct buffer *err)
{
	(void)userdata;
	if (code)
		e2b_files_failure(c, code, err);
	else
		call_respond_static(
			c, 200, "application/octet-stream", out->len ? out->data : "", out->len);
}

int e2b_files_path(struct call *c, char path[E2B_PATH_BYTES])
{
	char given[E2B_PATH_BYTES] = "";
	if (http_query_param(c->x, "path", given, sizeof(given)) < 0 ||
		e2b_path(given, path, E2B_PATH_BYTES) < 0)
		return -EINVAL;
	return *given ? 1 : 0;
}

/*
 * The file in the workspace; -EBADF when a script has to look, which follows links as the sandbox's
 * user does.
 */
static int open_below(
	struct session *s, const char *path, struct error *e, int *ret_fd, uint64_t *ret_size)
{
	struct stat st;
	const char *below = e2b_below_home(path);
	if (!below || !*below)
		return -EBADF;

	int r = workspace_check_path(below, strlen(below), e);
	if (r == 0)
		r = workspace_open(session_workspace_fd(s), below, e, ret_fd, &st);
	if (r == 0)
		*ret_size = (uint64_t)st.st_size;
	return r < 0 && e2b_files_refused(e) ? -EBADF : r;
}

static void get_now(struct call *c)
{
	char path[E2B_PATH_BYTES];
	const char *arguments[] = { path, NULL };
	struct error e = { 0 };
	struct session *s;
	uint64_t size = 0;
	int fd = -1;
	if (e2b_files_path(c, path) < 0) {
		e2b_error(c, 400, "path: it is too long, or wrongly encoded");
		return;
	}

	int r = call_session(c, &e, &s);
	if (r == 0)
		r = open_below(s, path, &e, &fd, &size);
	if (r == -EBADF) {
		e2b_shell(c, s, read_script, arguments, NULL, 0, on_read, NULL, NULL);
	} else if (r < 0) {
		e2b_files_fail(c, &e);
	} else if (size > c->api->max_upload_bytes) {
		fd_close(fd);
		e2b_error(c, 413, "the file is larger than this server transfers");
	} else {
		call_send_file(c, fd, size, "application/octet-stream");
	}
}

void e2b_files_get(struct call *c)
{
	call_when_files(c, get_now);
}
