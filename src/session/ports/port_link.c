#include "session/ports/port_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/fds.h"
#include "sandbox/socket_ask.h"
#include "session/internal.h"
#include "session/pause.h"

enum {
	READ_AT_ONCE = 64 * 1024,
	READS_PER_TURN = 4, /* then others get their turn */
	HIGH_WATER = 256 * 1024,
	TICK_MS = 1000,
};

struct port_link {
	TAILQ_ENTRY(port_link) link; /* of the session */
	struct session *session;
	const struct port_link_events *events;
	void *owner;
	unsigned port, open_handles;
	struct socket_ask ask;
	int fds[SOCKET_ASK_FDS], at; /* the address in use: 0 is IPv4; -1 before the first */
	uv_poll_t poll[SOCKET_ASK_FDS];
	bool polled[SOCKET_ASK_FDS];
	uv_timer_t timer;
	bool open, held, wants_drain, closing;
	uint64_t moved_ns; /* when a byte last passed */
	struct buffer out;
};

static char scratch[READ_AT_ONCE];

/* ---- the end -------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *h)
{
	struct port_link *l = h->data;
	if (--l->open_handles)
		return;
	for (int i = 0; i < SOCKET_ASK_FDS; i++)
		fd_close(l->fds[i]);
	buffer_finish(&l->out);
	free(l);
}

void port_link_close(struct port_link *l)
{
	if (!l || l->closing)
		return;

	l->closing = true;
	socket_ask_cancel(&l->ask);
	TAILQ_REMOVE(&l->session->ports.list, l, link);
	l->session->ports.n--;
	l->session->times.used_ns = clock_now_ns();
	for (int i = 0; i < SOCKET_ASK_FDS; i++)
		if (l->polled[i])
			uv_close((uv_handle_t *)&l->poll[i], on_handle_closed);
	uv_close((uv_handle_t *)&l->timer, on_handle_closed);
}

static void end(struct port_link *l, int err)
{
	const struct port_link_events *events = l->events;
	void *owner = l->owner;
	if (l->closing)
		return;
	port_link_close(l);
	events->on_end(owner, err);
}

/* ---- bytes -------------------------------------------------------------------------- */

static void update(struct port_link *l);

static void flush(struct port_link *l)
{
	while (l->out.len) {
		ssize_t n = send(l->fds[l->at], l->out.data, l->out.len, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			/* what the server said before it closed its end is still read */
			l->out.len = 0;
			break;
		}
		l->moved_ns = clock_now_ns();
		buffer_consume(&l->out, (size_t)n);
	}

	if (!l->wants_drain || l->out.len > HIGH_WATER / 4)
		return;
	l->wants_drain = false;
	l->events->on_drained(l->owner);
}

static void receive(struct port_link *l)
{
	for (int i = 0; i < READS_PER_TURN && !l->closing && !l->held; i++) {
		ssize_t n = recv(l->fds[l->at], scratch, sizeof(scratch), 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			end(l, n < 0 ? -errno : 0);
			return;
		}
		l->moved_ns = clock_now_ns();
		l->events->on_data(l->owner, scratch, (size_t)n);
	}
}

int port_link_write(struct port_link *l, const void *data, size_t len)
{
	int r = buffer_append(&l->out, data, len);
	if (r < 0)
		return r;
	if (l->out.len > HIGH_WATER)
		l->wants_drain = true;
	update(l);
	return l->wants_drain ? 1 : 0;
}

void port_link_hold(struct port_link *l, bool hold)
{
	l->held = hold;
	update(l);
}

/* ---- connecting --------------------------------------------------------------------- */

static void next_address(struct port_link *l, int err);

static void connected(struct port_link *l)
{
	int err = 0, on = 1;
	socklen_t len = sizeof(err);
	if (getsockopt(l->fds[l->at], SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err) {
		next_address(l, -err);
		return;
	}
	setsockopt(l->fds[l->at], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	l->open = true;
	l->moved_ns = clock_now_ns();
	l->events->on_open(l->owner);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
	struct port_link *l = h->data;
	if (h != &l->poll[l->at] || l->closing)
		return;
	if (status < 0 && !l->open) {
		connected(l);
		return;
	}

	if (!l->open)
		connected(l);
	if (!l->closing && l->open && events & UV_WRITABLE)
		flush(l);
	if (!l->closing && l->open && (events & UV_READABLE || status < 0))
		receive(l);
	if (!l->closing)
		update(l);
}

/* What is waited for now. */
static void update(struct port_link *l)
{
	if (l->closing || l->at < 0 || !l->polled[l->at])
		return;
	int events = !l->open ? UV_WRITABLE
			      : (l->held ? 0 : UV_READABLE) | (l->out.len ? UV_WRITABLE : 0);
	if (events)
		uv_poll_start(&l->poll[l->at], events, on_poll);
	else
		uv_poll_stop(&l->poll[l->at]);
}

static int connect_to(struct port_link *l, int at)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)l->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)l->port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr *to = at ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;

	if (connect(l->fds[at], to, at ? sizeof(v6) : sizeof(v4)) < 0 && errno != EINPROGRESS)
		return -errno;
	int r = uv_poll_init(l->session->table->config.loop, &l->poll[at], l->fds[at]);
	if (r < 0)
		return r;
	l->poll[at].data = l;
	l->polled[at] = true;
	l->open_handles++;
	return 0;
}

