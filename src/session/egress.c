#include "session/egress.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/fds.h"
#include "base/log.h"
#include "network/policy.h"
#include "network/proxy.h"
#include "session/berth.h"

enum { RESTART_MS = 200, RESTART_MOST_MS = 5000 };

static void start(struct nursery *n);

static struct nursery *nursery_of(struct helper *h)
{
	return (struct nursery *)((char *)h - offsetof(struct nursery, proxy));
}

/* ---- orders ----------------------------------------------------------------------- */

static void put_text(struct buffer *b, const char *text)
{
	buffer_append(b, text, strlen(text) + 1);
}

static void send_open(struct berth *b)
{
	_cleanup_buffer_ struct buffer out = BUFFER_INIT(PROXY_MESSAGE_MAX);
	struct jail_network plan;
	unsigned target[JAIL_LISTEN_MAX];
	struct proxy_message m = { .order = PROXY_OPEN, .id = b->serial, .n_listen = b->n_outlets };
	char *const *allow = b->kind.network.allow;
	network_plan(allow, &plan, target); /* as it was when the jail was asked for: from the same rules comes the same plan */
	while (allow[m.n_rules])
		m.n_rules++;
	buffer_append(&out, &m, sizeof(m));
	for (unsigned i = 1; i < b->n_outlets; i++)
		put_text(&out, allow[target[i]]);
	for (unsigned i = 0; i < m.n_rules; i++)
		put_text(&out, allow[i]);
	int r = helper_send(&b->nursery->proxy, out.data, out.len, b->outlets, b->n_outlets);
	if (r < 0 && r != -ENOTCONN)
		log_warning("the proxy does not take a session's network: %s", strerror(-r));
}

void egress_open(struct berth *b)
{
	struct nursery *n = b->nursery;
	if (n->proxy.running)
		send_open(b);
	else if (!n->proxy.open_polls && !uv_is_active((uv_handle_t *)&n->proxy_restart))
		start(n); /* which opens for all that wait */
}

void egress_close(struct berth *b)
{
	struct proxy_message m = { .order = PROXY_CLOSE, .id = b->serial };
	if (!b->n_outlets)
		return;
	helper_send(&b->nursery->proxy, &m, sizeof(m), NULL, 0);
	for (unsigned i = 0; i < b->n_outlets; i++)
		fd_close(b->outlets[i]);
	b->n_outlets = 0;
}

/* ---- the process ------------------------------------------------------------------ */

static void on_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct nursery *n = nursery_of(h);
	struct proxy_event e;
	(void)fds, (void)n_fds;
	if (len != sizeof(e))
		return;
	memcpy(&e, data, sizeof(e));
	e.target[sizeof(e.target) - 1] = e.detail[sizeof(e.detail) - 1] = '\0';
	n->proxy_failures = 0;
	struct berth *b = berth_find(n, e.id);
	if (b && b->owner && e.verdict < NETWORK_VERDICT_COUNT)
		n->config.events->on_network(b->owner, &e);
}

static void on_exited(struct helper *h)
{
	helper_close(h);
}

static void on_restart(uv_timer_t *t)
{
	start(t->data);
}

static void restart_later(struct nursery *n)
{
	uint64_t wait = RESTART_MS * (uint64_t)++n->proxy_failures;
	uv_timer_start(&n->proxy_restart, on_restart, wait < RESTART_MOST_MS ? wait : RESTART_MOST_MS, 0);
}

static void on_closed(struct helper *h)
{
	struct nursery *n = nursery_of(h);
	if (n->destroying) {
		nursery_finish_when_empty(n);
		return;
	}
	log_warning("the proxy ended; connections through it are lost, a new one is started");
	restart_later(n);
}

static void start(struct nursery *n)
{
	char *argv[] = { (char *)"glovebox", (char *)"proxy", NULL }, *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	struct berth *b;
	n->proxy.on_message = on_message;
	n->proxy.on_exit = on_exited;
	n->proxy.on_closed = on_closed;
	if (n->destroying)
		return;
	int r = helper_start(&n->proxy, n->config.loop, "/proc/self/exe", argv, envp, -1);
	if (r < 0) {
		log_error("the proxy does not start: %s", strerror(-r));
		restart_later(n);
		return;
	}
	TAILQ_FOREACH(b, &n->berths, link)
		if (b->n_outlets)
			send_open(b);
}

void egress_destroy(struct nursery *n)
{
	helper_close(&n->proxy);
}
