/* filesystem.Filesystem: WatchDir, and CreateWatcher and its like for clients that poll. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"
#include "session/files/file_watch.h"
#include "json/json_write.h"

#define STREAM_TYPE "application/connect+json"

enum { PATH_BYTES = 4096, POLLED_AT_ONCE = 1000, KEEPALIVE_MS = 20 * 1000 };

struct follower {
	struct call *call;
	struct file_watch *watch;
	uv_timer_t keepalive;
	bool full;
	char *dir; /* of entries; NULL: the client wants none */
};

static const char *type_of(enum file_event_type t)
{
	static const char *const names[] = { "EVENT_TYPE_CREATE", "EVENT_TYPE_WRITE",
		"EVENT_TYPE_REMOVE", "EVENT_TYPE_RENAME", "EVENT_TYPE_CHMOD" };
	return t < FILE_MISSED ? names[t] : "EVENT_TYPE_UNSPECIFIED";
}

/* "-rw-r--r--" */
static const char *permissions(mode_t mode, char ret[11])
{
	static const char letters[] = "rwxrwxrwx";
	ret[0] = S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : '-';
	for (int i = 0; i < 9; i++)
		ret[i + 1] = mode & (0400U >> i) ? letters[i] : '-';
	ret[10] = '\0';
	return ret;
}

/* What the name stands for, when it is still there. */
static void put_entry(
	struct json_writer *w, const struct file_watch *watch, const char *dir, const char *name)
{
	char text[CLOCK_TEXT_MAX], path[PATH_BYTES + 16];
	const char *last = strrchr(name, '/');
	struct stat st;

