/* Cells that are run again to get from a snapshot to a later state: which can leave another state behind, and what is told about them. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "session/internal.h"

bool replay_fits(const struct session *s)
{
	if (!s->replay.n)
		return true;
	/* Cells that are run again must find the files as they did. */
	if (!s->params.keep_files_bytes || (s->latest && s->latest->files_left))
		return false;
	return s->replay.n < REPLAY_CELLS && s->replay.wall_ms <= REPLAY_WALL_MS && s->replay.frames.len <= REPLAY_BYTES;
}

bool replay_possible(const struct session *s)
{
	return s->replay.good && !s->files_touched && replay_fits(s);
}

bool replay_is_exact(const struct session *s)
{
	return s->replay.same == s->replay.n;
}

/* Does it leave the same state behind, run again? A new interpreter has random numbers of its own, unless the session has a seed. */
static bool is_same(const struct session *s, unsigned effects)
{
	bool own_numbers = s->replay.fresh && !s->params.has_seed;
	return !(effects & WIRE_EFFECT_OUTSIDE) && !(own_numbers && effects & WIRE_EFFECT_RANDOM);
}

/* What the guest itself took for the cell that has ended: on a busy machine most of a quick cell's time is waiting for a CPU. */
static uint64_t guest_ns(const struct session *s)
{
	uint64_t whole = clock_now_ns() - s->started_ns;
	return whole - step_rest(&s->outcome.steps, STEP_COMPILE, STEP_REPORT, whole);
}

void replay_add(struct session *s)
{
	const struct cell *c = s->running;
	s->replay.wall_ms += (double)guest_ns(s) / 1e6;
	if (replay_is_exact(s) && is_same(s, s->outcome.effects))
		s->replay.same++; /* what comes behind another may use what that left behind */
	s->replay.n++;
	if (s->replay.n > REPLAY_CELLS || buffer_append(&s->replay.frames, c->frame.data, c->frame.len) < 0)
		history_forget_cells(s, false);
}

void replay_drop_last(struct session *s)
{
	struct buffer *b = &s->replay.frames;
	size_t at = 0, last = 0;
	while (at < b->len) {
		last = at;
		at += wire_frame_bytes(b, at);
	}
	b->len = last;
	s->replay.n--;
	if (s->replay.same > s->replay.n)
		s->replay.same = s->replay.n;
}

unsigned replay_cut(struct session *s)
{
	unsigned last = s->latest ? s->latest->cell : 0;
	while (!replay_is_exact(s))
		replay_drop_last(s);
	for (size_t at = 0; at < s->replay.frames.len; at += wire_frame_bytes(&s->replay.frames, at))
		last = wire_frame_serial(&s->replay.frames, at);
	return last;
}

void replay_done(struct session *s)
{
	const struct buffer *b = &s->replay.frames;
	unsigned i = 0;
	s->replayed.n = s->replay.n;
	s->replayed.n_differ = 0;
	for (size_t at = 0; at < b->len; at += wire_frame_bytes(b, at), i++)
		if (i >= s->replay.same && s->replayed.n_differ < REPLAY_CELLS)
			s->replayed.differ[s->replayed.n_differ++] = wire_frame_serial(b, at);
}

struct replayed replay_tell(struct session *s)
{
	struct replayed r = { .n = s->replayed.n, .may_differ = s->replayed.differ, .n_may_differ = s->replayed.n_differ };
	s->replayed.n = s->replayed.n_differ = 0;
	return r;
}

const char *replay_words(const struct session *s, char text[REPLAY_WORDS_MAX])
{
	text[0] = '\0';
	if (s->replayed.n_differ)
		snprintf(text, REPLAY_WORDS_MAX, ", but %u cells were run again, and %u of them, from cell %u on, may have left something else behind (may_differ)",
			s->replayed.n, s->replayed.n_differ, s->replayed.differ[0]);
	else if (s->replayed.n)
		snprintf(text, REPLAY_WORDS_MAX, " (%u cells were run again)", s->replayed.n);
	return text;
}
