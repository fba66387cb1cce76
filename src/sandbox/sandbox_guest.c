/* The guest of a sandbox: asking the zygote for it, its events, and its end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/sandbox.h"

static void text_of_frame(const struct wire_frame *f, enum wire_tag tag, char *text, size_t size)
{
	struct wire_field field;
	size_t at = 0;
	while (wire_field_next(f, &at, &field) == 1)
		if (field.tag == tag)
			snprintf(text, size, "%.*s", (int)(field.len < size ? field.len : size - 1),
				field.data);
}

static void take_steps(struct sandbox *b, const struct wire_frame *f)
{
	struct step_times told = { 0 };
	struct wire_field field;
	size_t at = 0;
	uint64_t n;
	while (wire_field_next(f, &at, &field) == 1)
		if (field.tag == WIRE_STEP && wire_field_u64(&field, &n) == 0)
			step_add_packed(&told, n);
	step_add(&told, STEP_SPAWN,
		step_rest(&told, STEP_CLONE, STEP_PYTHON, clock_now_ns() - b->asked_ns));
	step_add_all(&b->pool->stats.steps, &told);
}

static void sandbox_on_frame(void *userdata, const struct wire_frame *f)
{
	struct sandbox *b = userdata;
	char text[256] = "no reason given";

	if (b->state != SANDBOX_STARTING) {
		if (b->owner)
			b->events->guest.on_frame(b->owner, f);
	} else if (f->type == WIRE_READY && !guest_pid(b->guest)) {
		/*
		 * A forged copy: a guest without a process could never be killed, so its cells
		 * would never end.
		 */
		sandbox_snapshot_failed(b, "the snapshot answered before it had joined its jail");
	} else if (f->type == WIRE_READY) {
		b->state = SANDBOX_READY;
		sandbox_members_born(b);
		take_steps(b, f);
		b->pool->refill_failed = false;
		b->pool->refill_failures = 0;
		sandbox_pool_forget_shortage(b->pool);
		text_of_frame(
			f, WIRE_FILES_LEFT, b->files_not_restored, sizeof(b->files_not_restored));
		text_of_frame(f, WIRE_NOTE, b->note, sizeof(b->note));
		if (b->owner)
			b->events->on_ready(b->owner);
		else
			b->pool->stats.ready += sandbox_ready_weight(b);
		sandbox_end_retiring_guest(b);
		b->ready_ms = uv_now(b->pool->config.loop);
		sandbox_pool_refill_later(b->pool);
	} else if (f->type == WIRE_FAILED) {
		text_of_frame(f, WIRE_TEXT, text, sizeof(text));
		sandbox_fail(b, text);
	} else if (f->type == WIRE_LIVED && !guest_pid(b->guest)) {
		text[0] = '\0';
		text_of_frame(f, WIRE_TEXT, text, sizeof(text));
		sandbox_take_live(b, text);
	}
}

static void sandbox_on_output(void *userdata, enum stream s, const char *data, size_t len)
{
	struct sandbox *b = userdata;
	if (b->owner)
		b->events->guest.on_output(b->owner, s, data, len);
}

static void sandbox_on_exit(void *userdata, const struct process_exit *end, bool broken)
{
	struct sandbox *b = userdata;
	if (b->state == SANDBOX_STARTING && !guest_pid(b->guest)) {
		if (b->arriving < 0) /* else the mover finds that it is gone */
			sandbox_snapshot_failed(b, "the snapshot had died");
	} else if (b->state == SANDBOX_STARTING) {
		char text[96];
		snprintf(text, sizeof(text), "it died while it started (%s %d)",
			end->signaled ? "signal" : "exit code", end->status);
		sandbox_fail(b, text);
	} else if (b->owner) {
		b->events->guest.on_exit(b->owner, end, broken);
	} else {
		if (b->state == SANDBOX_READY)
			b->pool->stats.ready -= sandbox_ready_weight(b);
		/* whatever ended it, as a machine out of memory, would end the next one too */
		b->pool->refill_failed = true;
		sandbox_close(b);
	}
}

