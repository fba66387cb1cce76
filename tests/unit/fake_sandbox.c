#include "fake_sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "sandbox/sandbox.h"
#include "session/internal.h"

enum { SNAPSHOTS_MAX = 256, GRAVES_MAX = 4096, TEXT_BYTES = 32 };

/* One for the interpreter of each sandbox. */
struct guest {
	struct buffer queue; /* frames that it was sent and has not come round to */
	uint64_t state;
	unsigned last_cell;
	/*
	 * snapshot ids of the snapshots it is about to take: in place of itself, after its next
	 * cell
	 */
	uint64_t again, next;
	bool starting, ran, refuses, killed;
};

static struct {
	uint64_t snapshot_id, state;
	unsigned cell;
	bool dead;
	char id[SNAPSHOT_ID_LEN + 1];
} snapshots[SNAPSHOTS_MAX];
static unsigned n_snapshots;

/* Callers may still look at what they have let go of. */
static void *graves[GRAVES_MAX];
static unsigned n_graves;

static void bury(void *p)
{
	if (n_graves == GRAVES_MAX)
		abort();
	graves[n_graves++] = p;
}

void fake_finish(void)
{
	while (n_graves)
		free(graves[--n_graves]);
	n_snapshots = 0;
}

uint64_t fake_mix(uint64_t state, unsigned code)
{
	return (state * 1000003 + code) % 1000000007 + 1;
}

static unsigned find_by_id(uint64_t snapshot_id)
{
	for (unsigned i = 0; i < n_snapshots; i++)
		if (snapshots[i].snapshot_id == snapshot_id)
			return i;
	abort();
}

uint64_t fake_snapshot_state(const char *id)
{
	for (unsigned i = 0; i < n_snapshots; i++)
		if (!strcmp(snapshots[i].id, id))
			return snapshots[i].state;
	return UINT64_MAX;
}

/* ---- interpreters ---------------------------------------------------------------------- */

static void drop_guest(struct sandbox *b)
{
	if (!b->guest)
		return;
	buffer_finish(&b->guest->queue);
	bury(b->guest);
	b->guest = NULL;
}

static void new_guest(struct sandbox *b, uint64_t state, unsigned cell)
{
	drop_guest(b);
	b->guest = calloc(1, sizeof(struct guest));
	b->guest->state = state;
	b->guest->last_cell = cell;
	b->guest->starting = true;
	b->state = SANDBOX_STARTING;
}

uint64_t fake_state(const struct session *s, bool *ret_settled)
{
	const struct guest *g = s->sandbox->guest;
	*ret_settled = !g->starting && !g->queue.len;
	return g->state;
}

static void say(struct sandbox *b, enum wire_type type, uint32_t serial, enum wire_tag tag,
	uint64_t value, const char *text)
{
	struct buffer out = BUFFER_INIT(0);
	struct wire_reader in;
	struct wire_frame f;
	size_t start, room;
	char *at;
	wire_begin(&out, type, serial, &start);
	if (tag)
		wire_put_u64(&out, tag, value);
	if (text)
		wire_put(&out, WIRE_TEXT, text, strlen(text));
	wire_end(&out, start);

	wire_reader_init(&in, 4096);
	wire_reader_room(&in, out.len, &at, &room);
	memcpy(at, out.data, out.len);
	wire_reader_filled(&in, out.len);
	if (wire_reader_next(&in, &f) == 1 && b->owner)
		b->events->guest.on_frame(b->owner, &f);
	wire_reader_finish(&in);
	buffer_finish(&out);
}

static void park(struct sandbox *b, uint64_t snapshot_id)
{
	struct guest *g = b->guest;
	struct snapshot *c = sandbox_snapshot(b, snapshot_id);
	if (!c)
		return;
	if (!g->refuses) {
		unsigned i = n_snapshots;
		for (unsigned k = 0; k < n_snapshots; k++)
			if (snapshots[k].snapshot_id == snapshot_id)
				i = k;
		if (i == SNAPSHOTS_MAX)
			abort();
		n_snapshots += i == n_snapshots;
		snapshots[i].snapshot_id = snapshot_id;
		snapshots[i].state = g->state;
		snapshots[i].cell = g->last_cell;
		snapshots[i].dead = false;
		memcpy(snapshots[i].id, c->id, sizeof(c->id));
	}
	const char *why = g->refuses ? "a thread is running" : NULL;
	g->refuses = false;
	say(b, WIRE_PARKED, g->last_cell, WIRE_SNAPSHOT_ID, snapshot_id, why);
}

