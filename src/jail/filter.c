#include "jail/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "jail/filter_internal.h"

#define NAMESPACES                                                                     \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
		CLONE_NEWPID | CLONE_NEWNET | 0x80 /* NEWTIME */)

/* By name; names this libseccomp or architecture does not know are left out, and so denied. */
/* clang-format off */
static const char *const allowed[] = {
	/* memory */
	"brk", "munmap", "mprotect", "mremap", "madvise", "mincore", "membarrier",
	/* keys that must not be swapped out; RLIMIT_MEMLOCK bounds it, and the control group counts it as any memory */
	"mlock", "munlock",
	/* threads and time; rseq because glibc gives up when a thread cannot register and the main one could, before the filter */
	"rseq", "futex", "set_robust_list", "get_robust_list", "set_tid_address", "sched_yield",
	"sched_getaffinity", "sched_setaffinity",
	"sched_getparam", "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
	"sched_rr_get_interval", "gettid", "getcpu",
	"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
	"times", "getitimer", "setitimer",
	"alarm", "timer_create", "timer_settime", "timer_gettime", "timer_delete",
	"timer_getoverrun", "timerfd_create",
	"timerfd_settime", "timerfd_gettime", "arch_prctl", "restart_syscall",
	/* files */
	"open", "openat", "creat", "close", "close_range", "read", "write", "readv", "writev",
	"pread64", "pwrite64", "preadv",
	"pwritev", "lseek", "stat", "fstat", "lstat", "newfstatat", "statx",
	"statfs", "fstatfs", "access", "faccessat", "getdents",
	"getdents64", "getcwd", "chdir", "fchdir", "readlink", "readlinkat", "mkdir", "mkdirat",
	"rmdir", "rename", "renameat",
	"renameat2", "unlink", "unlinkat", "symlink", "symlinkat", "link", "linkat", "chmod",
	"fchmod", "fchmodat", "utime", "utimes",
	"utimensat", "futimesat", "truncate", "ftruncate", "fallocate", "flock", "umask", "dup",
	"dup2", "dup3",
	"pipe", "pipe2", "fadvise64", "readahead", "getxattr", "lgetxattr", "fgetxattr",
	"listxattr", "llistxattr", "flistxattr",
	/* waiting */
	"poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl",
	"epoll_wait", "epoll_pwait", "eventfd",
	"eventfd2", "signalfd", "signalfd4", "inotify_init", "inotify_init1", "inotify_rm_watch",
	/* unix sockets, once made */
	"connect", "bind", "listen", "accept", "accept4", "getsockname", "getpeername",
	"getsockopt", "shutdown",
	/* processes and signals, inside the pid namespace */
	"fork", "vfork", "wait4", "waitid", "exit", "exit_group", "rt_sigaction", "rt_sigprocmask",
	"rt_sigpending",
	"rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "sigaltstack", "pause", "getpid",
	"getppid", "getpgid", "setpgid",
	"getpgrp", "getsid", "setsid", "getpriority", "setpriority",
	/* who and how much */
	"getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid",
	"getrlimit", "getrusage", "sysinfo", "uname",
	"getrandom",
	/* shared images of X clients, in the jail's own ipc namespace */
	"shmget", "shmat", "shmdt", "shmctl",
};
/* clang-format on */

/* Missing, as on an older kernel: the caller has another way. clone3 because its flags lie in memory, out of a filter's sight. */
static const char *const missing[] = { "clone3", "openat2", "faccessat2", "copy_file_range",
	"io_uring_setup", "futex_waitv", "pidfd_open", "epoll_pwait2", "fchmodat2", "cachestat" };

/*
 * Answered with success and not done. Whatever code can write to is in memory, so there is nothing to bring to a disk; but files of the read-only
 * tree are on the machine's, and thousands of flushes a second through one of them would be everybody's.
 */
static const char *const done_already[] = { "fsync", "fdatasync" };

