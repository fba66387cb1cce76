/* A folder of a session as a tar archive, both ways, in pieces at the client's pace. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/call.h"
#include "api/schema/requests_console.h"
#include "api/tar.h"
#include "api/workspace.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/launcher.h"
#include "json/json_write.h"

enum { PIECE_BYTES = 64 * 1024, TURN_BYTES = 2 * 1024 * 1024, WALK_TURN = 512 };
/* For one turn of the loop: bytes between two looks at the clock, and the time itself. */
enum { UNPACK_STEP = 2 * TAR_BLOCK, UNPACK_NS = 1000 * 1000 };

/* The folder that the query names: "" for /workspace itself. */
static int folder_of(const struct call *c, struct error *e, char folder[LIMIT_PATH_BYTES + 2])
{
	struct archive_query q = { 0 };
	int r = fields_decode_query(&archive_query_fields, http_query(c->x), &q, e);
	if (!r && q.path && *q.path && strcmp(q.path, "."))
		r = workspace_check_path(q.path, strlen(q.path), e);
	if (!r)
		snprintf(folder, LIMIT_PATH_BYTES + 2, "%s",
			q.path && strcmp(q.path, ".") ? q.path : "");
	fields_finish(&archive_query_fields, &q);
	return r;
}

/* ---- out -------------------------------------------------------------------------- */

struct packing {
	struct workspace_walk *walk;
	size_t folder_len; /* of the names in the archive, what is left out in front */
	bool begun;
	int fd; /* of the file that is being sent, or -1 */
	uint64_t at, left, size;
};

static void packing_gone(struct call *c)
{
	struct packing *p = c->work;
	workspace_walk_destroy(p->walk);
	launcher_discard(p->fd);
	free(p);
	c->work = NULL;
	c->ops = NULL;
}

/* A file that the session made shorter meanwhile is filled up with zeros: its size was promised. */
static void read_piece(struct packing *p, struct buffer *out)
{
	char piece[PIECE_BYTES];
	size_t want = p->left < sizeof(piece) ? (size_t)p->left : sizeof(piece);
	ssize_t n = pread(p->fd, piece, want, (off_t)p->at);

	if (n <= 0) {
		memset(piece, 0, want);
		n = (ssize_t)want;
	}

	buffer_append(out, piece, (size_t)n);
	p->at += (uint64_t)n;
	p->left -= (uint64_t)n;
	if (p->left)
		return;
	memset(piece, 0, TAR_BLOCK);
	buffer_append(out, piece, tar_padding(p->size));
	launcher_discard(p->fd);
	p->fd = -1;
}

/*
 * The header of the next entry; false when there is none. What vanished since the walk, links and
 * the like are left out.
 */
static bool next_entry(struct call *c, struct packing *p, struct session *s, struct buffer *out)
{
	const struct workspace_entry *e;
	while ((e = workspace_walk_next(p->walk))) {
		const char *name = e->path + p->folder_len;
		struct stat st;
		int fd;
		if (e->kind == WORKSPACE_DIRECTORY) {
			tar_put_header(out, name, 0, e->modified_ns / NSEC_PER_SEC, true);
			return true;
		}
		if (e->kind != WORKSPACE_FILE ||
			workspace_open(session_workspace_fd(s), e->path, NULL, &fd, &st) < 0)
			continue;
		p->fd = fd;
		p->at = 0;
		p->left = p->size = (uint64_t)st.st_size;
		tar_put_header(out, name, p->size, (uint64_t)st.st_mtim.tv_sec, false);
		if (!p->left) {
			launcher_discard(fd);
			p->fd = -1;
		}
		return true;
	}

	(void)c;
	return false;
}

static void send_more(struct call *c)
{
	struct packing *p = c->work;
	_cleanup_buffer_ struct buffer out = BUFFER_INIT(0);
	struct session *s;
	uint64_t began = clock_now_ns();

	for (size_t turn = 0; turn < TURN_BYTES && clock_now_ns() - began < UNPACK_NS;
		turn += out.len) {
		bool more = true;
		out.len = 0;
		if (call_session(c, NULL, &s) < 0) {
			packing_gone(c);
			call_cut_stream(
				c); /* the session ended: what was promised cannot be sent */
			return;
		}
		if (p->left)
			read_piece(p, &out);
		else
			more = next_entry(c, p, s, &out);
		if (!more)
			tar_put_end(&out);
		int r = http_stream_write(c->x, out.data, out.len);
		if (r < 0)
			return; /* on_gone follows */
		if (!more) {
			packing_gone(c);
			call_finish_stream(c);
			return;
		}
		if (r > 0)
			return; /* on_drained follows */
	}

	call_later(c, send_more);
}