	if (file_watch_stat(watch, name, &st) < 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	json_key(w, "entry");
	json_open_object(w);
	json_field_cstr(w, "name", last ? last + 1 : name);
	json_field_cstr(w, "type",
		S_ISDIR(st.st_mode)   ? "FILE_TYPE_DIRECTORY"
		: S_ISLNK(st.st_mode) ? "FILE_TYPE_SYMLINK"
				      : "FILE_TYPE_FILE");
	json_field_cstr(w, "path", path);
	snprintf(text, sizeof(text), "%lld", (long long)st.st_size);
	json_field_cstr(w, "size", text);
	json_field_int(w, "mode", st.st_mode & 07777);
	json_field_cstr(w, "permissions", permissions(st.st_mode, text));
	json_field_cstr(w, "owner", "user");
	json_field_cstr(w, "group", "user");
	json_field_cstr(w, "modifiedTime",
		clock_format(
			(uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec,
			text));
	json_close(w);
}

static void put_event(struct json_writer *w, const struct file_event *v,
	const struct file_watch *watch, const char *dir)
{
	json_open_object(w);
	json_field_cstr(w, "name", v->name);
	json_field_cstr(w, "type", type_of(v->type));
	if (dir)
		put_entry(w, watch, dir, v->name);
	json_close(w);
}

/* ---- the stream --------------------------------------------------------------------- */

static void free_follower(uv_handle_t *h)
{
	struct follower *f = h->data;
	free(f->dir);
	free(f);
}

static struct call *end_follower(struct follower *f)
{
	struct call *c = f->call;
	c->work = NULL;
	c->ops = NULL;
	file_watch_close(f->watch);
	uv_close((uv_handle_t *)&f->keepalive, free_follower);
	return c;
}

static void send_frame(struct follower *f, unsigned char flags, const char *json, size_t len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	if (e2b_frame(&b, flags, json, len) == 0)
		f->full = http_stream_write(f->call->x, b.data, b.len) != 0;
}

/* The last message of a stream. */
static void finish(struct call *c, const char *code, const char *message)
{
	_cleanup_buffer_ struct buffer json = BUFFER_INIT(0), b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &json);
	json_open_object(&w);
	json_key(&w, "error");
	json_open_object(&w);
	json_field_cstr(&w, "code", code);
	json_field_cstr(&w, "message", message);
	json_close(&w);
	json_close(&w);
	if (json_writer_end(&w) == 0 && e2b_frame(&b, 2, json.data, json.len) == 0)
		http_stream_write(c->x, b.data, b.len);
	call_finish_stream(c);
}

static void pump(struct follower *f)
{
	struct file_event v;
	while (!f->full && file_watch_next(f->watch, &v)) {
		_cleanup_buffer_ struct buffer json = BUFFER_INIT(0);
		struct json_writer w;
		if (v.type == FILE_MISSED)
			continue; /* E2B has no word for it */
		json_writer_init(&w, &json);
		json_open_object(&w);
		json_key(&w, "filesystem");
		put_event(&w, &v, f->watch, f->dir);
		json_close(&w);
		if (json_writer_end(&w) == 0)
			send_frame(f, 0, json.data, json.len);
	}
}

static void on_news(void *owner)
{
	pump(owner);
}

static void on_session_gone(void *owner)
{
	struct follower *f = owner;
	f->watch = NULL;
	finish(end_follower(f), "unavailable", "the sandbox has ended");
}

static const struct file_watch_events watch_events = { on_news, on_session_gone };

static void on_keepalive(uv_timer_t *t)
{
	static const char json[] = "{\"keepalive\":{}}";
	struct follower *f = t->data;
	if (!f->full)
		send_frame(f, 0, json, sizeof(json) - 1);
}

static void on_drained(struct call *c)
{
	struct follower *f = c->work;
	f->full = false;
	pump(f);
}

static void on_gone(struct call *c)
{
	end_follower(c->work);
}

static const struct call_ops ops = { .on_drained = on_drained, .on_gone = on_gone };

static int begin(struct session *s, const json_t *request, const struct file_watch_events *events,
	void *owner, struct error *e, struct file_watch **ret)
{
	char path[PATH_BYTES];
	if (e2b_path(json_string_value(json_object_get(request, "path")), path, sizeof(path)) < 0)
		return error_set(e, -EINVAL, "the path is too long");
	return session_watch_files(s, path, json_is_true(json_object_get(request, "recursive")),
		events, owner, e, ret);
}

static const char *code_of(const struct error *e)
{
	return text_eq(e->slug, "not_a_directory") ? "invalid_argument" : e2b_connect_code(e);
}

static char *directory(const json_t *request)
{
	char path[PATH_BYTES];
	return e2b_path(json_string_value(json_object_get(request, "path")), path, sizeof(path)) < 0
		       ? NULL
		       : strdup(path);
}

void e2b_watch_stream(struct call *c, struct session *s, json_t *request)
{
	static const char started[] = "{\"start\":{}}";
	struct error e = { 0 };
	struct follower *f = calloc(1, sizeof(*f));

	http_stream_begin(c->x, 200, STREAM_TYPE, -1);
	if (!f) {
		call_cut_stream(c);
		return;
	}

	if (begin(s, request, &watch_events, f, &e, &f->watch) < 0) {
		free(f);
		finish(c, code_of(&e), e.text);
		return;
	}

	if (json_is_true(json_object_get(request, "includeEntry")))
		f->dir = directory(request);
	f->call = c;
	c->work = f;
	c->ops = &ops;
	uv_timer_init(session_loop(s), &f->keepalive);
	f->keepalive.data = f;
	uv_timer_start(&f->keepalive, on_keepalive, KEEPALIVE_MS, KEEPALIVE_MS);
	send_frame(f, 0, started, sizeof(started) - 1);
}

/* ---- polling ------------------------------------------------------------------------ */

static void create_watcher(struct call *c, struct session *s, const json_t *request)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct file_watch *watch;
	struct json_writer w;
	char id[16];

	if (begin(s, request, NULL, NULL, &e, &watch) < 0) {
		e2b_connect_error(c, code_of(&e), e.text);
		return;
	}

	snprintf(id, sizeof(id), "%u", file_watch_number(watch));
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "watcherId", id);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void give_events(struct call *c, struct file_watch *watch)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct file_event v;
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "events");
	json_open_array(&w);
	for (int i = 0; i < POLLED_AT_ONCE && file_watch_next(watch, &v); i++)
		if (v.type != FILE_MISSED)
			put_event(&w, &v, watch, NULL);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

bool e2b_watch(struct call *c, struct session *s, const char *method, json_t *request)
{
	const char *id = json_string_value(json_object_get(request, "watcherId"));
	uint64_t number = 0;

	if (text_eq(method, "CreateWatcher")) {
		create_watcher(c, s, request);
		return true;
	}

	if (!text_eq(method, "GetWatcherEvents") && !text_eq(method, "RemoveWatcher"))
		return false;
	struct file_watch *watch = id && text_parse_u64(id, 1, UINT32_MAX, &number) == 0
					   ? session_file_watch(s, (unsigned)number)
					   : NULL;
	if (!watch) {
		e2b_connect_error(c, "not_found", "there is no such watcher");
	} else if (text_eq(method, "GetWatcherEvents")) {
		give_events(c, watch);
	} else {
		file_watch_close(watch);
		call_respond_static(c, 200, "application/json", "{}", 2);
	}

	return true;
}
