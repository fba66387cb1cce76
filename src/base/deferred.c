#include "base/deferred.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

/* Memory below the first size is freed at once, the rest in slices of the second. */
enum { LARGE_BYTES = 1 << 20, SLICE_BYTES = 1 << 20 };

static STAILQ_HEAD(, deferred) work = STAILQ_HEAD_INITIALIZER(work);
static void (*wake)(void *userdata);
static void *wake_userdata;

static bool run_one(void)
{
	struct deferred *d = STAILQ_FIRST(&work);
	if (!d)
		return false;
	STAILQ_REMOVE_HEAD(&work, link);
	if (d->step(d))
		STAILQ_INSERT_HEAD(&work, d, link);
	return !STAILQ_EMPTY(&work);
}

bool deferred_run(uint64_t ns)
{
	uint64_t began = clock_now_ns();
	bool more;
	do
		more = run_one();
	while (more && clock_now_ns() - began < ns);
	return more;
}

void deferred_add(struct deferred *d)
{
	if (!wake) {
		while (d->step(d))
			;
		return;
	}
	STAILQ_INSERT_TAIL(&work, d, link);
	wake(wake_userdata);
}

void deferred_set_wake(void (*fn)(void *userdata), void *userdata)
{
	wake = fn;
	wake_userdata = userdata;
	while (!wake && run_one())
		;
}

/* ---- memory -------------------------------------------------------------- */

bool deferred_drop_pages(void *memory, size_t len, size_t *at)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)memory;
	uintptr_t start = (first + *at + page - 1) & ~(page - 1), end = (first + len) & ~(page - 1);

	if (end <= start || end - start <= SLICE_BYTES)
		return false;
	madvise((void *)start, SLICE_BYTES, MADV_DONTNEED);
	*at = start + SLICE_BYTES - first;
	return true;
}

struct dead_memory {
	struct deferred work;
	void *memory;
	size_t len, at;
};

static bool free_slice(struct deferred *d)
{
	struct dead_memory *m = (struct dead_memory *)d;
	if (deferred_drop_pages(m->memory, m->len, &m->at))
		return true;
	free(m->memory);
	free(m);
	return false;
}

void deferred_free(void *memory, size_t len)
{
	struct dead_memory *m = wake && len >= LARGE_BYTES ? malloc(sizeof(*m)) : NULL;
	if (!m) {
		free(memory);
		return;
	}
	*m = (struct dead_memory){ .work.step = free_slice, .memory = memory, .len = len };
	deferred_add(&m->work);
}
