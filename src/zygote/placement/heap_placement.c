#include "zygote/placement/heap_placement.h"

#include "guest/run/python.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"
#include "zygote/heap.h"
#include "zygote/placement/access_trace.h"
#include "zygote/placement/placement_cache.h"

enum {
	RECORDS = 1 << 22, /* addresses that the scout remembers; a power of two */
	SIZE_BITS = 13,    /* of BOOK_SIZE_MAX */
	PLACES = 2 * BOOK_ENTRIES_MAX,
	TRACE_SECONDS = 30,
};

static enum { IDLE, SCOUT, PLACING } doing;
static int placement_cache_fd = -1;
static PyMemAllocatorEx usual; /* of both domains whose blocks are Python's own */

static struct report {
	int status; /* of the process that traced */
	size_t n;
	struct placement_cache_entry entries[BOOK_ENTRIES_MAX];
} * report; /* shared by the scout and the zygote */

static void *zeros(size_t size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* ---- names of allocations ------------------------------------------------------------ */

static uint64_t mark;    /* what was marked last … */
static uint32_t ordinal; /* … and how many allocations ago */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185ULL;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44dULL;
	return x ^ x >> 33;
}

void heap_placement_mark(const char *what)
{
	mark = 0;
	for (; *what; what++)
		mark = mix(mark + (unsigned char)*what + 1);
	ordinal = 0;
}

static uint64_t next_name(size_t size)
{
	uint64_t name = mix(mix(mark ^ ++ordinal) ^ size);
	return name ? name : 1;
}

/* A finder of modules that finds none, but hears of every import. */
static PyObject *on_import(PyObject *self, PyObject *args, PyObject *keywords)
{
	PyObject *module = PyTuple_Size(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
	const char *name = module ? PyUnicode_AsUTF8(module) : NULL;
	(void)self, (void)keywords;
	if (name)
		heap_placement_mark(name);
	PyErr_Clear();
	Py_RETURN_NONE;
}

static PyMethodDef on_import_def = { "find_spec", (PyCFunction)(void (*)(void))on_import,
	METH_VARARGS | METH_KEYWORDS, NULL };
static PyObject *finder;

static void watch_imports(void)
{
	/* path is borrowed */
	PyObject *types = PyImport_ImportModule("types"), *path = PySys_GetObject("meta_path");
	PyObject *function = PyCFunction_New(&on_import_def, NULL);
	finder = types ? PyObject_CallMethod(types, "SimpleNamespace", NULL) : NULL;
	if (finder && function && path &&
		PyObject_SetAttrString(finder, "find_spec", function) == 0)
		PyList_Insert(path, 0, finder);
	Py_XDECREF(function);
	Py_XDECREF(types);
	PyErr_Clear();
}

static void unwatch_imports(void)
{
	PyObject *path = PySys_GetObject("meta_path");
	for (Py_ssize_t i = 0; path && PyList_Check(path) && i < PyList_GET_SIZE(path); i++)
		if (PyList_GET_ITEM(path, i) == finder) {
			PySequence_DelItem(path, i);
			break;
		}
	PyErr_Clear();
	Py_CLEAR(finder);
}

/* ---- the scout: which address has which name ------------------------------------------- */

static struct record {
	uint64_t place; /* address and size, which is 0 when it was freed */
	uint64_t name;
} * records; /* by address */
static size_t n_records;

static struct record *record_of(const void *at)
{
	size_t i = mix((uintptr_t)at) % RECORDS;
	while (records[i].place && records[i].place >> SIZE_BITS != (uintptr_t)at)
		i = (i + 1) % RECORDS;
	return &records[i];
}

static void remember(const void *at, size_t size, uint64_t name)
{
	struct record *r = at && size <= BOOK_SIZE_MAX ? record_of(at) : NULL;
	if (!r || (!r->place && ++n_records > RECORDS / 8 * 7))
		return;
	*r = (struct record){ (uint64_t)(uintptr_t)at << SIZE_BITS | (size ? size : 1), name };
}

static void forget(const void *at)
{
	struct record *r = at ? record_of(at) : NULL;
	if (r && r->place)
		r->place = (uint64_t)(uintptr_t)at << SIZE_BITS;
}

static size_t size_of(const struct record *r)
{
	return r->place & ((1 << SIZE_BITS) - 1);
}

static const void *address_of(const struct record *r)
{
	return (const void *)(uintptr_t)(r->place >> SIZE_BITS);
}

/* What was touched, and is not in the report yet. */
static void add_to_report(enum placement_cache_use use)
{
	for (struct record *r = records; r < records + RECORDS && report->n < BOOK_ENTRIES_MAX;
		r++) {
		if (!size_of(r) || !access_trace_touched(address_of(r), size_of(r)))
			continue;
		report->entries[report->n++] = (struct placement_cache_entry){ r->name,
			(uint32_t)size_of(r), use };
		forget(address_of(r));
	}
}

/* In a process of its own: there, as in a guest, the threads that a module has started are not. */
static void __attribute__((noreturn)) trace(void (*first_cell)(void))
{
	sigset_t its;
	sigemptyset(&its);
	sigaddset(&its, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &its, NULL);
	alarm(TRACE_SECONDS);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!access_trace_begin())
		_exit(1);
	for (const struct record *r = records; r < records + RECORDS; r++)
		if (size_of(r))
			access_trace_watch(address_of(r), size_of(r));
	access_trace_run(TRACE_WRITES, first_cell);
	add_to_report(BOOK_WRITTEN);
	access_trace_run(TRACE_ALL, first_cell);
	add_to_report(BOOK_READ);
	_exit(0);
}

