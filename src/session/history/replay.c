/*
 * Cells that are run again to get from a snapshot to a later state: which can leave another state
 * behind, and what is told about them.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "session/internal.h"

bool replay_fits(const struct session *s)
{
	if (!s->history.replay.n)
		return true;
	/* Cells that are run again must find the files as they did. */
	if (!s->params.keep_files_bytes || (s->history.latest && s->history.latest->without_files))
		return false;
	return s->history.replay.n < REPLAY_CELLS && s->history.replay.wall_ms <= REPLAY_WALL_MS &&
	       s->history.replay.frames.len <= REPLAY_BYTES;
}

bool replay_possible(const struct session *s)
{
	return s->history.replay.good && !s->usage.uploads.touched && !s->usage.uploads.shared &&
	       replay_fits(s);
}

bool replay_is_exact(const struct session *s)
{
	return s->history.replay.same == s->history.replay.n;
}

/*
 * Does it leave the same state behind, run again? A new interpreter has random numbers of its own,
 * unless the session has a seed.
 */
static bool is_same(const struct session *s, unsigned effects)
{
	bool own_numbers = s->history.replay.fresh && !s->params.has_seed;
	bool written = s->usage.uploads.shared || s->usage.uploads.touched;
	bool others_files = written && effects & WIRE_EFFECT_FILES;
	return !(effects & WIRE_EFFECT_OUTSIDE) && !others_files &&
	       !(own_numbers && effects & WIRE_EFFECT_RANDOM);
}

/*
 * What the guest itself took for the cell that has ended: on a busy machine most of a quick cell's
 * time is waiting for a CPU.
 */
static uint64_t guest_ns(const struct session *s)
{
	uint64_t whole = clock_now_ns() - s->queue.started_ns;
	return whole - step_rest(&s->outcome.steps, STEP_COMPILE, STEP_REPORT, whole);
}

void replay_add(struct session *s)
{
	const struct cell *c = s->queue.running;
	s->history.replay.wall_ms += (double)guest_ns(s) / 1e6;
	if (replay_is_exact(s) && is_same(s, s->outcome.effects))
		s->history.replay
			.same++; /* what comes behind another may use what that left behind */
	s->history.replay.n++;
	bool sent_away = !c->frame.len; /* it was too long to be kept */
	if (s->history.replay.n > REPLAY_CELLS || sent_away ||
		buffer_append(&s->history.replay.frames, c->frame.data, c->frame.len) < 0)
		history_forget_cells(s, false);
}

void replay_drop_last(struct session *s)
{
	struct buffer *b = &s->history.replay.frames;
	size_t at = 0, last = 0;
	while (at < b->len) {
		last = at;
		at += wire_frame_bytes(b, at);
	}

	b->len = last;
	s->history.replay.n--;
	if (s->history.replay.same > s->history.replay.n)
		s->history.replay.same = s->history.replay.n;
}

unsigned replay_cut(struct session *s)
{
	unsigned last = s->history.latest ? s->history.latest->cell : 0;
	while (!replay_is_exact(s))
		replay_drop_last(s);
	for (size_t at = 0; at < s->history.replay.frames.len;
		at += wire_frame_bytes(&s->history.replay.frames, at))
		last = wire_frame_serial(&s->history.replay.frames, at);
	return last;
}

void replay_done(struct session *s)
{
	const struct buffer *b = &s->history.replay.frames;
	unsigned i = 0;
	s->history.replayed.n = s->history.replay.n;
	s->history.replayed.n_differ = 0;
	for (size_t at = 0; at < b->len; at += wire_frame_bytes(b, at), i++)
		if (i >= s->history.replay.same && s->history.replayed.n_differ < REPLAY_CELLS)
			s->history.replayed.differ[s->history.replayed.n_differ++] =
				wire_frame_serial(b, at);
}

struct replayed replay_tell(struct session *s)
{
	struct replayed r = { .n = s->history.replayed.n,
		.may_differ = s->history.replayed.differ,
		.n_may_differ = s->history.replayed.n_differ };
	s->history.replayed.n = s->history.replayed.n_differ = 0;
	return r;
}

const char *replay_words(const struct session *s, char text[REPLAY_WORDS_MAX])
{
	text[0] = '\0';
	if (s->history.replayed.n_differ)
		snprintf(text, REPLAY_WORDS_MAX,
			", but %u cells were run again, and %u of them, from cell %u on, may have left something else behind (may_differ)",
			s->history.replayed.n, s->history.replayed.n_differ,
			s->history.replayed.differ[0]);
	else if (s->history.replayed.n)
		snprintf(text, REPLAY_WORDS_MAX, " (%u cell%s run again)", s->history.replayed.n,
			s->history.replayed.n == 1 ? " was" : "s were");
	return text;
}
