#include "network/proxy_sandbox.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "jail/jail.h"
#include "jail/landlock.h"
#include "jail/privileges.h"

/* clang-format off */
static const char *const allowed[] = {
	"read", "write", "readv", "writev", "recvfrom", "sendto", "recvmsg", "sendmsg", "sendmmsg",
	"recvmmsg", "close", "shutdown", "accept4", "connect",
	"getsockname", "getpeername", "getsockopt", "setsockopt", "epoll_ctl", "epoll_wait",
	"epoll_pwait", "poll", "ppoll", "futex",
	/* getaddrinfo(): resolv.conf, hosts, its modules */
	"openat", "open", "fstat", "stat", "newfstatat", "statx", "lseek", "pread64", "access",
	"readlink", "uname", "bind", "getuid", "geteuid",
	"getgid", "getegid", "getpid", "gettid", "ioctl", "fcntl", "getdents64",
	/* memory, time, threads that are there */
	"brk", "mmap", "munmap", "mprotect", "madvise", "mremap", "clock_gettime",
	"clock_nanosleep", "gettimeofday", "time", "getrandom", "sched_yield",
	"rt_sigprocmask", "rt_sigreturn", "rt_sigaction", "restart_syscall", "exit", "exit_group",
	"tgkill", "set_robust_list", "rseq",
};
/* clang-format on */

/*
 * No unix sockets (nscd and the like are done without), no netlink: getaddrinfo() has another way.
 */
static int add_sockets(scmp_filter_ctx c)
{
	static const int families[] = { AF_INET, AF_INET6 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(families); i++) {
		struct scmp_arg_cmp family = SCMP_CMP(
			0, SCMP_CMP_MASKED_EQ, 0xffffffffU, (uint64_t)families[i]);
		struct scmp_arg_cmp stream = SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM);
		struct scmp_arg_cmp datagram = SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM);
		r = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
			(struct scmp_arg_cmp[]){ family, stream });
		if (r == 0)
			r = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
				(struct scmp_arg_cmp[]){ family, datagram });
	}

	return r;
}

int confine_calls(void)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!c)
		return -ENOMEM;
	seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	seccomp_attr_set(c, SCMP_FLTATR_CTL_TSYNC, 1); /* the resolver's threads as well */
	int r = add_sockets(c);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(allowed); i++) {
		int nr = seccomp_syscall_resolve_name(allowed[i]);
		r = nr < 0 ? 0 : seccomp_rule_add(c, SCMP_ACT_ALLOW, nr, 0);
	}

	if (r == 0)
		r = seccomp_load(c);
	seccomp_release(c);
	return r;
}

int proxy_sandbox_enter(void)
{
	const char *step = "";
	struct rlimit files;
	int r = 0;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}

	/*
	 * An id of its own below the sessions': neither root nor anybody whose files it could
	 * touch.
	 */
	if (geteuid() == 0 && (r = privileges_become(JAIL_HOST_ID - 1, &step)) < 0)
		return r;
	/*
	 * An ordinary user has no capabilities that could be dropped, and may not drop the bounding
	 * set either.
	 */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	/* After the change of ids, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return landlock_read_only(&step);
}
