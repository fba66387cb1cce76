/* A session's network as the daemon sees it: what the guest is told about it, and what it tried. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "network/proxy.h"
#include "session/internal.h"
#include "session/network_record.h"

/* of one session; a loop of connections must not fill the disk with lines */
enum { LOG_LINES = 60, LOG_WINDOW_S = 10 };

/*
 * Programs that know proxies find this one; it takes HTTP and SOCKS on the same port. What listens
 * in the session itself is reached directly. ALL_PROXY is HTTP as well: some clients fail at once
 * on a SOCKS address when they lack a module for it.
 */
#define PROXY_URL "http://" JAIL_PROXY_ADDRESS ":3128"
_Static_assert(JAIL_PROXY_PORT == 3128, "the port in PROXY_URL");
static const char *const proxy_variables[] = { "http_proxy=" PROXY_URL, "https_proxy=" PROXY_URL,
	"all_proxy=" PROXY_URL, "HTTP_PROXY=" PROXY_URL, "HTTPS_PROXY=" PROXY_URL,
	"ALL_PROXY=" PROXY_URL, "no_proxy=localhost,127.0.0.1,::1",
	"NO_PROXY=localhost,127.0.0.1,::1", NULL };

const char *const *session_network_environment(const struct session *s)
{
	return s->params.network.net == JAIL_NET_ALLOW ? proxy_variables : NULL;
}

bool session_network_setup(const struct session *s, struct buffer *frame)
{
	const struct network_policy *p = &s->params.network;
	const char *name = jail_net_name(p->net);
	bool ok = true;
	if (p->net == JAIL_NET_NONE)
		return true; /* as every guest is born */
	for (const char *const *v = session_network_environment(s); ok && v && *v; v++)
		ok = wire_put(frame, WIRE_ENV, *v, strlen(*v)) == 0;
	return ok && wire_put(frame, WIRE_NETWORK, name, strlen(name)) == 0;
}

/* May one more line be logged for this session? Says how many were not, when it may again. */
static bool may_log(struct session *s)
{
	uint64_t now = clock_now_ns() / 1000000000;
	if (now - s->usage.network_log.since_s >= LOG_WINDOW_S) {
		if (s->usage.network_log.dropped)
			log_info("network: session %s: %u more lines in %d s", s->id,
				s->usage.network_log.dropped, LOG_WINDOW_S);
		s->usage.network_log.since_s = now;
		s->usage.network_log.lines = s->usage.network_log.dropped = 0;
	}

	if (s->usage.network_log.lines < LOG_LINES) {
		s->usage.network_log.lines++;
		return true;
	}

	s->usage.network_log.dropped++;
	return false;
}

void session_network_event(struct session *s, const struct proxy_event *e)
{
	struct sessions_stats *stats = &s->table->stats;
	network_record_add(&s->usage.network_record, e);
	if (e->moment == PROXY_DECIDED) {
		stats->network_attempts[e->verdict]++;
		if (may_log(s))
			log_info("network: session %s %s %s: %s", s->id, e->target,
				network_verdict_name((enum network_verdict)e->verdict), e->detail);
		return;
	}

	stats->network_sent_bytes += e->sent;
	stats->network_received_bytes += e->received;
	if (may_log(s))
		log_info("network: session %s %s ended after %u s: %llu bytes sent, %llu received",
			s->id, e->target, e->seconds, (unsigned long long)e->sent,
			(unsigned long long)e->received);
}
