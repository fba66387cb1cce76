#include "api/handlers/history_call.h"

#include <stdio.h>
#include <stdlib.h>

static void on_gone(struct call *c)
{
	struct history_call *h = c->work;
	struct session *s;
	if (!h->over && session_find(c->api->sessions, h->session, NULL, &s) == 0)
		session_history_abandon(s, h);

	c->work = NULL;
	c->ops = NULL;
	free(h);
}

static const struct call_ops ops = { .on_gone = on_gone };

struct history_call *history_call_new(
	struct call *c, const struct session *s, enum history_answer answer)
{
	struct session_info info;
	struct history_call *h = calloc(1, sizeof(*h));
	if (!h) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return NULL;
	}

	session_info(s, &info);
	snprintf(h->session, sizeof(h->session), "%s", info.id);
	h->call = c;
	h->answer = answer;
	h->asking = true;
	c->ops = &ops;
	c->work = h;
	return h;
}

void history_call_asked(struct history_call *h, int r, const struct error *e)
{
	struct call *c = h->call;
	h->asking = false;
	if (r < 0) {
		h->over = true;
		on_gone(c);
		call_error(c, e);
	} else if (h->over) {
		free(h);
	}
}

struct call *history_call_begin_answer(struct history_call *h)
{
	h->over = true;
	return h->call;
}

void history_call_end_answer(struct history_call *h)
{
	if (!h->asking)
		free(h);
}
