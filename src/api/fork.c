/* Forks over HTTP. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/call.h"
#include "api/requests.h"
#include "json/json_write.h"

/* Somebody who waits for forks. */
struct asker {
	struct call *call;
	char session[CALL_ID_BYTES];
	bool asking, over;
};

static void on_gone(struct call *c)
{
	struct asker *a = c->work;
	struct session *s;
	if (!a->over && session_find(c->api->sessions, a->session, NULL, &s) == 0)
		session_travel_abandon(s, a);
	c->work = NULL;
	c->ops = NULL;
	free(a);
}

static const struct call_ops ops = { .on_gone = on_gone };

static void put_forks(struct json_writer *w, struct session *const *sessions, unsigned n)
{
	json_open_object(w);
	json_key(w, "sessions");
	json_open_array(w);
	for (unsigned i = 0; i < n; i++)
		answer_put_session(w, sessions[i]);
	json_close(w);
	json_field_cstr(w, "same_numbers", n ? session_fork_note(sessions[0]) : "");
	json_close(w);
}

static void on_done(void *userdata, const struct error *e, struct session *const *sessions, unsigned n)
{
	struct asker *a = userdata;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	a->over = true;
	if (e) {
		call_error(a->call, e);
	} else {
		json_writer_init(&w, &b);
		put_forks(&w, sessions, n);
		call_respond(a->call, 201, &w, &b);
	}
	if (!a->asking)
		free(a);
}

static void ask(struct call *c, struct session *s, const struct fork_body *q)
{
	struct error e = { 0 };
	struct fork_request request = { .at = q->at, .count = q->count ? (unsigned)q->count : 1, .same_numbers = q->has_reseed && !q->reseed };
	struct asker *a = calloc(1, sizeof(*a));
	if (!a) {
		call_problem(c, 503, "no_memory", "the server is short of memory", "Try again later.");
		return;
	}
	a->call = c;
	a->asking = true;
	snprintf(a->session, sizeof(a->session), "%s", c->id);
	c->ops = &ops;
	c->work = a;
	int r = session_fork(s, &request, on_done, a, &e);
	a->asking = false;
	if (r < 0) {
		a->over = true;
		on_gone(c);
		call_error(c, &e);
	} else if (a->over) {
		free(a);
	}
}

void handle_fork(struct call *c)
{
	struct error e = { 0 };
	struct fork_body q = { 0 };
	struct session *s;
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = api_check_open(c->api, &e);
	if (!r)
		r = call_session(c, &e, &s);
	if (!r)
		r = fields_decode_text(&fork_fields, body, len, &q, &e);
	if (!r)
		r = api_check_quota(c->api, c->owner, &e);
	http_drop_body(c->x);
	if (r < 0)
		call_error(c, &e);
	else
		ask(c, s, &q);
	fields_finish(&fork_fields, &q);
}
