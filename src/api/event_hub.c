#include "api/event_hub.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/event_json.h"
#include "base/clock.h"
#include "base/text.h"
#include "http/sse.h"
#include "json/json_write.h"

/* Events are sent together after this long: a cell does not wait for those who look on. */
enum { GATHER_MS = 5, LINK_EXPIRED = 4403, SERVER_ENDS = 1001 };

/* What all followers are sent in one turn of the loop, and what passing over an event counts. */
enum { TURN_BYTES = 256 * 1024, PASSED_BYTES = 32 };

/* One token must not take the places of all others. */
enum { FOLLOWERS_PER_TOKEN = LIMIT_FOLLOWERS / 4 };

struct follower {
	TAILQ_ENTRY(follower) link;
	struct event_ring *ring;
	struct call *call;                /* of a stream of events; else NULL */
	struct http_ws *ws;               /* of a WebSocket; else NULL */
	char session[SESSION_ID_LEN + 1]; /* "": all */
	bool quiet, full;
	uint64_t until_ns;    /* the link that it came with ends; 0: it has a token */
	struct hub_event *at; /* the next to look at; NULL: none yet */
	uint64_t lost;        /* events that it did not get */
};

/*
 * The events of one token. Their numbers, and how many are kept, tell nothing about other tokens.
 */
struct event_ring {
	LIST_ENTRY(event_ring) link;
	struct event_hub *hub;
	uint64_t owner, last;
	TAILQ_HEAD(, hub_event) events;
	unsigned n, followers_n;
	size_t bytes;
};

struct event_hub {
	struct api *api;
	uv_timer_t timer;
	uint64_t epoch; /* tells the events of this server from those of one before it */
	LIST_HEAD(, event_ring) rings; /* one for each token that had an event or a follower */
	unsigned n, followers_n;       /* of all rings */
	size_t bytes;
	TAILQ_HEAD(, follower) followers; /* those that were sent something last are behind */
	bool armed;
};

static bool is_over(const struct follower *f)
{
	return f->until_ns && clock_now_ns() >= f->until_ns;
}

static bool wants(const struct follower *f, const struct hub_event *ev)
{
	bool loud = ev->kind == SESSION_EVENT_OUTPUT || ev->kind == SESSION_EVENT_DISPLAY;
	if (is_over(f))
		return false;
	return !(loud && f->quiet) && (!f->session[0] || text_eq(f->session, ev->session));
}

/* ---- keeping events ---------------------------------------------------------------- */

/* NULL without memory. */
static struct event_ring *ring_of(struct event_hub *h, uint64_t owner)
{
	struct event_ring *r;
	LIST_FOREACH(r, &h->rings, link)
	if (r->owner == owner)
		return r;

	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->hub = h;
	r->owner = owner;
	TAILQ_INIT(&r->events);
	LIST_INSERT_HEAD(&h->rings, r, link);
	return r;
}

static void drop_oldest(struct event_ring *r)
{
	struct event_hub *h = r->hub;
	struct hub_event *ev = TAILQ_FIRST(&r->events);
	struct follower *f;

	TAILQ_FOREACH (f, &h->followers, link)
		if (f->at == ev) {
			f->at = TAILQ_NEXT(ev, link);
			f->lost += wants(f, ev);
		}
	TAILQ_REMOVE(&r->events, ev, link);
	r->n--;
	h->n--;
	r->bytes -= ev->bytes;
	h->bytes -= ev->bytes;
	free(ev);
}

/*
 * The token that keeps the most loses its oldest event: one that makes many pushes out no events of
 * the others.
 */
static struct event_ring *largest_ring(const struct event_hub *h, bool by_bytes)
{
	struct event_ring *r, *found = LIST_FIRST(&h->rings);
	LIST_FOREACH(r, &h->rings, link)
	if (by_bytes ? r->bytes > found->bytes : r->n > found->n)
		found = r;
	return found;
}

static size_t pump(struct follower *f, size_t most);
static void end_follower(struct follower *f, unsigned code, const char *why);
static void arm(struct event_hub *h, uint64_t ms);

static void on_timer(uv_timer_t *t)
{
	struct event_hub *h = t->data;
	size_t left = TURN_BYTES;
	h->armed = false;
	for (unsigned n = h->followers_n; n && left && !TAILQ_EMPTY(&h->followers); n--) {
		struct follower *f = TAILQ_FIRST(&h->followers);
		TAILQ_REMOVE(&h->followers, f, link);
		TAILQ_INSERT_TAIL(&h->followers, f, link);
		left -= pump(f, left);
		if (is_over(f))
			end_follower(f, LINK_EXPIRED, "the link has expired");
	}
	if (!left)
		arm(h, 0); /* the others in the next turn */
}