static uint64_t field(const struct wire_frame *f, enum wire_tag tag)
{
	struct wire_field x;
	uint64_t n = 0;
	for (size_t at = 0; wire_field_next(f, &at, &x) == 1;) {
		if (x.tag != tag)
			continue;
		char text[TEXT_BYTES];
		if (tag != WIRE_CODE) {
			wire_field_u64(&x, &n);
		} else {
			snprintf(text, sizeof(text), "%.*s", (int)x.len, x.data);
			n = strtoull(text, NULL, 10);
		}
	}
	return n;
}

static void run_frame(struct sandbox *b, const struct wire_frame *f)
{
	struct guest *g = b->guest;
	uint32_t serial = f->serial;
	switch (f->type) {
	case WIRE_PARK:
		park(b, field(f, WIRE_SNAPSHOT_ID));
		break;
	case WIRE_PARK_NEXT:
		g->next = field(f, WIRE_SNAPSHOT_ID);
		break;
	case WIRE_EXECUTE:
		g->state = fake_mix(g->state, (unsigned)field(f, WIRE_CODE));
		g->last_cell = serial;
		g->ran = true;
		say(b, WIRE_DONE, serial, WIRE_EXIT_CODE, 0, NULL);
		break;
	case WIRE_REPLAY:
		if (!serial) {
			say(b, WIRE_REPLAYED, 0, 0, 0, NULL);
			break;
		}
		g->state = fake_mix(g->state, (unsigned)field(f, WIRE_CODE));
		g->last_cell = serial;
		break;
	default:
		break;
	}
}

/* Takes the first frame out of the queue and does what it says. */
static void next_frame(struct sandbox *b)
{
	struct wire_reader in;
	struct wire_frame f;
	struct buffer *q = &b->guest->queue;
	char *at;
	size_t room;
	wire_reader_init(&in, 1 << 20);
	wire_reader_room(&in, q->len, &at, &room);
	memcpy(at, q->data, q->len);
	wire_reader_filled(&in, q->len);
	if (wire_reader_next(&in, &f) == 1) {
		buffer_consume(q, q->len - wire_reader_pending(&in));
		run_frame(b, &f);
	}
	wire_reader_finish(&in);
}

bool fake_step(struct session *s)
{
	struct sandbox *b = s->sandbox;
	struct guest *g = b->guest;
	if (g->killed) {
		fake_die(s);
		return true;
	}
	if (g->starting) {
		g->starting = false;
		b->state = SANDBOX_READY;
		b->events->on_ready(b->owner);
		return true;
	}
	uint64_t snapshot_id = g->again ? g->again : !g->queue.len && g->ran ? g->next : 0;
	if (snapshot_id) {
		*(g->again ? &g->again : &g->next) = 0;
		park(b, snapshot_id);
		return true;
	}
	if (!g->queue.len)
		return false;
	next_frame(b);
	return true;
}

void fake_refuse(struct session *s)
{
	s->sandbox->guest->refuses = true;
}

void fake_forge(struct session *s)
{
	if (!s->sandbox->guest->starting)
		say(s->sandbox, WIRE_DONE, s->queue.cells, WIRE_EXIT_CODE, 0, NULL);
}

void fake_die(struct session *s)
{
	struct sandbox *b = s->sandbox;
	static const struct process_exit killed = { .signaled = true, .status = SIGKILL };
	if (b->guest->starting)
		b->events->on_failed(b->owner, "it died while it started");
	else
		b->events->guest.on_exit(b->owner, &killed, false);
}

void fake_fail(struct session *s)
{
	if (s->sandbox->guest->starting)
		s->sandbox->events->on_failed(s->sandbox->owner, "it could not be started");
}

void fake_snapshots_die(struct session *s)
{
	struct snapshot *c;
	TAILQ_FOREACH (c, &s->sandbox->snapshots, link)
		if (snapshot_is_there(c))
			snapshots[find_by_id(c->snapshot_id)].dead = true;
}

void fake_jail_dies(struct session *s)
{
	s->sandbox->init_reaped = true;
	fake_snapshots_die(s);
	fake_die(s);
}

/* ---- pool.h ----------------------------------------------------------------------------- */

