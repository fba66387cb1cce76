/*
 * Network namespaces of jails that have ended, for the next jails (jail/idle_net.h). The jailer
 * looks whether a socket is left in one; that no process is left is known here.
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/fds.h"
#include "sandbox/sandbox.h"

/*
 * Only guests of its own, all known by number, were ever given the init to enter the jail by: they
 * are in its pid namespace, and have ended when its init has.
 */
static bool may_be_used_again(const struct sandbox *b)
{
	return b->kind.network.net == JAIL_NET_NONE && !b->outer && !b->beside &&
	       !b->joins.others && b->joins.given == b->joins.known &&
	       b->pool->n_spare_nets < SPARE_NETS && !b->pool->destroying;
}

/*
 * While the init lives: its namespaces have no other name. An ordinary user may not look, and every
 * jail gets a new one.
 */
void sandbox_remember_net(struct sandbox *b)
{
	char path[48];
	pid_t init = sandbox_init_pid(b);
	if (b->net >= 0 || !init || !may_be_used_again(b))
		return;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", init);
	b->net = open(path, O_RDONLY | O_CLOEXEC);
}

void sandbox_give_back_net(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	if (b->net >= 0 && b->init_reaped && may_be_used_again(b))
		n->spare_nets[n->n_spare_nets++] = b->net;
	else
		fd_close(b->net);
	b->net = -1;
}

int sandbox_take_spare_net(struct sandbox_pool *n)
{
	if (!n->n_spare_nets)
		return -1;
	n->spare_nets_used = true;
	return n->spare_nets[--n->n_spare_nets];
}

void sandbox_remove_spare_nets(struct sandbox_pool *n)
{
	while (n->n_spare_nets)
		fd_close(n->spare_nets[--n->n_spare_nets]);
}

void sandbox_trim_spare_nets(struct sandbox_pool *n)
{
	if (!n->spare_nets_used)
		sandbox_remove_spare_nets(n);
	n->spare_nets_used = false;
}
