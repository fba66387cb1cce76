#include "jail/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

/*
 * Debian 12's headers are older than most kernels: the numbers and structures are the kernel's,
 * written out here.
 */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

struct ruleset {
	uint64_t files, net, scoped;
};
struct __attribute__((packed)) path_rule {
	uint64_t allowed;
	int32_t parent;
};
enum { ASK_VERSION = 1, RULE_PATH_BENEATH = 1 };

#define EXECUTE (1ULL << 0)
#define WRITE_FILE (1ULL << 1)
#define READ_FILE (1ULL << 2)
#define READ_DIR (1ULL << 3)
#define REMOVE (1ULL << 4 | 1ULL << 5)
#define MAKE_DEVICE (1ULL << 6 | 1ULL << 11)
#define MAKE_OTHERS (1ULL << 7 | 1ULL << 8 | 1ULL << 9 | 1ULL << 10 | 1ULL << 12)
#define REFER (1ULL << 13)     /* version 2 */
#define TRUNCATE (1ULL << 14)  /* version 3 */
#define IOCTL_DEV (1ULL << 15) /* version 5 */
#define READ (READ_FILE | READ_DIR)
#define FIRST (EXECUTE | WRITE_FILE | READ | REMOVE | MAKE_DEVICE | MAKE_OTHERS)
#define ALL_TCP 3ULL    /* bind and connect, version 4 */
#define ALL_SCOPES 3ULL /* abstract unix sockets and signals, version 6 */

static const char *const system_dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64" };

int landlock_version(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
	return v < 0 ? 0 : (int)v;
}

/* What of the rights this version can refuse at all; a rule may grant no others. */
static uint64_t known(int version)
{
	uint64_t files = FIRST;
	if (version >= 2)
		files |= REFER;
	if (version >= 3)
		files |= TRUNCATE;
	if (version >= 5)
		files |= IOCTL_DEV;
	return files;
}

static int grant(int ruleset, const char *path, uint64_t rights)
{
	struct path_rule rule = { .allowed = rights };
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	rule.parent = fd;
	return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno
											: 0;
}

/*
 * Landlock rules apply to files, not to names, and a fork of the session inherits the rules in a
 * jail with other private mounts. So the rules name only files that all jails share: programs can
 * be started only from the system's directories, and no file can be used as a device. Files that
 * must not be written are on read-only mounts.
 */
static int grant_all(int ruleset, uint64_t files, enum jail_exec exec)
{
	uint64_t own = files & ~(MAKE_DEVICE | IOCTL_DEV | EXECUTE);
	int r = grant(ruleset, "/", own | (exec == JAIL_EXEC_ANY ? EXECUTE : 0));
	for (size_t i = 0; r == 0 && exec != JAIL_EXEC_NONE && i < ARRAY_LEN(system_dirs); i++)
		r = grant(ruleset, system_dirs[i], READ | EXECUTE);
	if (r == 0)
		/* null, zero and the like */
		r = grant(ruleset, "/dev", (READ | WRITE_FILE | TRUNCATE | IOCTL_DEV) & files);
	return r;
}

int landlock_restrict(enum jail_exec exec, enum jail_net net, const char **ret_step)
{
	int version = landlock_version();
	if (!version)
		return 0;
	struct ruleset all = { .files = known(version),
		.net = version >= 4 && net == JAIL_NET_NONE ? ALL_TCP : 0,
		.scoped = version >= 6 ? ALL_SCOPES : 0 };
	size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
	*ret_step = "making the Landlock rules";
	_cleanup_fd_ int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, size, 0);
	if (ruleset < 0)
		return -errno;
	int r = grant_all(ruleset, all.files, exec);
	if (r < 0)
		return r;
	*ret_step = "entering the Landlock rules";
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

int landlock_read_only(const char **ret_step)
{
	int version = landlock_version();
	if (!version)
		return 0;
	struct ruleset all = { .files = known(version) };
	*ret_step = "making the Landlock rules";
	_cleanup_fd_ int ruleset = (int)syscall(
		SYS_landlock_create_ruleset, &all, sizeof(all.files), 0);
	if (ruleset < 0)
		return -errno;
	int r = grant(ruleset, "/", READ);
	if (r < 0)
		return r;
	*ret_step = "entering the Landlock rules";
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

int landlock_try(void)
{
	struct ruleset none = { .files = READ_DIR };
	_cleanup_fd_ int ruleset = (int)syscall(
		SYS_landlock_create_ruleset, &none, sizeof(none.files), 0);
	if (ruleset < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return -errno;
	_cleanup_fd_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 && errno == EACCES ? 0 : -ENOTSUP;
}
