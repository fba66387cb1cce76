#include "api/handlers/files_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/schema/requests.h"
#include "api/workspace.h"
#include "session/files/file_watch.h"
#include "json/json_write.h"

struct follower {
	struct call *call;
	struct file_watch *watch;
	bool full; /* the client is behind: events wait in the watch */
};

static void destroy(struct follower *f)
{
	f->call->work = NULL;
	f->call->ops = NULL;
	file_watch_close(f->watch);
	free(f);
}

static void send_event(struct follower *f, const struct file_event *v)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "type", file_event_name(v->type));
	if (v->type != FILE_MISSED)
		json_field_cstr(&w, "name", v->name);
	json_close(&w);
	if (json_writer_end(&w) == 0)
		f->full = http_sse_event(
				  f->call->x, file_event_name(v->type), NULL, b.data, b.len) != 0;
}

static void pump(struct follower *f)
{
	struct file_event v;
	while (!f->full && file_watch_next(f->watch, &v))
		send_event(f, &v);
}

static void on_news(void *owner)
{
	pump(owner);
}

static void on_session_gone(void *owner)
{
	struct follower *f = owner;
	struct call *c = f->call;
	f->watch = NULL;
	destroy(f);
	call_finish_stream(c);
}

static const struct file_watch_events watch_events = { on_news, on_session_gone };

static void on_drained(struct call *c)
{
	struct follower *f = c->work;
	f->full = false;
	pump(f);
}

static void on_gone(struct call *c)
{
	destroy(c->work);
}

static const struct call_ops ops = { .on_drained = on_drained, .on_gone = on_gone };

static int begin(struct follower *f, const struct list_query *q, struct error *e)
{
	struct session *s;
	const char *below = q->path && strcmp(q->path, ".") ? q->path : "";
	int r = *below ? workspace_check_path(below, strlen(below), e) : 0;
	if (r == 0)
		r = call_session(f->call, e, &s);
	return r < 0 ? r
		     : session_watch_files(s, *below ? below : ".", q->recursive, &watch_events, f,
			       e, &f->watch);
}

void files_watch(struct call *c, const struct list_query *q)
{
	struct error e = { 0 };
	struct follower *f = calloc(1, sizeof(*f));

	if (!f) {
		call_no_memory(c);
		return;
	}

	f->call = c;
	if (begin(f, q, &e) < 0) {
		free(f);
		call_error(c, &e);
		return;
	}

	c->work = f;
	c->ops = &ops;
	http_sse_begin(c->x);
	f->full = http_sse_event(c->x, "started", NULL, "{}", 2) != 0;
}