static const struct guest_events sandbox_guest_events = { sandbox_on_frame, sandbox_on_output,
	sandbox_on_exit };

int sandbox_new_guest(struct sandbox *b)
{
	return guest_create(b->pool->config.loop, b->pool->children, &sandbox_guest_events, b,
		&b->guest, b->guest_fds);
}

void sandbox_ask_guest(struct sandbox *b)
{
	struct sandbox_pool *n = b->pool;
	struct wire_spawn q = { .exec = b->kind.exec, .net = b->kind.network.net };
	struct cgroup_join_fds join = { 0 };
	if (b->moving) {
		sandbox_ask_move(b);
		return;
	}

	if (b->spare) {
		sandbox_make_cgroup(b); /* a failure is told when it counts */
		return;
	}

	struct template *t = b->kind.template;
	if (t ? !template_warm(t) : !n->zygote_warm)
		return; /* asked when it is warm */
	if (!b->guest) {
		int e = sandbox_new_guest(b);
		if (e < 0) {
			sandbox_fail_step(b, e, "making its pipes");
			return;
		}
	}

	b->from = NULL;
	b->files_not_restored[0] = '\0';
	int r = sandbox_make_cgroup(b);
	if (r == 0)
		r = cgroup_join_fds_open(&n->cgroups, b->cgroup, &join);
	if (r < 0) {
		sandbox_fail_step(b, r, "making its control group");
		return;
	}

	_cleanup_fd_ int init = child_pidfd(b->beside ? &b->beside->init : &b->init);
	if (init < 0) {
		cgroup_join_fds_close(&join);
		sandbox_fail_step(b, init, "looking for its jail");
		return;
	}

	(b->beside ? b->beside : b)->joins.others |= b->beside != NULL;
	b->joins.given++;
	int fds[WIRE_SPAWN_FDS_MAX] = { init, b->guest_fds[0], b->guest_fds[1], b->guest_fds[2] };
	memcpy(fds + WIRE_SPAWN_FDS, join.fds, join.n * sizeof(int));
	q.into = (uint32_t)join.into;
	q.serial = b->spawn_serial = ++n->next_serial;
	if (helper_send(t ? template_helper(t) : &n->zygote, &q, sizeof(q), fds,
		    WIRE_SPAWN_FDS + join.n) == 0)
		b->state = SANDBOX_STARTING;
	else
		n->requests_refused = true;
	b->asked_ns = clock_now_ns();
	cgroup_join_fds_close(&join);
}

void sandbox_rehearse(struct sandbox *b)
{
	_cleanup_buffer_ struct buffer frame = BUFFER_INIT(0);
	size_t start;
	b->rehearsed_ms = uv_now(b->pool->config.loop);
	if (wire_begin(&frame, WIRE_REHEARSE, 0, &start) == 0) {
		wire_end(&frame, start);
		guest_send(b->guest, &frame);
	}
}

void sandbox_take_guest(struct sandbox *b, pid_t pid)
{
	for (int i = 0; i < 3; i++)
		fd_close_clear(&b->guest_fds[i]);
	b->joins.known++;
	int r = guest_attach(b->guest, pid);
	if (r < 0)
		sandbox_fail(b, uv_strerror(r));
}

void sandbox_end_retiring_guest(struct sandbox *b)
{
	guest_close(b->retiring_guest);
	b->retiring_guest = NULL;
}

void sandbox_drop_guest(struct sandbox *b)
{
	sandbox_end_retiring_guest(b);
	guest_close(b->guest);
	b->guest = NULL;
	b->spawn_serial = 0; /* a guest that the zygote still forks has the pipes that go now */
	for (int i = 0; i < 3; i++)
		fd_close_clear(&b->guest_fds[i]);
}

void sandbox_forget_guest(struct sandbox *b)
{
	if (b->state != SANDBOX_STARTING || !b->guest || guest_pid(b->guest) || b->from)
		return;
	sandbox_drop_guest(b);
	b->state = SANDBOX_GUEST;
}

void sandbox_want_guest(struct sandbox *b)
{
	b->spare = false;
	if (b->state == SANDBOX_GUEST)
		sandbox_ask_guest(b);
}
