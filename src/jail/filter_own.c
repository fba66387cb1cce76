#include "jail/filter_own.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#define OLD(...) __VA_ARGS__ /* calls that newer architectures never had */
#else
#define ARCH AUDIT_ARCH_AARCH64
#define OLD(...)
#endif

/* Younger than Debian 12's headers, or only a number in them. */
enum {
	NR_LANDLOCK_CREATE = 444,
	NR_LANDLOCK_ADD = 445,
	NR_LANDLOCK_RESTRICT = 446,
	NR_FACCESSAT2 = 439,
	NR_EPOLL_PWAIT2 = 441
};

/* What any C program does to live, to wait and to die. */
static const int basics[] = { SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_close, SYS_brk,
	SYS_mremap, SYS_munmap, SYS_madvise, SYS_futex, SYS_sched_yield, SYS_rt_sigaction,
	SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall, SYS_getpid,
	SYS_gettid, SYS_getppid, SYS_tgkill, SYS_exit, SYS_exit_group, SYS_clock_gettime,
	SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_getrandom, SYS_ppoll, SYS_wait4,
	SYS_waitid, SYS_kill, SYS_fstat, SYS_lseek, SYS_rseq, SYS_set_robust_list,
	SYS_sched_getaffinity, OLD(SYS_poll, SYS_time) };

/*
 * Sockets, files below directories it holds, processes by pidfd. No way to start a program, and
 * none to become somebody else but for files: what it writes into a session is written as that
 * session's user.
 */
static const int daemon_calls[] = {
	SYS_openat, SYS_openat2, SYS_newfstatat, SYS_statx, SYS_fstatfs, SYS_statfs, SYS_readlinkat,
	SYS_getdents64, SYS_mkdirat, SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_linkat,
	SYS_symlinkat, SYS_ftruncate, SYS_truncate, SYS_fallocate, SYS_fchown, SYS_fchownat,
	SYS_setfsuid, SYS_setfsgid, SYS_fchmod, SYS_fchmodat, SYS_utimensat, SYS_faccessat,
	NR_FACCESSAT2, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_fsync, SYS_fdatasync,
	SYS_flock, SYS_fadvise64, SYS_getcwd, SYS_umask, SYS_dup, SYS_dup3, SYS_pipe2, SYS_fcntl,
	/* metadata of files that E2B's clients upload */
	SYS_fgetxattr, SYS_fsetxattr, SYS_eventfd2, SYS_epoll_create1, SYS_epoll_ctl,
	SYS_epoll_pwait, NR_EPOLL_PWAIT2, SYS_timerfd_create, SYS_timerfd_settime, SYS_memfd_create,
	SYS_inotify_init1, SYS_inotify_add_watch, SYS_inotify_rm_watch, SYS_socketpair, SYS_bind,
	SYS_listen, SYS_accept, SYS_accept4, SYS_connect, SYS_getsockname, SYS_getpeername,
	SYS_getsockopt, SYS_setsockopt, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg,
	SYS_shutdown, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_getsid, SYS_getuid, SYS_geteuid,
	SYS_getgid, SYS_getegid, SYS_getrusage, SYS_getrlimit, SYS_setrlimit, SYS_prlimit64,
	SYS_sysinfo, SYS_uname, SYS_set_tid_address, SYS_getcpu, SYS_shmat, SYS_shmdt, SYS_shmctl,
	SYS_shmget,
	OLD(SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_mkdir, SYS_rmdir,
		SYS_unlink, SYS_rename, SYS_pipe, SYS_dup2, SYS_epoll_wait, SYS_eventfd, SYS_select)
};

/*
 * What it does itself, what a guest does on its way into the jail, and all that a guest may do
 * there: its own filter is the narrow one.
 */