static int wait_for(pid_t child)
{
	int status = -1;
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* ---- the zygote: a place for each name --------------------------------------------------- */

static struct place {
	uint64_t name;
	void *block; /* NULL once it was given away */
	size_t size; /* of the block */
} * places;          /* by name */
static size_t n_met;

static struct place *place_of(uint64_t name)
{
	size_t i = name % PLACES;
	while (places[i].name && places[i].name != name)
		i = (i + 1) % PLACES;
	return &places[i];
}

static void *take_place(uint64_t name, size_t size)
{
	struct place *p = place_of(name);
	void *block = p->block;
	if (!block || p->size != heap_block_size(size))
		return NULL;
	p->block = NULL;
	n_met++;
	return block;
}

static int by_use_and_size(const void *a, const void *b)
{
	const struct placement_cache_entry *x = a, *y = b;
	return x->use != y->use    ? (x->use < y->use ? -1 : 1)
	       : x->size < y->size ? -1
				   : x->size > y->size;
}

/*
 * Those of one size after the other, which is how Python's allocator has them side by side; what is
 * only read, apart from what is written to.
 */
static void set_places_aside(void)
{
	size_t class = 0;
	qsort(report->entries, report->n, sizeof(report->entries[0]), by_use_and_size);
	for (size_t i = 0; i < report->n; i++) {
		const struct placement_cache_entry *e = &report->entries[i];
		size_t size = heap_block_size(e->size);
		if (size != class)
			heap_fill(class = size);
		struct place *p = place_of(e->name);
		if (!p->name)
			*p = (struct place){ e->name, PyObject_Malloc(size), size };
	}
}

/* Those that were not met are free for others. */
static void leave_places(void)
{
	for (size_t i = 0; i < PLACES; i++)
		PyObject_Free(places[i].block);
	munmap(places, PLACES * sizeof(*places));
	places = NULL;
}

/* ---- the allocator while a template is imported -------------------------------------------- */

/* Where it was wrapped by another one, as tracemalloc does, it stays and does nothing. */
static void *name_and_malloc(void *unused, size_t size)
{
	uint64_t name = next_name(size);
	void *p = doing == PLACING ? take_place(name, size) : NULL;
	(void)unused;
	if (!p && (p = usual.malloc(usual.ctx, size)) && doing == SCOUT)
		remember(p, size, name);
	return p;
}

static void *name_and_calloc(void *unused, size_t n, size_t size)
{
	uint64_t name = next_name(n * size);
	void *p = doing == PLACING ? take_place(name, n * size) : NULL;
	(void)unused;
	if (p)
		return memset(p, 0, n * size);
	if ((p = usual.calloc(usual.ctx, n, size)) && doing == SCOUT)
		remember(p, n * size, name);
	return p;
}

/* What grows has no name, and stays where it is. */
static void *name_and_realloc(void *unused, void *old, size_t size)
{
	if (!old)
		return name_and_malloc(unused, size);
	if (doing == SCOUT)
		forget(old);
	return usual.realloc(usual.ctx, old, size);
}

static void forget_and_free(void *unused, void *p)
{
	(void)unused;
	if (doing == SCOUT)
		forget(p);
	usual.free(usual.ctx, p);
}

/* Both domains are one allocator's, unless somebody asked for another. */
static bool is_usual(void)
{
	PyMemAllocatorEx mem;
	PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &usual);
	PyMem_GetAllocator(PYMEM_DOMAIN_MEM, &mem);
	return mem.malloc == usual.malloc && mem.free == usual.free && mem.ctx == usual.ctx;
}