/* A call that passes when its argument's low 32 bits are one of the values; the kernel looks at no more of an int. */
struct listed {
	const char *call;
	unsigned argument, n;
	const uint32_t *values;
};

/* TCGETS2 and its like, whose structure libc's headers do not have: newer releases of libc use them for tcgetattr(). */
#define TCGETS2_ 0x802c542aU
#define TCSETS2_ 0x402c542bU
#define TCSETSW2_ 0x402c542cU
#define TCSETSF2_ 0x402c542dU

#define VALUES(...)                                                                \
	.n = sizeof((uint32_t[]){ __VA_ARGS__ }) / 4, .values = (const uint32_t[]) \
	{                                                                          \
		__VA_ARGS__                                                        \
	}

static const struct listed listed[] = {
	/* No family but unix: even without a network, others are code to attack. */
	{ "socket", 0, VALUES(AF_UNIX) },
	{ "socketpair", 0, VALUES(AF_UNIX) },
	/* Not TIOCSTI and its like, which type into terminals. */
	/* Of terminals, of which a jail has only its own pseudo-terminals: modes, sizes, job control, the way from a master to its slave. Not among them: TIOCSTI, which
	 * types for others, TIOCSETD, which loads other code of the kernel's, TIOCCONS and TIOCLINUX, which are the machine's console. */
	{ "ioctl", 1,
		VALUES(FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, TCGETS, TCSETS, TCSETSW, TCSETSF,
			TCGETS2_, TCSETS2_, TCSETSW2_, TCSETSF2_, TCSBRK, TCSBRKP, TCXONC, TCFLSH,
			TIOCOUTQ, TIOCGWINSZ, TIOCSWINSZ, TIOCGPGRP, TIOCSPGRP, TIOCGSID, TIOCSCTTY,
			TIOCNOTTY, TIOCGPTN, TIOCSPTLCK, TIOCGPTLCK, TIOCGPTPEER, TIOCPKT,
			TIOCGPKT) },
	{ "prctl", 0,
		VALUES(PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_SET_DUMPABLE, PR_CAPBSET_READ,
			PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_SET_PDEATHSIG,
			PR_GET_PDEATHSIG, PR_GET_SECCOMP, PR_SET_VMA) },
	{ "personality", 0, VALUES(0xffffffff) }, /* asking only */
	{ "prlimit64", 0, VALUES(0) },            /* one's own */
	{ "setrlimit", 0, VALUES(0, 1, 2, 3, 4, 6, 7, 8, 9) },
	/* Leases, notes and redirected signals reach other processes through files. */
	{ "fcntl", 1,
		VALUES(F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK,
			F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_SETPIPE_SZ,
			F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS) },
};

static int number(const char *name)
{
	return filter_number(name);
}

