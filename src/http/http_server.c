/* Listening, accepting, the sweep over all connections, and the end of the server. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "http/http_address.h"
#include "http/http_conn.h"

enum {
	LISTEN_BACKLOG = 1024,
	ACCEPTS_PER_TURN = 64,
	SWEEP_MS = 1000,
	KEEPALIVE_IDLE_SECONDS = 60,
};

/* ---- listening -------------------------------------------------------- */

/*
 * A socket file that nobody listens on is left over from a server that died; any other file is
 * somebody's.
 */
static int remove_stale_socket(const struct sockaddr_un *un)
{
	struct stat st;
	if (lstat(un->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EADDRINUSE;
	_cleanup_fd_ int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (probe < 0)
		return -errno;
	if (connect(probe, (const struct sockaddr *)un, sizeof(*un)) == 0 || errno != ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(un->sun_path) < 0 ? -errno : 0;
}

static int bind_unix(int fd, const struct sockaddr *sa, socklen_t len)
{
	int r = remove_stale_socket((const struct sockaddr_un *)sa);
	if (r < 0)
		return r;
	/* The mode of the socket file is who may connect: nobody but us, from its first moment. */
	mode_t before = umask(0177);
	r = bind(fd, sa, len) < 0 ? -errno : 0;
	umask(before);
	return r;
}

static int bind_tcp(int fd, const struct sockaddr *sa, socklen_t len)
{
	/* Accepted sockets inherit these, which saves the calls on each. */
	int on = 1, idle = KEEPALIVE_IDLE_SECONDS;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return bind(fd, sa, len) < 0 ? -errno : 0;
}

static int bind_and_listen(int fd, const struct sockaddr *sa, socklen_t len, void *userdata)
{
	int r = sa->sa_family == AF_UNIX ? bind_unix(fd, sa, len) : bind_tcp(fd, sa, len);
	if (r < 0)
		return r;
	return listen(fd, LISTEN_BACKLOG) < 0 ? -errno : fd_set_nonblock(fd, 1);
}

static int open_listener(struct http_server *s, const char *text, struct error *e)
{
	struct http_address a = { 0 };
	struct sockaddr_storage bound;

	socklen_t len = sizeof(bound);
	int r = http_address_parse(text, e, &a);
	if (r < 0)
		return r;
	r = http_address_each(&a, true, bind_and_listen, NULL, e, &s->listen_fd);
	if (r < 0) {
		error_wrap(e, "cannot listen");
		error_slug(e, "cannot_listen");
		if (r == -EADDRINUSE)
			error_remedy(e,
				"something else uses this address: stop it, or choose another with --listen");
		return r;
	}

	s->is_unix = a.is_unix;
	if (a.is_unix) {
		snprintf(s->address, sizeof(s->address), "unix:%.200s", a.host);
		s->unix_path = strdup(a.host);
	} else if (getsockname(s->listen_fd, (struct sockaddr *)&bound, &len) == 0) {
		http_address_format(
			(struct sockaddr *)&bound, s->address, sizeof(s->address), &s->port);
	}

	return 0;
}

/* ---- accepting -------------------------------------------------------- */

static void start_sweep(struct http_server *s);

/* Says 503 on a fresh socket and closes it; best effort, nothing may be kept for it. */
static void turn_away(struct http_server *s, int fd, const char *why)
{
	char body[256], text[512];
	int len = snprintf(body, sizeof(body),
		"{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,"
		"\"code\":\"too_many_connections\",\"detail\":\"%s\",\"remediation\":\"try again later\"}\n",
		why);
	int n = snprintf(text, sizeof(text),
		"HTTP/1.1 503 Service Unavailable\r\nContent-Type: "
		"application/problem+json\r\nContent-Length: %d\r\n"
		"X-Request-Id: %s\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
		len, s->id_prefix, body);
	char sink[4096];

	/* Unread input would turn the close into a reset, which can overtake the answer. */
	(void)!recv(fd, sink, sizeof(sink), MSG_DONTWAIT);
	(void)!send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	fd_close(fd);
	s->stats.refused++;
}

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/*
 * No descriptor is left. The waiting connection would keep the listener readable and the loop
 * spinning, so the spare descriptor makes room to take it off the queue and turn it away. Without a
 * spare, accepting rests until the next sweep. True when something was accepted.
 */
static bool shed(struct http_server *s)
{
	fd_close_clear(&s->spare_fd);
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	bool took = fd >= 0;
	if (took)
		turn_away(s, fd, "the server has no file descriptors left");
	s->spare_fd = open_spare();
	if (took && s->spare_fd >= 0)
		return true;
	s->accept_paused = true;
	uv_poll_stop(&s->listener);
	start_sweep(s);
	return false;
}

static void welcome(struct http_server *s, int fd, const struct sockaddr *sa)
{
	char remote[HTTP_REMOTE_MAX];
	if (s->stats.open >= s->max_connections) {
		turn_away(s, fd, "too many connections to the server are open");
		return;
	}
	http_address_format(sa, remote, sizeof(remote), NULL);
	if (http_conn_create(s, fd, remote) < 0) {
		s->stats.refused++;
		return;
	}
	s->stats.accepted++;
	start_sweep(s);
}

static void on_connection(uv_poll_t *handle, int status, int events)
{
	struct http_server *s = handle->data;
	for (unsigned i = 0; i < ACCEPTS_PER_TURN && !s->deaf; i++) {
		struct sockaddr_storage sa = { 0 };
		socklen_t len = sizeof(sa);
		int fd = accept4(
			s->listen_fd, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			sa.ss_family = s->is_unix ? AF_UNIX : sa.ss_family;
			welcome(s, fd, (struct sockaddr *)&sa);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			   errno == ENOMEM) {
			if (!shed(s))
				return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return; /* EAGAIN: all taken */
		}
	}
}

static void resume_accepting(struct http_server *s)
{
	if (s->spare_fd < 0)
		s->spare_fd = open_spare();
	if (s->spare_fd >= 0 && uv_poll_start(&s->listener, UV_READABLE, on_connection) == 0)
		s->accept_paused = false;
}

/* ---- the sweep and the ready list ------------------------------------- */

static void on_sweep(uv_timer_t *timer)
{
	struct http_server *s = timer->data;
	uint64_t now = uv_now(s->loop);
	struct http_conn *c, *next;

	for (c = TAILQ_FIRST(&s->conns); c; c = next) {
		next = TAILQ_NEXT(c, all); /* closing one frees nothing before the next turn */
		if (c->state != HTTP_CONN_CLOSING)
			http_conn_check_time(c, now);
	}

	if (s->accept_paused && !s->deaf)
		resume_accepting(s);
	if (TAILQ_EMPTY(&s->conns) && !s->accept_paused) {
		s->sweeping = false;
		uv_timer_stop(&s->sweep);
	}
}

static void start_sweep(struct http_server *s)
{
	if (s->sweeping || s->deaf)
		return;
	s->sweeping = true;
	uv_timer_start(&s->sweep, on_sweep, s->sweep_ms, s->sweep_ms);
}

static void on_turn(uv_idle_t *idle)
{
	struct http_server *s = idle->data;
	struct http_conn *c;
	unsigned n = 0;
	/* Only those that are ready now: who gets ready again meanwhile waits for the next turn. */
	TAILQ_FOREACH (c, &s->ready, ready)
		n++;
	while (n-- && (c = TAILQ_FIRST(&s->ready))) {
		TAILQ_REMOVE(&s->ready, c, ready);
		c->is_ready = false;
		http_conn_run(c);
	}
	if (TAILQ_EMPTY(&s->ready))
		uv_idle_stop(&s->turn);
}

void http_server_start_turn(struct http_server *s)
{
	uv_idle_start(&s->turn, on_turn);
}

/* ---- end -------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
	struct http_server *s = handle->data;
	if (--s->open_handles)
		return;
	void (*done)(void *) = s->done;
	void *userdata = s->done_userdata;
	buffer_finish(&s->scratch);
	fd_close(s->spare_fd);
	free(s->unix_path);
	free(s);
	if (done)
		done(userdata);
}

/* From here on, libuv no longer refers to the descriptor. */
static void on_listener_closed(uv_handle_t *handle)
{
	struct http_server *s = handle->data;
	fd_close_clear(&s->listen_fd);
	on_handle_closed(handle);
}

static void stop_listening(struct http_server *s)
{
	struct http_conn *c, *next;
	s->deaf = true;
	if (s->unix_path)
		unlink(s->unix_path);
	uv_close((uv_handle_t *)&s->listener, on_listener_closed);
	for (c = TAILQ_FIRST(&s->conns); c; c = next) {
		next = TAILQ_NEXT(c, all);
		http_conn_close(c);
	}
}

static void finish_if_empty(struct http_server *s)
{
	if (!s->closing || s->awaited)
		return;
	if (!s->deaf)
		stop_listening(s);
	if (!TAILQ_EMPTY(&s->conns) || uv_is_closing((uv_handle_t *)&s->turn))
		return;
	uv_close((uv_handle_t *)&s->sweep, on_handle_closed);
	uv_close((uv_handle_t *)&s->turn, on_handle_closed);
}

void http_server_remember(struct http_conn *c)
{
	struct http_server *s = c->server;
	TAILQ_INSERT_TAIL(&s->conns, c, all);
	s->stats.open++;
	c->late = s->closing;
	s->awaited += !c->late;
}

void http_server_forget(struct http_conn *c)
{
	struct http_server *s = c->server;
	TAILQ_REMOVE(&s->conns, c, all);
	s->stats.open--;
	s->awaited -= !c->late;
	finish_if_empty(s);
}

void http_server_close(struct http_server *s, void (*done)(void *userdata), void *userdata)
{
	struct http_conn *c, *next;
	if (s->closing)
		return;
	start_sweep(s); /* linger and stalls must still end */
	s->closing = true;
	s->done = done;
	s->done_userdata = userdata;
	for (c = TAILQ_FIRST(&s->conns); c; c = next) {
		next = TAILQ_NEXT(c, all);
		if (c->state == HTTP_CONN_WS)
			http_ws_shut_down(c);
		else if (c->state == HTTP_CONN_TUNNEL)
			http_conn_close(c);
		else if (http_conn_is_idle(c))
			http_conn_hang_up(c);
	}

	finish_if_empty(s);
}

void http_server_cut(struct http_server *s)
{
	struct http_conn *c, *next;
	assert(s->closing);
	for (c = TAILQ_FIRST(&s->conns); c; c = next) {
		next = TAILQ_NEXT(c, all);
		http_conn_close(c);
	}
}

/* ---- start ------------------------------------------------------------ */

static unsigned or_default(unsigned ms, unsigned seconds)
{
	return ms ? ms : seconds * 1000;
}

/* The sweep must be finer than the finest limit. */
static unsigned sweep_interval(const struct http_server *s)
{
	unsigned all[] = { s->header_ms, s->body_ms, s->idle_ms, s->write_ms, s->heartbeat_ms };
	unsigned least = SWEEP_MS * 4;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		least = all[i] < least ? all[i] : least;
	return least / 4 ? least / 4 : 1;
}

static void apply_config(struct http_server *s, const struct http_server_config *config)
{
	s->loop = config->loop;
	s->handler = config->handler;
	s->userdata = config->userdata;
	s->max_connections = config->max_connections ? config->max_connections : LIMIT_CONNECTIONS;
	s->header_ms = or_default(config->header_ms, LIMIT_HEADER_SECONDS);
	s->body_ms = or_default(config->body_ms, LIMIT_BODY_SECONDS);
	s->idle_ms = or_default(config->idle_ms, LIMIT_IDLE_SECONDS);
	s->write_ms = or_default(config->write_ms, LIMIT_WRITE_SECONDS);
	s->heartbeat_ms = or_default(config->heartbeat_ms, LIMIT_HEARTBEAT_SECONDS);
	s->sweep_ms = sweep_interval(s);
}

int http_server_create(
	const struct http_server_config *config, struct error *e, struct http_server **ret)
{
	struct http_server *s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	assert(config->handler->on_request && config->handler->on_gone);
	apply_config(s, config);
	s->listen_fd = s->spare_fd = -1;
	TAILQ_INIT(&s->conns);
	TAILQ_INIT(&s->ready);
	text_random_id(s->id_prefix, sizeof(s->id_prefix) - 1);
	int r = open_listener(s, config->listen, e);
	if (r == 0)
		r = uv_poll_init(s->loop, &s->listener, s->listen_fd);
	if (r < 0) {
		fd_close(s->listen_fd);
		free(s->unix_path);
		free(s);
		return e && !e->err ? error_set_errno(e, r, "cannot listen") : r;
	}

	uv_timer_init(s->loop, &s->sweep);
	uv_idle_init(s->loop, &s->turn);
	s->listener.data = s->sweep.data = s->turn.data = s;
	s->open_handles = 3;
	s->spare_fd = open_spare();
	s->accept_paused = true;
	resume_accepting(s);
	if (s->accept_paused)
		start_sweep(s);
	*ret = s;
	return 0;
}

const char *http_server_address(const struct http_server *s)
{
	return s->address;
}

unsigned http_server_port(const struct http_server *s)
{
	return s->port;
}

const struct http_server_stats *http_server_stats(const struct http_server *s)
{
	return &s->stats;
}
