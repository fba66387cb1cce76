/* A real jailer, a real jail: what a process that entered one can and cannot see. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/process.h"
#include "jail/jail.h"
#include "jail/landlock.h"
#include "real_jail.h"
#include "tap.h"

static int jailer = -1;

static int make(struct real_jail *j, uint64_t disk)
{
	struct jail_request q = { .serial = 9, .host_id = JAIL_HOST_ID + 5, .disk_bytes = disk };
	struct jail_answer a = { 0 };
	int r = real_jail_make(jailer, &q, j, &a);
	if (r)
		printf("# %s\n", a.text);
	return r;
}

/*
 * A helper stands in for the zygote: aiming at a jail changes where all later children of a process
 * are born.
 */
static int code_of(pid_t pid)
{
	int status;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int enter_and(struct real_jail *j, int (*check)(void))
{
	const char *step;
	if (jail_enter(j->init, JAIL_EXEC_SYSTEM, JAIL_NET_NONE, &step) < 0) {
		printf("# %s: %s\n", step, strerror(errno));
		fflush(stdout);
		return 99;
	}
	return check();
}

/* Runs check() inside the jail and returns its exit code; 98 when nothing can be started in it. */
static int inside(struct real_jail *j, int (*check)(void))
{
	fflush(stdout);
	pid_t helper = fork();
	if (helper == 0) {
		pid_t pid = jail_aim_children(j->init) < 0 ? -1 : fork();
		if (pid == 0)
			_exit(enter_and(j, check));
		_exit(pid < 0 ? 98 : code_of(pid));
	}
	return code_of(helper);
}

static int check_identity(void)
{
	char host[64], cwd[64];
	gethostname(host, sizeof(host));
	if (getuid() != JAIL_INNER_ID || getgid() != JAIL_INNER_ID || setuid(0) == 0)
		return 1;
	if (strcmp(host, "sandbox") || !getcwd(cwd, sizeof(cwd)) || strcmp(cwd, "/workspace"))
		return 2;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 3;
	return getpid() > 1 && getppid() == 0 ? 0 : 4;
}

static int check_files(void)
{
	static const char *const hidden[] = { "/root", "/etc/shadow", "/boot", "/proc/kcore",
		"/proc/sys", "/dev/mem", "/sys/kernel", "/sys/class", "/sys/fs",
		"/sys/devices/virtual", "/proc/interrupts", "/proc/cmdline",
		"/proc/sysrq-trigger" };
	for (unsigned i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (access(hidden[i], F_OK) == 0)
			return 1 + (int)i;
	if (open("/usr/x", O_CREAT | O_WRONLY, 0600) >= 0 ||
		open("/x", O_CREAT | O_WRONLY, 0600) >= 0)
		return 20;
	if (access("/usr/bin/env", X_OK) < 0 || access("/etc/passwd", R_OK) < 0 ||
		access("/dev/null", W_OK) < 0)
		return 21;
	int fd = open("/workspace/kept", O_CREAT | O_WRONLY, 0755);
	if (fd < 0 || write(fd, "#!/bin/sh\n", 10) != 10)
		return 22;
	fd_close(fd);
	char *argv[] = { (char *)"/workspace/kept", NULL };
	execv(argv[0], argv);
	return errno == EACCES ? 0 : 23; /* writable places are noexec */
}

/*
 * Of the kernel-wide files there are those of the session's own, read-only; the directory shows
 * processes.
 */
static int check_proc(void)
{
	static const char *const own[] = { "/proc/stat", "/proc/meminfo", "/proc/uptime",
		"/proc/loadavg", "/proc/cpuinfo", "/proc/vmstat", "/proc/filesystems" };
	char byte;
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		int fd = open(own[i], O_RDONLY);
		if (fd < 0 || read(fd, &byte, 1) != 1)
			return 1 + (int)i;
		fd_close(fd);
		if (chmod(own[i], 0666) == 0 || open(own[i], O_WRONLY) >= 0 || unlink(own[i]) == 0)
			return 20 + (int)i;
	}
	DIR *d = opendir("/dev/shm");
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (e->d_name[0] != '.')
			return 40;
	return d ? 0 : 41;
}

/* What the daemon tells is what the next process that opens the file reads. */
static int check_memory(void)
{
	char line[64] = { 0 };
	int fd = open("/proc/meminfo", O_RDONLY);
	return fd >= 0 && read(fd, line, sizeof(line) - 1) > 0 &&
			       !strncmp(line, "MemTotal:          12345 kB\n", 28)
		       ? 0
		       : 1;
}

static void figures(struct real_jail *j)
{
	struct __attribute__((packed)) {
		char order;
		struct jail_figures f;
	} answer = { JAIL_FIGURES, { .memory_bytes = 12345 << 10 } };
	char byte = 0;
	struct pollfd p = { .fd = j->control, .events = POLLIN };
	fflush(stdout);
	/* the files were read just now, and nobody answered: until the init gave up it does not ask
	 * again */
	usleep(700000);
	while (recv(j->control, &byte, 1, MSG_DONTWAIT) == 1)
		;
	pid_t reader = fork();
	if (reader == 0)
		_exit(inside(j, check_memory));
	OK(poll(&p, 1, 60000) == 1 && read(j->control, &byte, 1) == 1 && byte == JAIL_FIGURES);
	OK(write(j->control, &answer, sizeof(answer)) == (ssize_t)sizeof(answer));
	OK(code_of(reader) == 0);
}

/* A terminal of the jail's own: what is written to one end is read from the other. */
static int check_terminal(void)
{
	char name[64], line[8] = { 0 };
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
		ptsname_r(master, name, sizeof(name)))
		return 1;
	int slave = open(name, O_RDWR | O_NOCTTY);
	if (slave < 0 || strcmp(name, "/dev/pts/0") || write(master, "ab\n", 3) != 3 ||
		read(slave, line, sizeof(line)) != 3)
		return 2;
	int more = 0;
	while (posix_openpt(O_RDWR | O_NOCTTY) >= 0)
		more++;
	return more < 64 ? 0 : 3;
}