static PyMemAllocatorEx ours = { NULL, name_and_malloc, name_and_calloc, name_and_realloc,
	forget_and_free };
static const PyMemAllocatorDomain domains[] = { PYMEM_DOMAIN_OBJ, PYMEM_DOMAIN_MEM };

static void begin(void)
{
	heap_placement_mark("start");
	for (int i = 0; i < 2; i++)
		PyMem_SetAllocator(domains[i], &ours);
	watch_imports();
}

static void end(void)
{
	PyMemAllocatorEx now;
	unwatch_imports();
	for (int i = 0; i < 2; i++) {
		PyMem_GetAllocator(domains[i], &now);
		if (now.malloc == ours.malloc)
			PyMem_SetAllocator(domains[i], &usual);
	}
}

/* ---- both ---------------------------------------------------------------------------------- */

bool heap_placement_is_scout(void)
{
	return doing == SCOUT;
}

static void become_scout(pid_t zygote)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	doing = SCOUT;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	fd_close(null);
	records = zeros(RECORDS * sizeof(*records), MAP_PRIVATE | MAP_NORESERVE);
	if (!records || getppid() != zygote)
		_exit(1);
	/* touched all over, for every allocation */
	madvise(records, RECORDS * sizeof(*records), MADV_HUGEPAGE);
}

static void send_scout(void)
{
	pid_t zygote = getpid(), scout = fork();
	if (scout == 0) {
		become_scout(zygote);
		return;
	}

	int status = wait_for(scout), r = 0;
	if (status || report->status || !report->n) {
		int sig = WIFSIGNALED(status)           ? WTERMSIG(status)
			  : WIFSIGNALED(report->status) ? WTERMSIG(report->status)
							: 0;
		fprintf(stderr,
			"the objects that a session's first cell uses could not be recorded%s%s; the next start tries again\n",
			sig ? ": " : "", sig ? strsignal(sig) : "");
		report->n = 0;
	} else if ((r = placement_cache_write(placement_cache_fd, report->entries, report->n)) <
		   0) {
		fprintf(stderr,
			"the list of objects that a session's first cell uses could not be saved in the state directory: %s; make room there, or each start imports the modules twice\n",
			strerror(-r));
	}
}

void heap_placement_begin(int book)
{
	placement_cache_fd = book;
	fcntl(book, F_SETFD, FD_CLOEXEC);
	if (book < 0 || !is_usual() || !(report = zeros(sizeof(*report), MAP_SHARED)))
		return;
	report->n = placement_cache_read(book, report->entries);
	if (!report->n)
		send_scout();
	if (doing != SCOUT) {
		places = report->n ? zeros(PLACES * sizeof(*places), MAP_PRIVATE) : NULL;
		if (!places)
			return;
		set_places_aside();
		doing = PLACING;
	}

	begin();
}

void heap_placement_end(void (*first_cell)(void))
{
	if (doing != IDLE)
		end();
	if (doing == SCOUT) {
		pid_t tracer = fork();
		if (tracer == 0)
			trace(first_cell);
		report->status = wait_for(tracer);
		_exit(0);
	}

	if (doing == PLACING) {
		leave_places();
		if (n_met < report->n / 8 * 7)
			/* other modules than when it was written */
			placement_cache_write(placement_cache_fd, NULL, 0);
	}

	doing = IDLE;
	if (report)
		munmap(report, sizeof(*report));
	fd_close_clear(&placement_cache_fd);
}
