/*
 * Files of a session over HTTP: list, read, write, delete; both ways in pieces, at the client's
 * pace.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/call.h"
#include "api/handlers/files_watch.h"
#include "api/schema/requests.h"
#include "api/workspace.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/launcher.h"
#include "json/json_write.h"

enum {
	PIECE_BYTES = 64 * 1024,
	TURN_BYTES = 2 * 1024 * 1024, /* sent to one client before others have their turn */
	LIST_DEFAULT = 1000,
	/* entries looked at, or written, before others have their turn: about a millisecond */
	LIST_TURN = 512,
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

/* A list in the making: entries are looked at, then written, a part in each turn of the loop. */
struct listing {
	struct workspace_walk *walk;
	uint64_t left; /* entries that may still be written */
	bool walked, more;
	struct buffer json;
	struct json_writer w;
};

static void listing_gone(struct call *c)
{
	struct listing *l = c->work;
	workspace_walk_destroy(l->walk);
	buffer_finish(&l->json);
	free(l);
	c->work = NULL;
	c->ops = NULL;
}

/* Writes some entries. True when it was the last of them. */
static bool write_some(struct listing *l)
{
	for (unsigned i = 0; i < LIST_TURN; i++) {
		const struct workspace_entry *entry = l->left ? workspace_walk_next(l->walk) : NULL;
		if (!entry)
			return true;
		put_entry(&l->w, entry);
		l->left--;
	}
	return false;
}

static void list_more(struct call *c)
{
	struct listing *l = c->work;
	int r = l->walked ? 0 : workspace_walk_step(l->walk, LIST_TURN);

	if (r < 0) {
		listing_gone(c);
		call_no_memory(c);
		return;
	}

	bool written = l->walked && write_some(l);
	l->walked = r == 0;
	if (!written) {
		call_later(c, list_more);
		return;
	}

	json_close(&l->w);
	json_field_bool(&l->w, "truncated",
		workspace_walk_truncated(l->walk) || (!l->left && workspace_walk_next(l->walk)));
	json_close(&l->w);
	struct buffer json = l->json;
	struct json_writer w = l->w;
	w.out = &json;
	l->json = (struct buffer)BUFFER_COUNTED(0);
	listing_gone(c);
	call_respond(c, 200, &w, &json);
	buffer_finish(&json);
}

static const struct call_ops listing_ops = { .on_gone = listing_gone };

/* "a/b/" and "/workspace/a" are not paths, "" and "." are the workspace itself. */
static int begin_walk(
	struct call *c, const struct list_query *q, struct error *e, struct workspace_walk **ret)
{
	struct session *s;
	const char *path = q->path && strcmp(q->path, ".") ? q->path : "";
	int r = *path ? workspace_check_path(path, strlen(path), e) : 0;
	if (r == 0)
		r = call_session(c, e, &s);
	return r < 0 ? r
		     : workspace_walk_create(session_workspace_fd(s), path, q->recursive, e, ret);
}

static void list_now(struct call *c)
{
	struct error e = { 0 };
	struct list_query q = { .limit = LIST_DEFAULT };
	struct workspace_walk *walk = NULL;
	int r = fields_decode_query(&list_query_fields, http_query(c->x), &q, &e);

	if (r == 0 && q.watch && c->by_link) {
		error_set(&e, -EPERM, "a link to this session cannot watch its files");
		error_remedy(&e, "List the files again after each event of GET /v1/events.");
		r = error_slug(&e, "read_only");
	}
	if (r == 0 && q.watch) {
		files_watch(c, &q);
		fields_finish(&list_query_fields, &q);
		return;
	}

	if (r == 0)
		r = begin_walk(c, &q, &e, &walk);
	fields_finish(&list_query_fields, &q);
	struct listing *l = r < 0 ? NULL : calloc(1, sizeof(*l));
	if (r < 0) {
		call_error(c, &e);
		return;
	}

	if (!l) {
		workspace_walk_destroy(walk);
		call_no_memory(c);
		return;
	}

	l->walk = walk;
	l->left = q.limit;
	buffer_count(&l->json);
	json_writer_init(&l->w, &l->json);
	json_open_object(&l->w);
	json_key(&l->w, "files");
	json_open_array(&l->w);
	c->work = l;
	c->ops = &listing_ops;
	list_more(c);
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
	/* it may have been deleted meanwhile: whoever closes it last frees its pages */
	launcher_discard(d->fd);
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
		ssize_t n = pread(d->fd, piece,
			d->left < sizeof(piece) ? (size_t)d->left : sizeof(piece), (off_t)d->at);
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

static const struct call_ops download_ops = { .on_drained = download_drained,
	.on_gone = download_gone };

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

/*
 * The file's own name for a browser that saves it: ASCII only, nothing that could end the quoted
 * text.
 */
static void put_disposition(struct call *c)
{
	char text[320];
	const char *slash = strrchr(c->path, '/'), *name = slash ? slash + 1 : c->path;
	size_t n = (size_t)snprintf(text, sizeof(text), "attachment; filename=\"");
	for (; *name && n < sizeof(text) - 2; name++)
		text[n++] = (unsigned char)*name < 0x20 || (unsigned char)*name > 0x7e ||
					    strchr("\"\\%", *name)
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
	/*
	 * A page made by a guest must never run as one of ours, whatever a browser makes of its
	 * type.
	 */
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
	if (call_session(c, &e, &s) < 0 || session_charge_upload(s, len, &e) < 0 ||
		workspace_upload_write(c->work, data, len, &e) < 0)
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
	error_set(e, -EFBIG, "the file has %lld bytes, more than the %llu that this server accepts",
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
