#include "guest/run/effects.h"

#include "guest/run/python.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "guest/run/file_effects.h"
#include "guest/run/random.h"

#if defined(__x86_64__)

#define CALLS_MAX 192 /* a number for the assembler, too */
#define STUB_BYTES 32

/* Sorted, for bsearch(). */
static const char *const names[] = { "accept", "accept4", "alarm", "arc4random", "arc4random_buf",
	"arc4random_uniform", "bind", "chmod", "clock", "clock_gettime", "clone", "connect",
	"copy_file_range", "creat", "creat64", "dlmopen", "dlopen", "dlsym", "dlvsym", "epoll_wait",
	"execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "fallocate",
	"fallocate64", "fchmod", "fchmodat", "fdopendir", "fexecve", "fopen", "fopen64", "fork",
	"fread", "freopen", "freopen64", "fstat", "fstat64", "fstatat", "fstatat64", "ftruncate",
	"ftruncate64", "futimens", "fwrite", "getentropy", "getloadavg", "getpid", "getppid",
	"getrandom", "getrusage", "gettid", "gettimeofday", "kill", "killpg", "link", "linkat",
	"lstat", "lstat64", "memfd_create", "mkdir", "mkdirat", "mkdtemp", "mkfifo", "mkfifoat",
	"mknod", "mknodat", "mkostemp", "mkostemp64", "mkstemp", "mkstemp64", "open", "open64",
	"openat", "openat64", "opendir", "poll", "popen", "posix_fallocate", "posix_fallocate64",
	"posix_spawn", "posix_spawnp", "ppoll", "pread", "pread64", "preadv", "preadv2", "pselect",
	"pthread_create", "pwrite", "pwrite64", "pwritev", "pwritev2", "read", "readv", "recv",
	"recvfrom", "recvmmsg", "recvmsg", "remove", "rename", "renameat", "renameat2", "rmdir",
	"select", "sem_clockwait", "sem_open", "sem_trywait", "sem_wait", "send", "sendfile",
	"sendfile64", "sendmmsg", "sendmsg", "sendto", "setitimer", "shm_open", "shmat", "socket",
	"stat", "stat64", "statvfs", "statvfs64", "statx", "symlink", "symlinkat", "syscall",
	"sysinfo", "system", "time", "timer_create", "timer_settime", "times", "timespec_get",
	"tmpfile", "tmpfile64", "truncate", "truncate64", "unlink", "unlinkat", "utime",
	"utimensat", "utimes", "vfork", "wait", "wait3", "wait4", "waitid", "waitpid", "write",
	"writev" };
enum { CALLS = ARRAY_LEN(names) };
_Static_assert(CALLS <= CALLS_MAX, "more names than stubs");

/*
 * Kinds of calls. Most calls are an effect of the cell that makes them (KIND_EFFECT); `kinds` lists
 * the other calls.
 */
enum kind {
	KIND_EFFECT,
	KIND_CLOCK,
	KIND_LOCK,  /* no effect by itself */
	KIND_LOADS, /* the library that it loads may have one */
	/* cells that follow can have effects without calling anything above: through addresses,
	 * signals, memory that others write to */
	KIND_LASTING,
	KIND_FILE, /* an effect, unless file_effects.h says that the cell can repeat it */
};
static const struct {
	const char *name;
	enum kind kind;
} kinds[] = {
	{ "alarm", KIND_LASTING },
	{ "clock_gettime", KIND_CLOCK },
	{ "dlmopen", KIND_LOADS },
	{ "dlopen", KIND_LOADS },
	{ "dlsym", KIND_LASTING },
	{ "dlvsym", KIND_LASTING },
	{ "memfd_create", KIND_LASTING },
	{ "sem_clockwait", KIND_LOCK },
	{ "sem_trywait", KIND_LOCK },
	{ "sem_wait", KIND_LOCK },
	{ "setitimer", KIND_LASTING },
	{ "shm_open", KIND_LASTING },
	{ "shmat", KIND_LASTING },
	{ "timer_create", KIND_LASTING },
	{ "timer_settime", KIND_LASTING },
};
static unsigned char kind_of[CALLS_MAX];

/* how often, since the cell began */
__attribute__((visibility("hidden"), used)) uint32_t effects_calls[CALLS_MAX];
__attribute__((visibility("hidden"), used)) void *effects_real[CALLS_MAX];
static void *libc_calls[CALLS_MAX]; /* the same, but for those with a function before them */
extern char effects_stubs[] __attribute__((visibility("hidden")));

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/*
 * They change no register, so they fit before every function, those with any number of arguments
 * and vfork() included.
 */
