#include "sandbox/proxy_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/fds.h"
#include "base/log.h"
#include "network/network_policy.h"
#include "network/proxy.h"
#include "sandbox/sandbox.h"

enum { RESTART_MS = 200, RESTART_MOST_MS = 5000, RETRY_MS = 20 };

static void start(struct sandbox_pool *n);
static void retry_later(struct sandbox_pool *n);

static struct sandbox_pool *sandbox_pool_of(struct helper *h)
{
	return (struct sandbox_pool *)((char *)h - offsetof(struct sandbox_pool, proxy));
}

/* ---- orders ----------------------------------------------------------------------- */

static void put_text(struct buffer *b, const char *text)
{
	buffer_append(b, text, strlen(text) + 1);
}

static void send_open(struct sandbox *b)
{
	_cleanup_buffer_ struct buffer out = BUFFER_INIT(PROXY_MESSAGE_MAX);
	struct jail_network plan;
	unsigned target[JAIL_LISTEN_MAX];
	struct proxy_message m = { .order = PROXY_OPEN, .id = b->serial, .n_listen = b->n_outlets };
	char *const *allow = b->kind.network.allow;

	/* as it was when the jail was asked for: from the same rules comes the same plan */
	network_plan(allow, &plan, target);
	while (allow[m.n_rules])
		m.n_rules++;
	buffer_append(&out, &m, sizeof(m));
	for (unsigned i = 1; i < b->n_outlets; i++)
		put_text(&out, allow[target[i]]);
	for (unsigned i = 0; i < m.n_rules; i++)
		put_text(&out, allow[i]);
	int r = helper_send(&b->pool->proxy, out.data, out.len, b->outlets, b->n_outlets);
	b->outlets_sent = r == 0;
	if (r == -EAGAIN)
		retry_later(b->pool);
	else if (r < 0 && r != -ENOTCONN)
		log_warning("the proxy refused the network of a session: %s", strerror(-r));
}

static void send_close(struct sandbox_pool *n, uint32_t serial)
{
	struct proxy_message m = { .order = PROXY_CLOSE, .id = serial };
	if (helper_send(&n->proxy, &m, sizeof(m), NULL, 0) == -EAGAIN) {
		buffer_append(&n->proxy_closes, &serial, sizeof(serial));
		retry_later(n);
	}
}

/* What a full socket did not take. */
static void send_rest(struct sandbox_pool *n)
{
	struct buffer closes = n->proxy_closes;
	struct sandbox *b;

	buffer_init(&n->proxy_closes, 0);
	for (size_t at = 0; at < closes.len; at += sizeof(uint32_t)) {
		uint32_t serial;
		memcpy(&serial, closes.data + at, sizeof(serial));
		send_close(n, serial);
	}

	buffer_finish(&closes);
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (b->n_outlets && !b->outlets_sent)
			send_open(b);
}

void proxy_client_open(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	if (n->proxy.running)
		send_open(b);
	else if (!n->proxy.open_polls && !uv_is_active((uv_handle_t *)&n->proxy_restart))
		start(n); /* which opens for all that wait */
}

void proxy_client_close(struct sandbox *b)
{
	if (!b->n_outlets)
		return;
	send_close(b->pool, b->serial);
	for (unsigned i = 0; i < b->n_outlets; i++)
		fd_close(b->outlets[i]);
	b->n_outlets = 0;
}

/* ---- the process ------------------------------------------------------------------ */

static void on_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct sandbox_pool *n = sandbox_pool_of(h);
	struct proxy_event e;

	(void)fds, (void)n_fds;
	if (len != sizeof(e))
		return;

	memcpy(&e, data, sizeof(e));
	e.target[sizeof(e.target) - 1] = e.detail[sizeof(e.detail) - 1] = '\0';
	n->proxy_failures = 0;
	struct sandbox *b = sandbox_find(n, e.id);
	if (b && b->owner && e.verdict < NETWORK_VERDICT_COUNT)
		b->events->on_network(b->owner, &e);
}

static void on_exited(struct helper *h)
{
	helper_close(h);
}

static void on_restart(uv_timer_t *t)
{
	struct sandbox_pool *n = t->data;
	if (n->proxy.running)
		send_rest(n);
	else if (!n->proxy.open_polls)
		start(n);
}

static void retry_later(struct sandbox_pool *n)
{
	if (!uv_is_closing((uv_handle_t *)&n->proxy_restart))
		uv_timer_start(&n->proxy_restart, on_restart, RETRY_MS, 0);
}

static void restart_later(struct sandbox_pool *n)
{
	uint64_t wait = RESTART_MS * (uint64_t)++n->proxy_failures;
	uv_timer_start(
		&n->proxy_restart, on_restart, wait < RESTART_MOST_MS ? wait : RESTART_MOST_MS, 0);
}

static void on_closed(struct helper *h)
{
	struct sandbox_pool *n = sandbox_pool_of(h);
	if (n->destroying) {
		sandbox_pool_finish_when_empty(n);
		return;
	}

	buffer_finish(&n->proxy_closes); /* the next one knows only those that live */
	log_warning("the proxy ended; connections through it are lost, and a new proxy is started");
	restart_later(n);
}

static void start(struct sandbox_pool *n)
{
	char *argv[] = { (char *)"glovebox", (char *)"proxy", NULL },
	     *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	struct sandbox *b;
	n->proxy.on_message = on_message;
	n->proxy.on_exit = on_exited;
	n->proxy.on_closed = on_closed;
	if (n->destroying)
		return;

	int r = helper_start(&n->proxy, n->config.loop, "/proc/self/exe", argv, envp,
		(const int[HELPER_EXTRA]){ -1 });
	if (r < 0) {
		log_error("the proxy could not be started: %s", strerror(-r));
		restart_later(n);
		return;
	}

	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (b->n_outlets)
			send_open(b);
}

void proxy_client_destroy(struct sandbox_pool *n)
{
	buffer_finish(&n->proxy_closes);
	helper_close(&n->proxy);
}
