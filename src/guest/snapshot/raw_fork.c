#include "guest/snapshot/raw_fork.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

/* where libc keeps the id of the main thread: CLONE_CHILD_SETTID at that place keeps it right */
static int *tid;

void raw_fork_prepare(void)
{
	if (prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0) < 0)
		tid = NULL; /* a kernel that does not tell */
}

static unsigned long flags(void)
{
	return CLONE_PARENT | CLONE_PIDFD | (tid ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0);
}

pid_t raw_fork_fork(int *ret_pidfd)
{
	*ret_pidfd = -1;
#if defined(__x86_64__)
	pid_t pid = (pid_t)syscall(SYS_clone, flags(), 0, ret_pidfd, tid, 0);
#else
	pid_t pid = (pid_t)syscall(SYS_clone, flags(), 0, ret_pidfd, 0, tid);
#endif
	if (pid <= 0)
		*ret_pidfd = -1; /* a call that failed late has left a number there */
	return pid;
}

/*
 * clone(2), after which the parent ends without touching the stack that is its child's now: there
 * is not one instruction between the two calls that would. Returns in the child, and in the parent
 * on failure.
 */
static long clone_and_end(unsigned long kind, int *pidfd)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = (long)tid;
	register long r8 __asm__("r8") = 0;
	long r;
	__asm__ volatile(
		"syscall\n\t"
		"test %%rax, %%rax\n\t"
		"jle 1f\n\t"
		"mov %[end], %%eax\n\t"
		"xor %%edi, %%edi\n\t"
		"syscall\n"
		"1:"
		: "=a"(r), "+D"(kind)
		: "0"((long)SYS_clone), "S"(0L), "d"(pidfd), "r"(r10), "r"(r8), [end] "i"(SYS_exit)
		: "rcx", "r11", "cc", "memory");
	return r;
#elif defined(__aarch64__)
	register long x0 __asm__("x0") = (long)kind;
	register long x1 __asm__("x1") = 0;
	register long x2 __asm__("x2") = (long)pidfd;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = (long)tid;
	register long x8 __asm__("x8") = SYS_clone;
	__asm__ volatile("svc #0\n\t"
			 "cmp x0, #0\n\t"
			 "b.le 1f\n\t"
			 "mov x8, %[end]\n\t"
			 "mov x0, #0\n\t"
			 "svc #0\n"
			 "1:"
			 : "+r"(x0), "+r"(x8)
			 : "r"(x1), "r"(x2), "r"(x3), "r"(x4), [end] "i"(SYS_exit)
			 : "cc", "memory");
	return x0;
#else
#error "clone(2) is not implemented for this processor architecture"
#endif
}

/*
 * The kernel has forgotten it for a child that shares memory; libc goes on believing that it is
 * there.
 */
static void register_rseq(void)
{
#if defined(RSEQ_SIG) && defined(SYS_rseq)
	enum { RSEQ_BYTES = 32 }; /* of the first version, which every libc registers */
	if (__rseq_size)
		syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, RSEQ_BYTES, 0,
			RSEQ_SIG);
#endif
}

int raw_fork_succeed(int *ret_pidfd)
{
	/*
	 * The end of a thread that shares memory with others clears that place, which is the
	 * child's by then.
	 */
	syscall(SYS_set_tid_address, NULL);
	long r = clone_and_end(flags() | CLONE_VM | CLONE_FILES, ret_pidfd);
	if (r < 0) {
		*ret_pidfd = -1;
		return (int)r;
	}
	register_rseq();
	return 0;
}