static int add_simple(scmp_filter_ctx c, uint32_t action, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int nr = number(names[i]);
		int r = nr < 0 ? 0 : seccomp_rule_add(c, action, nr, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_listed(scmp_filter_ctx c)
{
	for (size_t i = 0; i < ARRAY_LEN(listed); i++) {
		for (unsigned k = 0; k < listed[i].n; k++) {
			struct scmp_arg_cmp low = SCMP_CMP(listed[i].argument, SCMP_CMP_MASKED_EQ,
				0xffffffffU, listed[i].values[k]);
			int r = seccomp_rule_add_array(
				c, SCMP_ACT_ALLOW, number(listed[i].call), 1, &low);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* One more rule for the call: these arguments have these low halves. */
static int allow_when(
	scmp_filter_ctx c, const char *call, unsigned n, const struct scmp_arg_cmp *when)
{
	return seccomp_rule_add_array(c, SCMP_ACT_ALLOW, number(call), n, when);
}

#define LOW(argument, value) SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, 0xffffffffU, value)

/* TCP and UDP over the jail's own lo, as sockets of the plain kind: nothing raw, no SCTP, MPTCP or the like. */
static int add_inet(scmp_filter_ctx c)
{
	enum { KIND = 0xf }; /* beside it: SOCK_CLOEXEC, SOCK_NONBLOCK */
	static const int families[] = { AF_INET, AF_INET6 };
	static const struct {
		int type, protocol;
	} kinds[] = { { SOCK_STREAM, 0 }, { SOCK_STREAM, IPPROTO_TCP }, { SOCK_DGRAM, 0 },
		{ SOCK_DGRAM, IPPROTO_UDP } };
	int r = 0;
	for (size_t f = 0; r == 0 && f < ARRAY_LEN(families); f++)
		for (size_t k = 0; r == 0 && k < ARRAY_LEN(kinds); k++)
			r = allow_when(c, "socket", 3,
				(struct scmp_arg_cmp[]){ LOW(0, (uint64_t)families[f]),
					SCMP_CMP(1, SCMP_CMP_MASKED_EQ, KIND,
						(uint64_t)kinds[k].type),
					LOW(2, (uint64_t)kinds[k].protocol) });
	return r;
}

/* What programs set on IP and TCP sockets; not the rest (TLS in the kernel, repair, other congestion modules, IPsec policies, changing a
 * socket's family), and nothing of UDP's (encapsulation is a road into IPsec). Without a network there are only unix sockets, which know none of these. */
static int add_socket_options(scmp_filter_ctx c, enum jail_net net)
{
	static const int ip[] = { IP_TOS, IP_TTL, IP_RECVOPTS, IP_PKTINFO, IP_MTU_DISCOVER,
		IP_RECVERR, IP_RECVTTL, IP_RECVTOS, IP_FREEBIND, IP_MINTTL, IP_BIND_ADDRESS_NO_PORT,
		IP_MULTICAST_IF, IP_MULTICAST_TTL, IP_MULTICAST_LOOP, IP_MULTICAST_ALL,
		IP_ADD_MEMBERSHIP, IP_DROP_MEMBERSHIP };
	static const int ip6[] = { IPV6_V6ONLY, IPV6_UNICAST_HOPS, IPV6_MULTICAST_IF,
		IPV6_MULTICAST_HOPS, IPV6_MULTICAST_LOOP, IPV6_JOIN_GROUP, IPV6_LEAVE_GROUP,
		IPV6_MTU_DISCOVER, IPV6_RECVERR, IPV6_RECVPKTINFO, IPV6_PKTINFO, IPV6_RECVHOPLIMIT,
		IPV6_HOPLIMIT, IPV6_RECVTCLASS, IPV6_TCLASS, IPV6_DONTFRAG };
	static const int tcp[] = { TCP_NODELAY, TCP_MAXSEG, TCP_CORK, TCP_KEEPIDLE, TCP_KEEPINTVL,
		TCP_KEEPCNT, TCP_SYNCNT, TCP_LINGER2, TCP_DEFER_ACCEPT, TCP_WINDOW_CLAMP,
		TCP_QUICKACK, TCP_USER_TIMEOUT, TCP_FASTOPEN, TCP_NOTSENT_LOWAT };
	/* Not the programs that can be attached to a socket: the kernel would compile them. Not SO_LINGER: a TCP socket that is sent to the daemon,
	 * which closes whatever it did not ask for, would make that close wait. */
	static const int plain[] = { SO_DEBUG, SO_REUSEADDR, SO_DONTROUTE, SO_BROADCAST, SO_SNDBUF,
		SO_RCVBUF, SO_KEEPALIVE, SO_OOBINLINE, SO_PRIORITY, SO_REUSEPORT, SO_PASSCRED,
		SO_RCVLOWAT, SO_SNDLOWAT, SO_RCVTIMEO, SO_SNDTIMEO, SO_TIMESTAMP, SO_PEEK_OFF };
	static const struct {
		int level;
		const int *options;
		size_t n;
	} levels[] = { { SOL_SOCKET, plain, ARRAY_LEN(plain) }, { IPPROTO_IP, ip, ARRAY_LEN(ip) },
		{ IPPROTO_IPV6, ip6, ARRAY_LEN(ip6) }, { IPPROTO_TCP, tcp, ARRAY_LEN(tcp) } };
	int r = 0;
	for (size_t k = 0; k < (net == JAIL_NET_NONE ? 1 : ARRAY_LEN(levels)); k++)
		for (size_t i = 0; r == 0 && i < levels[k].n; i++)
			r = allow_when(c, "setsockopt", 2,
				(struct scmp_arg_cmp[]){ LOW(1, (uint64_t)levels[k].level),
					LOW(2, (uint64_t)levels[k].options[i]) });
	return r;
}

/* One rule per argument that decides: this bit is set, or is not. */
static int when_bit(scmp_filter_ctx c, uint32_t action, const char *call, unsigned argument,
	uint64_t bit, bool set)
{
	struct scmp_arg_cmp cmp = SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, bit, set ? bit : 0);
	return seccomp_rule_add_array(c, action, number(call), 1, &cmp);
}

/* Sending and receiving. Urgent data is TCP's; that unix sockets know it too has been a way into the kernel (CVE-2025-38236) and nobody's need. */
static int add_messages(scmp_filter_ctx c, enum jail_net net)
{
	static const struct {
		const char *call;
		unsigned flags;
	} calls[] = { { "sendto", 3 }, { "recvfrom", 3 }, { "sendmsg", 2 }, { "recvmsg", 2 } };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(calls); i++) {
		if (net != JAIL_NET_NONE) {
			r = seccomp_rule_add(c, SCMP_ACT_ALLOW, number(calls[i].call), 0);
			continue;
		}
		r = when_bit(c, SCMP_ACT_ALLOW, calls[i].call, calls[i].flags, MSG_OOB, false);
		if (r == 0)
			r = when_bit(c, SCMP_ACT_ERRNO(EOPNOTSUPP), calls[i].call, calls[i].flags,
				MSG_OOB, true);
	}
	return r;
}

/*
 * Memory. Reserved huge pages are the machine's, few, and no group's limit counts them: to code there are none left. A synchronous msync is a flush
 * (see done_already); one of an address that is not a page's is refused here, as by the kernel.
 */
static int add_memory(scmp_filter_ctx c)
{
	enum { PAGE_BITS = 0xfff };
	struct scmp_arg_cmp flush[2] = { SCMP_CMP(0, SCMP_CMP_MASKED_EQ, PAGE_BITS, 0),
		SCMP_CMP(2, SCMP_CMP_MASKED_EQ, MS_SYNC, MS_SYNC) };
	int r = when_bit(c, SCMP_ACT_ALLOW, "mmap", 3, MAP_HUGETLB, false);
	if (r == 0)
		r = when_bit(c, SCMP_ACT_ERRNO(ENOMEM), "mmap", 3, MAP_HUGETLB, true);
	if (r == 0)
		r = when_bit(c, SCMP_ACT_ALLOW, "msync", 2, MS_SYNC, false);
	if (r == 0)
		r = seccomp_rule_add_array(c, SCMP_ACT_ERRNO(0), number("msync"), 2, flush);
	return r;
}

/*
 * A copy of the guest that moves into a jail of its own (jail_move) and gives up what that gave it. These calls carry a mark in an argument
 * that they do not have, so that they pass for the code that means them and for nobody who just tries; who knows the mark and has neither a
 * descriptor of a namespace nor the privilege gets the kernel's own EPERM.
 */
static int add_moving(scmp_filter_ctx c)
{
	static const int kinds[] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWIPC,
		CLONE_NEWUTS, CLONE_NEWPID };
	static const int given_up[] = { PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_CAP_AMBIENT };
	int r = allow_when(c, "capset", 1, (struct scmp_arg_cmp[]){ LOW(2, JAIL_MARK) });
	if (r == 0)
		r = allow_when(c, "unshare", 2,
			(struct scmp_arg_cmp[]){ LOW(0, CLONE_NEWCGROUP), LOW(1, JAIL_MARK) });
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(kinds); i++)
		r = allow_when(c, "setns", 2,
			(struct scmp_arg_cmp[]){ LOW(1, (uint64_t)kinds[i]), LOW(2, JAIL_MARK) });
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(given_up); i++)
		r = allow_when(c, "prctl", 2,
			(struct scmp_arg_cmp[]){
				LOW(0, (uint64_t)given_up[i]), LOW(5, JAIL_MARK) });
	return r;
}