static struct sandbox *new_berth(struct sandbox_pool *n, void *owner)
{
	struct sandbox *b = calloc(1, sizeof(*b));
	b->pool = n;
	b->owner = owner;
	b->events = n->config.events;
	TAILQ_INIT(&b->snapshots);
	new_guest(b, 0, 0);
	return b;
}

int sandbox_pool_create(
	const struct sandbox_pool_config *config, struct error *e, struct sandbox_pool **ret)
{
	(void)e;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->config = *config;
	return 0;
}

void sandbox_pool_destroy(struct sandbox_pool *n, void (*done)(void *), void *userdata)
{
	free(n);
	if (done)
		done(userdata);
}

int sandbox_pool_take(struct sandbox_pool *n, const struct sandbox_kind *kind,
	const struct cgroup_limits *limits, void *owner, bool *ret_ready, struct sandbox **ret)
{
	(void)kind, (void)limits;
	*ret = new_berth(n, owner);
	*ret_ready = false;
	return 0;
}

int sandbox_pool_nest(struct sandbox_pool *n, struct snapshot *c, bool reseed,
	const struct sandbox_kind *kind, const struct cgroup_limits *limits, void *owner,
	struct sandbox **ret)
{
	(void)reseed, (void)kind, (void)limits;
	unsigned i = find_by_id(c->snapshot_id);
	*ret = new_berth(n, owner);
	(*ret)->guest->state = snapshots[i].state;
	(*ret)->guest->last_cell = snapshots[i].cell;
	return 0;
}

bool sandbox_pool_warm(const struct sandbox_pool *n)
{
	(void)n;
	return true;
}

const char *sandbox_pool_report(const struct sandbox_pool *n)
{
	(void)n;
	return "";
}

const char *sandbox_pool_complaint(const struct sandbox_pool *n)
{
	(void)n;
	return NULL;
}

void sandbox_pool_note_shortage(struct sandbox_pool *n, int err, const char *step)
{
	(void)n, (void)err, (void)step;
}

const char *sandbox_pool_shortage(const struct sandbox_pool *n)
{
	(void)n;
	return NULL;
}

const struct sandbox_pool_stats *sandbox_pool_stats(const struct sandbox_pool *n)
{
	return &n->stats;
}

int sandbox_pool_jailer_pidfd(const struct sandbox_pool *n)
{
	(void)n;
	return -1;
}

void sandbox_close(struct sandbox *b)
{
	if (!b || b->state == SANDBOX_CLOSED)
		return;
	while (!TAILQ_EMPTY(&b->snapshots))
		snapshot_drop(TAILQ_FIRST(&b->snapshots));
	drop_guest(b);
	b->state = SANDBOX_CLOSED;
	b->owner = NULL;
	bury(b);
}

void sandbox_replace_guest(struct sandbox *b)
{
	while (!TAILQ_EMPTY(&b->snapshots))
		snapshot_drop(TAILQ_FIRST(&b->snapshots));
	if (b->init_reaped)
		b->events->on_failed(b->owner, "the jail's init died");
	else
		new_guest(b, 0, 0);
}

void sandbox_restart_guest(struct sandbox *b)
{
	new_guest(b, 0, 0); /* one in a jail that is gone never gets ready */
}

int sandbox_restore_snapshot(struct sandbox *b, struct snapshot *c, bool restore_files, bool quiet,
	struct snapshot **ret)
{
	(void)restore_files, (void)quiet;
	unsigned i = find_by_id(c->snapshot_id);
	if (snapshots[i].dead || b->init_reaped) {
		/* without the far ends of a real one, nothing would come of it */
		new_guest(b, 0, 0);
		return -EPIPE;
	}
	new_guest(b, snapshots[i].state, snapshots[i].cell);
	b->guest->again = c->snapshot_id;
	c->pid = 0;
	c->respawning = true;
	*ret = c;
	return 0;
}

bool sandbox_has_jail(const struct sandbox *b)
{
	return !b->init_reaped;
}

struct snapshot *sandbox_snapshot(struct sandbox *b, uint64_t snapshot_id)
{
	struct snapshot *c;
	TAILQ_FOREACH (c, &b->snapshots, link)
		if (c->snapshot_id == snapshot_id)
			return c;
	return NULL;
}

struct guest *sandbox_guest(struct sandbox *b)
{
	return b->guest;
}