static void packing_drained(struct call *c)
{
	struct packing *p = c->work;
	if (p->begun && !c->later)
		send_more(c);
}

static const struct call_ops packing_ops = { .on_drained = packing_drained,
	.on_gone = packing_gone };

static void walk_more(struct call *c)
{
	struct packing *p = c->work;
	int r = workspace_walk_step(p->walk, WALK_TURN);

	if (r > 0) {
		call_later(c, walk_more);
		return;
	}

	if (r < 0 || workspace_walk_truncated(p->walk)) {
		packing_gone(c);
		if (r < 0)
			call_no_memory(c);
		else
			call_problem(c, 413, "too_many_files",
				"the folder has more files than an archive may contain",
				"Request a subfolder with ?path=, or create the archive in a cell.");
		return;
	}

	p->begun = true;
	http_add_header(c->x, "Content-Disposition", "attachment; filename=\"workspace.tar\"");
	http_stream_begin(c->x, 200, "application/x-tar", -1);
	send_more(c);
}

static void pack_now(struct call *c)
{
	char folder[LIMIT_PATH_BYTES + 2];
	struct error e = { 0 };
	struct session *s;
	struct packing *p = calloc(1, sizeof(*p));
	int r = p ? folder_of(c, &e, folder) : error_set(&e, -ENOMEM, "out of memory");

	if (!r)
		r = call_session(c, &e, &s);
	if (!r)
		r = workspace_walk_create(session_workspace_fd(s), folder, true, &e, &p->walk);
	if (r < 0) {
		free(p);
		call_error(c, &e);
		return;
	}

	p->fd = -1;
	p->folder_len = *folder ? strlen(folder) + 1 : 0;
	c->work = p;
	c->ops = &packing_ops;
	walk_more(c);
}

void handle_archive_get(struct call *c)
{
	call_when_files(c, pack_now);
}

/* ---- in ----------------------------------------------------------------------------- */

struct unpacking {
	struct call *call;
	struct tar_reader reader;
	struct workspace_upload file;
	struct error e; /* why the handler stopped */
	struct buffer
		rest; /* of a piece of the body that takes more than one turn, from rest_at on */
	size_t rest_at;
	unsigned files, folders;
	uint64_t bytes;
	char folder[LIMIT_PATH_BYTES + 2];
};

/* Where an entry goes, and whose it is. */
struct place {
	char path[LIMIT_PATH_BYTES + 2];
	int workspace;
	uid_t uid;
	gid_t gid;
};

/*
 * The place of an entry below the folder; its name is the archive's word, and checked as a client's
 * is.
 */
static int find_place(struct unpacking *u, const char *path, struct place *ret)
{
	struct session *s;
	int n = snprintf(
		ret->path, sizeof(ret->path), "%s%s%s", u->folder, *u->folder ? "/" : "", path);

	if (n > LIMIT_PATH_BYTES)
		n = LIMIT_PATH_BYTES + 1;
	if (u->files + u->folders >= WORKSPACE_SCAN) {
		error_set(&u->e, -E2BIG, "the archive has more than %d entries", WORKSPACE_SCAN);
		return error_slug(&u->e, "too_many_files");
	}

	int r = workspace_check_path(ret->path, (size_t)n, &u->e);
	if (!r)
		r = call_session(u->call, &u->e, &s);
	if (r < 0)
		return r;
	session_owner(s, &ret->uid, &ret->gid);
	ret->workspace = session_workspace_fd(s);
	return 0;
}

static int on_directory(void *userdata, const char *path)
{
	struct unpacking *u = userdata;
	struct place p;
	int r = find_place(u, path, &p);
	u->folders++;
	return r < 0 ? r : workspace_make_directory(p.workspace, p.path, p.uid, p.gid, &u->e);
}

static int on_file(void *userdata, const char *path, uint64_t size)
{
	struct unpacking *u = userdata;
	struct place p;
	int r = find_place(u, path, &p);
	u->files++;
	u->bytes += size;
	return r < 0 ? r
		     : workspace_upload_begin(&u->file, p.workspace, p.path, p.uid, p.gid,
			       u->call->api->max_upload_bytes, &u->e);
}

static int on_data(void *userdata, const char *data, size_t len)
{
	struct unpacking *u = userdata;
	struct session *s;
	int r = call_session(u->call, &u->e, &s);
	if (!r)
		r = session_charge_upload(s, len, &u->e);
	return r < 0 ? r : workspace_upload_write(&u->file, data, len, &u->e);
}

