/* Files of a session over HTTP: list, read, write, delete; both ways in pieces, at the client's pace. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/call.h"
#include "api/requests.h"
#include "api/workspace.h"
#include "base/clock.h"
#include "base/fds.h"
#include "json/json_write.h"

enum {
	PIECE_BYTES = 64 * 1024,
	TURN_BYTES = 2 * 1024 * 1024, /* sent to one client before others have their turn */
	LIST_DEFAULT = 1000,
};

/* The path in the address, checked. */
static int check_path(const struct call *c, struct error *e)
{
	return workspace_check_path(c->path, strlen(c->path), e);
}

/* ---- listing ------------------------------------------------------------- */

static void put_entry(struct json_writer *w, const struct workspace_entry *entry)
{
	char when[CLOCK_TEXT_MAX];
	json_open_object(w);
	json_field_cstr(w, "path", entry->path);
	json_field_cstr(w, "type", workspace_kind_name(entry->kind));
	json_field_uint(w, "size", entry->size);
	json_field_cstr(w, "modified", clock_format(entry->modified_ns, when));
	json_close(w);
}

static void respond_listing(struct call *c, const struct workspace_listing *l, uint64_t limit)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "files");
	json_open_array(&w);
	for (size_t i = 0; i < l->n && i < limit; i++)
		put_entry(&w, &l->entries[i]);
	json_close(&w);
	json_field_bool(&w, "truncated", l->truncated || l->n > limit);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/* "a/b/" and "/workspace/a" are not paths, "" and "." are the workspace itself. */
static int list(struct call *c, struct list_query *q, struct workspace_listing *l, struct error *e)
{
	struct session *s;
	int r = fields_decode_query(&list_query_fields, http_query(c->x), q, e);
	if (r < 0)
		return r;
	const char *path = q->path && strcmp(q->path, ".") ? q->path : "";
	if (*path && (r = workspace_check_path(path, strlen(path), e)) < 0)
		return r;
	r = call_session(c, e, &s);
	return r < 0 ? r : workspace_list(session_workspace_fd(s), path, q->recursive, l, e);
}

static void list_now(struct call *c)
{
	struct error e = { 0 };
	struct list_query q = { .limit = LIST_DEFAULT };
	struct workspace_listing l = { 0 };
	if (list(c, &q, &l, &e) < 0)
		call_error(c, &e);
	else
		respond_listing(c, &l, q.limit);
	workspace_listing_finish(&l);
	fields_finish(&list_query_fields, &q);
}

void handle_file_list(struct call *c)
{
	call_when_files(c, list_now);
}

/* ---- reading ------------------------------------------------------------- */

struct download {
	int fd;
	uint64_t at, left;
};

static void download_gone(struct call *c)
{
	struct download *d = c->work;
	fd_close(d->fd);
	free(d);
}

static void download_end(struct call *c, bool complete)
{
	download_gone(c);
	if (complete)
		call_finish_stream(c);
	else
		call_cut_stream(c);
}

/* Sends until the client is full, the turn is over, or the file is. */
static void pump(struct call *c)
{
	struct download *d = c->work;
	char piece[PIECE_BYTES];
	for (size_t turn = 0; d->left; turn += sizeof(piece)) {
		if (turn >= TURN_BYTES) {
			call_later(c, pump);
			return;
		}
		ssize_t n = pread(d->fd, piece, d->left < sizeof(piece) ? (size_t)d->left : sizeof(piece), (off_t)d->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* The guest made the file shorter: what was promised cannot be sent. */
			download_end(c, false);
			return;
		}
		d->at += (uint64_t)n;
		d->left -= (uint64_t)n;
		int r = http_stream_write(c->x, piece, (size_t)n);
		if (r < 0)
			return; /* on_gone follows */
		if (r > 0 && d->left)
			return; /* on_drained follows */
	}
	download_end(c, true);
}

static void download_drained(struct call *c)
{
	if (!c->later)
		pump(c);
}

static const struct call_ops download_ops = { .on_drained = download_drained, .on_gone = download_gone };

void call_send_file(struct call *c, int fd, uint64_t size, const char *content_type)
{
	struct download *d = calloc(1, sizeof(*d));
	if (!d) {
		fd_close(fd);
		call_no_memory(c);
		return;
	}
	*d = (struct download){ .fd = fd, .left = size };
	c->work = d;
	c->ops = &download_ops;
	http_stream_begin(c->x, 200, content_type, (int64_t)size);
	if (http_method(c->x) == HTTP_METHOD_HEAD)
		download_end(c, true);
	else
		pump(c);
}

/* The file's own name for a browser that saves it: ASCII only, nothing that could end the quoted text. */
static void put_disposition(struct call *c)
{
	char text[320];
	const char *slash = strrchr(c->path, '/'), *name = slash ? slash + 1 : c->path;
	size_t n = (size_t)snprintf(text, sizeof(text), "attachment; filename=\"");
	for (; *name && n < sizeof(text) - 2; name++)
		text[n++] =
			(unsigned char)*name < 0x20 || (unsigned char)*name > 0x7e || strchr("\"\\%", *name)
				? '_'
				: *name;
	text[n++] = '"';
	text[n] = '\0';
	http_add_header(c->x, "Content-Disposition", text);
}