__asm__(".pushsection .text\n"
	".p2align 5\n"
	".hidden effects_stubs\n"
	".globl effects_stubs\n"
	"effects_stubs:\n"
	".set effects_i, 0\n"
	".rept " TEXT(CALLS_MAX) "\n"
				 "	endbr64\n"
				 "	incl effects_calls+4*effects_i(%rip)\n"
				 "	jmp *effects_real+8*effects_i(%rip)\n"
				 "	.p2align 5\n"
				 "	.set effects_i, effects_i+1\n"
				 ".endr\n"
				 ".popsection\n");

/* objects whose tables were seen to; new ones come behind them */
static size_t known;
static unsigned long long added, removed; /* by the dynamic linker so far */
static bool prepared, lasts;
static unsigned last;
static bool locks_read_clock; /* Python's, whether they have to wait or not */

/* ---- an object's tables ------------------------------------------------------------ */

struct object {
	const ElfW(Sym) * symbols;
	const char *strings;
	uintptr_t base, start, end; /* all of it in memory */
	/* what the dynamic linker made read-only, of which tables may be a part */
	uintptr_t read_only_start, read_only_end;
	bool is_program;
};

static int by_name(const void *name, const void *row)
{
	return strcmp(name, *(const char *const *)row);
}

/* Which of `names` it is; -1 for none. */
static int find_call(const char *name)
{
	const char *const *row = bsearch(name, names, CALLS, sizeof(names[0]), by_name);
	return row ? (int)(row - names) : -1;
}

/*
 * Is it an entry of the C library's function, or one that was not looked up yet? Other libraries
 * may have functions of these names.
 */
static bool is_entry_of(const struct object *o, const ElfW(Sym) * symbol, uintptr_t value, int call)
{
	return symbol->st_shndx == SHN_UNDEF && libc_calls[call] &&
	       (value == (uintptr_t)libc_calls[call] || (value >= o->start && value < o->end));
}

static void set_entry(const struct object *o, uintptr_t *entry, uintptr_t value)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)entry & -page;
	bool read_only = (uintptr_t)entry >= o->read_only_start &&
			 (uintptr_t)entry < o->read_only_end;
	if (read_only && mprotect((void *)start, page, PROT_READ | PROT_WRITE) < 0)
		return;
	*entry = value;
	if (read_only)
		mprotect((void *)start, page, PROT_READ);
}

static void patch_table(const struct object *o, const ElfW(Rela) * table, size_t bytes)
{
	for (size_t i = 0; table && i < bytes / sizeof(*table); i++) {
		unsigned type = ELF64_R_TYPE(table[i].r_info);
		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64)
			continue;
		const ElfW(Sym) *symbol = &o->symbols[ELF64_R_SYM(table[i].r_info)];
		int call = find_call(o->strings + symbol->st_name);
		uintptr_t *entry = (uintptr_t *)(o->base + table[i].r_offset);
		if (call < 0 || table[i].r_addend || !is_entry_of(o, symbol, *entry, call))
			continue;
		/*
		 * Python loads modules with dlsym(), and their tables are seen to. Semaphores of
		 * others than Python's locks are not counted.
		 */
		if (kind_of[call] == KIND_LOCK ? !o->is_program
					       : o->is_program && text_eq(names[call], "dlsym"))
			continue;
		set_entry(o, entry, (uintptr_t)effects_stubs + (size_t)call * STUB_BYTES);
	}
}

static void note_extent(struct object *o, const struct dl_phdr_info *info)
{
	o->start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;
		if (p->p_type == PT_GNU_RELRO) {
			o->read_only_start = start & -(uintptr_t)sysconf(_SC_PAGESIZE);
			o->read_only_end = end;
		} else if (p->p_type == PT_LOAD) {
			o->start = start < o->start ? start : o->start;
			o->end = end > o->end ? end : o->end;
		}
	}
}

static bool contains(const struct object *o, const void *address)
{
	return (uintptr_t)address >= o->start && (uintptr_t)address < o->end;
}

static void patch_object(const struct dl_phdr_info *info, bool is_program)
{
	struct object o = { .base = info->dlpi_addr, .is_program = is_program };
	const ElfW(Dyn) *d = NULL;
	uintptr_t at[DT_NUM] = { 0 };

	note_extent(&o, info);
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	/*
	 * Neither the C library's own calls count, nor ours, nor those of the dynamic linker and of
	 * the kernel's object.
	 */
	if (!d || contains(&o, effects_calls) || contains(&o, libc_calls[find_call("read")]) ||
		strstr(info->dlpi_name, "/ld-") || strstr(info->dlpi_name, "vdso"))
		return;
	for (; d->d_tag != DT_NULL; d++)
		if (d->d_tag > 0 && d->d_tag < DT_NUM)
			at[d->d_tag] = d->d_un.d_ptr;
	if (!at[DT_SYMTAB] || !at[DT_STRTAB])
		return;
	/* addresses by now: the linker made them so */
	o.symbols = (const ElfW(Sym) *)at[DT_SYMTAB];
	o.strings = (const char *)at[DT_STRTAB];
	patch_table(&o, (const ElfW(Rela) *)at[DT_RELA], at[DT_RELASZ]);
	patch_table(&o, (const ElfW(Rela) *)at[DT_JMPREL], at[DT_PLTRELSZ]);
}