/*
 * Changes of files, but not who reads or opens them: the inodes of the system's files are the host's and all sessions', and every open of /usr/bin/… on the
 * machine would be told. That a file of the system has changed can be seen by stat() as well.
 */
static int add_watches(scmp_filter_ctx c)
{
	return when_bit(c, SCMP_ACT_ALLOW, "inotify_add_watch", 2,
		IN_ACCESS | IN_OPEN | IN_CLOSE_NOWRITE, false);
}

/*
 * Reads and writes with flags. Not RWF_NOWAIT, which tells what is in the page cache: which files of the system the machine and other sessions use. Nor
 * flags that are newer than this list, such as RWF_DONTCACHE, which reads from the disk each time.
 */
static int add_flagged_io(scmp_filter_ctx c)
{
	enum { NOWAIT = 8, KNOWN = 1 | 2 | 4 | 16 /* HIPRI, DSYNC, SYNC, APPEND */ };
	static const char *const calls[] = { "preadv2", "pwritev2" };
	struct scmp_arg_cmp known = SCMP_CMP(5, SCMP_CMP_MASKED_EQ, ~(uint32_t)KNOWN, 0);
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(calls); i++) {
		r = when_bit(c, SCMP_ACT_ERRNO(EOPNOTSUPP), calls[i], 5, NOWAIT, true);
		if (r == 0)
			r = allow_when(c, calls[i], 1, &known);
	}
	return r;
}