static int open_download(struct call *c, struct error *e, int *ret_fd, struct stat *ret_stat)
{
	struct session *s;
	int r = check_path(c, e);
	if (!r)
		r = call_session(c, e, &s);
	if (!r)
		r = workspace_open(session_workspace_fd(s), c->path, e, ret_fd, ret_stat);
	if (r < 0)
		return r;
	if ((uint64_t)ret_stat->st_size <= c->api->max_upload_bytes)
		return 0;
	fd_close(*ret_fd);
	error_set(e, -EFBIG, "the file has %lld bytes, more than this server transfers",
		(long long)ret_stat->st_size);
	error_remedy(e, "Split it in a cell and read the parts.");
	error_slug(e, "file_too_large");
	return -EFBIG;
}

static void get_now(struct call *c)
{
	struct error e = { 0 };
	struct stat st;
	int fd = -1;
	if (open_download(c, &e, &fd, &st) < 0) {
		call_error(c, &e);
		return;
	}
	put_disposition(c);
	/* A page made by a guest must never run as one of ours, whatever a browser makes of its type. */
	http_add_header(c->x, "Content-Security-Policy", "sandbox; default-src 'none'");
	call_send_file(c, fd, (uint64_t)st.st_size, "application/octet-stream");
}

void handle_file_get(struct call *c)
{
	call_when_files(c, get_now);
}

/* ---- deleting ------------------------------------------------------------ */

static void delete_now(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	if (check_path(c, &e) < 0 || call_session(c, &e, &s) < 0 ||
		workspace_remove(session_workspace_fd(s), c->path, &e) < 0) {
		call_error(c, &e);
		return;
	}
	session_files_touched(s);
	call_respond_as(c, 204, NULL, NULL);
}

void handle_file_delete(struct call *c)
{
	call_when_files(c, delete_now);
}

/* ---- writing ------------------------------------------------------------- */

static void upload_gone(struct call *c)
{
	workspace_upload_finish(c->work);
	free(c->work);
	c->work = NULL;
	c->ops = NULL;
}

static void upload_fail(struct call *c, const struct error *e)
{
	upload_gone(c);
	call_error(c, e);
}

static void upload_body(struct call *c, const char *data, size_t len)
{
	struct error e = { 0 };
	struct session *s;
	if (call_session(c, &e, &s) < 0 || session_charge_upload(s, len, &e) < 0 || workspace_upload_write(c->work, data, len, &e) < 0)
		upload_fail(c, &e);
}

static const struct call_ops upload_ops = { .on_body = upload_body, .on_gone = upload_gone };

static int open_upload(struct call *c, struct error *e)
{
	struct session *s;
	uid_t uid;
	gid_t gid;
	int r = call_session(c, e, &s);
	if (r < 0)
		return r;
	session_owner(s, &uid, &gid);
	return workspace_upload_begin(
		c->work, session_workspace_fd(s), c->path, uid, gid, c->api->max_upload_bytes, e);
}

/* The session's files are there: open the place and let the body come. */
static void put_ready(struct call *c)
{
	struct error e = { 0 };
	if (open_upload(c, &e) < 0)
		upload_fail(c, &e);
	else
		http_resume(c->x);
}

static int check_upload(const struct call *c, struct error *e, bool *ret_ready)
{
	struct session *s;
	int64_t length = http_content_length(c->x);
	int r = check_path(c, e);
	if (!r)
		r = call_session(c, e, &s);
	if (r < 0)
		return r;
	*ret_ready = session_workspace_fd(s) >= 0;
	if (length <= 0 || (uint64_t)length <= c->api->max_upload_bytes)
		return 0;
	error_set(e, -EFBIG, "the file has %lld bytes, more than the %llu this server takes",
		(long long)length, (unsigned long long)c->api->max_upload_bytes);
	error_remedy(e, "Send it in parts under several names.");
	error_slug(e, "file_too_large");
	return -EFBIG;
}

enum http_body_mode begin_file_put(struct call *c)
{
	struct error e = { 0 };
	bool ready;
	if (check_upload(c, &e, &ready) < 0) {
		call_error(c, &e);
		return HTTP_BODY_ANSWERED;
	}
	struct workspace_upload *u = malloc(sizeof(*u));
	if (!u) {
		call_no_memory(c);
		return HTTP_BODY_ANSWERED;
	}
	*u = (struct workspace_upload)WORKSPACE_UPLOAD_INIT;
	c->work = u;
	c->ops = &upload_ops;
	http_limit_body(c->x, c->api->max_upload_bytes);
	if (!ready) {
		/* The client is held back until there is a place to write to. */
		http_pause(c->x);
		call_when_files(c, put_ready);
	} else if (open_upload(c, &e) < 0) {
		upload_fail(c, &e);
		return HTTP_BODY_ANSWERED;
	}
	return HTTP_BODY_STREAM;
}

void handle_file_put(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct workspace_upload *u = c->work;
	struct error e = { 0 };
	struct json_writer w;
	struct session *s;
	bool replaced = false;
	uint64_t size = u->written;
	if (call_session(c, &e, &s) < 0 || workspace_upload_commit(u, &e, &replaced) < 0) {
		upload_fail(c, &e);
		return;
	}
	session_files_touched(s);
	upload_gone(c);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "path", c->path);
	json_field_uint(&w, "size", size);
	json_field_cstr(&w, "change", replaced ? "modified" : "created");
	json_close(&w);
	call_respond(c, replaced ? 200 : 201, &w, &b);
}