/* The error of the last address is reported, except when only IPv6 is missing. */
static void next_address(struct port_link *l, int err)
{
	if (l->at >= 0 && l->polled[l->at])
		uv_poll_stop(&l->poll[l->at]);
	while (++l->at < SOCKET_ASK_FDS) {
		if (l->fds[l->at] < 0)
			continue;
		int r = connect_to(l, l->at);
		if (r == 0) {
			update(l);
			return;
		}
		err = l->at ? err : r;
	}

	l->at = -1;
	end(l, err);
}

static void on_sockets(struct socket_ask *a, int fds[SOCKET_ASK_FDS])
{
	struct port_link *l = (struct port_link *)((char *)a - offsetof(struct port_link, ask));
	for (int i = 0; i < SOCKET_ASK_FDS; i++) {
		l->fds[i] = fds[i];
		fds[i] = -1;
	}
	next_address(l, -ENETUNREACH);
}

static void on_tick(uv_timer_t *t)
{
	struct port_link *l = t->data;
	uint64_t limit_s = l->open ? LIMIT_PORT_IDLE_SECONDS : LIMIT_PORT_CONNECT_SECONDS;
	if (clock_now_ns() - l->moved_ns > limit_s * 1000000000)
		end(l, -ETIMEDOUT);
}

/* ---- opening ------------------------------------------------------------------------ */

/*
 * The daemon's own way out listens there for the session. A visitor of the session's ports would
 * reach a server of the machine, which only the session was allowed to reach.
 */
static bool leads_out(const struct session *s, unsigned port)
{
	uint16_t taken[JAIL_LISTEN_MAX];
	unsigned n = network_loopback_ports(s->params.network.allow, taken);
	while (n && taken[n - 1] != port)
		n--;
	return n > 0;
}

static int refuse_open(const struct session *s, unsigned port, struct error *e)
{
	if (s->table->end.draining || s->phase == PHASE_ENDING) {
		error_set(e, -ESHUTDOWN, "the session is about to end");
		return error_slug(e, "draining");
	}

	if (session_is_paused(s))
		return pause_refuse(s, e);
	if (s->params.network.net == JAIL_NET_NONE) {
		error_set(e, -ENOTCONN, "this session has no loopback: nothing can listen in it");
		error_remedy(e, "Make the session with \"network\": \"loopback\".");
		return error_slug(e, "no_loopback");
	}

	if (leads_out(s, port)) {
		error_set(e, -EPERM,
			"port %u of this session leads to a server outside, by a rule of its network",
			port);
		error_remedy(e, "Connect to that server directly, or serve on another port.");
		return error_slug(e, "port_leads_out");
	}

	if (s->ports.n >= LIMIT_PORT_CONNECTIONS) {
		error_set(e, -EBUSY, "%d connections to servers of this session are open already",
			LIMIT_PORT_CONNECTIONS);
		error_remedy(e, "Close some of them, or try again.");
		return error_slug(e, "too_many_connections");
	}

	return 0;
}

int session_port_open(struct session *s, unsigned port, const struct port_link_events *events,
	void *owner, struct error *e, struct port_link **ret)
{
	int r = refuse_open(s, port, e);
	if (r < 0)
		return r;
	struct port_link *l = calloc(1, sizeof(*l));
	if (!l) {
		error_set(e, -ENOMEM, "out of memory");
		return error_slug(e, "server_memory");
	}

	l->ask.on_sockets = on_sockets;
	if (!s->sandbox || sandbox_ask_sockets(s->sandbox, &l->ask) < 0) {
		free(l);
		error_set(e, -EAGAIN, "the session is still starting");
		error_remedy(e, "Try again.");
		return error_slug(e, "starting");
	}

	l->session = s;
	l->events = events;
	l->owner = owner;
	l->port = port;
	l->fds[0] = l->fds[1] = l->at = -1;
	l->moved_ns = s->times.used_ns = clock_now_ns();
	buffer_init(&l->out, LIMIT_PORT_QUEUE_BYTES);
	buffer_count(&l->out);
	uv_timer_init(s->table->config.loop, &l->timer);
	l->timer.data = l;
	l->open_handles = 1;
	uv_timer_start(&l->timer, on_tick, TICK_MS, TICK_MS);
	TAILQ_INSERT_TAIL(&s->ports.list, l, link);
	s->ports.n++;
	*ret = l;
	return 0;
}

void ports_end(struct session *s)
{
	struct port_link *l;
	while ((l = TAILQ_FIRST(&s->ports.list)))
		end(l, -ESHUTDOWN);
}

bool ports_attended(const struct session *s)
{
	return s->ports.n > 0;
}