static const int zygote_calls[] = { SYS_mmap, SYS_mprotect, SYS_clone, SYS_clone3, SYS_setns,
	SYS_unshare, SYS_setgroups, SYS_setresuid, SYS_setresgid, SYS_capset, SYS_prctl,
	SYS_seccomp, NR_LANDLOCK_CREATE, NR_LANDLOCK_ADD, NR_LANDLOCK_RESTRICT,
	SYS_pidfd_send_signal, SYS_pidfd_open, SYS_execve, SYS_socket, SYS_socketpair, SYS_ioctl,
	SYS_fcntl, SYS_prlimit64, SYS_personality, SYS_mknodat, SYS_memfd_create, SYS_msync,
	SYS_mlock, SYS_munlock, SYS_inotify_init1, SYS_inotify_add_watch, SYS_inotify_rm_watch,
	SYS_mincore, SYS_membarrier, SYS_get_robust_list, SYS_set_tid_address,
	SYS_sched_setaffinity, SYS_sched_getparam, SYS_sched_getscheduler,
	SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_sched_rr_get_interval,
	SYS_getcpu, SYS_clock_getres, SYS_times, SYS_getitimer, SYS_setitimer, SYS_timer_create,
	SYS_timer_settime, SYS_timer_gettime, SYS_timer_delete, SYS_timer_getoverrun,
	SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_openat, SYS_close_range,
	SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2,
	SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_faccessat, SYS_getdents64,
	SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_readlinkat, SYS_mkdirat, SYS_renameat, SYS_renameat2,
	SYS_unlinkat, SYS_symlinkat, SYS_linkat, SYS_fchmod, SYS_fchmodat, SYS_utimensat,
	SYS_truncate, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_flock, SYS_umask,
	SYS_dup, SYS_dup3, SYS_pipe2, SYS_fadvise64, SYS_readahead, SYS_getxattr, SYS_lgetxattr,
	SYS_fgetxattr, SYS_listxattr, SYS_llistxattr, SYS_flistxattr, SYS_pselect6,
	SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_signalfd4, SYS_connect,
	SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_getsockname, SYS_getpeername,
	SYS_getsockopt, SYS_setsockopt, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg,
	SYS_shutdown, SYS_rt_sigpending, SYS_rt_sigsuspend, SYS_rt_sigtimedwait,
	SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_tkill, SYS_getpgid, SYS_setpgid, SYS_getsid,
	SYS_setsid, SYS_getpriority, SYS_setpriority, SYS_getuid, SYS_geteuid, SYS_getgid,
	SYS_getegid, SYS_getgroups, SYS_getresuid, SYS_getresgid, SYS_getrusage, SYS_getrlimit,
	SYS_setrlimit, SYS_sysinfo, SYS_uname, SYS_shmget, SYS_shmat, SYS_shmdt, SYS_shmctl,
	OLD(SYS_fork, SYS_vfork, SYS_arch_prctl, SYS_open, SYS_creat, SYS_stat, SYS_lstat,
		SYS_access, SYS_getdents, SYS_readlink, SYS_mkdir, SYS_rmdir, SYS_rename,
		SYS_unlink, SYS_symlink, SYS_link, SYS_chmod, SYS_utime, SYS_utimes, SYS_futimesat,
		SYS_dup2, SYS_pipe, SYS_select, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd,
		SYS_signalfd, SYS_inotify_init, SYS_pause, SYS_alarm, SYS_getpgrp, SYS_mknod) };

/*
 * It makes namespaces and writes their maps; the rest is what an init does before it loads its own
 * filter.
 */
static const int jailer_calls[] = { SYS_mmap, SYS_mprotect, SYS_clone, SYS_clone3, SYS_setns,
	SYS_unshare, SYS_openat, SYS_pipe2, SYS_socketpair, SYS_sendmsg, SYS_recvmsg,
	SYS_pidfd_send_signal, SYS_setgroups, SYS_setresuid, SYS_setresgid, SYS_capset, SYS_prctl,
	SYS_seccomp, SYS_mount, SYS_sethostname, SYS_fcntl, SYS_dup3, SYS_close_range,
	SYS_signalfd4, SYS_geteuid, SYS_socket, SYS_ioctl, SYS_setsockopt, SYS_bind, SYS_listen,
	SYS_unlinkat, SYS_symlinkat, SYS_mkdirat, SYS_newfstatat, SYS_setitimer, SYS_pwrite64,
	SYS_ftruncate, SYS_getdents64, SYS_sysinfo, SYS_sendto,
	OLD(SYS_open, SYS_dup2, SYS_pipe, SYS_unlink, SYS_mkdir) };

