"""Calls that ordinary programs do without, each a piece of kernel to attack. Arguments are empty, so that they do nothing."""

for name in (
    'ptrace process_vm_readv process_vm_writev mbind set_mempolicy migrate_pages move_pages kcmp fanotify_init mq_open '
    'msgget semget mlockall sched_setscheduler sched_setattr sched_setparam ioprio_set setxattr pkey_alloc process_madvise '
    'lsm_get_self_attr mseal recvmmsg sendmmsg remap_file_pages pidfd_open pidfd_getfd landlock_create_ruleset openat2 modify_ldt'
).split():
    if in_child(lambda: reached(name, -1, None, None, None, None, None)):
        got(name)
for number in (471, 500, 600, 1000, 0x3FFFFFFF):  # of kernels to come: not EPERM but as if they were not there
    result, error = call(number, 0, 0, 0, 0, 0, 0)
    if (result, error) != (-1, errno.ENOSYS):
        got(f'call {number}: {result} {error}')
