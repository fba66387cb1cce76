"""Processes that are not ours: by /proc, and by trying every number."""

me, family = os.getpid(), {1, os.getpid()}
for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
    if pid not in family:
        try:
            got(f'see {pid} ({open(f"/proc/{pid}/comm").read().strip()})')
        except OSError:
            got(f'saw {pid}')  # it ended in between
for pid in range(2, 40000):
    if pid == me:
        continue
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        continue
    except PermissionError:
        pass
    try:
        if os.getpgid(pid) and not os.path.exists(f'/proc/self/task/{pid}'):
            got(f'{pid} exists')
    except OSError:
        pass
