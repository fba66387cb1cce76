/*
 * Between the zygote's clone and the guest's first statement: system calls only, no allocation, no
 * stdio. Failure is a negative errno and the name of the step.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/jail.h"
#include "jail/landlock.h"
#include "jail/privileges.h"
#include "jail/rlimits.h"

const char *jail_exec_name(enum jail_exec exec)
{
	static const char *const names[JAIL_EXEC_COUNT] = { "system", "none", "any" };
	return names[exec];
}

const char *jail_net_name(enum jail_net net)
{
	static const char *const names[JAIL_NET_COUNT] = { "none", "loopback", "allow" };
	return names[net];
}

int jail_aim_children(int init_pidfd)
{
	return setns(init_pidfd, CLONE_NEWPID) < 0 ? -errno : 0;
}

static int join_jail(int init_pidfd, const char **ret_step)
{
	int r;
	*ret_step = "joining the namespaces";
	if (setns(init_pidfd,
		    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return -errno;
	/*
	 * Not the init's: that one starts above the group this process has joined, whose name would
	 * tell the daemon's pid.
	 */
	*ret_step = "hiding the control groups";
	if (unshare(CLONE_NEWCGROUP) < 0)
		return -errno;
	if ((r = rlimits_apply(ret_step)) < 0)
		return r;
	if ((r = privileges_become(JAIL_INNER_ID, ret_step)) < 0)
		return r;
	return privileges_drop(ret_step);
}

int jail_enter_beside(int init_pidfd, const char **ret_step)
{
	int r = join_jail(init_pidfd, ret_step);
	umask(077);
	return r;
}

/*
 * From now on a file in memory made in this pid namespace cannot be executed unless it was asked to
 * be (Linux 6.3), which the guest's filter refuses. Only the machine's root may write it, which
 * this process still is; where it fails, the guest finds out and gets the stricter filter.
 */
static void seal_memory_files(void)
{
	int fd = open("/proc/sys/vm/memfd_noexec", O_WRONLY | O_CLOEXEC);
	ssize_t w = fd < 0 ? -1 : write(fd, "1", 1);
	(void)w;
	if (fd >= 0)
		close(fd);
}

int jail_enter_closed(int init_pidfd, enum jail_exec exec, enum jail_net net, const char **ret_step)
{
	if (exec != JAIL_EXEC_ANY)
		seal_memory_files();
	int r = join_jail(init_pidfd, ret_step);
	if (r < 0)
		return r;
	if ((r = landlock_restrict(exec, net, ret_step)) < 0)
		return r;
	*ret_step = "entering /workspace";
	if (chdir("/workspace") < 0)
		return -errno;
	umask(022);
	*ret_step = "starting a session";
	if (setsid() < 0 && errno != EPERM)
		return -errno;
	return 0;
}

int jail_open(const char **ret_step)
{
	/*
	 * The change of ids made the process undumpable, and its own /proc/self unreadable; the
	 * guest holds no secret.
	 */
	*ret_step = "becoming dumpable";
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int jail_enter(int init_pidfd, enum jail_exec exec, enum jail_net net, const char **ret_step)
{
	int r = jail_enter_closed(init_pidfd, exec, net, ret_step);
	return r < 0 ? r : jail_open(ret_step);
}

int jail_move(const int namespaces[JAIL_NAMESPACES], const char **ret_step)
{
	static const int kinds[JAIL_NAMESPACES] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET,
		CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWPID };
	*ret_step = "joining the namespaces";
	for (int i = 0; i < JAIL_NAMESPACES; i++)
		if (syscall(SYS_setns, namespaces[i], kinds[i], JAIL_MARK) < 0)
			return -errno;
	*ret_step = "hiding the control groups";
	return syscall(SYS_unshare, CLONE_NEWCGROUP, JAIL_MARK) < 0 ? -errno : 0;
}

int jail_settle(const char **ret_step)
{
	int r = privileges_drop(ret_step);
	if (r < 0)
		return r;
	*ret_step = "becoming dumpable";
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	*ret_step = "entering /workspace";
	if (chdir("/workspace") < 0)
		return -errno;
	setsid();
	return 0;
}
