#include "network/proxy.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/limits.h"
#include "jail/jail.h"
#include "network/proxy_conn.h"
#include "network/proxy_sandbox.h"

enum {
	EVENTS_MAX = 64,
	TICK_MS = 1000,
	REPORT_WAIT_MS = 2000,
	ACCEPTS_PER_TURN = 16,
	ORDERS_PER_TURN = 64
};

static struct proxy proxy;

/*
 * A daemon that does not read for so long has other troubles; a report is not worth stopping
 * everybody for.
 */
void proxy_report(const struct proxy_event *e)
{
	struct pollfd p = { .fd = PROXY_SOCKET_FD, .events = POLLOUT };
	if (fd_send(PROXY_SOCKET_FD, e, sizeof(*e), NULL, 0) == -EAGAIN &&
		poll(&p, 1, REPORT_WAIT_MS) == 1)
		fd_send(PROXY_SOCKET_FD, e, sizeof(*e), NULL, 0);
}

/* ---- outlets ---------------------------------------------------------------------- */

static struct outlet *find_outlet(uint32_t id)
{
	struct outlet *o;
	TAILQ_FOREACH (o, &proxy.outlets, link)
		if (o->id == id)
			return o;
	return NULL;
}

static void close_outlet(struct outlet *o)
{
	struct proxy_conn *l;
	TAILQ_FOREACH (l, &proxy.links, link) {
		if (l->outlet != o)
			continue;
		proxy_conn_end(l);
		l->outlet = NULL;
	}
	TAILQ_REMOVE(&proxy.outlets, o, link);
	for (unsigned i = 0; i < o->n_listen; i++)
		fd_close(o->listener[i].fd);
	network_rules_finish(&o->rules);
	free(o->listener);
	free(o);
}

/* The texts behind a message, as a list that points into it. */
static char **split_texts(char *at, const char *end, unsigned n)
{
	char **list = calloc(n + 1, sizeof(*list));
	for (unsigned i = 0; list && i < n; i++) {
		char *nul = memchr(at, '\0', (size_t)(end - at));
		if (!nul) {
			free(list);
			return NULL;
		}
		list[i] = at;
		at = nul + 1;
	}
	return list;
}

static int fix_target(struct listener *l, const char *text)
{
	struct network_rule r;
	int err = network_rule_parse(text, NULL, &r);
	if (err < 0 || !network_rule_is_exact(&r))
		return err < 0 ? err : -EINVAL;
	l->fixed = true;
	l->target = (struct network_target){
		.is_address = r.host == NETWORK_ADDRESS, .address = r.address, .port = r.first
	};
	memcpy(l->target.name, r.name, sizeof(l->target.name));
	return 0;
}

static int listen_for(struct outlet *o, const int *fds, unsigned n, char *const *targets)
{
	int r = 0;
	o->listener = calloc(n, sizeof(*o->listener));
	for (unsigned i = 0; r == 0 && i < n; i++) {
		struct listener *l = &o->listener[i];
		struct epoll_event e = { .events = EPOLLIN, .data.ptr = &l->source };
		*l = (struct listener){
			.source = { SOURCE_LISTENER, l }, .outlet = o, .fd = fds[i]
		};
		if (i)
			r = fix_target(l, targets[i - 1]);
		fd_set_nonblock(l->fd, 1);
		if (r == 0 && epoll_ctl(proxy.epoll, EPOLL_CTL_ADD, l->fd, &e) < 0)
			r = -errno;
	}

	return r;
}

static void open_outlet(
	const struct proxy_message *m, char *texts, const char *end, const int *fds, size_t n_fds)
{
	struct outlet *o = calloc(1, sizeof(*o));
	unsigned n_targets = m->n_listen ? m->n_listen - 1 : 0;
	char **list = m->n_rules <= PROXY_MESSAGE_MAX && n_fds == m->n_listen && n_fds
			      ? split_texts(texts, end, n_targets + m->n_rules)
			      : NULL;

	if (!o || !list || network_rules_parse(list + n_targets, NULL, &o->rules) < 0) {
		for (size_t i = 0; i < n_fds; i++)
			fd_close(fds[i]);
		free(list);
		free(o);
		return;
	}

	o->id = m->id;
	o->n_listen = (unsigned)n_fds;
	TAILQ_INSERT_TAIL(&proxy.outlets, o, link);
	if (listen_for(o, fds, o->n_listen, list) < 0)
		close_outlet(o);
	free(list);
}

/* One order: 1, or 0 when there is none, or -1 when the daemon is gone. */
static int take_order(void)
{
	static union {
		struct proxy_message m;
		char bytes[PROXY_MESSAGE_MAX];

	} in;
	int fds[FDS_PER_MESSAGE_MAX];
	size_t n_fds = 0;
	ssize_t len = fd_recv(PROXY_SOCKET_FD, &in, sizeof(in), fds, FDS_PER_MESSAGE_MAX, &n_fds);
	if (len == -EAGAIN)
		return 0;
	if (len < (ssize_t)sizeof(in.m))
		return -1;
	struct outlet *o = find_outlet(in.m.id);
	if (o)
		close_outlet(o);
	if (in.m.order == PROXY_OPEN)
		open_outlet(&in.m, in.bytes + sizeof(in.m), in.bytes + len, fds, n_fds);
	return 1;
}