/*
 * Reaping and sweeping, a display's socket and cookie in the session's own /tmp, and the files of
 * the session's /proc.
 */
static const int init_calls[] = { SYS_signalfd4, SYS_sendmsg, SYS_recvmsg, SYS_openat, SYS_mkdirat,
	SYS_unlinkat, SYS_symlinkat, SYS_bind, SYS_listen, SYS_fcntl, SYS_pwrite64, SYS_ftruncate,
	SYS_getdents64, SYS_newfstatat, SYS_sysinfo, SYS_sendto, OLD(SYS_mkdir, SYS_unlink) };

/* Looking at processes, and writing their numbers into files that were sent. */
static const int mover_calls[] = { SYS_mmap, SYS_openat, SYS_newfstatat, SYS_readlinkat,
	SYS_sendmsg, SYS_recvmsg, OLD(SYS_open, SYS_stat) };

#if defined(__SANITIZE_ADDRESS__)
/* The leak checker stops a copy of the process from a thread of its own at the end. */
static const int sanitizer_calls[] = { SYS_mmap, SYS_mprotect, SYS_clone, SYS_ptrace, SYS_prctl,
	SYS_openat, SYS_readlinkat, SYS_pipe2, SYS_getdents64, SYS_newfstatat,
	OLD(SYS_open, SYS_readlink, SYS_fork, SYS_pipe, SYS_arch_prctl) };
#else
static const int sanitizer_calls[] = { -1 };
#endif

/* These calls fail with ENOSYS, as on an older kernel: libc and libuv then use other calls. */
static const int missing[] = { SYS_io_uring_setup, SYS_copy_file_range };

/*
 * A call of the daemon's that passes by one argument: when it is one of the values, or (no_bits)
 * when it has none of those bits.
 */
struct checked {
	int call;
	unsigned argument, n;
	uint32_t no_bits, values[8];
};
static const struct checked daemon_checked[] = {
	{ SYS_socket, 0, 3, 0, { AF_UNIX, AF_INET, AF_INET6 } },
	{ SYS_ioctl, 1, 7, 0,
		{ FIONBIO, FIOCLEX, FIONCLEX, FIONREAD, TCGETS, TIOCGWINSZ, TIOCSWINSZ } },
	{ SYS_prctl, 0, 3, 0, { PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE } },
	/* No executable memory, which an attacker needs after an overflow. */
	{ SYS_mmap, 2, 0, PROT_EXEC, { 0 } },
	{ SYS_mprotect, 2, 0, PROT_EXEC, { 0 } },
};
/* An init signals by -1 (everybody else in its namespace) only, and maps nothing executable. */
static const struct checked init_checked[] = {
	/*
	 * AF_INET and AF_INET6 for JAIL_SOCKETS: it may make them, but neither connect nor accept
	 */
	{ SYS_socket, 0, 3, 0, { AF_UNIX, AF_INET, AF_INET6 } },
	{ SYS_mmap, 2, 0, PROT_EXEC, { 0 } },
};

static const struct {
	const int *calls;
	size_t n_calls;
	const struct checked *checked;
	size_t n_checked;
} owners[FILTER_OWNERS] = {
	[FILTER_DAEMON] = { daemon_calls, ARRAY_LEN(daemon_calls), daemon_checked,
		ARRAY_LEN(daemon_checked) },
	[FILTER_ZYGOTE] = { zygote_calls, ARRAY_LEN(zygote_calls), NULL, 0 },
	[FILTER_JAILER] = { jailer_calls, ARRAY_LEN(jailer_calls), NULL, 0 },
	[FILTER_MOVER] = { mover_calls, ARRAY_LEN(mover_calls), NULL, 0 },
	[FILTER_INIT] = { init_calls, ARRAY_LEN(init_calls), init_checked,
		ARRAY_LEN(init_checked) },
};

