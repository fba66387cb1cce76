#include "sandbox/snapshot.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/launcher.h"
#include "base/process.h"
#include "base/text.h"
#include "sandbox/sandbox.h"

enum { ANSWER_MAX = 4096 };

int snapshot_create(struct sandbox *b, struct snapshot **ret)
{
	struct snapshot *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->sandbox = b;
	c->ticket = ++b->pool->next_ticket;
	c->control = c->pidfd = -1;
	memcpy(c->id, "k_", 2);
	text_random_id(c->id + 2, COPY_ID_LEN - 2);
	c->wall_ns = clock_wall_ns();
	c->used_ns = clock_now_ns();
	wire_reader_init(&c->in, ANSWER_MAX);
	TAILQ_INSERT_TAIL(&b->snapshots, c, link);
	*ret = c;
	return 0;
}

/* Other kinds of files could make us wait, or be something that is not the guest's alone. */
static bool is_unix_stream(int fd)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);
	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

int snapshot_parked(struct snapshot *c, int pidfd, int control)
{
	_cleanup_discard_ int process = pidfd, socket = control;
	pid_t pid = sandbox_own_process(c->sandbox, pidfd);
	if (!pid || c->pidfd >= 0 || !is_unix_stream(control))
		return -EPROTO;
	c->pidfd = TAKE_FD(process);
	c->control = TAKE_FD(socket);
	c->pid = pid;
	return 0;
}

bool copy_has_ended(const struct snapshot *c)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };
	return c->pidfd >= 0 && poll(&p, 1, 0) == 1;
}

/* ---- the end ---------------------------------------------------------------------- */

static void snapshot_free(struct snapshot *c)
{
	struct sandbox *b = c->sandbox;
	launcher_discard_socket(c->control);
	fd_close(c->pidfd);
	wire_reader_finish(&c->in);
	free(c->name);
	buffer_finish(&c->path);
	free(c);
	b->snapshots_leaving--;
	sandbox_snapshot_gone(b);
}

static void poll_closed(uv_handle_t *h)
{
	struct snapshot *c = h->data;
	if (--c->open_polls == 0)
		snapshot_free(c);
}

static void on_exit_ready(uv_poll_t *p, int status, int events)
{
	struct snapshot *c = p->data;
	struct process_exit end;
	(void)status, (void)events;
	if (process_reap(c->pidfd, &end) == 0)
		return;
	uv_close((uv_handle_t *)p, poll_closed);
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
	if (c->control_polled)
		uv_close((uv_handle_t *)&c->control_poll, poll_closed);
	if (c->pidfd >= 0) {
		process_signal(c->pidfd, SIGKILL);
		if (uv_poll_init(c->sandbox->pool->config.loop, &c->exit_poll, c->pidfd) == 0) {
			c->exit_poll.data = c;
			c->open_polls++;
			uv_poll_start(&c->exit_poll, UV_READABLE, on_exit_ready);
		}
	}
	if (!c->open_polls)
		snapshot_free(c);
}

/* ---- making live guests -------------------------------------------------------------- */

static void take_lived(struct snapshot *c, const struct wire_frame *f, int *came)
{
	struct wire_field field;
	size_t at = 0;
	uint64_t ticket = 0;
	char text[256] = "";
	while (wire_field_next(f, &at, &field) == 1) {
		if (field.tag == WIRE_TICKET)
			wire_field_u64(&field, &ticket);
		else if (field.tag == WIRE_TEXT)
			snprintf(text, sizeof(text), "%.*s", (int)(field.len < sizeof(text) ? field.len : sizeof(text) - 1), field.data);
	}
	if (f->type == WIRE_LIVED)
		sandbox_take_live(c->sandbox->pool, c, (uint32_t)ticket, TAKE_FD(*came), text);
}

/* One answer comes with one descriptor and is read alone: descriptors end a read of a stream socket. */
static void on_control(uv_poll_t *p, int status, int events)
{
	struct snapshot *c = p->data;
	struct wire_frame f;
	char *at;
	size_t room;
	_cleanup_discard_ int came = -1;
	(void)status, (void)events;
	ssize_t n = wire_reader_room(&c->in, ANSWER_MAX, &at, &room);
	if (n == 0)
		n = fd_recv_now(c->control, at, room, &came, 1, NULL); /* the guest may hold our end too */
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		uv_poll_stop(p);
		sandbox_snapshot_died(c->sandbox->pool, c);
		return;
	}
	wire_reader_filled(&c->in, (size_t)n);
	while (!c->dropped && wire_reader_next(&c->in, &f) == 1)
		take_lived(c, &f, &came);
}

static int watch(struct snapshot *c)
{
	if (c->control_polled)
		return 0;
	int r = uv_poll_init(c->sandbox->pool->config.loop, &c->control_poll, c->control);
	if (r < 0)
		return r;
	c->control_poll.data = c;
	c->control_polled = true;
	c->open_polls++;
	return uv_poll_start(&c->control_poll, UV_READABLE, on_control);
}

static int put_order(struct buffer *b, uint64_t ticket, bool restore_files, enum wire_tag how, uint64_t value, bool reseed)
{
	size_t start;
	int r = wire_begin(b, WIRE_LIVE, 0, &start);
	if (r == 0)
		r = wire_put_u64(b, WIRE_TICKET, ticket);
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
	next->ticket = c->ticket;
	memcpy(next->id, c->id, sizeof(next->id));
	next->name = TAKE_PTR(c->name);
	next->path = c->path;
	c->path = (struct buffer)BUFFER_INIT(0);
	next->cell = c->cell;
	next->steps = c->steps;
	next->same = c->same;
	next->from_start = c->from_start;
	next->parent = c->parent;
	next->wall_ns = c->wall_ns;
	next->size_bytes = c->size_bytes;
	next->files_left = c->files_left;
	next->fragile = c->fragile;
	next->again = true;
}

int snapshot_take(struct snapshot *c, bool restore_files, struct snapshot **ret, int *ret_pidfd)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(ANSWER_MAX);
	struct snapshot *next;
	int r = snapshot_create(c->sandbox, &next);
	if (r < 0)
		return r;
	r = put_order(&b, 0, restore_files, WIRE_ITSELF, c->ticket, false);
	if (r == 0)
		r = fd_send_now(c->control, b.data, b.len, c->sandbox->far, 3);
	if (r < 0) {
		snapshot_drop(next);
		return r;
	}
	succeed(next, c);
	*ret_pidfd = TAKE_FD(c->pidfd);
	*ret = next;
	snapshot_drop(c);
	return 0;
}

int snapshot_move(struct snapshot *c, struct sandbox *to)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(ANSWER_MAX);
	int fds[3 + JAIL_NAMESPACES] = { to->far[0], to->far[1], to->far[2] };
	int r = watch(c);
	if (r == 0)
		r = put_order(&b, to->serial, true, WIRE_MOVE, 1, to->reseed);
	if (r < 0)
		return r;
	memcpy(fds + 3, to->namespaces, sizeof(to->namespaces));
	c->used_ns = clock_now_ns();
	return fd_send_now(c->control, b.data, b.len, fds, 3 + JAIL_NAMESPACES);
}
