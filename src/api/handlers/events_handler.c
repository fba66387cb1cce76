/* GET /v1/events: what happens in the sessions of a token, as it happens. */
#include "api/call.h"
#include "api/event_hub.h"
#include "api/schema/requests_console.h"

void handle_events(struct call *c)
{
	struct events_query q = { 0 };
	struct error e = { 0 };
	struct session *s;
	int r = api_check_open(c->api, &e);

	if (!r)
		r = fields_decode_query(&events_query_fields, http_query(c->x), &q, &e);
	if (!r && q.session)
		r = api_session(c->api, q.session, c->owner, &e, &s);
	if (r < 0) {
		call_error(c, &e);
	} else {
		const char *last = http_header(c->x, "Last-Event-ID");
		event_hub_follow(c->api->hub, c,
			&(struct event_filter){ .owner = c->owner,
				.session = c->by_link ? c->id : q.session,
				.until_ns = c->by_link ? c->link_expires_ns : 0,
				.quiet = q.has_output && !q.output,
				.after = q.after ? q.after : last });
	}

	fields_finish(&events_query_fields, &q);
}