static int check_alone(void)
{
	int seen = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		seen += e->d_name[0] >= '0' && e->d_name[0] <= '9';
	kill(1, SIGKILL); /* the kernel drops it: the checks that follow find the jail standing */
	/* Ourselves only: the init is not dumpable, so hidepid hides it. */
	return d && seen == 1 ? 0 : 1;
}

/* The mounts are there and Landlock is too: it alone refuses what no mount can. */
static int check_landlock(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int bound = bind(fd, (struct sockaddr *)&any, sizeof(any)), err = errno;
	if (landlock_version() >= 4 && (bound == 0 || err != EACCES))
		return 1;
	if (open("/tmp/renamed", O_CREAT | O_WRONLY, 0600) < 0 || mkdir("/tmp/d", 0700) < 0 ||
		rename("/tmp/renamed", "/tmp/d/there") < 0)
		return 2;
	return open("/dev/null", O_WRONLY) < 0 ? 3 : 0;
}

static int check_disk_limit(void)
{
	static char block[65536];
	int fd = open("/workspace/big", O_CREAT | O_WRONLY, 0600);
	for (int i = 0; i < 1000; i++)
		if (write(fd, block, sizeof(block)) < 0)
			return errno == ENOSPC && i < 40 ? 0 : 1;
	return 2;
}

static int check_leftover(void)
{
	return access("/workspace/kept", F_OK) == 0 ? 0 : 1;
}

static int alive[2];

static int multiply_and_wait(void)
{
	for (int i = 0; i < 3; i++)
		if (fork() == 0)
			setsid();
	if (write(alive[1], "r", 1) != 1)
		return 1;
	for (;;)
		pause();
}

static void sweeping(struct real_jail *j)
{
	char byte = 0;
	if (pipe(alive) < 0)
		return;
	fflush(stdout);
	pid_t helper = fork();
	if (helper == 0)
		_exit(inside(j, multiply_and_wait));
	fd_close(alive[1]);
	OK(read(alive[0], &byte, 1) == 1);
	byte = JAIL_SWEEP;
	OK(write(j->control, &byte, 1) == 1 && read(j->control, &byte, 1) == 1 &&
		byte == JAIL_SWEEP);
	OK(code_of(helper) == 128 + SIGKILL);
	while (read(alive[0], &byte, 1) > 0) /* ends when every holder of the other side is dead */
		;
	fd_close(alive[0]);
}

