/*
 * The filters of our own processes, number by number on every ABI through their programs, and once
 * for real.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf.h"
#include "jail/filter_own.h"
#include "tap.h"

enum { NUMBERS = 1024 };

static struct filter filters[FILTER_OWNERS];
static const uint64_t zeros[6];

static uint32_t with(enum filter_owner o, long call, unsigned argument, uint64_t value)
{
	uint64_t args[6] = { 0 };
	args[argument] = value;
	return bpf_answer(&filters[o], BPF_NATIVE, (uint32_t)call, args);
}

static uint32_t plain(enum filter_owner o, long call)
{
	return bpf_answer(&filters[o], BPF_NATIVE, (uint32_t)call, zeros);
}

/* Nothing but the three answers; nothing at all on another ABI; nothing newer than the lists. */
static void every_number(enum filter_owner o)
{
	static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0 };
	unsigned allowed = 0, odd = 0, alive = 0;
	for (uint32_t nr = 0; nr < NUMBERS; nr++) {
		uint32_t a = plain(o, nr);
		allowed += a == SECCOMP_RET_ALLOW;
		odd += a != SECCOMP_RET_ALLOW && a != (SECCOMP_RET_ERRNO | EPERM) &&
		       a != (SECCOMP_RET_ERRNO | ENOSYS);
		odd += nr > FILTER_NEWEST && a == SECCOMP_RET_ALLOW;
		for (unsigned i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
			alive += bpf_answer(&filters[o], foreign[i], nr, zeros) !=
				 SECCOMP_RET_KILL_PROCESS;
		alive += BPF_NATIVE == AUDIT_ARCH_X86_64 &&
			 plain(o, 0x40000000 | nr) != SECCOMP_RET_KILL_PROCESS;
	}
	printf("# filter %d: %u calls, %u instructions\n", (int)o, allowed, filters[o].len);
	OK(allowed > 20 && odd == 0 && alive == 0);
}

static void bad(int owner, long call)
{
	printf("# filter %d lets call %ld through\n", owner, call);
	OK(0);
}

/* No filter of ours lets through what no process of ours does after its start. */
static void never_any(void)
{
	static const long calls[] = { SYS_ptrace, SYS_pivot_root, SYS_chroot, SYS_bpf, SYS_keyctl,
		SYS_add_key, SYS_request_key, SYS_perf_event_open, SYS_userfaultfd,
		SYS_process_vm_readv, SYS_process_vm_writev, SYS_splice, SYS_tee, SYS_vmsplice,
		SYS_io_setup, SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module,
		SYS_open_by_handle_at, SYS_reboot, SYS_swapon, SYS_settimeofday, SYS_clock_settime,
		SYS_kcmp, SYS_move_pages, SYS_pidfd_getfd, SYS_execveat, SYS_quotactl, SYS_acct,
		SYS_syslog, SYS_umount2, SYS_move_mount, SYS_fsopen, SYS_open_tree,
		SYS_process_madvise };
	for (int o = 0; o < FILTER_OWNERS; o++)
		for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			if (plain((enum filter_owner)o, calls[i]) == SECCOMP_RET_ALLOW &&
				!(calls[i] == SYS_ptrace && BPF_SANITIZED))
				bad(o, calls[i]);
	OK(plain(FILTER_DAEMON, SYS_io_uring_setup) == (SECCOMP_RET_ERRNO | ENOSYS));
}

