/*
 * Sandboxes without a jail of their own: further guests in the jail and the control group of
 * another sandbox.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/sandbox.h"

int sandbox_pool_beside(struct sandbox *host, void *owner, struct sandbox **ret)
{
	struct sandbox_pool *n = host->pool;
	if (host->beside || host->state == SANDBOX_CLOSED || host->init_reaped ||
		!child_runs(&host->init) || sandbox_make_cgroup(host) < 0)
		return -EAGAIN;
	struct sandbox *b = calloc(1, sizeof(*b));
	if (!b || network_policy_copy(&host->kind.network, &b->kind.network) < 0) {
		free(b);
		return -ENOMEM;
	}

	b->pool = n;
	b->events = n->config.events;
	b->serial = ++n->next_serial;
	b->beside = host;
	b->host_id = host->host_id;
	b->kind.disk_bytes = host->kind.disk_bytes;
	b->kind.inodes = host->kind.inodes;
	b->kind.exec = host->kind.exec;
	b->kind.mounts = host->kind.mounts;
	b->kind.template = host->kind.template;
	b->limits = host->limits;
	memcpy(b->cgroup, host->cgroup, sizeof(b->cgroup));
	b->net = b->watch.proc = b->arriving = b->init_control = b->workspace = b->guest_fds[0] =
		b->guest_fds[1] = b->guest_fds[2] = -1;
	TAILQ_INIT(&b->snapshots);
	TAILQ_INIT(&b->programs);
	TAILQ_INIT(&b->socket_asks);
	for (int i = 0; i < JAIL_NAMESPACES; i++)
		b->namespaces[i] = -1;
	b->state = SANDBOX_GUEST;
	TAILQ_INSERT_TAIL(&n->sandboxes, b, link);

	/*
	 * It fails without its owner, which is not in any table yet, and stays in memory until it
	 * was looked at.
	 */
	b->jail_asked = true;
	sandbox_ask_guest(b);
	bool failed = b->state == SANDBOX_CLOSED;
	b->owner = failed ? NULL : owner;
	*ret = failed ? NULL : b;
	sandbox_forget_jail(b);
	return failed ? -EAGAIN : 0;
}

size_t sandbox_beside_guests(const struct sandbox *host, pid_t *ret, size_t max)
{
	const struct sandbox *b;
	size_t n = 0;
	TAILQ_FOREACH (b, &host->pool->sandboxes, link)
		if (b->beside == host && guest_pid(b->guest) && n < max)
			ret[n++] = guest_pid(b->guest);
	return n;
}

void sandbox_leave_beside(struct sandbox *host)
{
	struct sandbox *b;
	TAILQ_FOREACH (b, &host->pool->sandboxes, link)
		if (b->beside == host)
			b->beside = b; /* nobody's: its owner is about to close it */
}
