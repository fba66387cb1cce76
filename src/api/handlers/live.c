/*
 * The live view: a page, and a WebSocket that brings it what changed. The page asks for each frame
 * ("next") when it has shown the one before, so a slow one gets fewer frames and nothing piles up.
 * Mouse and keyboard come by POST …/input, as everybody's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/schema/requests_display.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "live_source.h"
#include "session/display/session_display.h"
#include "json/json_write.h"

enum {
	LINK_SECONDS = 3600,
	GAP_MS = 30,
	HEAD_BYTES = 12,
	SESSION_GONE = 4404,
	LINK_EXPIRED = 4403,
	DISPLAY_GONE = 1011
};

/* Watchers of the live view, apart from those of recordings. */
static const uint32_t first_watcher = 0x80000000U;

struct live {
	struct api *api;
	struct http_ws *ws;
	uint64_t owner;
	char session[SESSION_ID_LEN + 1];
	uint32_t watcher, question; /* question 0: none is open */
	uv_timer_t expiry;          /* of the link it was opened with; never starts without one */
};

static void put16(uint8_t *out, uint32_t v)
{
	out[0] = (uint8_t)v;
	out[1] = (uint8_t)(v >> 8);
}

static void on_frame(void *userdata, const struct display_reply *r)
{
	struct live *l = userdata;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	const struct frame_info *f = &r->frame;
	const uint32_t numbers[] = { f->x, f->y, f->part_width, f->part_height, f->width,
		f->height };
	uint8_t head[HEAD_BYTES];

	l->question = 0;
	if (r->type != DISPLAY_SAY_FRAME) {
		http_ws_close(l->ws, DISPLAY_GONE, r->code);
		return;
	}

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		put16(head + i * 2, numbers[i]);
	if (buffer_append(&b, head, sizeof(head)) < 0 || buffer_append(&b, r->data, r->len) < 0)
		http_ws_close(l->ws, DISPLAY_GONE, "out of memory");
	else
		http_ws_send_binary(l->ws, b.data, b.len);
}

static void on_message(struct http_ws *ws, const char *text, size_t len, void *userdata)
{
	struct live *l = userdata;
	struct error e = { 0 };
	struct session *s;

	(void)text, (void)len; /* there is but one thing to say */
	if (api_session(l->api, l->session, l->owner, &e, &s) < 0) {
		http_ws_close(ws, SESSION_GONE, "the session has ended");
		return;
	}

	if (l->question)
		return;
	struct frame_options o = { .watcher = l->watcher, .gap_ms = GAP_MS };
	int64_t r = session_display_ask(s, DISPLAY_ASK_FRAME, &o, sizeof(o), 0, on_frame, l, &e);
	if (r < 0)
		http_ws_close(ws, DISPLAY_GONE, e.slug);
	else
		l->question = (uint32_t)r;
}

static void free_live(uv_handle_t *h)
{
	free(h->data);
}

static void on_closed(struct http_ws *ws, unsigned code, void *userdata)
{
	struct live *l = userdata;
	struct session *s;
	(void)ws, (void)code;
	if (l->question && session_find(l->api->sessions, l->session, NULL, &s) == 0)
		session_display_forget(s, l->question);
	sessions_display_forget(l->api->sessions, l);
	uv_close((uv_handle_t *)&l->expiry, free_live);
}

/* Who has no more than a link sees no more than it allows: the view ends with it. */
static void on_expired(uv_timer_t *t)
{
	struct live *l = t->data;
	http_ws_close(l->ws, LINK_EXPIRED, "the link has expired");
}

static void watch_expiry(struct live *l, uint64_t expires_ns)
{
	uint64_t now = clock_now_ns();
	uint64_t left_ms = expires_ns > now ? (expires_ns - now) / NSEC_PER_MSEC : 0;
	uv_update_time(l->expiry.loop);
	uv_timer_start(&l->expiry, on_expired, left_ms, 0);
}

static const struct http_ws_handler handler = { .on_message = on_message, .on_closed = on_closed };

/* The session, when it has a display; else the call is answered. */
static struct session *session_with_display(struct call *c, struct session_info *info)
{
	struct error e = { 0 };
	struct session *s;
	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return NULL;
	}
	session_info(s, info);
	if (info->has_display)
		return s;
	call_problem(c, 409, "no_display", "the session has no display",
		"Make a session with \"display\": true.");
	return NULL;
}

/*
 * Refuses control by mouse and keyboard unless the client may have it. Returns true if the call was
 * refused.
 */
static bool refuse_control(struct call *c, bool wanted)
{
	if (wanted && c->api->no_live_control)
		call_problem(c, 403, "view_only", "live views of this server allow viewing only",
			"Leave control out; or start the server with --live-control.");
	else if (wanted && c->by_link && !c->may_control)
		call_problem(c, 403, "view_only", "this link allows viewing only",
			"Ask for a link that was created with \"control\": true.");
	else
		return false;
	return true;
}