static void never_each(void)
{
	static const struct {
		enum filter_owner owner;
		long call;
	} out[] = { { FILTER_DAEMON, SYS_execve }, { FILTER_DAEMON, SYS_clone3 },
		{ FILTER_DAEMON, SYS_mount }, { FILTER_DAEMON, SYS_setns },
		{ FILTER_DAEMON, SYS_unshare }, { FILTER_DAEMON, SYS_setresuid },
		{ FILTER_DAEMON, SYS_capset }, { FILTER_DAEMON, SYS_seccomp },
		{ FILTER_DAEMON, SYS_mknodat }, { FILTER_ZYGOTE, SYS_mount },
		{ FILTER_ZYGOTE, SYS_sethostname }, { FILTER_ZYGOTE, SYS_fchownat },
		{ FILTER_ZYGOTE, SYS_setxattr }, { FILTER_JAILER, SYS_execve },
		{ FILTER_JAILER, SYS_connect }, { FILTER_JAILER, SYS_mknodat },
		{ FILTER_INIT, SYS_execve }, { FILTER_INIT, SYS_clone3 },
		{ FILTER_INIT, SYS_mount }, { FILTER_INIT, SYS_setns },
		{ FILTER_INIT, SYS_unshare }, { FILTER_INIT, SYS_openat2 },
		{ FILTER_INIT, SYS_socket }, { FILTER_INIT, SYS_seccomp },
		{ FILTER_INIT, SYS_setresuid }, { FILTER_INIT, SYS_memfd_create } };
	for (unsigned i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		if (plain(out[i].owner, out[i].call) == SECCOMP_RET_ALLOW)
			bad((int)out[i].owner, out[i].call);
	OK(1);
}

/* The low half of an int decides, whatever lies above. */
static void arguments(void)
{
	const uint64_t high = 0xdeadbeef00000000;
	const uint32_t no = SECCOMP_RET_ERRNO | EPERM;
	OK(with(FILTER_INIT, SYS_socket, 0, AF_UNIX) == SECCOMP_RET_ALLOW &&
		with(FILTER_INIT, SYS_socket, 0, AF_INET) == SECCOMP_RET_ALLOW &&
		with(FILTER_INIT, SYS_socket, 0, AF_NETLINK) == no &&
		plain(FILTER_INIT, SYS_connect) == no && plain(FILTER_INIT, SYS_accept4) == no);
	OK(with(FILTER_DAEMON, SYS_socket, 0, AF_INET6) == SECCOMP_RET_ALLOW &&
		with(FILTER_DAEMON, SYS_socket, 0, AF_UNIX) == SECCOMP_RET_ALLOW);
	OK(with(FILTER_DAEMON, SYS_socket, 0, AF_NETLINK) == no &&
		with(FILTER_DAEMON, SYS_socket, 0, AF_PACKET) == no &&
		with(FILTER_DAEMON, SYS_socket, 0, high | AF_ALG) == no);
	OK(with(FILTER_DAEMON, SYS_ioctl, 1, FIONBIO) == SECCOMP_RET_ALLOW &&
		with(FILTER_DAEMON, SYS_ioctl, 1, high | TIOCSTI) == no);
	if (!BPF_SANITIZED) {
		OK(with(FILTER_DAEMON, SYS_mmap, 2, PROT_READ | PROT_WRITE) == SECCOMP_RET_ALLOW &&
			with(FILTER_DAEMON, SYS_mmap, 2, 7) == no);
		OK(with(FILTER_DAEMON, SYS_mprotect, 2, high | PROT_EXEC) == no &&
			with(FILTER_DAEMON, SYS_prctl, 0, PR_SET_DUMPABLE) == no);
	}
}

/* What a guest may do, its zygote's filter must let through: both apply to it. */
static void guests_fit(void)
{
	for (int i = 0; i < 2 * JAIL_EXEC_COUNT; i++) {
		struct filter guest = { 0 };
		int good = filter_build((enum jail_exec)(i / 2),
				   i % 2 ? JAIL_NET_LOOPBACK : JAIL_NET_NONE, &guest) == 0;
		for (uint32_t nr = 0; good && nr <= FILTER_NEWEST; nr++)
			if (bpf_answer(&guest, BPF_NATIVE, nr, zeros) == SECCOMP_RET_ALLOW &&
				plain(FILTER_ZYGOTE, nr) != SECCOMP_RET_ALLOW) {
				printf("# call %u\n", nr);
				good = 0;
			}
		OK(good);
		filter_finish(&guest);
	}
}

/* In the kernel: the daemon's. */
static void loaded(void)
{
	int status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		char *argv[] = { (char *)"/bin/true", NULL };
		int bad = filter_enter_own(FILTER_DAEMON) < 0;
		bad |= (socket(AF_INET, SOCK_STREAM, 0) < 0) << 1;
		bad |= (socket(AF_NETLINK, SOCK_RAW, 0) >= 0 || errno != EPERM) << 2;
		bad |= (execv(argv[0], argv) == 0 || errno != EPERM) << 3;
		void *p = malloc(1 << 20);
		bad |= !p << 4;
		/* asking is not on the list */
		bad |= (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) << 5;
		_exit(bad);
	}
	waitpid(pid, &status, 0);
	printf("# status %x\n", (unsigned)status);
	OK(WIFEXITED(status) && (WEXITSTATUS(status) & ~(BPF_SANITIZED ? 32 : 0)) == 0);
}

/* A ring that libuv makes with its loop: none, and nothing else is touched. */
static void no_rings(void)
{
	int status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		char params[256] = { 0 };
		int bad = filter_refuse_rings() < 0;
		bad |= (syscall(SYS_io_uring_setup, 4, params) >= 0 || errno != ENOSYS) << 1;
		bad |= (socket(AF_NETLINK, SOCK_RAW, 0) < 0) << 2;
		_exit(bad);
	}
	waitpid(pid, &status, 0);
	printf("# status %x\n", (unsigned)status);
	OK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	for (int o = 0; o < FILTER_OWNERS; o++)
		OK(filter_build_own((enum filter_owner)o, &filters[o]) == 0);
	for (int o = 0; o < FILTER_OWNERS; o++)
		every_number((enum filter_owner)o);
	never_any();
	never_each();
	arguments();
	guests_fit();
	if (prctl(PR_GET_SECCOMP) >= 0) {
		loaded();
		no_rings();
	} else {
		printf("# not loaded: this is an emulator, which has no filters (tests/arm64/run)\n");
	}
	for (int o = 0; o < FILTER_OWNERS; o++)
		filter_finish(&filters[o]);
	return tap_done();
}