/* ---- writing the program ------------------------------------------------------------ */

enum { PROGRAM_MAX = 1024 };

struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned short len;
};

static void put(struct program *p, struct sock_filter i)
{
	if (p->len < PROGRAM_MAX)
		p->code[p->len++] = i;
}

#define LOAD(at) ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at))
#define ANSWER(action) ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action))
#define JUMP(op, k, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | (op) | BPF_K, k, yes, no))

static void put_head(struct program *p)
{
	put(p, LOAD(offsetof(struct seccomp_data, arch)));
	put(p, JUMP(BPF_JEQ, ARCH, 1, 0));
	put(p, ANSWER(SECCOMP_RET_KILL_PROCESS));
	put(p, LOAD(offsetof(struct seccomp_data, nr)));
#ifdef __x86_64__
	put(p, JUMP(BPF_JGE, 0x40000000, 0, 1)); /* x32 */
	put(p, ANSWER(SECCOMP_RET_KILL_PROCESS));
#endif
}

/*
 * The kernel remembers which calls a filter always allows, so a long list costs nothing: pairs, one
 * after another.
 */
static void put_calls(struct program *p, const int *calls, size_t n, uint32_t action)
{
	for (size_t i = 0; i < n; i++) {
		if (calls[i] < 0)
			continue;
		put(p, JUMP(BPF_JEQ, (uint32_t)calls[i], 0, 1));
		put(p, ANSWER(action));
	}
}

/* Of an argument the low half counts, as for the kernel: all of these are ints. */
static void put_checked(struct program *p, const struct checked *c)
{
	unsigned body = 3 + (c->n ? c->n : 1); /* load, comparisons, yes, no */
	put(p, JUMP(BPF_JEQ, (uint32_t)c->call, 0, (unsigned char)body));
	put(p, LOAD((uint32_t)(offsetof(struct seccomp_data, args) +
			       c->argument * sizeof(uint64_t))));
	for (unsigned i = 0; i < c->n; i++)
		put(p, JUMP(BPF_JEQ, c->values[i], (unsigned char)(c->n - i), 0));
	if (!c->n)
		put(p, JUMP(BPF_JSET, c->no_bits, 0, 1));
	put(p, ANSWER(SECCOMP_RET_ERRNO | EPERM));
	put(p, ANSWER(SECCOMP_RET_ALLOW));
}

int filter_build_own(enum filter_owner owner, struct filter *ret)
{
	struct program *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	put_head(p);
	put_calls(p, sanitizer_calls, ARRAY_LEN(sanitizer_calls), SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < owners[owner].n_checked; i++)
		put_checked(p, &owners[owner].checked[i]);
	put_calls(p, basics, ARRAY_LEN(basics), SECCOMP_RET_ALLOW);
	put_calls(p, owners[owner].calls, owners[owner].n_calls, SECCOMP_RET_ALLOW);
	put_calls(p, missing, ARRAY_LEN(missing), SECCOMP_RET_ERRNO | ENOSYS);
	put(p, ANSWER(SECCOMP_RET_ERRNO | EPERM));
	unsigned short len = p->len;
	struct sock_filter *code = len < PROGRAM_MAX ? realloc(p, len * sizeof(*code)) : NULL;
	if (!code) {
		free(p);
		return -E2BIG;
	}

	*ret = (struct filter){ .code = code, .len = len };
	return 0;
}

static int load_for_good(const struct filter *f)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : filter_load(f);
}

int filter_enter_own(enum filter_owner owner)
{
	struct filter f = { 0 };
	int r = filter_build_own(owner, &f);
	if (r == 0)
		r = load_for_good(&f);
	filter_finish(&f);
	return r;
}

int filter_refuse_rings(void)
{
	struct sock_filter code[] = {
		LOAD(offsetof(struct seccomp_data, nr)),
		JUMP(BPF_JEQ, SYS_io_uring_setup, 0, 1),
		ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	return load_for_good(
		&(struct filter){ .code = code, .len = sizeof(code) / sizeof(code[0]) });
}