/* NULL: the call is answered. */
static const struct live_link *add_link(
	struct call *c, const char *session, bool control, bool reads, double ttl_s)
{
	struct live_link wanted = { .owner = c->owner, .control = control, .reads = reads };
	struct error e = { 0 };

	snprintf(wanted.session, sizeof(wanted.session), "%s", session);
	const struct live_link *link = live_links_add(&c->api->live_links, &wanted, ttl_s);
	if (link)
		return link;
	error_set(
		&e, -EBUSY, "the maximum of %d links to sessions already exists", LIMIT_LIVE_LINKS);
	error_remedy(
		&e, "Try again when some links have expired; create links with a shorter ttl_s.");
	error_slug(&e, "too_many_links");
	call_error(c, &e);
	return NULL;
}

static void put_expiry(struct json_writer *w, double ttl_s)
{
	char expires[CLOCK_TEXT_MAX];
	json_field_cstr(
		w, "expires", clock_format(clock_wall_ns() + (uint64_t)(ttl_s * 1e9), expires));
}

void handle_live_link(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct live_link_request q = { 0 };
	struct error e = { 0 };
	struct session_info info;
	struct json_writer w;
	char url[160];
	size_t len;
	const char *body = http_body(c->x, &len);

	if (fields_decode_text(&live_link_fields, len ? body : "{}", len ? len : 2, &q, &e) < 0) {
		call_error(c, &e);
		return;
	}

	if (refuse_control(c, q.control) || !session_with_display(c, &info))
		return;
	double ttl = q.ttl_s > 0 ? q.ttl_s : LINK_SECONDS;
	const struct live_link *link = add_link(c, info.id, q.control, false, ttl);
	if (!link)
		return;

	snprintf(url, sizeof(url), "/v1/sessions/%s/live?key=%s%s", info.id, link->key,
		q.control ? "&control=1" : "");
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "url", url);
	json_field_bool(&w, "control", q.control);
	put_expiry(&w, ttl);
	json_close(&w);
	call_respond(c, 201, &w, &b);
}

void handle_share(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct share_request q = { 0 };
	struct error e = { 0 };
	struct session *s;
	struct json_writer w;
	char url[160];

	if (call_begin(c, &share_fields, &q, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}

	double ttl = q.ttl_s > 0 ? q.ttl_s : LINK_SECONDS;
	const struct live_link *link = add_link(c, c->id, false, true, ttl);
	if (!link)
		return;

	/* the key is behind the #: browsers send that part to no server */
	snprintf(url, sizeof(url), "/#/shared/%s/%s", link->session, link->key);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "url", url);
	json_field_cstr(&w, "key", link->key);
	put_expiry(&w, ttl);
	json_close(&w);
	call_respond(c, 201, &w, &b);
}

void handle_live(struct call *c)
{
	struct live_query q = { 0 };
	struct error e = { 0 };
	struct session_info info;

	if (fields_decode_query(&live_query_fields, http_query(c->x), &q, &e) < 0) {
		call_error(c, &e);
		return;
	}

	bool control = q.control;
	/* the page reads the requested options from its own address */
	fields_finish(&live_query_fields, &q);
	if (refuse_control(c, control) || !session_with_display(c, &info))
		return;
	http_add_header(c->x, "Referrer-Policy", "no-referrer"); /* the address may be a secret */
	http_add_header(c->x, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'self'");
	call_respond_static(c, 200, "text/html; charset=utf-8", live_sources[0].text,
		strlen(live_sources[0].text));
}

void handle_live_socket(struct call *c)
{
	static uint32_t last;
	struct session_info info;

	if (!session_with_display(c, &info))
		return;
	if (!http_wants_websocket(c->x)) {
		http_add_header(c->x, "Upgrade", "websocket");
		call_problem(c, 426, "upgrade_required", "this address supports WebSocket only",
			"Open …/live in a browser.");
		return;
	}

	struct live *l = calloc(1, sizeof(*l));
	if (!l) {
		call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
		return;
	}

	l->api = c->api;
	l->owner = c->owner;
	l->watcher = first_watcher | (++last & (first_watcher - 1));
	snprintf(l->session, sizeof(l->session), "%s", info.id);
	uv_timer_init(c->api->timer.loop, &l->expiry);
	l->expiry.data = l;
	struct http_exchange *x = c->x;
	uint64_t expires_ns = c->by_link ? c->link_expires_ns : 0;
	call_release(c);
	l->ws = http_upgrade(x, NULL, &handler, l);
	if (!l->ws)
		uv_close((uv_handle_t *)&l->expiry, free_live);
	else if (expires_ns)
		watch_expiry(l, expires_ns);
}