/* mkfifo(): a mknod that makes no device. */
static int add_fifo(scmp_filter_ctx c)
{
	struct scmp_arg_cmp path = SCMP_CMP(1, SCMP_CMP_MASKED_EQ, S_IFMT, S_IFIFO);
	struct scmp_arg_cmp at = SCMP_CMP(2, SCMP_CMP_MASKED_EQ, S_IFMT, S_IFIFO);
	int r = number("mknod") < 0
			? 0
			: seccomp_rule_add_array(c, SCMP_ACT_ALLOW, number("mknod"), 1, &path);
	return r < 0 ? r : seccomp_rule_add_array(c, SCMP_ACT_ALLOW, number("mknodat"), 1, &at);
}

/* Starting programs. A file in memory lies on no mount that could be noexec: where only the system's programs may be started, it must
 * be sealed against execution at birth (Linux 6.3), else it is as on a kernel without such files. by_kernel: in this jail the kernel seals
 * those that do not say (vm.memfd_noexec), so that only asking for an executable one is refused. */
static int add_exec(scmp_filter_ctx c, enum jail_exec exec, bool by_kernel)
{
	enum { HUGE = 4, NOEXEC_SEAL = 8, EXECUTABLE = 16 };
	struct scmp_arg_cmp plain = SCMP_CMP(1, SCMP_CMP_MASKED_EQ, EXECUTABLE | HUGE, 0);
	struct scmp_arg_cmp sealed = SCMP_CMP(
		1, SCMP_CMP_MASKED_EQ, NOEXEC_SEAL | HUGE, NOEXEC_SEAL);
	struct scmp_arg_cmp open = SCMP_CMP(1, SCMP_CMP_MASKED_EQ, NOEXEC_SEAL | HUGE, 0);
	int memfd = number("memfd_create"), r = 0;
	if (exec != JAIL_EXEC_NONE)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, number("execve"), 0);
	if (r == 0 && exec == JAIL_EXEC_ANY)
		return when_bit(c, SCMP_ACT_ALLOW, "memfd_create", 1, HUGE, false);
	if (r == 0 && by_kernel)
		return seccomp_rule_add_array(c, SCMP_ACT_ALLOW, memfd, 1, &plain);
	if (r == 0)
		r = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, memfd, 1, &sealed);
	if (r == 0)
		r = seccomp_rule_add_array(c, SCMP_ACT_ERRNO(ENOSYS), memfd, 1, &open);
	return r;
}

