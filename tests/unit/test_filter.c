/*
 * Every system call number on every ABI, through the filter's own program: what it answers,
 * exactly.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf.h"
#include "jail/filter.h"
#include "tap.h"

#ifdef __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_AARCH64
#define OLD(...) __VA_ARGS__ /* calls that newer architectures never had */
enum { OTHER_ABIS = 3, ANSWERED_AS_MISSING = 11 };
#else
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_X86_64
#define OLD(...)
enum { OTHER_ABIS = 2, ANSWERED_AS_MISSING = 11 };
#endif

static struct filter filter;

static uint32_t answer(uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	return bpf_answer(&filter, arch, nr, args);
}

static const uint64_t zeros[6];
#define ALLOW SECCOMP_RET_ALLOW
#define NO (SECCOMP_RET_ERRNO | EPERM)
#define NOT_THERE (SECCOMP_RET_ERRNO | ENOSYS)
#define DONE SECCOMP_RET_ERRNO /* success, without the kernel */
#define DEAD SECCOMP_RET_KILL_PROCESS

static uint32_t with(long nr, unsigned argument, uint64_t value)
{
	uint64_t args[6] = { 0 };
	args[argument] = value;
	return answer(NATIVE, (uint32_t)nr, args);
}

/* Counts over all numbers; a call that slips onto the list shows here first. */
static void every_number(void)
{
	unsigned allowed = 0, denied = 0, missing = 0, done = 0, other = 0, dead = 0;
	for (uint32_t nr = 0; nr < 1024; nr++) {
		uint32_t v = answer(NATIVE, nr, zeros);
		allowed += v == ALLOW;
		denied += v == NO;
		missing += v == NOT_THERE;
		done += v == DONE;
		other += v != ALLOW && v != NO && v != NOT_THERE && v != DONE;
		OLD(dead += answer(NATIVE, nr | 0x40000000, zeros) == DEAD); /* x32 */
		dead += answer(AUDIT_ARCH_I386, nr, zeros) == DEAD;
		dead += answer(FOREIGN, nr, zeros) == DEAD;
	}
	printf("# allowed %u, EPERM %u, ENOSYS %u\n", allowed, denied, missing);
	OK(other == 0 && done == 2);
	OK(dead == OTHER_ABIS * 1024);
	OK(allowed > 150 && allowed < 200);
	OK(missing == 1023 - FILTER_NEWEST + ANSWERED_AS_MISSING);
	OK(answer(NATIVE, 0x3fffffff, zeros) == NOT_THERE);
	OLD(OK(answer(NATIVE, 0xffffffff, zeros) == DEAD));
}

static void never(void)
{
	static const long calls[] = { SYS_ptrace, SYS_mount, SYS_umount2, SYS_pivot_root,
		SYS_unshare, SYS_setns, SYS_bpf, SYS_keyctl, SYS_add_key, SYS_request_key,
		SYS_perf_event_open, SYS_userfaultfd, SYS_process_vm_readv, SYS_process_vm_writev,
		SYS_splice, SYS_tee, SYS_vmsplice, SYS_sendfile, SYS_io_setup, SYS_kexec_load,
		SYS_init_module, SYS_finit_module, SYS_open_by_handle_at, SYS_name_to_handle_at,
		OLD(SYS_mknod, SYS_chown, SYS_modify_ldt, SYS_iopl, SYS_ioperm, ) SYS_mknodat,
		SYS_chroot, SYS_reboot, SYS_setuid, SYS_setresuid, SYS_capset, SYS_seccomp,
		SYS_execveat, SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_fchown, SYS_setxattr,
		SYS_mlock2, SYS_mlockall, SYS_mq_open, SYS_msgget, SYS_semget, SYS_fanotify_init,
		SYS_quotactl, SYS_swapon, SYS_settimeofday, SYS_clock_settime, SYS_sethostname,
		SYS_kcmp, SYS_move_pages, SYS_mbind, SYS_memfd_secret, SYS_landlock_create_ruleset,
		SYS_io_uring_enter };
	int good = 1;
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (answer(NATIVE, (uint32_t)calls[i], zeros) != NO) {
			printf("# call %ld\n", calls[i]);
			good = 0;
		}
	OK(good);
}

/*
 * Only the low half counts for the kernel where the argument is an int: rubbish above it neither
 * opens nor closes a way.
 */