void sandbox_usage(struct sandbox *b, struct cgroup_usage *ret)
{
	(void)b;
	*ret = (struct cgroup_usage){ 0 };
}

bool sandbox_can_snapshot(const struct sandbox *b)
{
	(void)b;
	return true;
}

bool sandbox_is_alone(const struct sandbox *b)
{
	(void)b;
	return true;
}

bool sandbox_is_quiet(const struct sandbox *b)
{
	(void)b;
	return false;
}

void sandbox_watch_memory(struct sandbox *b)
{
	(void)b;
}

uint64_t sandbox_snapshot_bytes(const struct snapshot *c)
{
	(void)c;
	return 0;
}

uint64_t sandbox_memory(const struct sandbox *b)
{
	(void)b;
	return 0;
}

const char *sandbox_files_not_restored(const struct sandbox *b)
{
	(void)b;
	return "";
}

const char *sandbox_note(const struct sandbox *b)
{
	(void)b;
	return "";
}

uint32_t sandbox_host_id(const struct sandbox *b)
{
	return b->host_id;
}

int sandbox_workspace(struct sandbox *b)
{
	return b->workspace;
}

int sandbox_join_fds(struct sandbox *b, int *ret_init_pidfd, struct cgroup_join_fds *ret)
{
	(void)b, (void)ret_init_pidfd, (void)ret;
	return -ENOENT;
}

void sandbox_open_display(struct sandbox *b, const uint8_t cookie[XSOCKET_COOKIE])
{
	(void)b, (void)cookie;
}

void sandbox_count_snapshots(struct sandbox *b)
{
	(void)b;
}

void sandbox_kill_others(struct sandbox *b)
{
	(void)b;
}

void sandbox_kill_all(struct sandbox *b)
{
	(void)b;
}

void arrival_expect(struct sandbox_pool *n)
{
	(void)n;
}

/* ---- copy.h, guest.h, templates.h ---------------------------------------------------------- */

int snapshot_create(struct sandbox *b, struct snapshot **ret)
{
	struct snapshot *c = calloc(1, sizeof(*c));
	c->sandbox = b;
	c->snapshot_id = ++b->pool->next_snapshot_id;
	memcpy(c->id, "k_", 2);
	text_random_id(c->id + 2, SNAPSHOT_ID_LEN - 2);
	c->wall_ns = clock_wall_ns();
	c->used_ns = clock_now_ns();
	TAILQ_INSERT_TAIL(&b->snapshots, c, link);
	*ret = c;
	return 0;
}

bool snapshot_has_ended(const struct snapshot *c)
{
	return c->pid && snapshots[find_by_id(c->snapshot_id)].dead;
}

int snapshot_parked(struct snapshot *c, int pidfd, int control)
{
	(void)pidfd, (void)control;
	c->pid = getpid();
	return 0;
}

void snapshot_drop(struct snapshot *c)
{
	if (!c || c->dropped)
		return;
	c->dropped = true;
	TAILQ_REMOVE(&c->sandbox->snapshots, c, link);
	free(c->name);
	c->name = NULL;
	buffer_finish(&c->path);
	bury(c);
}

void guest_send(struct guest *g, struct buffer *frames)
{
	if (buffer_append(&g->queue, frames->data, frames->len) < 0)
		abort();
	frames->len = 0;
}

void guest_take_fds(struct guest *g, int ret[GUEST_FDS_MAX])
{
	(void)g;
	for (int i = 0; i < GUEST_FDS_MAX; i++)
		ret[i] = -1;
}

pid_t guest_pid(const struct guest *g)
{
	return g && !g->starting ? getpid() : 0;
}

void guest_signal(struct guest *g, int sig)
{
	g->killed |= sig == SIGKILL;
}

void guest_drain(struct guest *g)
{
	(void)g;
}

void guest_prioritise(struct guest *g)
{
	(void)g;
}

void guest_rest(struct guest *g)
{
	(void)g;
}

struct package_template *package_template_get(struct sandbox_pool *n,
	const struct package_template_spec *spec, const struct sandbox_kind *kind)
{
	(void)n, (void)spec, (void)kind;
	return NULL;
}

const char *package_template_name(const struct package_template *t)
{
	(void)t;
	return "";
}

struct template *template_plain(struct sandbox_pool *n)
{
	(void)n;
	return NULL;
}

bool template_warm(const struct template *t)
{
	(void)t;
	return true;
}
