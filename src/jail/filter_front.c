/* The part of a guest's filter that libseccomp cannot express, in the kernel's own instructions. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "jail/filter_internal.h"

/* Signals to processes of the jail, by their number; not to its init, and not to all of them at once. */
const char *const filter_signals[FILTER_SIGNALS] = { "kill", "tkill", "tgkill", "rt_sigqueueinfo",
	"rt_tgsigqueueinfo" };

/*
 * What getsockopt does not tell: SO_PEERPIDFD (Linux 6.5), a handle of the process at the other end, which for the control socket is the daemon; and
 * TCP_ZEROCOPY_RECEIVE, which maps pages of the network's. By number, whatever the level: nothing ordinary has these two.
 */
static const uint32_t untold[] = { 77, 35 };

/* What posix_fadvise is not told: to throw a file out of the page cache, which all sessions and the machine share. */
enum { DONTNEED = 4 };

int filter_number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);
	return nr < 0 ? -1 : nr;
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, action)

int filter_put_in_front(const struct filter *rest, struct filter *ret)
{
	struct sock_filter front[32];
	unsigned short n = 0;
#define PUT(...) front[n++] = (struct sock_filter)__VA_ARGS__
	PUT(LOAD(nr));
#ifdef __x86_64__
	PUT(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1)); /* x32 */
	PUT(ANSWER(SECCOMP_RET_KILL_PROCESS));
#endif
	PUT(LOAD(arch));
	PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 1, 0));
	PUT(ANSWER(SECCOMP_RET_KILL_PROCESS));
	PUT(LOAD(nr));
	PUT(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, FILTER_NEWEST, 0, 1));
	PUT(ANSWER(SECCOMP_RET_ERRNO | ENOSYS));
	unsigned short calls = FILTER_SIGNALS;
	/* one of the signal calls: go and look at the target */
	for (unsigned short i = 0; i < calls; i++)
		PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)filter_number(filter_signals[i]),
			(unsigned char)(calls - i), 0));
	PUT(BPF_JUMP(BPF_JMP | BPF_JA, 4, 0, 0));
	PUT(LOAD(args[0])); /* little-endian: the low half */
	PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 1, 0));
	/* all processes: those of forks, which are nested in this jail, and snapshots too */
	PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffffU, 0, 1));
	PUT(ANSWER(SECCOMP_RET_ERRNO | EPERM));
	PUT(LOAD(nr));
	PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)filter_number("getsockopt"), 0,
		2 + ARRAY_LEN(untold)));
	PUT(LOAD(args[2]));
	/* to the answer, or past it after the last */
	for (unsigned char i = 0, n_untold = ARRAY_LEN(untold); i < n_untold; i++)
		PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, untold[i],
			(unsigned char)(n_untold - i - 1), i + 1 == n_untold ? 1 : 0));
	PUT(ANSWER(SECCOMP_RET_ERRNO | EPERM));
	PUT(LOAD(nr));
	PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)filter_number("fadvise64"), 0, 3));
	PUT(LOAD(args[3]));
	PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, DONTNEED, 0, 1));
	PUT(ANSWER(SECCOMP_RET_ERRNO | EPERM));
#undef PUT
	ret->len = (unsigned short)(n + rest->len);
	ret->code = malloc(ret->len * sizeof(*ret->code));
	if (!ret->code)
		return -ENOMEM;
	memcpy(ret->code, front, n * sizeof(*front));
	memcpy(ret->code + n, rest->code, rest->len * sizeof(*rest->code));
	return 0;
}
