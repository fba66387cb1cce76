#include "wire/timing.h"

enum { STEP_SHIFT = 56 };
static const uint64_t ns_mask = (1ULL << STEP_SHIFT) - 1;

static const char *const names[STEP_COUNT] = { "clone", "join", "enter", "filter", "python",
	"spawn", "setup", "compile", "run", "value", "report", "cell", "encode" };

const char *step_name(enum lap s)
{
	return names[s];
}

uint64_t step_pack(enum lap s, uint64_t ns)
{
	return (uint64_t)s << STEP_SHIFT | (ns < ns_mask ? ns : ns_mask);
}

void step_add(struct step_times *t, enum lap s, uint64_t ns)
{
	t->count[s]++;
	t->ns[s] += ns;
}

void step_add_all(struct step_times *t, const struct step_times *from)
{
	for (int i = 0; i < STEP_COUNT; i++) {
		t->count[i] += from->count[i];
		t->ns[i] += from->ns[i];
	}
}

uint64_t step_rest(const struct step_times *t, enum lap first, enum lap last, uint64_t total)
{
	for (int i = first; i <= (int)last; i++)
		/* what a guest says need not be true */
		total -= t->ns[i] < total ? t->ns[i] : total;
	return total;
}

uint64_t step_add_packed(struct step_times *t, uint64_t packed)
{
	uint64_t s = packed >> STEP_SHIFT, ns = packed & ns_mask;
	if (s >= STEP_COUNT)
		return 0;
	step_add(t, (enum lap)s, ns);
	return ns;
}