static void arm(struct event_hub *h, uint64_t ms)
{
	if (h->armed || !h->followers_n)
		return;
	h->armed = true;
	uv_timer_start(&h->timer, on_timer, ms, 0);
}

static void on_event(void *userdata, const struct session_event *from)
{
	struct event_hub *h = userdata;
	struct event_ring *r = ring_of(h, from->owner);
	struct hub_event *ev = r ? hub_event_create(from) : NULL;
	struct follower *f;

	if (!ev)
		return;
	ev->number = ++r->last;
	TAILQ_INSERT_TAIL(&r->events, ev, link);
	r->n++;
	h->n++;
	r->bytes += ev->bytes;
	h->bytes += ev->bytes;
	TAILQ_FOREACH (f, &h->followers, link)
		if (!f->at && f->ring == r)
			f->at = ev;
	while (h->n > LIMIT_HUB_EVENTS || h->bytes > LIMIT_HUB_BYTES)
		drop_oldest(largest_ring(h, h->bytes > LIMIT_HUB_BYTES));
	arm(h, GATHER_MS);
}

/* ---- sending ------------------------------------------------------------------------ */

static void id_of(const struct event_hub *h, uint64_t number, char id[HUB_ID_MAX])
{
	snprintf(id, HUB_ID_MAX, "%" PRIx64 "-%" PRIu64, h->epoch, number);
}

/*
 * Writes an event in the format of the follower: server-sent events, or WebSocket messages, which
 * are sent one by one.
 */
static int put(struct follower *f, struct buffer *out, const char *type, const char *id,
	const struct buffer *json)
{
	if (f->call)
		return sse_write(out, type, id, json->data, json->len);
	int r = http_ws_send(f->ws, json->data, json->len);
	f->full |= r != 0;
	return r < 0 ? r : 0;
}

static int put_event(struct follower *f, struct buffer *out, const struct hub_event *ev)
{
	_cleanup_buffer_ struct buffer json = BUFFER_INIT(0);
	char id[HUB_ID_MAX];
	id_of(f->ring->hub, ev->number, id);
	int r = hub_event_write(ev, id, &json);
	return r < 0 ? r : put(f, out, session_event_names[ev->kind], id, &json);
}

/* `hello` at the start, `lost` when events are missing. */
static int put_note(struct follower *f, struct buffer *out, const char *type, uint64_t lost)
{
	_cleanup_buffer_ struct buffer json = BUFFER_INIT(0);
	struct json_writer w;
	char id[HUB_ID_MAX];
	id_of(f->ring->hub, f->at ? f->at->number - 1 : f->ring->last, id);
	json_writer_init(&w, &json);
	json_open_object(&w);
	json_field_cstr(&w, "type", type);
	json_field_cstr(&w, "event_id", id);
	if (lost)
		json_field_uint(&w, "lost", lost);
	json_close(&w);
	return json_writer_end(&w) < 0 ? -ENOMEM : put(f, out, type, id, &json);
}

/*
 * Sends until the connection is full, `most` bytes are sent, or there is no more. Returns how much
 * of `most` it took.
 */
static size_t pump(struct follower *f, size_t most)
{
	_cleanup_buffer_ struct buffer out = BUFFER_INIT(0);
	size_t sent = 0;

	if (f->lost && !f->full) {
		uint64_t lost = f->lost;
		f->lost = 0;
		put_note(f, &out, "lost", lost);
	}

	while (f->at && !f->full && sent < most) {
		const struct hub_event *ev = f->at;
		f->at = TAILQ_NEXT(ev, link);
		sent += PASSED_BYTES;
		if (!wants(f, ev))
			continue;
		put_event(f, &out, ev);
		sent += ev->bytes;
	}

	if (f->call && out.len && http_stream_write(f->call->x, out.data, out.len) != 0)
		f->full = true; /* on_drained or on_gone follows */
	return sent < most ? sent : most;
}

/*
 * A follower that has just come, or that read what it had: it goes on at once, and with the others.
 */
static void pump_now(struct follower *f)
{
	pump(f, TURN_BYTES / 4);
	if (f->at && !f->full)
		arm(f->ring->hub, 0);
}

/* ---- followers ---------------------------------------------------------------------- */

static void leave(struct follower *f)
{
	struct event_ring *r = f->ring;
	TAILQ_REMOVE(&r->hub->followers, f, link);
	r->hub->followers_n--;
	r->followers_n--;
	free(f);
}

static void on_stream_drained(struct call *c)
{
	struct follower *f = c->work;
	f->full = false;
	pump_now(f);
}

static void on_stream_gone(struct call *c)
{
	leave(c->work);
	c->work = NULL;
	c->ops = NULL;
}

static const struct call_ops stream_ops = { .on_drained = on_stream_drained,
	.on_gone = on_stream_gone };