/* ---- all objects --------------------------------------------------------------------- */

static int patch_new(struct dl_phdr_info *info, size_t size, void *count)
{
	size_t *n = count;
	(void)size;
	if (*n == 0 && removed != info->dlpi_subs)
		known = 0; /* their order is not what it was */
	if ((*n)++ >= known)
		patch_object(info, *n == 1);
	added = info->dlpi_adds;
	removed = info->dlpi_subs;
	return 0;
}

static int first_only(struct dl_phdr_info *info, size_t size, void *changed)
{
	(void)size;
	*(bool *)changed = info->dlpi_adds != added || info->dlpi_subs != removed;
	return 1;
}

/* Sees to libraries that were loaded since the last time. True when there were any. */
static bool see_to_new(void)
{
	bool changed = false;
	size_t n = 0;
	dl_iterate_phdr(first_only, &changed);
	if (!changed)
		return false;
	dl_iterate_phdr(patch_new, &n);
	known = n;
	return true;
}

static void forget_calls(void)
{
	memset(effects_calls, 0, sizeof(effects_calls));
}

static uint32_t calls_of(enum kind kind)
{
	uint32_t n = 0;
	for (size_t i = 0; i < CALLS; i++)
		n += kind_of[i] == kind ? effects_calls[i] : 0;
	return n;
}

/* Seen, not assumed: CPython 3.11 computes a deadline before it looks whether there is one. */
static bool lock_reads_clock(void)
{
	PyThread_type_lock lock = PyThread_allocate_lock();
	bool reads = lock != NULL;
	for (int wait = NOWAIT_LOCK; lock && wait <= WAIT_LOCK; wait++) {
		forget_calls();
		PyThread_acquire_lock(lock, wait);
		reads = reads && calls_of(KIND_CLOCK) == 1 && calls_of(KIND_LOCK) == 1;
		PyThread_release_lock(lock);
	}
	if (lock)
		PyThread_free_lock(lock);
	return reads;
}

void effects_prepare(void)
{
	/* the functions themselves, not entries that lead to them */
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	for (size_t i = 0; libc && i < CALLS; i++) {
		void *wrapper = file_effects_wrapper(names[i]);
		libc_calls[i] = dlsym(libc, names[i]);
		effects_real[i] = wrapper && libc_calls[i] ? wrapper : libc_calls[i];
		kind_of[i] = wrapper ? KIND_FILE : KIND_EFFECT;
	}

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		kind_of[find_call(kinds[i].name)] = (unsigned char)kinds[i].kind;
	prepared = libc && libc_calls[find_call("read")];
	if (!prepared)
		return;
	see_to_new();
	locks_read_clock = lock_reads_clock();
	file_effects_learn();
}

void effects_begin(void)
{
	file_effects_begin();
	forget_calls();
	random_mark();
}

unsigned effects_end(void)
{
	if (!prepared)
		return WIRE_EFFECT_OUTSIDE;
	/* what a new library did meanwhile is not known */
	bool loaded = calls_of(KIND_LOADS) && see_to_new();
	/* numpy takes a lock for each random number */
	uint32_t clocks = calls_of(KIND_CLOCK), locks = locks_read_clock ? calls_of(KIND_LOCK) : 0;
	lasts = lasts || calls_of(KIND_LASTING);
	uint32_t files = calls_of(KIND_FILE);
	bool outside = loaded || lasts || clocks > locks || calls_of(KIND_EFFECT) ||
		       files > file_effects_repeatable();
	return last = (outside ? WIRE_EFFECT_OUTSIDE : 0) | (files ? WIRE_EFFECT_FILES : 0) |
		      (random_moved() ? WIRE_EFFECT_RANDOM : 0);
}

unsigned effects_last(void)
{
	return last;
}

#else

void effects_prepare(void)
{
}

void effects_begin(void)
{
}

unsigned effects_end(void)
{
	return WIRE_EFFECT_OUTSIDE;
}

unsigned effects_last(void)
{
	return WIRE_EFFECT_OUTSIDE;
}

#endif
