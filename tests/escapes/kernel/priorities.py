"""More than one's share of the processors: priorities, real time, raised limits."""

import resource


def raise_limit():
    for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE):
        soft, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            try:
                resource.setrlimit(kind, (hard + 1, hard + 1))
                return True
            except (OSError, ValueError):
                pass
    return False


def nicer():
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    except OSError:
        return False
    return True


if in_child(nicer):
    got('a higher priority')
if in_child(lambda: call('sched_setscheduler', 0, 1, (ctypes.c_int * 1)(1))[0]) == 0:
    got('real time')
if in_child(lambda: call('ioprio_set', 1, 0, 1 << 13)[0]) == 0:
    got('real time for input and output')
if in_child(raise_limit):
    got('raised a hard limit')
if in_child(lambda: call('mlockall', 1)[0]) == 0:
    got('locked memory')
