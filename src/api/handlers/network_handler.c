/* GET …/network: what a session tried to reach. */
#include "api/call.h"
#include "base/clock.h"
#include "network/proxy_protocol.h"
#include "session/network_record.h"
#include "json/json_write.h"

static void put_attempt(struct json_writer *w, const struct network_attempt *a)
{
	char time[CLOCK_TEXT_MAX];
	json_open_object(w);
	json_field_uint(w, "number", a->number);
	json_field_cstr(w, "time", clock_format(a->wall_ns, time));
	json_field_cstr(w, "target", a->target);
	json_field_cstr(w, "verdict", network_verdict_name((enum network_verdict)a->verdict));
	json_field_cstr(w, "detail", a->detail);
	json_field_bool(w, "open", a->open);
	json_field_uint(w, "seconds", a->seconds);
	json_field_uint(w, "sent_bytes", a->sent);
	json_field_uint(w, "received_bytes", a->received);
	json_close(w);
}

void handle_network(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	struct json_writer w;
	struct session *s;

	if (call_session(c, &e, &s) < 0) {
		call_error(c, &e);
		return;
	}

	const struct network_record *r = session_network_record(s);
	uint64_t total = r ? r->total : 0;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "connections");
	json_open_array(&w);
	for (uint64_t n = total > LIMIT_NETWORK_ATTEMPTS ? total - LIMIT_NETWORK_ATTEMPTS : 0;
		n < total; n++)
		put_attempt(&w, network_record_get(r, n + 1));
	json_close(&w);
	json_field_uint(&w, "total", total);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}