static void arguments(void)
{
	const uint64_t high = 0xdeadbeef00000000;
	OK(with(SYS_socket, 0, AF_UNIX) == ALLOW && with(SYS_socket, 0, high | AF_UNIX) == ALLOW);
	OK(with(SYS_socket, 0, AF_INET) == NO && with(SYS_socket, 0, AF_NETLINK) == NO &&
		with(SYS_socket, 0, AF_ALG) == NO);
	OK(with(SYS_socketpair, 0, AF_INET) == NO);
	OK(with(SYS_ioctl, 1, TCGETS) == ALLOW && with(SYS_ioctl, 1, TIOCSTI) == NO &&
		with(SYS_ioctl, 1, high | TIOCSTI) == NO);
	static const uint64_t terminal[] = { TCSETS, TCSETSW, TCSETSF, TIOCGPTN, TIOCSPTLCK,
		TIOCGPTPEER, TIOCSWINSZ, TIOCSCTTY, TIOCNOTTY, TIOCSPGRP, 0x802c542a };
	for (unsigned i = 0; i < sizeof(terminal) / sizeof(terminal[0]); i++)
		OK(with(SYS_ioctl, 1, terminal[i]) == ALLOW);
	static const uint64_t console[] = { TIOCSETD, TIOCCONS, TIOCLINUX, TIOCVHANGUP, TIOCSSERIAL,
		TIOCEXCL };
	for (unsigned i = 0; i < sizeof(console) / sizeof(console[0]); i++)
		OK(with(SYS_ioctl, 1, console[i]) == NO &&
			with(SYS_ioctl, 1, high | console[i]) == NO);
	OK(with(SYS_inotify_init1, 0, 0) == ALLOW &&
		with(SYS_inotify_add_watch, 2, IN_MODIFY | IN_CREATE | IN_ONLYDIR) == ALLOW);
	OK(with(SYS_inotify_add_watch, 2, IN_ALL_EVENTS) == NO &&
		with(SYS_inotify_add_watch, 2, IN_OPEN) == NO &&
		with(SYS_inotify_add_watch, 2, high | IN_ACCESS) == NO &&
		with(SYS_inotify_add_watch, 2, IN_MODIFY | IN_CLOSE_NOWRITE) == NO);
	OK(with(SYS_prctl, 0, PR_SET_NAME) == ALLOW && with(SYS_prctl, 0, PR_SET_PTRACER) == NO &&
		with(SYS_prctl, 0, PR_SET_SECCOMP) == NO);
	OK(with(SYS_personality, 0, 0xffffffff) == ALLOW &&
		with(SYS_personality, 0, 0x40000) == NO);
	OK(with(SYS_prlimit64, 0, 0) == ALLOW && with(SYS_prlimit64, 0, 1) == NO);
	OK(with(SYS_fcntl, 1, 3) == ALLOW && with(SYS_fcntl, 1, 1024) == NO &&
		with(SYS_fcntl, 1, 8) == NO);
	OK(with(SYS_kill, 0, 1) == NO && with(SYS_kill, 0, high | 1) == NO &&
		with(SYS_kill, 0, 2) == ALLOW);
	OK(with(SYS_kill, 0, (uint64_t)-1) == NO && with(SYS_kill, 0, 0xffffffff) == NO &&
		with(SYS_kill, 0, (uint64_t)-2) == ALLOW && with(SYS_kill, 0, 0) == ALLOW &&
		with(SYS_tgkill, 0, 1) == NO && with(SYS_rt_sigqueueinfo, 0, 1) == NO);
	OK(with(SYS_mknodat, 2, 0010644) == ALLOW && with(SYS_mknodat, 2, 0020666) == NO);
	OLD(OK(with(SYS_mknod, 1, 0060666) == NO));
	OK(with(SYS_clone, 0, 0x3d0f00) == ALLOW); /* a thread */
	static const uint64_t namespaces[] = { CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNS,
		CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80 };
	for (unsigned i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
		OK(with(SYS_clone, 0, namespaces[i]) == NO &&
			with(SYS_clone, 0, namespaces[i] | 17) == NO);
	OK(with(SYS_clone3, 0, 0) == NOT_THERE);
	/* What a copy that moves needs carries the mark; without it none of these is there. */
	uint64_t move[6] = { 7, CLONE_NEWUSER, JAIL_MARK },
		 leave[6] = { CLONE_NEWCGROUP, JAIL_MARK };
	OK(answer(NATIVE, SYS_setns, move) == ALLOW && answer(NATIVE, SYS_unshare, leave) == ALLOW);
	move[1] = 0, leave[0] = CLONE_NEWUSER;
	OK(answer(NATIVE, SYS_setns, move) == NO && answer(NATIVE, SYS_unshare, leave) == NO);
	OK(with(SYS_setns, 1, CLONE_NEWUSER) == NO && with(SYS_unshare, 0, CLONE_NEWCGROUP) == NO &&
		with(SYS_prctl, 0, PR_SET_SECUREBITS) == NO);
	uint64_t attach[6] = { 5, SOL_SOCKET, SO_ATTACH_FILTER },
		 reuse[6] = { 5, SOL_SOCKET, SO_REUSEADDR };
	OK(answer(NATIVE, SYS_setsockopt, attach) == NO &&
		answer(NATIVE, SYS_setsockopt, reuse) == ALLOW);
	uint64_t linger[6] = { 5, SOL_SOCKET, SO_LINGER };
	OK(answer(NATIVE, SYS_setsockopt, linger) == NO);
	OK(with(SYS_fadvise64, 3, 3) == ALLOW && with(SYS_fadvise64, 3, 4) == NO &&
		with(SYS_fadvise64, 3, high | 4) == NO);
	enum { PEERPIDFD = 77, ZEROCOPY_RECEIVE = 35 };
	OK(with(SYS_getsockopt, 2, SO_ERROR) == ALLOW &&
		with(SYS_getsockopt, 2, SO_PEERCRED) == ALLOW &&
		with(SYS_getsockopt, 2, SO_LINGER) == ALLOW);
	OK(with(SYS_getsockopt, 2, PEERPIDFD) == NO &&
		with(SYS_getsockopt, 2, high | PEERPIDFD) == NO &&
		with(SYS_getsockopt, 2, ZEROCOPY_RECEIVE) == NO);
}

/*
 * What is answered here although it could be let through, because it would be the whole machine's.
 */
static void not_the_kernels(void)
{
	const uint64_t high = 0xdeadbeef00000000;
	enum { HUGETLB = 0x40000, OOB = 1, SYNC = 4, MFD_HUGE = 4 };
	OK(with(SYS_fsync, 0, 5) == DONE && with(SYS_fdatasync, 0, high | 5) == DONE);
	OK(with(SYS_mmap, 3, 0x22) == ALLOW &&
		with(SYS_mmap, 3, 0x22 | HUGETLB) == (SECCOMP_RET_ERRNO | ENOMEM) &&
		with(SYS_mmap, 3, high | HUGETLB) == (SECCOMP_RET_ERRNO | ENOMEM));
	OK(with(SYS_memfd_create, 1, MFD_HUGE) == NO &&
		with(SYS_memfd_create, 1, MFD_HUGE | 8) == NO);
	uint64_t flush[6] = { 0x7f0000001000, 4096, SYNC }, odd[6] = { 0x7f0000001001, 4096, SYNC },
		 later[6] = { 0x7f0000001000, 4096, 1 };
	OK(with(SYS_preadv2, 5, 0) == ALLOW && with(SYS_preadv2, 5, 1 | 16) == ALLOW &&
		with(SYS_preadv2, 5, 8) == (SECCOMP_RET_ERRNO | EOPNOTSUPP) &&
		with(SYS_preadv2, 5, high | 9) == (SECCOMP_RET_ERRNO | EOPNOTSUPP) &&
		with(SYS_preadv2, 5, 0x80) == NO && with(SYS_pwritev2, 5, 0x80) == NO);
	OK(answer(NATIVE, SYS_msync, flush) == DONE && answer(NATIVE, SYS_msync, odd) == NO &&
		answer(NATIVE, SYS_msync, later) == ALLOW);
	static const struct {
		long call;
		unsigned flags;
	} messages[] = { { SYS_sendto, 3 }, { SYS_recvfrom, 3 }, { SYS_sendmsg, 2 },
		{ SYS_recvmsg, 2 } };
	for (unsigned i = 0; i < 4; i++)
		OK(with(messages[i].call, messages[i].flags, 0x4040) == ALLOW &&
			with(messages[i].call, messages[i].flags, high | OOB) ==
				(SECCOMP_RET_ERRNO | EOPNOTSUPP));
}

static void *set_flag(void *flag)
{
	*(int *)flag = 1;
	return NULL;
}

static int thread_works(void)
{
	pthread_t t;
	int flag = 0;
	return pthread_create(&t, NULL, set_flag, &flag) == 0 && pthread_join(t, NULL) == 0 && flag;
}

/* And once for real, in the kernel. */
static void loaded(void)
{
	int status;
	if (prctl(PR_GET_SECCOMP) < 0) {
		printf("# not loaded: this is an emulator, which has no filters (tests/arm64/run)\n");
		return;
	}
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		int bad = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_load(&filter) < 0;
		bad |= (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM) << 1;
		bad |= (unshare(CLONE_NEWUSER) == 0 || errno != EPERM) << 2;
		bad |= (syscall(SYS_clone3, NULL, 0) == 0 || errno != ENOSYS) << 3;
		bad |= (socket(AF_UNIX, SOCK_STREAM, 0) < 0) << 4;
		/* libc ends the process when rseq is refused to a new thread */
		bad |= !thread_works() << 5;
		_exit(bad);
	}
	waitpid(pid, &status, 0);
	OK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* What may be started, and what a file in memory must be. */
static void programs(void)
{
	enum { SEALED = 8 };
	OK(with(SYS_execve, 0, 0) == ALLOW && with(SYS_memfd_create, 1, 0) == NOT_THERE &&
		with(SYS_memfd_create, 1, SEALED | 1) == ALLOW);
	filter_finish(&filter);
	OK(filter_build_sealed(JAIL_EXEC_SYSTEM, JAIL_NET_NONE, &filter) == 0);
	OK(with(SYS_memfd_create, 1, 0) == ALLOW && with(SYS_memfd_create, 1, SEALED) == ALLOW &&
		with(SYS_memfd_create, 1, 16) == NO && with(SYS_memfd_create, 1, 17) == NO);
	filter_finish(&filter);
	OK(filter_build(JAIL_EXEC_NONE, JAIL_NET_NONE, &filter) == 0);
	OK(with(SYS_execve, 0, 0) == NO && with(SYS_execveat, 0, 0) == NO &&
		with(SYS_memfd_create, 1, 0) == NOT_THERE);
	filter_finish(&filter);
	OK(filter_build(JAIL_EXEC_ANY, JAIL_NET_NONE, &filter) == 0);
	OK(with(SYS_execve, 0, 0) == ALLOW && with(SYS_memfd_create, 1, 0) == ALLOW &&
		with(SYS_execveat, 0, 0) == NO);
	filter_finish(&filter);
}

static uint32_t with3(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	return answer(NATIVE, (uint32_t)nr, (const uint64_t[6]){ a, b, c });
}

/* With a network: TCP and UDP, and of their options the harmless ones. */
static void network(void)
{
	const uint64_t high = 0xdeadbeef00000000, flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	OK(filter_build(JAIL_EXEC_SYSTEM, JAIL_NET_LOOPBACK, &filter) == 0);
	for (int six = 0; six < 2; six++) {
		uint64_t family = six ? AF_INET6 : AF_INET;
		OK(with3(SYS_socket, family, SOCK_STREAM, 0) == ALLOW &&
			with3(SYS_socket, family, SOCK_DGRAM | flags, 17) == ALLOW);
		OK(with3(SYS_socket, high | family, high | SOCK_STREAM, high | 6) == ALLOW);
		OK(with3(SYS_socket, family, SOCK_RAW, 0) == NO &&
			with3(SYS_socket, family, SOCK_DGRAM, 1) == NO);
		OK(with3(SYS_socket, family, SOCK_STREAM, 262) == NO &&
			with3(SYS_socket, family, SOCK_STREAM, 132) == NO);
		OK(with3(SYS_socket, family, SOCK_SEQPACKET, 132) == NO &&
			with3(SYS_socket, family, SOCK_DGRAM, 136) == NO);
		OK(with3(SYS_socketpair, family, SOCK_STREAM, 0) == NO);
	}
	for (uint64_t family = 0; family < 64; family++)
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
			OK(with3(SYS_socket, family, SOCK_STREAM, 0) == NO &&
				with3(SYS_socket, family, SOCK_DGRAM, 0) == NO);
	OK(with3(SYS_setsockopt, 3, 1, 2) == ALLOW && with3(SYS_setsockopt, 3, 6, 1) == ALLOW &&
		with3(SYS_setsockopt, 3, high | 6, high | 1) == ALLOW);
	OK(with3(SYS_setsockopt, 3, 6, 31) == NO && with3(SYS_setsockopt, 3, 6, high | 31) == NO &&
		with3(SYS_setsockopt, 3, 6, 19) == NO);
	OK(with3(SYS_setsockopt, 3, 17, 100) == NO && with3(SYS_setsockopt, 3, 282, 1) == NO &&
		with3(SYS_setsockopt, 3, 41, 26) == ALLOW);
	/* IPsec, ADDRFORM */
	OK(with3(SYS_setsockopt, 3, 0, 1) == ALLOW && with3(SYS_setsockopt, 3, 0, 17) == NO &&
		with3(SYS_setsockopt, 3, 41, 1) == NO);
	/* of TCP */
	OK(with(SYS_sendto, 3, MSG_OOB) == ALLOW && with(SYS_recvmsg, 2, MSG_OOB) == ALLOW);
	OK(with(SYS_ioctl, 1, 0x8914) == NO && with(SYS_execve, 0, 0) == ALLOW);
	filter_finish(&filter);
}

int main(void)
{
	OK(filter_build(JAIL_EXEC_SYSTEM, JAIL_NET_NONE, &filter) == 0);
	printf("# %u instructions\n", filter.len);
	every_number();
	never();
	arguments();
	not_the_kernels();
	loaded();
	programs();
	network();
	return tap_done();
}
