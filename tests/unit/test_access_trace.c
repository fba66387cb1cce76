/* Which memory code touches. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "zygote/placement/access_trace.h"

enum { SIZE = 4 << 20, PAGE = 4096 };

#ifdef __x86_64__    /* elsewhere nothing is traced */
static char *memory; /* without a file, as the heap's is */
static volatile int sum;

static void touch_some(void)
{
	memory[0] = 1;
	memory[PAGE + 100]++;
	sum += memory[3 * PAGE + 64];
	memcpy(memory + 5 * PAGE - 100, memory + 9 * PAGE, 200); /* over the end of a page */
	memory[20 * PAGE] = 1;
	for (int i = 0; i < 1000; i++)
		memory[7 * PAGE]++;
}

static void writes(void)
{
	memory[9 * PAGE] = 'x';
	access_trace_run(TRACE_WRITES, touch_some);
	OK(access_trace_touched(memory, 1));
	OK(access_trace_touched(memory, 16));
	OK(!access_trace_touched(memory + 16, 16));
	OK(access_trace_touched(memory + PAGE + 96, 16));
	OK(access_trace_touched(memory + PAGE, PAGE));
	OK(!access_trace_touched(memory + 2 * PAGE, PAGE));
	OK(!access_trace_touched(memory + 3 * PAGE, PAGE)); /* read */
	OK(access_trace_touched(memory + 4 * PAGE, PAGE));
	OK(access_trace_touched(memory + 5 * PAGE, 96));
	OK(access_trace_touched(memory + 7 * PAGE, 1));
	OK(!access_trace_touched(memory + 8 * PAGE, 12 * PAGE));
	OK(!access_trace_touched(&memory, sizeof(memory)));  /* not the heap's */
	OK(!access_trace_touched(memory + 20 * PAGE, PAGE)); /* not watched */
	OK(memory[5 * PAGE - 100] == 'x');                   /* it was run, and once */
	OK(memory[PAGE + 100] == 1);
	OK((unsigned char)memory[7 * PAGE] == 1000 % 256);
}

static void reads_too(void)
{
	access_trace_run(TRACE_ALL, touch_some);
	OK(access_trace_touched(memory + 3 * PAGE + 64, 1));
	OK(!access_trace_touched(memory + 3 * PAGE, 64));
	OK(access_trace_touched(memory + 9 * PAGE, 200));
	OK(access_trace_touched(memory, 1));
	OK(!access_trace_touched(memory + 2 * PAGE, PAGE));
	memory[2 * PAGE] = 1; /* all is as it was */
}

/* What grows, shrinks and copies memory on the way. */
static void use_malloc(void)
{
	char *blocks[64];
	for (int i = 0; i < 64; i++) {
		blocks[i] = malloc(5000);
		memset(blocks[i], i, 5000);
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
}

static char *old_block;

static void use_old_block(void)
{
	use_malloc();
	old_block[40000] = 1;
}

static void with_malloc(void)
{
	access_trace_run(TRACE_ALL, use_old_block);
	OK(access_trace_touched(old_block + 40000, 1));
	OK(!access_trace_touched(old_block + 50000, 40000));
}

static void crash(void)
{
	char *closed = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(volatile char *)closed = 1;
}

/* A fault that is not the trace's ends the process as ever. */
static void faults(void)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		access_trace_run(TRACE_WRITES, crash);
		_exit(0);
	}
	waitpid(child, &status, 0);
	OK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

int main(void)
{
	char *blocks[32];
	for (int i = 0; i < 32; i++)
		blocks[i] = malloc(100000); /* a heap large enough to be looked at */
	old_block = blocks[7];
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	OK(access_trace_begin());
	access_trace_watch(memory, 20 * PAGE);
	access_trace_watch(memory + 21 * PAGE, SIZE - 21 * PAGE);
	for (int i = 0; i < 32; i++)
		access_trace_watch(blocks[i], 100000);
	writes();
	reads_too();
	with_malloc();
	faults();
	return tap_done();
}
#else
int main(void)
{
	OK(!access_trace_begin());
	return tap_done();
}
#endif
