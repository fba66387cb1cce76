/*
 * Separate from the code that builds filters with libseccomp, so that processes that only load a
 * filter do not need libseccomp.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/filter.h"

void filter_finish(struct filter *f)
{
	free(f->code);
	*f = (struct filter){ 0 };
}

int filter_load(const struct filter *f)
{
	struct sock_fprog program = { .len = f->len, .filter = f->code };
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}
