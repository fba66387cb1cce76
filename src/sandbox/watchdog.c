#include "sandbox/watchdog.h"

#include "base/log.h"
#include "sandbox/sandbox.h"

enum {
	TICK_MS = 1000,
	PING_TICKS = 5,       /* between two questions to the jailer */
	UNANSWERED_TICKS = 5, /* before a jailer that is silent is replaced */
	START_TICKS = 60,     /* before one that does not even start is */
	GUEST_TICKS = 10,     /* for the zygote to fork a guest */
	NESTED_TICKS = 10,    /* for a nested jail, whose maker gives up after NESTED_LIMIT_S */
	COPY_TICKS = 10,      /* for a copy that is to make a guest */
	SWEEP_TICKS = 5,      /* for a jail's init to kill what a dead interpreter left behind */
	/* before a zygote that does not get its modules imported is replaced; the first start takes
	 * longest */
	WARM_TICKS = 300,
	/* for that guest to be ready: it writes the session's files in that time */
	READY_TICKS = 30,
};

static void replace_jailer(struct sandbox_pool *n, const char *why)
{
	log_error("the jailer %s; it is killed and a new one is started", why);
	n->jailer_up = false; /* /readyz says so from now on */
	n->watchdog.unanswered = n->watchdog.starting = 0;
	helper_close(&n->jailer);
}

static void watch_jailer(struct sandbox_pool *n)
{
	struct watchdog *w = &n->watchdog;
	struct jail_request ping = { .serial = WATCHDOG_SERIAL, .ping = 1 };

	if (!n->jailer.running)
		return;

	if (!n->jailer_up) {
		if (++w->starting > START_TICKS)
			replace_jailer(n, "does not start");
		return;
	}

	if (w->unanswered) {
		if (++w->unanswered > UNANSWERED_TICKS)
			replace_jailer(n, "does not answer");
		return;
	}

	if (w->until_ping && --w->until_ping)
		return;

	/* A queue that is full is as good as a question. */
	helper_send(&n->jailer, &ping, sizeof(ping), NULL, 0);
	w->unanswered = 1;
}

/* One that is warm is looked at when it is asked for a guest. */
static void watch_zygote(struct sandbox_pool *n)
{
	n->watchdog.warming = n->zygote.running && !n->zygote_warm ? n->watchdog.warming + 1 : 0;
	if (n->watchdog.warming <= WARM_TICKS)
		return;

	log_error(
		"the zygote did not become ready in time; it is killed, and a new one is started");
	n->watchdog.warming = 0;
	helper_close(&n->zygote);
}

void watchdog_answered(struct sandbox_pool *n)
{
	n->watchdog.unanswered = 0;
	n->watchdog.until_ping = PING_TICKS;
}

void watchdog_jailer_new(struct sandbox_pool *n)
{
	n->watchdog.unanswered = n->watchdog.starting = 0;
	n->watchdog.until_ping = PING_TICKS;
}

/* What a sandbox waits for, and for how many ticks it may. */
enum awaited { NOTHING, NESTED_JAIL, SWEPT_JAIL, GUEST_OF_ZYGOTE, GUEST_OF_SNAPSHOT, READINESS };
static const unsigned limits[] = { [SWEPT_JAIL] = SWEEP_TICKS,
	[NESTED_JAIL] = NESTED_TICKS,
	[GUEST_OF_ZYGOTE] = GUEST_TICKS,
	[GUEST_OF_SNAPSHOT] = COPY_TICKS,
	[READINESS] = READY_TICKS };

static enum awaited awaits(const struct sandbox *b)
{
	if (b->jail_asked && b->outer)
		return NESTED_JAIL;
	if (b->state == SANDBOX_KILL_ALL)
		return SWEPT_JAIL;
	if (b->state != SANDBOX_STARTING)
		return NOTHING;
	if (guest_pid(b->guest))
		return READINESS;
	return b->from ? GUEST_OF_SNAPSHOT : GUEST_OF_ZYGOTE;
}

static void give_up(struct sandbox_pool *n, struct sandbox *b, enum awaited what)
{
	struct template *t = b->kind.template;
	b->waited = 0;
	if (what == NESTED_JAIL) {
		if (b->state == SANDBOX_CLOSED) {
			sandbox_forget_jail(b);
			return;
		}
		/* a late answer has no owner, and its init is killed */
		b->jail_asked = false;
	}

	if (what == GUEST_OF_ZYGOTE) {
		log_error("the zygote does not answer; it is killed and a new one is started");
		if (!t)
			n->zygote_warm = false;
		helper_close(t ? template_helper(t) : &n->zygote);
		return;
	}

	static const char *const late[] = {
		[NESTED_JAIL] = "its jail was not made in time",
		[SWEPT_JAIL] = "the jail's init did not answer in time",
		[GUEST_OF_SNAPSHOT] = "the snapshot did not answer in time",
		[READINESS] = "the interpreter was not ready in time",
	};
	sandbox_fail(b, late[what]);
}

/* One sandbox at a time: the callback may close other sandboxes. */
static bool watch_sandboxes(struct sandbox_pool *n)
{
	struct sandbox *b;
	TAILQ_FOREACH (b, &n->sandboxes, link) {
		enum awaited what = awaits(b);
		if (what != NOTHING && b->waited > limits[what]) {
			give_up(n, b, what);
			return true;
		}
	}
	return false;
}

static void on_tick(uv_timer_t *t)
{
	struct sandbox_pool *n = t->data;
	struct sandbox *b;

	if (n->destroying)
		return;

	watch_jailer(n);
	watch_zygote(n);
	arrival_restart(n);
	renewal_look(n);
	sandbox_pool_close_workspaces(n);
	sandbox_trim_spare_cgroups(n);
	sandbox_trim_spare_nets(n);
	if (n->n_unremoved)
		sandbox_remove_leftovers(n);
	TAILQ_FOREACH (b, &n->sandboxes, link)
		b->waited = awaits(b) == NOTHING ? 0 : b->waited + 1;
	while (watch_sandboxes(n))
		;
}

const char *watchdog_complaint(const struct sandbox_pool *n)
{
	if (!n->jailer_up)
		return "the process that makes jails is being started";
	return n->zygote_warm ? NULL : "the Python zygote is being started";
}

void watchdog_start(struct sandbox_pool *n)
{
	uv_timer_init(n->config.loop, &n->watchdog.timer);
	n->watchdog.timer.data = n;
	n->watchdog.until_ping = PING_TICKS;
	uv_timer_start(&n->watchdog.timer, on_tick, TICK_MS, TICK_MS);
}

void watchdog_stop(struct sandbox_pool *n, uv_close_cb closed)
{
	uv_close((uv_handle_t *)&n->watchdog.timer, closed);
}