/* ---- network namespaces that are used again ------------------------------------------- */

static void end_jail(struct real_jail *j, bool close_control)
{
	process_kill_wait(j->init);
	fd_close(j->init);
	fd_close(j->workspace);
	if (close_control)
		fd_close(j->control);
}

static int open_net(const struct real_jail *j)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/net", j->pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Makes a jail and offers it the namespace; returns whether it is in that. */
static bool uses_again(struct real_jail *j, int net)
{
	struct jail_request q = { .serial = 10, .host_id = JAIL_HOST_ID + 6, .disk_bytes = 4096 };
	struct jail_answer a = { 0 };
	struct stat given = { 0 }, has = { 0 };
	int fds[JAIL_ANSWER_FDS];

	OK(fd_send(jailer, &q, sizeof(q), &net, 1) == 0);
	OK(fd_recv(jailer, &a, sizeof(a), fds, JAIL_ANSWER_FDS, NULL) == sizeof(a) && !a.err);
	*j = (struct real_jail){ fds[0], fds[1], fds[2], a.pid };
	int own = open_net(j);
	OK(fstat(net, &given) == 0 && fstat(own, &has) == 0);
	fd_close(own);
	return given.st_ino == has.st_ino;
}

/* The far end of an init's socket was made in the jail: while it is open, a socket is left there.
 */
static void networks(void)
{
	struct real_jail a, b, c, d;
	OK(make(&a, 4096) == 0);
	int net = open_net(&a);
	OK(net >= 0);
	end_jail(&a, true);
	OK(uses_again(&b, net));
	OK(inside(&b, check_identity) == 0);
	OK(inside(&b, check_alone) == 0);
	end_jail(&b, false);
	OK(!uses_again(&c, net));
	fd_close(b.control);
	OK(uses_again(&d, net));
	end_jail(&c, true);
	end_jail(&d, true);
	fd_close(net);
	net = open("/dev/null", O_RDONLY | O_CLOEXEC);
	OK(!uses_again(&a, net)); /* no namespace at all: a new one */
	end_jail(&a, true);
	fd_close(net);
}

int main(void)
{
	struct real_jail a, b;
	struct jail_answer hello = { 0 };
	OK((jailer = real_jailer_start(&hello)) >= 0);
	if (jailer < 0)
		printf("# %s\n", hello.text);
	OK(make(&a, 1 << 20) == 0);
	OK(inside(&a, check_identity) == 0);
	OK(inside(&a, check_files) == 0);
	OK(inside(&a, check_alone) == 0);
	OK(inside(&a, check_proc) == 0);
	figures(&a);
	OK(inside(&a, check_terminal) == 0);
	OK(inside(&a, check_landlock) == 0);
	OK(inside(&a, check_disk_limit) == 0);
	OK(inside(&a, check_leftover) == 0); /* files outlive the process */
	OK(faccessat(a.workspace, "kept", F_OK, 0) == 0);
	OK(make(&b, 1 << 20) == 0);
	OK(inside(&b, check_leftover) == 1); /* and stay in their jail */
	struct stat st;
	OK(fstatat(a.workspace, "kept", &st, 0) == 0 &&
		(geteuid() != 0 || st.st_uid == JAIL_HOST_ID + 5));
	sweeping(&a);
	OK(inside(&a, check_leftover) == 0); /* a swept jail is usable again */
	process_kill_wait(a.init);
	OK(inside(&a, check_leftover) == 98);
	fd_close(b.control); /* the daemon is gone: the init ends itself */
	struct pollfd p = { .fd = b.init, .events = POLLIN };
	OK(poll(&p, 1, 60000) == 1);
	if (geteuid() == 0) /* nobody else may open a namespace of another user */
		networks();
	fd_close(jailer);
	return tap_done();
}
