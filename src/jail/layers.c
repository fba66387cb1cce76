#include "jail/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "jail/cgroup/cgroup.h"
#include "jail/filter_own.h"
#include "jail/landlock.h"

static const struct {
	const char *name;
	bool waivable;
	bool optional; /* there is another way, and what it cannot do is named */
	const char *consequence;
} layers[LAYER_COUNT] = {
	[LAYER_NAMESPACES] = { "namespaces", false, false, "no jail can be made without them" },
	[LAYER_MOUNTS] = { "mounts", false, false,
		"sessions would see the host's files and the kernel's own" },
	[LAYER_SECCOMP] = { "seccomp", false, false, "code could make any system call" },
	[LAYER_LANDLOCK] = { "landlock", true, false,
		"only the mounts limit which programs code may start, and only the namespaces limit what it can reach" },
	[LAYER_CGROUP] = { "cgroup", true, true,
		"limits.cpus is refused, and the memory of a session is measured (five times a second) instead of being bounded by the kernel" },
};

const char *layer_name(enum layer l)
{
	return layers[l].name;
}

bool layer_can_be_waived(enum layer l)
{
	return layers[l].waivable;
}

bool layer_is_optional(enum layer l)
{
	return layers[l].optional;
}

const char *layer_consequence(enum layer l)
{
	return layers[l].consequence;
}

/* ---- trying -------------------------------------------------------------------------- */

/* What try() returns in a child: 0 or a positive errno. */
static int in_child(int (*try)(void))
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(try());
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

enum {
	ALL_NAMESPACES = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
			 CLONE_NEWUTS | CLONE_NEWCGROUP
};

static int try_namespaces(void)
{
	return unshare(ALL_NAMESPACES) < 0 ? errno : 0;
}

/* As pid 1 of a new namespace, which may mount a /proc of its own. */
static int mount_inside(void)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("tmpfs", "/tmp", "tmpfs", flags, "size=4k") < 0)
		return errno;
	if (mount("devpts", "/tmp", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance") < 0 ||
		mount("proc", "/proc", "proc", flags, "hidepid=invisible") < 0)
		return errno;
	return mount(NULL, "/proc", NULL, MS_REMOUNT | flags, "subset=pid,hidepid=invisible") < 0
		       ? errno
		       : 0;
}

static int try_mounts(void)
{
	if (unshare(ALL_NAMESPACES) < 0)
		return errno;
	return in_child(mount_inside);
}

static int try_seccomp(void)
{
	int r = filter_enter_own(FILTER_INIT);
	if (r < 0)
		return -r;
	return syscall(SYS_getuid) < 0 && errno == EPERM ? 0 : ENOSYS; /* a call that never fails */
}

static int try_landlock(void)
{
	return -landlock_try();
}

/* ---- saying ---------------------------------------------------------------------------- */

static bool file_says(const char *path, char value)
{
	char c = 0;
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, &c, 1) == 1 && c == value;
}

static const char *namespace_remedy(void)
{
	if (file_says("/proc/sys/user/max_user_namespaces", '0'))
		return "sudo sysctl -w user.max_user_namespaces=65536";
	if (geteuid() != 0 &&
		file_says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
		return "AppArmor refuses them (Ubuntu 24.04): sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or start Glovebox as root";
	if (geteuid() != 0 && file_says("/proc/sys/kernel/unprivileged_userns_clone", '0'))
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1, or start Glovebox as root";
	return "inside a container: allow it to make namespaces (docker run --security-opt seccomp=unconfined --cap-add SYS_ADMIN, or --privileged)";
}

static void note(struct layer_state *s, int err, const char *detail, const char *remedy)
{
	*s = (struct layer_state){ .there = err == 0 };
	if (err == 0) {
		snprintf(s->detail, sizeof(s->detail), "%s", detail);
		return;
	}
	error_set(&s->why, -err, "%s", strerror(err));
	error_remedy(&s->why, "%s", remedy);
}

/*
 * Makes a home for groups as a daemon does, and takes it away again: a tree that is there may still
 * be closed to us.
 */
static void test_cgroup(struct layer_state *s)
{
	struct cgroup_home home;
	*s = (struct layer_state){ 0 };
	cgroup_home_init(&home, "/sys/fs/cgroup", &s->why);
	s->there = !s->why.err;
	snprintf(s->detail, sizeof(s->detail), "%s", cgroup_home_kind(&home));
	cgroup_home_finish(&home);
}

void layers_test(struct layer_state states[LAYER_COUNT])
{
	char version[32];
	note(&states[LAYER_NAMESPACES], in_child(try_namespaces),
		"user, pid, mount, net, ipc, uts, cgroup", namespace_remedy());
	note(&states[LAYER_MOUNTS], in_child(try_mounts), "tmpfs, devpts, proc with subset=pid",
		states[LAYER_NAMESPACES].there
			? "use Linux 5.14 or newer; inside a container /proc must not be masked (docker run --security-opt systempaths=unconfined)"
			: namespace_remedy());
	note(&states[LAYER_SECCOMP], in_child(try_seccomp), "filters",
		"use a kernel with CONFIG_SECCOMP_FILTER");
	snprintf(version, sizeof(version), "version %d", landlock_version());
	note(&states[LAYER_LANDLOCK], in_child(try_landlock), version,
		"use Linux 5.13 or newer with landlock in CONFIG_LSM or lsm=");
	test_cgroup(&states[LAYER_CGROUP]);
}

/* ---- deciding --------------------------------------------------------------------------- */

static int find(const char *name)
{
	for (int i = 0; i < LAYER_COUNT; i++)
		if (text_eq(layers[i].name, name))
			return i;
	return -1;
}

int layers_waive(struct layer_state states[LAYER_COUNT], char *const *names, struct error *e)
{
	for (; names && *names; names++) {
		int i = find(*names);
		if (i >= 0 && layers[i].waivable) {
			states[i].waived = true;
			continue;
		}
		if (i < 0)
			error_set(e, -EINVAL, "waive: '%.60s': unknown layer", *names);
		else
			error_set(e, -EINVAL, "waive: the layer %s cannot be waived (%s)", *names,
				layers[i].consequence);
		return error_remedy(e, "those that can be waived are landlock and cgroup");
	}

	return 0;
}

int layers_check(const struct layer_state states[LAYER_COUNT], struct error *e)
{
	for (int i = 0; i < LAYER_COUNT; i++) {
		const struct layer_state *s = &states[i];
		if (s->there || s->waived || layers[i].optional)
			continue;
		error_set(e, -ENOTSUP, "the layer \"%s\" is missing: %s. Consequence: %s",
			layers[i].name, s->why.text, layers[i].consequence);
		if (layers[i].waivable)
			return error_remedy(e, "%s Or do without it: --waive %s", s->why.remedy,
				layers[i].name);
		return error_remedy(e, "%s", s->why.remedy);
	}
	return 0;
}
