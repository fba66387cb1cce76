/* One sandbox: its jail, the guests that live in it, its end. */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "sandbox/proxy_client.h"

enum { FAILURES_TOLD = 3 }; /* failures of refills in a row, before new sessions are refused */

/* ---- host ids ------------------------------------------------------------------ */

static uint32_t take_host_id(struct sandbox_pool *n)
{
	for (unsigned tried = 0; tried < JAIL_HOST_ID_COUNT; tried++) {
		uint32_t id = n->next_host_id++ % JAIL_HOST_ID_COUNT;
		if (!(n->host_ids[id / 8] & (1U << (id % 8)))) {
			n->host_ids[id / 8] |= (uint8_t)(1U << (id % 8));
			return n->first_host_id + id;
		}
	}

	/* more live sandboxes than ids: cannot be, descriptors run out long before */
	return n->first_host_id;
}

static void give_back_host_id(struct sandbox_pool *n, uint32_t host_id)
{
	uint32_t id = host_id - n->first_host_id;
	if (id >= JAIL_HOST_ID_COUNT)
		return; /* that of a volume */
	n->host_ids[id / 8] &= (uint8_t) ~(1U << (id % 8));
}

/* ---- life of a sandbox -------------------------------------------------------------- */

struct sandbox *sandbox_find(struct sandbox_pool *n, uint32_t serial)
{
	struct sandbox *b;
	TAILQ_FOREACH (b, &n->sandboxes, link)
		if (b->serial == serial)
			return b;
	return NULL;
}

static void free_sandbox(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	TAILQ_REMOVE(&n->sandboxes, b, link);
	programs_detach(b);
	if (b->beside)
		b->cgroup[0] = '\0'; /* it was another one's, and so is the id */
	else
		sandbox_leave_beside(b);
	sandbox_remove_cgroup(b);
	if (!b->outer && !b->beside)
		give_back_host_id(n, b->host_id);
	for (int i = 0; i < JAIL_NAMESPACES; i++)
		fd_close(b->namespaces[i]);
	fd_close(b->arriving);
	struct sandbox *outer = b->outer;
	fd_close(b->init_control);
	sandbox_give_back_net(b);
	fd_close(b->watch.proc);
	sandbox_close_workspace(b);
	for (int i = 0; i < 3; i++)
		fd_close(b->guest_fds[i]);
	network_policy_finish(&b->kind.network);
	free(b);
	if (outer) {
		outer->nested--;
		if (outer->state == SANDBOX_CLOSED)
			sandbox_end_jail(outer);
	}

	sandbox_pool_finish_when_empty(n);
}

void sandbox_free_when_closed(struct sandbox *b)
{
	if (b->state == SANDBOX_CLOSED && !b->open_polls && !b->jail_asked &&
		!b->snapshots_leaving && !b->init.of)
		free_sandbox(b);
}

static void poll_closed(uv_handle_t *h)
{
	struct sandbox *b = h->data;
	b->open_polls--;
	sandbox_free_when_closed(b);
}

static void close_poll(uv_poll_t *p)
{
	if (!uv_is_closing((uv_handle_t *)p))
		uv_close((uv_handle_t *)p, poll_closed);
}

void sandbox_end_jail(struct sandbox *b)
{
	if (b->nested)
		/* its namespaces hold up theirs: the last one of them to go comes here again */
		return;

	/*
	 * Whoever lets go last frees all files, which takes as long as they are many: the jail's
	 * own processes, not the daemon.
	 */
	sandbox_close_workspace(b);
	sandbox_remember_net(b);
	child_signal(&b->init, SIGKILL);
	if (b->open_polls)
		close_poll(&b->control_poll);
	sandbox_free_when_closed(b);
}

void sandbox_close(struct sandbox *b)
{
	if (!b || b->state == SANDBOX_CLOSED)
		return;

	bool unowned = !b->owner;
	b->state = SANDBOX_CLOSED;
	socket_asks_end(b);
	b->owner = NULL;
	proxy_client_close(b);
	sandbox_end_retiring_guest(b);
	guest_close(b->guest);
	b->guest = NULL;
	b->snapshots_leaving++; /* the last one to go would take the sandbox with it */
	sandbox_drop_snapshots(b);
	b->snapshots_leaving--;
	if (b->nested)
		sandbox_kill_group(b, &b->limits, NULL);
	if (unowned)
		/* another takes its place without waiting for a session to be asked for */
		sandbox_pool_refill_later(b->pool);
	sandbox_end_jail(b);
}

void sandbox_fail(struct sandbox *b, const char *text)
{
	struct sandbox_pool *n = b->pool;
	log_warning("a guest could not be made: %s", text);
	if (b->owner) {
		b->events->on_failed(b->owner, text);
	} else {
		n->refill_failed = true;
		bool making = b->state == SANDBOX_JAIL || b->state == SANDBOX_STARTING;
		/* whatever it is, others would fare no better */
		if (making && ++n->refill_failures >= FAILURES_TOLD)
			sandbox_pool_set_shortage(n, text);
		sandbox_close(b);
	}
}

