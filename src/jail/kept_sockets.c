/* Runs in a jail's init: no memory is allocated. */
#include "jail/kept_sockets.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "base/limits.h"

enum { KEPT_MAX = LIMIT_SNAPSHOTS + 16 }; /* some are on their way out when others come */

static struct {
	uint64_t snapshot_id;
	int socket;
} kept[KEPT_MAX];
static size_t n_kept;

static void drop(uint64_t snapshot_id)
{
	for (size_t i = 0; i < n_kept; i++) {
		if (kept[i].snapshot_id != snapshot_id)
			continue;
		fd_close(kept[i].socket);
		kept[i] = kept[--n_kept];
		return;
	}
}

/* A copy that cannot be kept sees its socket close, and ends: the daemon notices its end. */
static void keep(uint64_t snapshot_id, int socket)
{
	drop(snapshot_id);
	if (n_kept == KEPT_MAX) {
		fd_close(socket);
		return;
	}
	kept[n_kept].snapshot_id = snapshot_id;
	kept[n_kept++].socket = socket;
}

/*
 * Code of the session may hold the other end and not read: the order is lost then, and the daemon
 * has a limit for the wait.
 */
static void forward(uint64_t snapshot_id, const char *order, size_t len, const int *fds, size_t n)
{
	for (size_t i = 0; i < n_kept; i++)
		if (kept[i].snapshot_id == snapshot_id)
			fd_send_now(kept[i].socket, order, len, fds, n);
}

bool kept_sockets_obey(int control, char order, int *fds, size_t n_fds)
{
	struct jail_kept q;
	char data[JAIL_FORWARD_MAX];
	if (fd_read_full(control, &q, sizeof(q)) < 0 || q.len > sizeof(data) ||
		fd_read_full(control, data, q.len) < 0)
		return false;

	if (order == JAIL_KEEP && n_fds) {
		keep(q.snapshot_id, fds[0]);
		fds[0] = -1;
	} else if (order == JAIL_FORWARD) {
		forward(q.snapshot_id, data, q.len, fds, n_fds);
	} else if (order == JAIL_DROP) {
		drop(q.snapshot_id);
	}
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	return true;
}
