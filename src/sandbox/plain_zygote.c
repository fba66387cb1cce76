#include "sandbox/plain_zygote.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sandbox/sandbox.h"
#include "wire/wire.h"

enum { FAILURES_MAX = 3 };

struct template
{
	struct sandbox_pool *pool;
	struct helper helper;
	bool warm, renewing;
	unsigned failures;
};

static struct template *template_of(struct helper *h)
{
	return (struct template *)((char *)h - offsetof(struct template, helper));
}

bool template_warm(const struct template *t)
{
	return t->warm;
}

struct helper *template_helper(struct template *t)
{
	return &t->helper;
}

static void free_template(struct template *t)
{
	t->pool->plain = NULL;
	free(t);
}

static void start(struct template *t);

static bool wants_guest(struct sandbox *b, void *userdata)
{
	return b->state == SANDBOX_GUEST && b->kind.template == userdata;
}

static void on_message(struct helper *h, const void *data, size_t len, int *fds, size_t n_fds)
{
	struct template *t = template_of(h);
	static struct wire_zygote m;

	if (len != sizeof(m))
		return;

	memcpy(&m, data, sizeof(m));
	m.text[sizeof(m.text) - 1] = '\0';
	if (m.event == WIRE_ZYGOTE_SPAWNED) {
		sandbox_pool_spawned(t->pool, &m, fds, n_fds);
	} else if (m.event == WIRE_ZYGOTE_PROBLEM) {
		log_error("the zygote of the template plain reports: %s", m.text);
	} else if (m.event == WIRE_ZYGOTE_WARM) {
		t->warm = true;
		t->failures = 0;
		log_info("the template plain is warm%s%s", m.text[0] ? "; not imported: " : "",
			m.text);
		sandbox_pool_ask(t->pool, wants_guest, sandbox_ask_guest, t);
		sandbox_pool_start_helpers(t->pool); /* the other zygote may have waited */
	}
}

static void on_exit_of(struct helper *h)
{
	helper_close(h);
}

static void fail_waiting(struct template *t)
{
	for (struct sandbox *b = TAILQ_FIRST(&t->pool->sandboxes), *next; b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (b->kind.template == t &&
			(b->state == SANDBOX_GUEST || b->state == SANDBOX_STARTING))
			sandbox_fail(b,
				"the Python zygote without packages could not be started; the server's log says why");
	}
}

static void on_closed(struct helper *h)
{
	struct template *t = template_of(h);
	struct sandbox_pool *n = t->pool;
	struct sandbox *b;

	t->warm = false;
	if (n->destroying) {
		free_template(t);
		sandbox_pool_finish_when_empty(n);
		return;
	}

	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (b->kind.template == t)
			sandbox_forget_guest(b);
	if (t->renewing) {
		t->renewing = false;
		start(t);
		return;
	}

	t->failures++;
	log_warning("the zygote of the template plain ended");
	if (t->failures >= FAILURES_MAX) {
		fail_waiting(t);
		sandbox_pool_start_helpers(n);
	} else
		start(t);
}

static void start(struct template *t)
{
	struct sandbox_pool *n = t->pool;
	if (!n->jailer_up || t->helper.running || t->helper.open_polls)
		return; /* when it is up */
	t->helper.on_message = on_message;
	t->helper.on_exit = on_exit_of;
	t->helper.on_closed = on_closed;
	if (sandbox_pool_start_zygote(n, &t->helper, n->config.plain_preload, -1) < 0)
		t->failures = FAILURES_MAX;
}

void template_start(struct sandbox_pool *n)
{
	if (n->plain)
		start(n->plain);
}

struct template *template_plain(struct sandbox_pool *n)
{
	struct template *t = n->plain;
	if (!t && (t = calloc(1, sizeof(*t)))) {
		t->pool = n;
		t->helper.socket = t->helper.pidfd = -1;
		n->plain = t;
		start(t);
	}
	return t && t->failures < FAILURES_MAX ? t : NULL;
}

void template_restart(struct sandbox_pool *n)
{
	if (n->plain && n->plain->helper.running)
		helper_close(&n->plain->helper);
}

/* Guests that wait in the pool without an owner came from the zygote that ends. */
static void close_ready_guests(struct template *t)
{
	for (struct sandbox *b = TAILQ_FIRST(&t->pool->sandboxes), *next; b; b = next) {
		next = TAILQ_NEXT(b, link);
		if (sandbox_is_unowned(b) && b->kind.template == t)
			sandbox_close(b);
	}
}

void template_renew(struct sandbox_pool *n)
{
	struct template *t = n->plain;
	if (!t || !t->warm || !t->helper.running)
		return;

	t->warm = false;
	t->renewing = true;
	close_ready_guests(t);
	helper_close(&t->helper);
}

void template_destroy(struct sandbox_pool *n)
{
	struct template *t = n->plain;
	if (t && t->helper.open_polls)
		helper_close(&t->helper);
	else if (t)
		free_template(t);
}
