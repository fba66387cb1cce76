/*
 * POST /files: whole files, one or many, written as they come.
 *
 * A file below the workspace is written as the native API writes it: charged to the session, and
 * there whole or not at all. Where the native API refuses the path (outside of the workspace,
 * behind a link), the file waits in the workspace under a name of its own until all have come; then
 * a script in the sandbox copies it to its place, with the rights of the sandbox's user. A file
 * that comes compressed (Content-Encoding: gzip) goes the same way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "api/workspace.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"
#include "dialects/e2b/e2b_multipart.h"
#include "json/json_write.h"

enum { PARTS_MAX = 1000, TEMPORARY_BYTES = 40 };

static const char copy_script[] =
	"[ -d \"$1\" ] && exit 46; mkdir -p -- \"$(dirname -- \"$1\")\" && exec cat < \"/workspace/$2\" > \"$1\"";

/* The memory that a compressed file grows to is the sandbox's, not the daemon's. */
static const char unpack_script[] =
	"[ -d \"$1\" ] && exit 46; mkdir -p -- \"$(dirname -- \"$1\")\" && exec gzip -dc < \"/workspace/$2\" > \"$1\"";

struct part {
	char *path;                      /* absolute, as the client named it */
	char temporary[TEMPORARY_BYTES]; /* in the workspace; "" when it is in its place */
};

struct upload {
	struct call *call;
	bool is_multipart, compressed;
	struct multipart multipart;
	char *path;     /* of the address; NULL: each part has its own */
	char *metadata; /* of each file, as JSON; or NULL */
	struct part parts[PARTS_MAX];
	size_t n, at;
	struct workspace_upload file; /* that is written */
	struct error e;
};

/* ---- life --------------------------------------------------------------------------- */

static void remove_temporary(struct upload *u, struct part *p)
{
	struct error e = { 0 };
	struct session *s;
	if (p->temporary[0] && call_session(u->call, &e, &s) == 0) {
		workspace_remove(session_workspace_fd(s), p->temporary, &e);
		session_files_touched(s);
	}
	p->temporary[0] = '\0';
}

static void upload_free(void *userdata)
{
	struct upload *u = userdata;
	workspace_upload_finish(&u->file);
	for (size_t i = 0; i < u->n; i++) {
		remove_temporary(u, &u->parts[i]);
		free(u->parts[i].path);
	}
	if (u->is_multipart)
		multipart_finish(&u->multipart);
	free(u->path);
	free(u->metadata);
	free(u);
}

static struct upload *take(struct call *c)
{
	struct upload *u = c->work;
	c->work = NULL;
	c->ops = NULL;
	return u;
}

static void upload_gone(struct call *c)
{
	upload_free(take(c));
}

static void fail(struct call *c, int err)
{
	struct upload *u = take(c);
	struct error e = u->e;
	upload_free(u);
	if (e.err)
		e2b_files_fail(c, &e);
	else if (err == -ENOMEM)
		call_no_memory(c);
	else
		e2b_error(c, 400,
			"the upload needs a path, or parts named file with a filename each");
}

/* ---- one file ----------------------------------------------------------------------- */

static int open_at(struct upload *u, const char *below)
{
	struct session *s;
	uid_t uid;
	gid_t gid;
	int r = call_session(u->call, &u->e, &s);
	if (r < 0)
		return r;

	session_owner(s, &uid, &gid);
	return workspace_upload_begin(&u->file, session_workspace_fd(s), below, uid, gid,
		u->call->api->max_upload_bytes, &u->e);
}

static int open_temporary(struct upload *u, struct part *p)
{
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return -EIO;

	u->e = (struct error){ 0 };
	snprintf(p->temporary, sizeof(p->temporary), ".upload-%016llx", (unsigned long long)number);
	return open_at(u, p->temporary);
}

static int on_part(void *owner, const char *name)
{
	struct upload *u = owner;
	char path[E2B_PATH_BYTES];
	const char *given = u->path ? u->path : name;
	if (!*given || u->n == PARTS_MAX || e2b_path(given, path, sizeof(path)) < 0)
		return -EINVAL;

	struct part *p = &u->parts[u->n];
	p->path = strdup(path);
	if (!p->path)
		return -ENOMEM;

	u->n++;
	const char *below = e2b_below_home(path);
	if (below && !*below) {
		error_set(&u->e, -EISDIR, "path is a directory");
		return error_slug(&u->e, "is_a_directory");
	}
	if (u->metadata && !below)
		return error_set(&u->e, -EINVAL,
			"metadata is kept for files below " E2B_HOME
			". Write the file there, or leave the metadata out");
	if (u->compressed)
		return open_temporary(u, p);
	int r = below ? workspace_check_path(below, strlen(below), &u->e) : -EXDEV;
	if (r == 0)
		r = open_at(u, below);
	return r < 0 && (!below || e2b_files_refused(&u->e)) ? open_temporary(u, p) : r;
}

static int on_data(void *owner, const char *data, size_t len)
{
	struct upload *u = owner;
	struct session *s;
	int r = call_session(u->call, &u->e, &s);
	if (r == 0)
		r = session_charge_upload(s, len, &u->e);
	return r < 0 ? r : workspace_upload_write(&u->file, data, len, &u->e);
}

static int on_end(void *owner)
{
	struct upload *u = owner;
	struct session *s;
	bool replaced;
	int r = call_session(u->call, &u->e, &s);
	if (r == 0)
		r = workspace_upload_commit(&u->file, &u->e, &replaced);
	if (r < 0)
		return r;

	workspace_upload_finish(&u->file);
	u->file = (struct workspace_upload)WORKSPACE_UPLOAD_INIT;
	session_files_touched(s);
	return 0;
}

