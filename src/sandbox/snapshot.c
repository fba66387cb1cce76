#include "sandbox/snapshot.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/launcher.h"
#include "base/node_id.h"
#include "base/process.h"
#include "base/text.h"
#include "sandbox/sandbox.h"

int snapshot_create(struct sandbox *b, struct snapshot **ret)
{
	struct snapshot *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;

	c->sandbox = b;
	c->snapshot_id = ++b->pool->next_snapshot_id;
	memcpy(c->id, "k_", 2);
	node_make_id(c->id + 2, SNAPSHOT_ID_LEN - 2);
	c->wall_ns = clock_wall_ns();
	c->used_ns = clock_now_ns();
	TAILQ_INSERT_TAIL(&b->snapshots, c, link);
	*ret = c;
	return 0;
}

/* Other kinds of files could make us wait, or be something that is not the guest's alone. */
static bool is_unix_stream(int fd)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);
	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	       domain == AF_UNIX && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	       type == SOCK_STREAM;
}

/* An order to the jail's init about the socket that it keeps of this copy. */
static int tell_init(const struct snapshot *c, char order, const struct buffer *data,
	const int *fds, size_t n_fds)
{
	struct __attribute__((packed)) {
		char order;
		struct jail_kept q;
		char data[JAIL_FORWARD_MAX];
	} m = { .order = order,
		.q = { .snapshot_id = c->snapshot_id, .len = data ? (uint32_t)data->len : 0 } };
	if (data && data->len > sizeof(m.data))
		return -E2BIG;

	if (data)
		memcpy(m.data, data->data, data->len);
	return sandbox_tell_init(c->sandbox, &m, offsetof(typeof(m), data) + m.q.len, fds, n_fds);
}

static void on_process_exit(struct child *process, const struct process_exit *end);

int snapshot_parked(struct snapshot *c, int pidfd, int control)
{
	_cleanup_discard_ int process = pidfd, socket = control;
	pid_t pid = sandbox_own_process(c->sandbox, process);

	if (!pid || c->pid || !is_unix_stream(socket))
		return -EPROTO;

	c->process.on_exit = on_process_exit;
	/* guests make copies as their siblings: whatever is no child of ours is none */
	if (child_watch(c->sandbox->pool->children, &c->process, pid) < 0)
		return -EPROTO;

	int r = tell_init(c, JAIL_KEEP, NULL, &socket, 1);
	if (r < 0) {
		child_signal(&c->process, SIGKILL);
		child_forget(&c->process); /* reaped with the orphans */
		return r;
	}

	c->pid = pid;
	return 0;
}

bool snapshot_has_ended(const struct snapshot *c)
{
	return c->pid && !child_runs(&c->process);
}

/* ---- the end ---------------------------------------------------------------------- */

static void snapshot_free(struct snapshot *c)
{
	struct sandbox *b = c->sandbox;
	free(c->name);
	buffer_finish(&c->path);
	free(c);
	b->snapshots_leaving--;
	sandbox_free_when_closed(b);
}

static void on_process_exit(struct child *process, const struct process_exit *end)
{
	struct snapshot *c = (struct snapshot *)((char *)process -
						 offsetof(struct snapshot, process));
	(void)end;
	if (c->dropped)
		snapshot_free(c);
	else
		sandbox_snapshot_died(c->sandbox->pool, c);
}

void snapshot_drop(struct snapshot *c)
{
	if (!c || c->dropped)
		return;

	c->dropped = true;
	/* Out of the list first: those who hear of it may drop all snapshots of its sandbox. */
	TAILQ_REMOVE(&c->sandbox->snapshots, c, link);
	c->sandbox->snapshots_leaving++;
	sandbox_snapshot_died(c->sandbox->pool, c);
	if (c->pid)
		tell_init(c, JAIL_DROP, NULL, NULL, 0);
	if (c->process.of)
		child_signal(&c->process, SIGKILL);
	else
		snapshot_free(c);
}

/* ---- making live guests -------------------------------------------------------------- */

static int put_order(
	struct buffer *b, bool restore_files, enum wire_tag how, uint64_t value, bool reseed)
{
	size_t start;
	int r = wire_begin(b, WIRE_LIVE, 0, &start);

	if (r == 0)
		r = wire_put_u64(b, WIRE_RESTORE, restore_files);
	if (r == 0)
		r = wire_put_u64(b, how, value);
	if (r == 0)
		r = wire_put_u64(b, WIRE_RESEED, reseed);
	if (r == 0)
		wire_end(b, start);
	return r;
}

/* All that is known of a copy, for the one that takes its place. */
static void succeed(struct snapshot *next, struct snapshot *c)
{
	TAILQ_REMOVE(&c->sandbox->snapshots, next, link);
	TAILQ_INSERT_AFTER(&c->sandbox->snapshots, c, next, link);
	next->snapshot_id = c->snapshot_id;
	memcpy(next->id, c->id, sizeof(next->id));
	next->name = TAKE_PTR(c->name);
	next->path = c->path;
	c->path = (struct buffer)BUFFER_INIT(0);
	next->cell = c->cell;
	next->cells_since_parent = c->cells_since_parent;
	next->same = c->same;
	next->from_start = c->from_start;
	next->parent = c->parent;
	next->wall_ns = c->wall_ns;
	next->size_bytes = c->size_bytes;
	next->without_files = c->without_files;
	next->fragile = c->fragile;
	next->respawning = true;
}

int snapshot_become_guest(struct snapshot *c, bool restore_files, struct snapshot **ret)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(JAIL_FORWARD_MAX);
	struct snapshot *next;
	int r = child_runs(&c->process) ? snapshot_create(c->sandbox, &next) : -ESRCH;

	if (r < 0)
		return r;

	r = put_order(&b, restore_files, WIRE_ITSELF, c->snapshot_id, false);
	if (r == 0)
		r = tell_init(c, JAIL_FORWARD, &b, c->sandbox->guest_fds, 3);
	if (r < 0) {
		snapshot_drop(next);
		return r;
	}

	succeed(next, c);
	child_forget(&c->process);
	*ret = next;
	snapshot_drop(c);
	return 0;
}

int snapshot_move(struct snapshot *c, struct sandbox *to)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(JAIL_FORWARD_MAX);
	int fds[3 + JAIL_NAMESPACES] = { to->guest_fds[0], to->guest_fds[1], to->guest_fds[2] };
	int r = child_runs(&c->process) ? guest_listen(to->guest) : -ESRCH;
	if (r == 0)
		r = put_order(&b, true, WIRE_MOVE, 1, to->reseed);
	if (r < 0)
		return r;

	memcpy(fds + 3, to->namespaces, sizeof(to->namespaces));
	c->used_ns = clock_now_ns();
	return tell_init(c, JAIL_FORWARD, &b, fds, 3 + JAIL_NAMESPACES);
}