/* True while the daemon is there. */
static bool take_orders(void)
{
	int r = 1;
	for (int i = 0; r > 0 && i < ORDERS_PER_TURN; i++)
		r = take_order();
	return r >= 0;
}

/* ---- accepting -------------------------------------------------------------------- */

static bool has_room(const struct outlet *o)
{
	return o->links < LIMIT_PROXY_CONNECTIONS && proxy.n_links < LIMIT_PROXY_ALL_CONNECTIONS;
}

static void watch_outlet(struct outlet *o, bool on)
{
	for (unsigned i = 0; i < o->n_listen; i++) {
		struct epoll_event e = { .events = on ? EPOLLIN : 0,
			.data.ptr = &o->listener[i].source };
		epoll_ctl(proxy.epoll, EPOLL_CTL_MOD, o->listener[i].fd, &e);
	}
	o->paused = !on;
}

/*
 * Beyond the maximum connections wait in the jail, and what was refused descriptors is tried again
 * at the next tick.
 */
static void on_listener(struct listener *l)
{
	for (int i = 0; i < ACCEPTS_PER_TURN && has_room(l->outlet); i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
			return;
		if (fd < 0)
			break;
		proxy_conn_start(&proxy, l, fd);
	}
	if (!has_room(l->outlet) || errno == EMFILE || errno == ENFILE)
		watch_outlet(l->outlet, false);
}

static void resume_outlets(void)
{
	struct outlet *o;
	TAILQ_FOREACH (o, &proxy.outlets, link)
		if (o->paused && has_room(o))
			watch_outlet(o, true);
}

/* ---- the loop --------------------------------------------------------------------- */

static void on_resolver(void)
{
	struct resolver_answer a;
	struct proxy_conn *l;
	while (resolver_next(proxy.resolver, &a)) {
		TAILQ_FOREACH (l, &proxy.links, link)
			if (l->tag == a.tag)
				break;
		if (l)
			proxy_conn_on_resolved(l, &a);
	}
}

static void dispatch(const struct epoll_event *e, bool *ret_orders)
{
	struct source *s = e->data.ptr;
	switch (s->kind) {
	case SOURCE_ORDERS:
		*ret_orders =
			true; /* last: an outlet that closes takes listeners with it that this turn still names */
		break;
	case SOURCE_RESOLVER:
		on_resolver();
		break;
	case SOURCE_LISTENER:
		errno = 0;
		on_listener(s->of);
		break;
	case SOURCE_CLIENT:
	case SOURCE_TARGET:
		proxy_conn_on_event(s->of, s, e->events);
		break;
	}
}

static void serve(void)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t swept_s = 0;
	bool alive = true;

	while (alive) {
		bool orders = false;
		int n = epoll_wait(proxy.epoll, events, EVENTS_MAX, TICK_MS);
		proxy.now_s = clock_now_ns() / 1000000000;
		for (int i = 0; i < n; i++)
			dispatch(&events[i], &orders);
		if (orders)
			alive = take_orders();
		bool tick = proxy.now_s != swept_s, freed = proxy.over;
		if (tick) {
			swept_s = proxy.now_s;
			proxy_conn_sweep(&proxy);
		}
		proxy_conn_free_over(&proxy);
		/* not in every turn: while descriptors are missing, that would be a busy loop */
		if (tick || freed)
			resume_outlets();
	}
}

static int watch_source(struct source *s, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = s };
	return epoll_ctl(proxy.epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int proxy_main(void)
{
	static struct source orders = { .kind = SOURCE_ORDERS },
			     resolver = { .kind = SOURCE_RESOLVER };
	const char *step = "giving up privileges";

	prctl(PR_SET_NAME, "glovebox-proxy");
	TAILQ_INIT(&proxy.outlets);
	TAILQ_INIT(&proxy.links);
	int r = proxy_sandbox_enter();
	if (r == 0) {
		step = "starting the resolver";
		r = (proxy.epoll = epoll_create1(EPOLL_CLOEXEC)) < 0
			    ? -errno
			    : resolver_create(&proxy.resolver);
	}

	if (r == 0) {
		step = "watching";
		fd_set_nonblock(PROXY_SOCKET_FD, 1);
		r = watch_source(&orders, PROXY_SOCKET_FD);
	}

	if (r == 0)
		r = watch_source(&resolver, resolver_fd(proxy.resolver));
	if (r == 0) {
		step = "loading the system call filter";
		r = confine_calls();
	}

	if (r < 0) {
		fprintf(stderr, "glovebox proxy: %s: %s\n", step, strerror(-r));
		return 1;
	}

	serve();
	return 0;
}
