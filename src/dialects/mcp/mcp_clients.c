/* MCP clients that the server remembers: handshakes of the legacy era, and leases. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"
#include "dialects/mcp/mcp_routes.h"

/*
 * Makes room for one more client of the token, among that token's own. False: all of them have a
 * stream.
 */
static bool make_room(struct mcp *home, uint64_t owner)
{
	struct mcp_client *c, *oldest = NULL;
	unsigned n = 0;

	TAILQ_FOREACH (c, &home->clients, link) {
		if (c->owner != owner)
			continue;
		n++;
		if (!oldest && !c->stream)
			oldest = c;
	}
	if (n >= MCP_CLIENTS_MAX && oldest)
		mcp_client_destroy(oldest);
	return n < MCP_CLIENTS_MAX || oldest;
}

struct mcp_client *mcp_client_create(struct mcp *home, uint64_t owner)
{
	struct mcp_client *c = make_room(home, owner) ? calloc(1, sizeof(*c)) : NULL;
	if (!c)
		return NULL;
	node_make_id(c->id, MCP_CLIENT_ID);
	c->home = home;
	c->owner = owner;
	c->used_ns = clock_now_ns();
	LIST_INIT(&c->sessions);
	TAILQ_INSERT_TAIL(&home->clients, c, link);
	return c;
}

struct mcp_client *mcp_client_find(struct mcp *home, uint64_t owner, const char *id)
{
	struct mcp_client *c;
	TAILQ_FOREACH (c, &home->clients, link) {
		if (c->owner != owner || !text_eq(c->id, id))
			continue;
		c->used_ns = clock_now_ns();
		TAILQ_REMOVE(&home->clients, c, link);
		TAILQ_INSERT_TAIL(&home->clients, c, link);
		return c;
	}
	return NULL;
}

void mcp_client_own(struct mcp_client *c, const char *session)
{
	struct mcp_owned *o, *next;
	struct session *s;
	for (o = LIST_FIRST(&c->sessions); o; o = next) { /* sessions that have ended meanwhile */
		next = LIST_NEXT(o, link);
		if (session_find(c->home->api->sessions, o->id, NULL, &s) < 0) {
			LIST_REMOVE(o, link);
			free(o);
		}
	}

	o = calloc(1, sizeof(*o));
	if (!o)
		return; /* the session's idle timeout ends it */
	snprintf(o->id, sizeof(o->id), "%s", session);
	LIST_INSERT_HEAD(&c->sessions, o, link);
}

static void end_sessions(struct mcp_client *c)
{
	struct mcp_owned *o;
	while ((o = LIST_FIRST(&c->sessions))) {
		LIST_REMOVE(o, link);
		if (!c->home->api->draining)
			api_end_later(c->home->api, o->id);
		free(o);
	}
}

void mcp_client_destroy(struct mcp_client *c)
{
	struct mcp_request *r, *next;
	for (r = TAILQ_FIRST(&c->home->requests); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (r->client != c)
			continue;
		if (c->stream) /* nobody could hear its answer */
			mcp_cancel(r);
		else
			r->client = NULL;
	}

	end_sessions(c);
	if (c->stream)
		outbox_finish(&c->out);
	TAILQ_REMOVE(&c->home->clients, c, link);
	free(c);
}

static bool is_waiting(const struct mcp_client *c)
{
	struct mcp_request *r;
	TAILQ_FOREACH (r, &c->home->requests, link)
		if (r->client == c)
			return true;
	return c->stream && !outbox_empty(&c->out);
}

void mcp_clients_drain(struct mcp *home)
{
	struct mcp_client *c, *next;
	for (c = TAILQ_FIRST(&home->clients); c; c = next) {
		struct call *stream = c->stream;
		next = TAILQ_NEXT(c, link);
		if (!stream || is_waiting(c))
			continue;
		stream->work = NULL;
		stream->ops = NULL;
		mcp_client_destroy(c);
		call_finish_stream(stream);
	}
}

/* ---- the lease --------------------------------------------------------------------------- */

static void on_gone(struct call *call)
{
	struct mcp_client *c = call->work;
	call->work = NULL;
	call->ops = NULL;
	mcp_client_destroy(c);
}

static int send_piece(void *target, const char *data, size_t len)
{
	return http_stream_write(target, data, len);
}

static const struct call_ops lease_ops = { .on_gone = on_gone };

void handle_mcp_lease(struct call *call)
{
	struct error e = { 0 };
	if (api_check_open(call->api, &e) < 0) {
		call_error(call, &e);
		return;
	}

	struct mcp_client *c = mcp_client_create(mcp_home(call->api), call->owner);
	if (!c) {
		call_problem(call, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	c->stream = call;
	c->lease = true;
	outbox_init(&c->out, send_piece, call->x);
	call->ops = &lease_ops;
	call->work = c;
	http_sse_begin(call->x);
	http_sse_event(call->x, "lease", NULL, c->id, MCP_CLIENT_ID);
}