static void on_socket_message(struct http_ws *ws, const char *text, size_t len, void *userdata)
{
	(void)ws, (void)text, (void)len, (void)userdata; /* there is nothing to say */
}

static void on_socket_drained(struct http_ws *ws, void *userdata)
{
	struct follower *f = userdata;
	(void)ws;
	f->full = false;
	pump_now(f);
}

static void on_socket_closed(struct http_ws *ws, unsigned code, void *userdata)
{
	(void)ws, (void)code;
	leave(userdata);
}

static const struct http_ws_handler socket_handler = { .on_message = on_socket_message,
	.on_drained = on_socket_drained,
	.on_closed = on_socket_closed };

/*
 * Where a follower goes on that has seen events up to this id. Those of another server, or that are
 * gone, are lost.
 */
static void resume(struct follower *f, const char *after)
{
	struct event_ring *r = f->ring;
	uint64_t epoch, number;
	struct hub_event *ev;

	if (!after)
		return;
	if (sscanf(after, "%" SCNx64 "-%" SCNu64, &epoch, &number) != 2 || epoch != r->hub->epoch ||
		number > r->last) {
		f->lost = 1;
		return;
	}

	TAILQ_FOREACH (ev, &r->events, link)
		if (ev->number > number)
			break;
	f->at = ev;
	uint64_t first = ev ? ev->number : r->last + 1;
	f->lost = first > number + 1 ? first - number - 1 : 0;
}

static struct follower *join(struct event_hub *h, const struct event_filter *filter)
{
	struct event_ring *r = ring_of(h, filter->owner);
	/* owner 0: a server without tokens */
	bool place = r && h->followers_n < LIMIT_FOLLOWERS &&
		     (!r->owner || r->followers_n < FOLLOWERS_PER_TOKEN);
	struct follower *f = place ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	f->ring = r;
	f->quiet = filter->quiet;
	f->until_ns = filter->until_ns;
	snprintf(f->session, sizeof(f->session), "%s", filter->session ? filter->session : "");
	TAILQ_INSERT_HEAD(&h->followers, f, link);
	h->followers_n++;
	r->followers_n++;
	resume(f, filter->after);
	return f;
}

static void greet(struct follower *f)
{
	_cleanup_buffer_ struct buffer out = BUFFER_INIT(0);
	put_note(f, &out, "hello", 0);
	if (f->call && http_stream_write(f->call->x, out.data, out.len) != 0)
		f->full = true;
	pump_now(f);
}

void event_hub_follow(struct event_hub *h, struct call *c, const struct event_filter *filter)
{
	struct follower *f = join(h, filter);
	if (!f) {
		call_problem(c, 503, "too_many_followers",
			"the maximum number of clients already follow the events of this server",
			"Try again later, or use one connection: it can follow all sessions of a token.");
		return;
	}

	if (!http_wants_websocket(c->x)) {
		f->call = c;
		c->ops = &stream_ops;
		c->work = f;
		http_sse_begin(c->x);
		greet(f);
		return;
	}

	struct http_exchange *x = c->x;
	call_release(c);
	f->ws = http_upgrade(x, NULL, &socket_handler, f);
	if (f->ws)
		greet(f);
	else
		leave(f);
}

/* ---- life ---------------------------------------------------------------------------- */

/* A stream ends with its follower; a WebSocket's follower goes when the socket is closed. */
static void end_follower(struct follower *f, unsigned code, const char *why)
{
	struct call *c = f->call;
	if (!c) {
		http_ws_close(f->ws, code, why);
		return;
	}
	on_stream_gone(c);
	call_finish_stream(c);
}

void event_hub_drain(struct event_hub *h)
{
	struct follower *f, *next;
	for (f = h ? TAILQ_FIRST(&h->followers) : NULL; f; f = next) {
		next = TAILQ_NEXT(f, link);
		if (f->call)
			pump(f, TURN_BYTES);
		end_follower(f, SERVER_ENDS, "the server is shutting down");
	}
}

int event_hub_create(struct api *a, uv_loop_t *loop, struct event_hub **ret)
{
	struct event_hub *h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->api = a;
	h->epoch = clock_wall_ns() / NSEC_PER_MSEC;
	LIST_INIT(&h->rings);
	TAILQ_INIT(&h->followers);
	uv_timer_init(loop, &h->timer);
	h->timer.data = h;
	sessions_watch(a->sessions, on_event, h);
	*ret = h;
	return 0;
}

static void free_hub(uv_handle_t *t)
{
	struct event_hub *h = t->data;
	struct event_ring *r;
	while ((r = LIST_FIRST(&h->rings))) {
		while (r->n)
			drop_oldest(r);
		LIST_REMOVE(r, link);
		free(r);
	}
	free(h);
}

void event_hub_destroy(struct event_hub *h)
{
	if (h)
		uv_close((uv_handle_t *)&h->timer, free_hub);
}
