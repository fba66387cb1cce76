#include "guest/run/cell_timing.h"

#include "base/clock.h"
#include "wire/wire.h"

static uint64_t last, taken[STEP_COUNT];

void steps_begin(void)
{
	last = clock_now_ns();
}

void steps_end(enum lap s)
{
	uint64_t now = clock_now_ns();
	taken[s] += now - last;
	last = now;
}

void steps_put(struct buffer *out)
{
	for (int i = 0; i < STEP_COUNT; i++) {
		if (taken[i])
			wire_put_u64(out, WIRE_STEP, step_pack((enum lap)i, taken[i]));
		taken[i] = 0;
	}
}
