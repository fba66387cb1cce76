#include "network/proxy_conn.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/limits.h"
#include "network/proxy.h"

enum { LINGER_SECONDS = 2 };

/* Consumed before the next read; one thread, one buffer. */
static char scratch[LIMIT_PROXY_READ_BYTES];

/* ---- reports -------------------------------------------------------------------- */

static void report(const struct proxy_conn *l, enum proxy_moment moment, enum network_verdict v,
	const char *detail)
{
	struct proxy_event e = { .moment = moment,
		.id = l->outlet ? l->outlet->id : 0,
		.verdict = v,
		.sent = l->sent,
		.received = l->received,
		.seconds = (uint32_t)(l->proxy->now_s - l->began_s) };
	if (v == NETWORK_BAD_REQUEST)
		snprintf(e.target, sizeof(e.target), "?");
	else
		network_target_format(&l->dialogue.target, e.target);
	snprintf(e.detail, sizeof(e.detail), "%s", detail ? detail : "");
	if (l->outlet)
		proxy_report(&e);
}

/* ---- watching --------------------------------------------------------------------- */

/*
 * A side of which nothing is wanted is taken out: epoll tells of a hang-up whether it was asked for
 * or not, again and again.
 */
static void watch(struct proxy_conn *l, struct proxy_conn_side *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = &s->source };
	if (s->fd < 0 || s->watched == events)
		return;
	epoll_ctl(l->proxy->epoll,
		!events      ? EPOLL_CTL_DEL
		: s->watched ? EPOLL_CTL_MOD
			     : EPOLL_CTL_ADD,
		s->fd, &e);
	s->watched = events;
}