void sandbox_fail_step(struct sandbox *b, int err, const char *step)
{
	char text[160];
	snprintf(text, sizeof(text), "%s: %s", step, strerror(-err));
	if (!b->outer) /* a nested jail may fail for its depth */
		sandbox_pool_note_shortage(b->pool, err, step);
	sandbox_fail(b, text);
}

struct guest *sandbox_guest(struct sandbox *b)
{
	return b->guest;
}

pid_t sandbox_init_pid(const struct sandbox *b)
{
	return child_runs(&b->init) && !b->init_reaped ? b->init.pid : 0;
}

uint32_t sandbox_host_id(const struct sandbox *b)
{
	return b->host_id;
}

struct sandbox *sandbox_new(struct sandbox_pool *n, const struct sandbox_kind *kind,
	const struct cgroup_limits *limits, void *owner)
{
	return sandbox_new_in(n, kind, limits, owner, NULL);
}

struct sandbox *sandbox_new_in(struct sandbox_pool *n, const struct sandbox_kind *kind,
	const struct cgroup_limits *limits, void *owner, struct sandbox *outer)
{
	struct sandbox *b = calloc(1, sizeof(*b));
	if (!b || network_policy_copy(&kind->network, &b->kind.network) < 0) {
		free(b);
		return NULL;
	}

	b->pool = n;
	b->owner = owner;
	b->events = n->config.events;
	b->serial = ++n->next_serial;
	b->outer = outer;

	/* a nested user namespace has no other id to give */
	b->host_id = outer ? outer->host_id : kind->host_id ? kind->host_id : take_host_id(n);
	if (outer) {
		outer->nested++;
		outer->joins.others = true; /* the copy starts in its group */
	}
	b->kind.disk_bytes = kind->disk_bytes;
	b->kind.inodes = kind->inodes;
	b->kind.exec = kind->exec;
	b->kind.mounts = kind->mounts;
	b->kind.template = kind->template;
	b->limits = *limits;
	b->net = b->watch.proc = b->arriving = b->init_control = b->workspace = b->guest_fds[0] =
		b->guest_fds[1] = b->guest_fds[2] = -1;
	TAILQ_INIT(&b->snapshots);
	TAILQ_INIT(&b->programs);
	TAILQ_INIT(&b->socket_asks);
	for (int i = 0; i < JAIL_NAMESPACES; i++)
		b->namespaces[i] = -1;
	TAILQ_INSERT_TAIL(&n->sandboxes, b, link);
	sandbox_ask_jail(b);
	return b;
}

bool sandbox_is_unowned(const struct sandbox *b)
{
	return !b->owner && b->state != SANDBOX_CLOSED;
}

void sandbox_forget_jail(struct sandbox *b)
{
	b->jail_asked = false;
	sandbox_free_when_closed(b);
}

/*
 * The init's socket closes before its jail's processes are killed, its pidfd only says so after
 * they have gone.
 */
bool sandbox_has_jail(const struct sandbox *b)
{
	if (b->beside)
		return b->beside != b && sandbox_has_jail(b->beside);
	struct pollfd p = { .fd = b->init_control, .events = POLLRDHUP };
	return b->init_control >= 0 && !b->init_reaped &&
	       (poll(&p, 1, 0) == 0 || !(p.revents & (POLLHUP | POLLRDHUP | POLLERR)));
}

/* Asks the init to kill everything else in the jail. */
static bool ask_kill_all(struct sandbox *b)
{
	char byte = JAIL_SWEEP;
	if (b->init_reaped || write(b->init_control, &byte, 1) != 1)
		return false;
	b->kills_pending++;
	return true;
}

void sandbox_kill_all(struct sandbox *b)
{
	if (!TAILQ_EMPTY(&b->snapshots) || b->nested || b->beside || sandbox_has_programs(b)) {
		sandbox_kill_others(b);
		return;
	}

	if (b->guest)
		guest_signal(b->guest, SIGKILL);
	if (b->state == SANDBOX_READY)
		ask_kill_all(b);
}

void sandbox_replace_guest(struct sandbox *b)
{
	sandbox_drop_guest(b);
	sandbox_drop_snapshots(b); /* the init kills them too */
	sandbox_count_snapshots(b);
	if (b->state == SANDBOX_JAIL)
		return; /* the jail is still empty: its first guest will be used */

	/*
	 * the kill would reach into the jails that are nested in this one, and the programs beside
	 * the guest
	 */
	if (b->nested || b->beside || sandbox_has_programs(b)) {
		sandbox_kill_others(b);
		b->state = SANDBOX_GUEST;
		sandbox_ask_guest(b);
		return;
	}

	if (!ask_kill_all(b)) {
		sandbox_fail(b, "the jail's init died");
		return;
	}

	b->state = SANDBOX_KILL_ALL;
}
