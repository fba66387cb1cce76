#include "display/xserver/display_filters.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

static const char *const common[] = { "read", "write", "readv", "writev", "pread64", "close",
	"lseek", "fstat", "newfstatat", "stat", "poll", "ppoll", "select", "pselect6", "recvmsg",
	"sendmsg", "recvfrom", "sendto", "getsockopt", "getsockname", "getpeername", "shutdown",
	"mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "futex", "sched_yield",
	"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "getpid",
	"gettid", "getuid", "geteuid", "getgid", "getegid", "getrandom", "rt_sigaction",
	"rt_sigprocmask", "rt_sigreturn", "restart_syscall", "exit", "exit_group", "fcntl",
	"memfd_create", "ftruncate", "getdents64", "rseq", "sched_getaffinity" };

/*
 * Files are opened for reading only: fonts, keyboard rules, the cookie; processes of the session.
 */
static const char *const server_calls[] = { "accept", "accept4", "setsockopt", "epoll_create",
	"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "setitimer", "getitimer",
	"times", "uname", "shmat", "shmdt", "shmctl", "shmget", "access", "readlink", "statfs",
	"fstatfs", "umask", "sysinfo", "eventfd2", "fallocate", "dup", "dup2", "lstat", "statx",
	"setresuid" /* to the user it is: on its way to the cookie */ };

/* An X server's start, and what sh and xkbcomp need. */
static const char *const plain_calls[] = { "execve", "vfork", "fork", "wait4", "waitid", "pipe",
	"pipe2", "dup3", "openat", "open", "creat", "unlink", "unlinkat", "link", "linkat",
	"rename", "mkdir", "mkdirat", "chmod", "fchmod", "getdents", "getcwd", "chdir",
	"arch_prctl", "set_tid_address", "set_robust_list", "prlimit64", "getrlimit", "setrlimit",
	"getppid", "getpgrp", "setgid", "setuid", "setresgid", "setreuid", "setregid",
	"sigaltstack", "faccessat", "faccessat2", "readlinkat", "pwrite64", "fsync", "ioctl",
	"getpgid", "setpgid", "alarm", "rt_sigsuspend", "rt_sigpending", "getgroups",
	"sched_getparam", "sched_getscheduler", "socketpair", "capget", "prctl", "utime",
	"utimensat" };

/*
 * ffmpeg: threads of its own, files it opens by itself; no processes, no sockets, no signals to
 * others.
 */
static const char *const film_calls[] = { "execve", "openat", "open", "access", "faccessat",
	"faccessat2", "readlink", "readlinkat", "statx", "lstat", "pwrite64", "pipe2", "eventfd2",
	"arch_prctl", "set_tid_address", "set_robust_list", "prlimit64", "getrlimit", "sigaltstack",
	"ioctl", "uname", "getcwd", "sysinfo", "sched_setaffinity", "sched_getparam",
	"sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min", "getrusage",
	"times", "fadvise64", "getppid", "prctl", "getcpu" };

static const char *const screen_calls[] = { "process_vm_readv", "setsockopt" };

enum { NAMESPACES = 0x7e020080, THREAD = 0x00010000 }; /* flags of clone */

static int allow(scmp_filter_ctx c, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int nr = seccomp_syscall_resolve_name(names[i]);
		int r = nr < 0 ? 0 : seccomp_rule_add(c, SCMP_ACT_ALLOW, nr, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int allow_reading_files(scmp_filter_ctx c)
{
	struct scmp_arg_cmp open_read = SCMP_CMP(
		1, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
	struct scmp_arg_cmp openat_read = SCMP_CMP(
		2, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
	int r = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, &openat_read);
	if (r == 0 && seccomp_syscall_resolve_name("open") >= 0)
		r = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, &open_read);
	return r;
}

/* Processes, not namespaces. clone3, whose flags a filter cannot see, is as on an older kernel. */
static int allow_plain(scmp_filter_ctx c)
{
	struct scmp_arg_cmp no_namespaces = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, NAMESPACES, 0);
	int r = allow(c, plain_calls, ARRAY_LEN(plain_calls));
	if (r == 0)
		r = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, &no_namespaces);
	return r == 0 ? seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS),
				seccomp_syscall_resolve_name("clone3"), 0)
		      : r;
}

/* Threads, not processes. */
static int allow_film(scmp_filter_ctx c)
{
	struct scmp_arg_cmp thread = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, THREAD | NAMESPACES, THREAD);
	int r = allow(c, film_calls, ARRAY_LEN(film_calls));
	if (r == 0)
		r = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, &thread);
	return r == 0 ? seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS),
				seccomp_syscall_resolve_name("clone3"), 0)
		      : r;
}

static int add_rules(scmp_filter_ctx c, enum display_process process, bool plain)
{
	int r = allow(c, common, ARRAY_LEN(common));
	if (r == 0 && process == DISPLAY_FILM)
		return allow_film(c);
	if (r == 0 && !plain)
		r = allow_reading_files(c);
	if (r == 0 && process == DISPLAY_SERVER)
		r = allow(c, server_calls, ARRAY_LEN(server_calls));
	if (r == 0 && plain)
		r = allow_plain(c);
	if (r == 0 && process == DISPLAY_SCREEN)
		r = allow(c, screen_calls, ARRAY_LEN(screen_calls));
	return r;
}

int display_filter_build(enum display_process process, bool plain, struct filter *ret)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	_cleanup_fd_ int fd = memfd_create("filter", MFD_CLOEXEC);
	if (!c || fd < 0) {
		seccomp_release(c);
		return -ENOMEM;
	}

	seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	int r = add_rules(c, process, plain);
	if (r == 0)
		r = seccomp_export_bpf(c, fd);
	seccomp_release(c);
	off_t size = r < 0 ? r : lseek(fd, 0, SEEK_END);
	if (size <= 0)
		return r < 0 ? r : -EIO;
	struct filter f = { .code = malloc((size_t)size),
		.len = (unsigned short)((size_t)size / sizeof(*f.code)) };
	if (!f.code || pread(fd, f.code, (size_t)size, 0) != (ssize_t)size) {
		filter_finish(&f);
		return -EIO;
	}

	*ret = f;
	return 0;
}