static int watch_new(struct proxy_conn *l, struct proxy_conn_side *s, enum source_kind kind, int fd,
	uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = &s->source };
	s->source = (struct source){ kind, l };
	s->fd = fd;
	s->watched = events;
	return epoll_ctl(l->proxy->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void proxy_conn_end(struct proxy_conn *l)
{
	if (l->state == LINK_OVER)
		return;
	if (l->state == LINK_RELAYING)
		report(l, PROXY_ENDED, NETWORK_ALLOWED, "");
	l->state = LINK_OVER;
	l->proxy->over = true;
	fd_close_clear(&l->client.fd);
	fd_close_clear(&l->target.fd);
}

void proxy_conn_free_over(struct proxy *p)
{
	if (!p->over)
		return;
	p->over = false;
	for (struct proxy_conn *l = TAILQ_FIRST(&p->links), *next; l; l = next) {
		next = TAILQ_NEXT(l, link);
		if (l->state != LINK_OVER)
			continue;
		TAILQ_REMOVE(&p->links, l, link);
		p->n_links--;
		if (l->outlet)
			l->outlet->links--;
		proxy_protocol_finish(&l->dialogue);
		buffer_finish(&l->client.out);
		buffer_finish(&l->target.out);
		free(l);
	}
}

/* ---- relaying --------------------------------------------------------------------- */

/* Sends what waits for this side. False when it is gone. */
static bool flush(struct proxy_conn_side *s)
{
	while (s->out.len) {
		ssize_t n = send(s->fd, s->out.data, s->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		buffer_consume(&s->out, (size_t)n);
	}
	buffer_finish(&s->out); /* idle connections keep no memory */
	return true;
}

/* One read from a side, passed on. False when the link is broken. */
static bool carry(struct proxy_conn_side *from, struct proxy_conn_side *to, uint64_t *count)
{
	if (from->ended || to->out.len)
		return true;
	ssize_t n = recv(from->fd, scratch, sizeof(scratch), MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	from->ended = n == 0;
	*count += (uint64_t)n;
	if (buffer_append(&to->out, scratch, (size_t)n) < 0)
		return false;
	return flush(to);
}

static void pass_end(const struct proxy_conn_side *from, struct proxy_conn_side *to)
{
	if (from->ended && !to->told && !to->out.len) {
		shutdown(to->fd, SHUT_WR);
		to->told = true;
	}
}

static void relay(struct proxy_conn *l, const struct source *s, uint32_t events)
{
	struct proxy_conn_side *c = &l->client, *t = &l->target;
	bool client = s == &c->source, good = true;
	uint64_t carried = l->sent + l->received;
	size_t waiting = c->out.len + t->out.len;

	if (events & EPOLLOUT)
		good = flush(client ? c : t);
	if (good && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		good = client ? carry(c, t, &l->sent) : carry(t, c, &l->received);
	if (!good || (events & EPOLLERR)) {
		proxy_conn_end(l);
		return;
	}

	if (carried != l->sent + l->received || waiting != c->out.len + t->out.len)
		l->deadline_s = l->proxy->now_s + LIMIT_PROXY_IDLE_SECONDS;
	pass_end(c, t);
	pass_end(t, c);
	if (c->told && t->told) {
		proxy_conn_end(l);
		return;
	}

	watch(l, c, (!c->ended && !t->out.len ? EPOLLIN : 0U) | (c->out.len ? EPOLLOUT : 0U));
	watch(l, t, (!t->ended && !c->out.len ? EPOLLIN : 0U) | (t->out.len ? EPOLLOUT : 0U));
}

/* ---- refusing --------------------------------------------------------------------- */

/*
 * Closing with unread bytes would be a reset, and the reason lost: the end is announced, what comes
 * is swallowed for a moment.
 */
static void say_no(struct proxy_conn *l)
{
	if (l->state != LINK_SAYING_NO)
		l->deadline_s = l->proxy->now_s + LINGER_SECONDS;
	l->state = LINK_SAYING_NO;
	fd_close_clear(&l->target.fd);
	if (!flush(&l->client)) {
		proxy_conn_end(l);
		return;
	}
	if (!l->client.out.len && !l->client.told) {
		l->client.told = true;
		shutdown(l->client.fd, SHUT_WR);
	}
	watch(l, &l->client, EPOLLIN | (l->client.out.len ? EPOLLOUT : 0U));
}

static void swallow(struct proxy_conn *l)
{
	ssize_t n = recv(l->client.fd, scratch, sizeof(scratch), MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		proxy_conn_end(l);
	else if (l->client.out.len)
		say_no(l);
}

static void refuse(struct proxy_conn *l, enum network_verdict v, const char *text)
{
	report(l, PROXY_DECIDED, v, text);
	if (l->fixed) { /* nobody speaks with us there: the client sees its connection end */
		proxy_conn_end(l);
		return;
	}
	proxy_protocol_answer(&l->dialogue, v, text, &l->client.out);
	say_no(l);
}

/* ---- connecting ------------------------------------------------------------------- */

/*
 * The target is the machine we run on: its own services trust who is local, as they do on a
 * loopback address.
 */
static bool is_this_machine(int fd, const struct in6_addr *to)
{
	struct sockaddr_storage here;
	socklen_t len = sizeof(here);
	if (getsockname(fd, (struct sockaddr *)&here, &len) < 0)
		return true; /* cannot be; if it is, then carefully */
	if (here.ss_family == AF_INET)
		return !memcmp(&((struct sockaddr_in *)&here)->sin_addr, to->s6_addr + 12, 4);
	return !memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr, to, sizeof(*to));
}

static void connected(struct proxy_conn *l)
{
	char address[INET6_ADDRSTRLEN], text[PROXY_DETAIL_MAX];
	const struct in6_addr *a = &l->address[l->next_address - 1];
	struct network_target literally = {
		.is_address = true, .address = *a, .port = l->dialogue.target.port
	};
	network_address_format(a, address);
	if (is_this_machine(l->target.fd, a) &&
		!network_rules_allow(&l->outlet->rules, &literally)) {
		snprintf(text, sizeof(text),
			"%s is an address of this very machine: it must be in network.allow itself",
			address);
		refuse(l, NETWORK_NOT_PUBLIC, text);
		return;
	}

	report(l, PROXY_DECIDED, NETWORK_ALLOWED, address);
	l->state = LINK_RELAYING;
	l->deadline_s = l->proxy->now_s + LIMIT_PROXY_IDLE_SECONDS;
	if (!l->fixed)
		proxy_protocol_answer(&l->dialogue, NETWORK_ALLOWED, NULL, &l->client.out);
	buffer_finish(&l->target.out);
	l->target.out = l->dialogue.in; /* what came behind the head */
	l->sent = l->target.out.len;
	buffer_init(&l->dialogue.in, 0);
	relay(l, &l->client.source, EPOLLOUT);
	if (l->state == LINK_RELAYING)
		relay(l, &l->target.source, EPOLLOUT);
}

/* A socket on its way to the address, or a negative errno. */
static int begin_connect(const struct in6_addr *a, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = *a
	};
	bool four = IN6_IS_ADDR_V4MAPPED(a);
	memcpy(&v4.sin_addr, a->s6_addr + 12, 4);
	int fd = socket(four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int r = connect(fd, four ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
		four ? sizeof(v4) : sizeof(v6));
	if (r == 0 || errno == EINPROGRESS)
		return fd;
	r = -errno;
	fd_close(fd);
	return r;
}

static void try_next(struct proxy_conn *l, int err)
{
	char text[PROXY_DETAIL_MAX], name[NETWORK_RULE_MAX];
	fd_close_clear(&l->target.fd);
	while (l->next_address < l->n_addresses) {
		int fd = begin_connect(&l->address[l->next_address++], l->dialogue.target.port);
		if (fd >= 0 && watch_new(l, &l->target, SOURCE_TARGET, fd, EPOLLOUT) == 0) {
			l->state = LINK_CONNECTING;
			return;
		}
		err = fd < 0 ? -fd : ENOMEM;
		fd_close_clear(&l->target.fd);
	}

	snprintf(text, sizeof(text), "%.100s cannot be reached: %s",
		network_target_format(&l->dialogue.target, name), strerror(err));
	refuse(l, NETWORK_UNREACHABLE, text);
}

void proxy_conn_sweep(struct proxy *p)
{
	char text[PROXY_DETAIL_MAX], name[NETWORK_RULE_MAX];
	struct proxy_conn *l;

	TAILQ_FOREACH (l, &p->links, link) {
		if (l->state == LINK_OVER || p->now_s < l->deadline_s)
			continue;
		if (l->state == LINK_RESOLVING || l->state == LINK_CONNECTING) {
			snprintf(text, sizeof(text), "%.100s did not answer within %d s",
				network_target_format(&l->dialogue.target, name),
				LIMIT_PROXY_CONNECT_SECONDS);
			refuse(l, NETWORK_UNREACHABLE, text);
		} else {
			proxy_conn_end(l);
		}
	}
}

static void on_connect(struct proxy_conn *l)
{
	int err = 0;
	socklen_t len = sizeof(err);
	if (getsockopt(l->target.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err)
		try_next(l, err);
	else
		connected(l);
}

/* ---- deciding --------------------------------------------------------------------- */

/*
 * Keeps of the addresses those that may be reached: public ones, and what is allowed by its number.
 */
static void choose_addresses(struct proxy_conn *l, const struct in6_addr *a, unsigned n)
{
	char text[PROXY_DETAIL_MAX], address[INET6_ADDRSTRLEN];
	for (unsigned i = 0; i < n; i++)
		if (network_rules_allow_address(&l->outlet->rules, &a[i], l->dialogue.target.port))
			l->address[l->n_addresses++] = a[i];
	if (l->n_addresses) {
		try_next(l, 0);
		return;
	}

	snprintf(text, sizeof(text),
		"%.60s is at %s, a %s address: that must be in network.allow as well (\"%s%s%s:%u\")",
		l->dialogue.target.name, network_address_format(&a[0], address),
		network_address_kind(&a[0]), strchr(address, ':') ? "[" : "", address,
		strchr(address, ':') ? "]" : "", l->dialogue.target.port);
	refuse(l, NETWORK_NOT_PUBLIC, text);
}

void proxy_conn_on_resolved(struct proxy_conn *l, const struct resolver_answer *a)
{
	char text[PROXY_DETAIL_MAX];
	if (l->state != LINK_RESOLVING || !l->outlet)
		return;
	if (a->err || !a->n) {
		snprintf(text, sizeof(text), "%.90s cannot be resolved: %s",
			l->dialogue.target.name, gai_strerror(a->err ? a->err : EAI_NONAME));
		refuse(l, NETWORK_UNKNOWN, text);
		return;
	}
	choose_addresses(l, a->address, a->n);
}

static void decide(struct proxy_conn *l)
{
	char text[PROXY_DETAIL_MAX], name[NETWORK_RULE_MAX];
	const struct network_target *t = &l->dialogue.target;

	watch(l, &l->client, 0); /* until the target is there */
	l->deadline_s = l->proxy->now_s + LIMIT_PROXY_CONNECT_SECONDS;
	if (!network_rules_allow(&l->outlet->rules, t)) {
		snprintf(text, sizeof(text),
			"%.80s is not in network.allow of this session: ask for it when the session is made",
			network_target_format(t, name));
		refuse(l, NETWORK_NOT_ALLOWED, text);
	} else if (t->is_address) {
		choose_addresses(l, &t->address, 1);
	} else {
		l->state = LINK_RESOLVING;
		if (resolver_ask(l->proxy->resolver, l->tag, l->outlet->id, t->name) < 0)
			proxy_conn_end(l);
	}
}

static void talk(struct proxy_conn *l)
{
	ssize_t n = recv(l->client.fd, scratch, sizeof(scratch), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		proxy_conn_end(l);
		return;
	}

	switch (proxy_protocol_feed(&l->dialogue, scratch, (size_t)n, &l->client.out)) {
	case DIALOGUE_ASK:
		decide(l);
		break;
	case DIALOGUE_REFUSE:
		report(l, PROXY_DECIDED, NETWORK_BAD_REQUEST,
			"neither SOCKS 5 nor HTTP, or malformed");
		say_no(l);
		break;
	case DIALOGUE_MORE:
		if (!flush(&l->client))
			proxy_conn_end(l);
		break;
	}
}

void proxy_conn_on_event(struct proxy_conn *l, const struct source *s, uint32_t events)
{
	switch (l->state) {
	case LINK_TALKING:
		talk(l);
		break;
	case LINK_CONNECTING:
		if (s->kind == SOURCE_TARGET)
			on_connect(l);
		break;
	case LINK_RESOLVING:
		break;
	case LINK_RELAYING:
		relay(l, s, events);
		break;
	case LINK_SAYING_NO:
		swallow(l);
		break;
	case LINK_OVER:
		break;
	}
}

void proxy_conn_start(struct proxy *p, struct listener *from, int fd)
{
	struct proxy_conn *l = calloc(1, sizeof(*l));
	if (!l) {
		fd_close(fd);
		return;
	}

	l->proxy = p;
	l->outlet = from->outlet;
	l->tag = ++p->next_tag;
	l->target.fd = -1;
	l->began_s = p->now_s;
	l->deadline_s = p->now_s + LIMIT_PROXY_HEAD_SECONDS;
	proxy_protocol_init(&l->dialogue);
	TAILQ_INSERT_TAIL(&p->links, l, link);
	p->n_links++;
	from->outlet->links++;
	if (watch_new(l, &l->client, SOURCE_CLIENT, fd, EPOLLIN) < 0) {
		proxy_conn_end(l);
	} else if (from->fixed) {
		l->fixed = true;
		l->dialogue.target = from->target;
		decide(l);
	}
}
