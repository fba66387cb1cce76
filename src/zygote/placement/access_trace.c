#include "zygote/placement/access_trace.h"

#ifdef __x86_64__

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/maps.h"

enum {
	PAGE = 4096,
	GRANULE = 16, /* the smallest block, and what they are aligned to */
	MAPS_MAX = 4096,
	RANGES_MAX = 64,
	RANGE_MIN = 256 << 10, /* smaller mappings are libraries' own */
	PATIENCE = 24,         /* traps in a page that told nothing new */
	UNWATCHED = 255,       /* in place of patience */
	OPEN_MAX = 8,          /* pages that one instruction touches */
	STACK = 64 << 10,
	SINGLE_STEP = 0x100, /* of the flags register */
};

static struct range {
	uintptr_t start, end;
	uint8_t *touched;  /* a bit for each granule */
	uint8_t *patience; /* used up, of each page */
} ranges[RANGES_MAX];
static size_t n_ranges;
static int allowed;            /* PROT_READ, or nothing */
static void *opened[OPEN_MAX]; /* until the instruction is done */
static unsigned n_opened;

static struct range *range_of(uintptr_t at)
{
	for (size_t i = 0; i < n_ranges; i++)
		if (at >= ranges[i].start && at < ranges[i].end)
			return &ranges[i];
	return NULL;
}

static void on_access(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	struct range *r = range_of(at);
	size_t page = r ? (at - r->start) / PAGE : 0;

	/* not ours: the instruction is tried again, and ends the process */
	if (!r || r->patience[page] == UNWATCHED) {
		signal(sig, SIG_DFL);
		return;
	}

	size_t granule = (at - r->start) / GRANULE;
	uint8_t bit = (uint8_t)(1 << granule % 8);
	if (!(r->touched[granule / 8] & bit))
		r->patience[page] = 0;
	r->touched[granule / 8] |= bit;
	void *start = (void *)(r->start + page * PAGE);
	mprotect(start, PAGE, PROT_READ | PROT_WRITE);
	if (++r->patience[page] >= PATIENCE || n_opened == OPEN_MAX)
		return; /* left open */
	opened[n_opened++] = start;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= SINGLE_STEP;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	while (n_opened)
		mprotect(opened[--n_opened], PAGE, allowed);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)SINGLE_STEP;
}

/* Never a part of the mapping beside it, which may be the heap's. */
static void *zeros(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

bool access_trace_begin(void)
{
	struct map *maps = zeros(MAPS_MAX * sizeof(*maps));
	size_t n = maps ? maps_look(maps, MAPS_MAX) : 0;

	for (size_t i = 0; i < n && n_ranges < RANGES_MAX; i++) {
		size_t size = maps[i].end - maps[i].start;
		if (!map_is_heap(&maps[i]) || maps[i].executable || size < RANGE_MIN)
			continue;
		struct range r = { maps[i].start, maps[i].end, zeros(size / GRANULE / 8),
			zeros(size / PAGE) };
		if (!r.touched || !r.patience)
			break;
		memset(r.patience, UNWATCHED, size / PAGE);
		ranges[n_ranges++] = r;
	}

	if (maps)
		munmap(maps, MAPS_MAX * sizeof(*maps));
	return n_ranges > 0;
}

void access_trace_watch(const void *block, size_t size)
{
	uintptr_t at = (uintptr_t)block;
	struct range *r = range_of(at);
	if (r && size && size <= r->end - at)
		memset(r->patience + (at - r->start) / PAGE, 0,
			(at + size - 1) / PAGE - at / PAGE + 1);
}

static void protect(const struct range *r, int protection)
{
	size_t n = (r->end - r->start) / PAGE;
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1;
			k < n && (r->patience[k] == UNWATCHED) == (r->patience[i] == UNWATCHED);
			k++)
			;
		if (r->patience[i] != UNWATCHED)
			mprotect((void *)(r->start + i * PAGE), (k - i) * PAGE, protection);
	}
}

static void forget(struct range *r)
{
	memset(r->touched, 0, (r->end - r->start) / GRANULE / 8);
	for (size_t i = 0; i < (r->end - r->start) / PAGE; i++)
		if (r->patience[i] != UNWATCHED)
			r->patience[i] = 0;
}

void access_trace_run(enum trace what, void (*code)(void))
{
	stack_t stack = { .ss_sp = zeros(STACK), .ss_size = STACK }, old_stack;
	struct sigaction access = { .sa_sigaction = on_access,
		.sa_flags = SA_SIGINFO | SA_ONSTACK },
			 step = access, old_access, old_step;
	step.sa_sigaction = on_step;
	for (size_t i = 0; i < n_ranges; i++)
		forget(&ranges[i]);
	if (!stack.ss_sp || sigaltstack(&stack, &old_stack) < 0)
		return;
	sigaction(SIGSEGV, &access, &old_access);
	sigaction(SIGTRAP, &step, &old_step);
	allowed = what == TRACE_WRITES ? PROT_READ : PROT_NONE;
	for (size_t i = 0; i < n_ranges; i++)
		protect(&ranges[i], allowed);
	code();
	for (size_t i = 0; i < n_ranges; i++)
		protect(&ranges[i], PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &old_access, NULL);
	sigaction(SIGTRAP, &old_step, NULL);
	sigaltstack(&old_stack, NULL);
	munmap(stack.ss_sp, STACK);
}

bool access_trace_touched(const void *block, size_t size)
{
	uintptr_t at = (uintptr_t)block;
	const struct range *r = range_of(at);
	if (!r || !size || size > r->end - at)
		return false;
	for (size_t g = (at - r->start) / GRANULE; g <= (at - r->start + size - 1) / GRANULE; g++)
		if (r->touched[g / 8] & 1 << g % 8)
			return true;
	return false;
}

#else

bool access_trace_begin(void)
{
	return false;
}

void access_trace_watch(const void *block, size_t size)
{
	(void)block, (void)size;
}

void access_trace_run(enum trace what, void (*code)(void))
{
	(void)what, (void)code;
}

bool access_trace_touched(const void *block, size_t size)
{
	(void)block, (void)size;
	return false;
}

#endif
