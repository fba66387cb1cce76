"""More processor time than the share, in any half second of some."""
# limits: {"cpus": 0.2}
# timeout: 30
# needs: cgroups

import contextlib


def share():
    children, before, start = [], os.times(), time.monotonic()
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(OSError):
                os.nice(-20)  # where that is allowed, a busy machine does not matter
            while time.monotonic() < start + 0.5:
                pass
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used / (time.monotonic() - start)


with contextlib.suppress(OSError), open('/proc/self/autogroup', 'w') as f:
    f.write('-20')  # processes of one terminal share one turn; where that may be changed, a busy machine does not matter either
for _ in range(20 if os.getuid() == 0 else 8):
    best = share()
    if best > 0.35:
        got(f'{best:.2f} processors')
        break