/* kill(1): the filter language has no "low 32 bits are not 1", so such refusals are checks of their own in front (see filter_front.c). */
static int add_rules(scmp_filter_ctx c, enum jail_exec exec, enum jail_net net, bool sealed)
{
	struct scmp_arg_cmp no_namespaces = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, NAMESPACES, 0);
	int r = add_simple(c, SCMP_ACT_ALLOW, allowed, ARRAY_LEN(allowed));
	if (r == 0)
		r = add_simple(c, SCMP_ACT_ERRNO(ENOSYS), missing, ARRAY_LEN(missing));
	if (r == 0)
		r = add_simple(c, SCMP_ACT_ERRNO(0), done_already, ARRAY_LEN(done_already));
	if (r == 0)
		r = add_simple(c, SCMP_ACT_ALLOW, filter_signals, FILTER_SIGNALS);
	if (r == 0)
		r = add_memory(c);
	if (r == 0)
		r = add_messages(c, net);
	if (r == 0)
		r = add_listed(c);
	if (r == 0)
		r = add_socket_options(c, net);
	if (r == 0 && net != JAIL_NET_NONE)
		r = add_inet(c);
	if (r == 0)
		r = add_fifo(c);
	if (r == 0)
		r = add_watches(c);
	if (r == 0)
		r = add_flagged_io(c);
	if (r == 0)
		r = add_exec(c, exec, sealed);
	if (r == 0)
		r = add_moving(c);
	if (r == 0)
		r = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, number("clone"), 1, &no_namespaces);
	return r;
}

/* The program libseccomp makes of the rules. */
static int export(enum jail_exec exec, enum jail_net net, bool sealed, struct filter *ret)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	_cleanup_fd_ int fd = memfd_create("filter", MFD_CLOEXEC);
	if (!c || fd < 0) {
		seccomp_release(c);
		return -ENOMEM;
	}
	seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* a tree, not a list: ten steps for any call */
	seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	int r = add_rules(c, exec, net, sealed);
	if (r == 0)
		r = seccomp_export_bpf(c, fd);
	seccomp_release(c);
	off_t size = r < 0 ? r : lseek(fd, 0, SEEK_END);
	if (size <= 0)
		return r < 0 ? r : -EIO;
	ret->code = malloc((size_t)size);
	ret->len = (unsigned short)((size_t)size / sizeof(*ret->code));
	return ret->code && pread(fd, ret->code, (size_t)size, 0) == (ssize_t)size ? 0 : -EIO;
}

static int build(enum jail_exec exec, enum jail_net net, bool sealed, struct filter *ret)
{
	struct filter rest = { 0 }, whole = { 0 };
	int r = export(exec, net, sealed, &rest);
	if (r == 0)
		r = filter_put_in_front(&rest, &whole);
	filter_finish(&rest);
	if (r == 0)
		*ret = whole;
	return r;
}

int filter_build(enum jail_exec exec, enum jail_net net, struct filter *ret)
{
	return build(exec, net, false, ret);
}

int filter_build_sealed(enum jail_exec exec, enum jail_net net, struct filter *ret)
{
	return build(exec, net, true, ret);
}
