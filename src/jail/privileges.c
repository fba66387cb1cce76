#include "jail/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/jail.h"

int privileges_become(unsigned id, const char **ret_step)
{
	*ret_step = "dropping groups";
	/*
	 * A user namespace made by an ordinary user denies setgroups; it then has no extra groups
	 * worth dropping.
	 */
	if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
		return -errno;
	/*
	 * The raw calls: libc's wrappers signal other threads, and there are none here. Id 0 is not
	 * mapped in the namespace, so the change is not one "from root" and the kernel keeps the
	 * capabilities.
	 */
	*ret_step = "changing the group";
	if (syscall(SYS_setresgid, id, id, id) < 0)
		return -errno;
	*ret_step = "changing the user";
	if (syscall(SYS_setresuid, id, id, id) < 0)
		return -errno;
	return 0;
}

int privileges_drop(const char **ret_step)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	*ret_step = "dropping the bounding set";
	for (int cap = 0; cap < 64; cap++)
		if (syscall(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0, JAIL_MARK) < 0 &&
			errno != EINVAL)
			return -errno;
	*ret_step = "locking securebits";
	if (syscall(SYS_prctl, PR_SET_SECUREBITS,
		    SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		    0, 0, 0, JAIL_MARK) < 0)
		return -errno;
	*ret_step = "dropping capabilities";
	syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, JAIL_MARK);
	if (syscall(SYS_capset, &head, none, JAIL_MARK) < 0)
		return -errno;
	*ret_step = "setting no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}