static const struct multipart_events events = { on_part, on_data, on_end };

/* ---- the body ----------------------------------------------------------------------- */

static void on_body(struct call *c, const char *data, size_t len)
{
	struct upload *u = c->work;
	int r = u->is_multipart ? multipart_add(&u->multipart, data, len) : on_data(u, data, len);
	if (r < 0)
		fail(c, r);
}

static const struct call_ops ops = { .on_body = on_body, .on_gone = upload_gone };

/* What can be said before the body comes. */
static int read_head(struct upload *u)
{
	char path[E2B_PATH_BYTES];
	struct call *c = u->call;
	const char *type = http_header(c->x, "Content-Type");
	const char *encoding = http_header(c->x, "Content-Encoding");
	int named = e2b_files_path(c, path);
	if (named < 0)
		return named;
	if (named && !(u->path = strdup(path)))
		return -ENOMEM;
	int r = e2b_metadata_read(c, &u->metadata, &u->e);
	if (r < 0)
		return r;

	if (encoding && strcasecmp(encoding, "identity")) {
		u->compressed = !strcasecmp(encoding, "gzip");
		if (!u->compressed || (type && !strncasecmp(type, "multipart", 9))) {
			error_set(&u->e, -EINVAL,
				"only a single file of type application/octet-stream may be compressed, with gzip");
			return error_slug(&u->e, "unsupported_encoding");
		}
	}
	if (type && !strncasecmp(type, "multipart/form-data", 19)) {
		r = multipart_init(&u->multipart, type, &events, u);
		u->is_multipart = r == 0;
		return r;
	}
	return named ? 0 : -EINVAL;
}

/* A body that is one file gets its place before it comes. */
static int open_single(struct upload *u)
{
	return u->is_multipart ? 0 : on_part(u, "");
}

static void ready(struct call *c)
{
	int r = open_single(c->work);
	if (r < 0)
		fail(c, r);
	else
		http_resume(c->x);
}

enum http_body_mode e2b_upload_begin(struct call *c)
{
	struct session *s = e2b_session(c);
	if (!s)
		return HTTP_BODY_ANSWERED;
	struct upload *u = calloc(1, sizeof(*u));
	if (!u) {
		call_no_memory(c);
		return HTTP_BODY_ANSWERED;
	}

	u->call = c;
	u->file = (struct workspace_upload)WORKSPACE_UPLOAD_INIT;
	c->work = u;
	c->ops = &ops;
	int r = read_head(u);
	if (r < 0) {
		fail(c, r);
		return HTTP_BODY_ANSWERED;
	}

	http_limit_body(c->x, c->api->max_upload_bytes);
	if (session_workspace_fd(s) < 0) {
		/* The client is held back until there is a place to write to. */
		http_pause(c->x);
		call_when_files(c, ready);
		return HTTP_BODY_STREAM;
	}
	r = open_single(u);
	if (r < 0)
		fail(c, r);
	return r < 0 ? HTTP_BODY_ANSWERED : HTTP_BODY_STREAM;
}

/* ---- the end ------------------------------------------------------------------------ */

static int store_metadata(struct call *c, const struct upload *u, struct error *e)
{
	struct session *s;
	int r = u->metadata ? call_session(c, e, &s) : 0;
	for (size_t i = 0; r == 0 && u->metadata && i < u->n; i++)
		r = e2b_metadata_store(s, u->parts[i].path, u->metadata, e);
	return r;
}

static void answer(struct call *c, struct upload *u)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct json_writer w;

	if (store_metadata(c, u, &e) < 0) {
		upload_free(u);
		e2b_files_fail(c, &e);
		return;
	}

	json_writer_init(&w, &b);
	json_open_array(&w);
	for (size_t i = 0; i < u->n; i++) {
		const char *name = strrchr(u->parts[i].path, '/');
		json_open_object(&w);
		json_field_cstr(&w, "name", name ? name + 1 : u->parts[i].path);
		json_field_cstr(&w, "type", "file");
		json_field_cstr(&w, "path", u->parts[i].path);
		if (u->metadata)
			json_field_raw(&w, "metadata", u->metadata, strlen(u->metadata));
		json_close(&w);
	}

	json_close(&w);
	upload_free(u);
	call_respond(c, 200, &w, &b);
}

static void copy_next(struct call *c, struct upload *u);

static void on_copied(struct call *c, void *userdata, int code, const struct buffer *out,
	const struct buffer *err)
{
	struct upload *u = userdata;
	(void)out;
	if (code) {
		upload_free(u);
		e2b_files_failure(c, code, err);
		return;
	}
	remove_temporary(u, &u->parts[u->at]);
	copy_next(c, u);
}

static void copy_next(struct call *c, struct upload *u)
{
	struct error e = { 0 };
	struct session *s;

	while (u->at < u->n && !u->parts[u->at].temporary[0])
		u->at++;
	if (u->at == u->n) {
		answer(c, u);
		return;
	}

	if (call_session(c, &e, &s) < 0) {
		upload_free(u);
		e2b_error(c, 502, "the sandbox has ended");
		return;
	}

	const struct part *p = &u->parts[u->at];
	const char *arguments[] = { p->path, p->temporary, NULL };
	e2b_shell(c, s, u->compressed ? unpack_script : copy_script, arguments, NULL, 0, on_copied,
		upload_free, u);
}

void e2b_upload_end(struct call *c)
{
	struct upload *u = c->work;
	int r = u->is_multipart ? (multipart_is_whole(&u->multipart) ? 0 : -EINVAL) : on_end(u);
	if (r < 0)
		fail(c, r);
	else
		copy_next(c, take(c));
}