static int on_file_end(void *userdata)
{
	struct unpacking *u = userdata;
	bool replaced;
	int r = workspace_upload_commit(&u->file, &u->e, &replaced);
	workspace_upload_finish(&u->file);
	u->file = (struct workspace_upload)WORKSPACE_UPLOAD_INIT;
	return r;
}

static const struct tar_handler tar_handler = { on_directory, on_file, on_data, on_file_end };

static void unpacking_gone(struct call *c)
{
	struct unpacking *u = c->work;
	workspace_upload_finish(&u->file);
	tar_reader_finish(&u->reader);
	buffer_finish(&u->rest);
	free(u);
	c->work = NULL;
	c->ops = NULL;
}

static void unpacking_fail(struct call *c, int err)
{
	struct unpacking *u = c->work;
	struct error e = u->e;
	if (!e.err) {
		error_set(&e, err, "%s",
			err == -ENAMETOOLONG ? "a name in the archive is too long"
					     : "the body is not a tar archive, or is incomplete");
		error_remedy(&e, "Send a tar file without compression: tar -cf - FOLDER.");
		error_slug(&e, "invalid_archive");
	}
	unpacking_gone(c);
	call_error(c, &e);
}

/*
 * Feeds the reader for the time of one turn. Small entries cost system calls, not bytes. Returns
 * how much it took, or a negative errno.
 */
static ssize_t unpack_some(struct unpacking *u, const char *data, size_t len)
{
	uint64_t began = clock_now_ns();
	size_t at = 0;
	while (at < len && clock_now_ns() - began < UNPACK_NS) {
		uint64_t content = tar_content_left(&u->reader);
		size_t n = content > UNPACK_STEP ? content : UNPACK_STEP;
		n = n < len - at ? n : len - at;
		int r = tar_feed(&u->reader, data + at, n);
		if (r < 0)
			return r;
		at += n;
	}
	return (ssize_t)at;
}

static void unpack_rest(struct call *c)
{
	struct unpacking *u = c->work;
	ssize_t n = unpack_some(u, u->rest.data + u->rest_at, u->rest.len - u->rest_at);
	if (n < 0) {
		unpacking_fail(c, (int)n);
		return;
	}

	u->rest_at += (size_t)n;
	if (u->rest_at < u->rest.len)
		call_later(c, unpack_rest);
	else
		http_resume(c->x);
}

static void unpacking_body(struct call *c, const char *data, size_t len)
{
	struct unpacking *u = c->work;
	ssize_t n = unpack_some(u, data, len);
	if (n >= 0 && (size_t)n < len) {
		u->rest.len = u->rest_at = 0;
		if (buffer_append(&u->rest, data + n, len - (size_t)n) == 0) {
			http_pause(c->x);
			call_later(c, unpack_rest);
			return;
		}
		n = -ENOMEM;
	}
	if (n < 0)
		unpacking_fail(c, (int)n);
}

static const struct call_ops unpacking_ops = { .on_body = unpacking_body,
	.on_gone = unpacking_gone };

static void unpack_ready(struct call *c)
{
	http_resume(c->x);
}

enum http_body_mode begin_archive_put(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	struct unpacking *u = calloc(1, sizeof(*u));
	int r = u ? folder_of(c, &e, u->folder) : error_set(&e, -ENOMEM, "out of memory");

	if (!r)
		r = call_session(c, &e, &s);
	if (r < 0) {
		free(u);
		call_error(c, &e);
		return HTTP_BODY_ANSWERED;
	}

	u->call = c;
	u->file = (struct workspace_upload)WORKSPACE_UPLOAD_INIT;
	buffer_init(&u->rest, 0);
	tar_reader_init(&u->reader, &tar_handler, u);
	c->work = u;
	c->ops = &unpacking_ops;
	http_limit_body(c->x, c->api->max_upload_bytes);
	if (session_workspace_fd(s) < 0) {
		http_pause(c->x);
		call_when_files(c, unpack_ready);
	}

	return HTTP_BODY_STREAM;
}

void handle_archive_put(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct unpacking *u = c->work;
	struct json_writer w;
	struct session *s;

	if (!tar_is_complete(&u->reader)) {
		unpacking_fail(c, -EINVAL);
		return;
	}

	if (call_session(c, NULL, &s) == 0)
		session_files_touched(s);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_uint(&w, "files", u->files);
	json_field_uint(&w, "directories", u->folders);
	json_field_uint(&w, "bytes", u->bytes);
	json_field_uint(&w, "skipped", u->reader.skipped);
	json_close(&w);
	unpacking_gone(c);
	call_respond(c, 200, &w, &b);
}
