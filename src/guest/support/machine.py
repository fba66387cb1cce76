"""Figures of the machine for psutil, which looks for them in files of /proc that a session does not have: its /proc shows processes only. They are
given for the session itself, as if it were the machine: the memory it may use, the processor time it took."""

_KB, _TICKS = 1024, 100


def _patch_psutil(common):
    """Every reading of files in psutil goes through these two functions of psutil._common."""
    import io

    for name, wrap in (('open_binary', lambda text: io.BytesIO(text.encode())), ('open_text', io.StringIO)):
        plain = getattr(common, name, None)
        if plain is not None:
            setattr(common, name, _make_open(plain, wrap, name))


def _make_open(plain, wrap, name):
    files = {
        '/proc/meminfo': _meminfo,
        '/proc/stat': _stat,
        '/proc/cpuinfo': _cpuinfo,
        '/proc/vmstat': lambda: 'pswpin 0\npswpout 0\n',
        '/proc/filesystems': lambda: 'nodev\ttmpfs\n\ttmpfs\n',
        '/proc/net/dev': lambda: 'Inter-|   Receive                |  Transmit\n face |bytes    packets |bytes    packets\n',
    }

    def open_file(path, *args, **kwargs):
        try:
            return plain(path, *args, **kwargs)
        except FileNotFoundError:
            if str(path) not in files:
                raise
            return wrap(files[str(path)]())

    open_file.__name__ = open_file.__qualname__ = name
    return open_file


def _memory():
    """What the session may use and what it uses of that, in bytes: the same figures after which Python gets its MemoryError."""
    import os
    import resource

    most = resource.getrlimit(resource.RLIMIT_DATA)[0]
    machine = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    with open('/proc/self/statm') as f:
        used = int(f.read().split()[5]) * os.sysconf('SC_PAGE_SIZE')
    total = machine if most in (resource.RLIM_INFINITY, 0) else min(most, machine)
    return total, min(used, total)


def _meminfo():
    total, used = (n // _KB for n in _memory())
    fields = {'MemTotal': total, 'MemFree': total - used, 'MemAvailable': total - used, 'Active': used}
    for name in ('Buffers', 'Cached', 'Inactive', 'Shmem', 'SReclaimable', 'Slab', 'SwapCached', 'SwapTotal', 'SwapFree'):
        fields[name] = 0
    return ''.join(f'{name}: {n} kB\n' for name, n in fields.items())


def _stat():
    import os
    import time

    taken, n = os.times(), os.cpu_count() or 1
    up = time.clock_gettime(time.CLOCK_BOOTTIME)
    user, system = ((taken[i] + taken[i + 2]) * _TICKS for i in (0, 1))
    idle = max(up * n * _TICKS - user - system, 0)
    line = 'cpu{} {:.0f} 0 {:.0f} {:.0f} 0 0 0 0 0 0\n'
    each = ''.join(line.format(i, user / n, system / n, idle / n) for i in range(n))
    return line.format(' ', user, system, idle) + each + f'intr 0\nctxt 0\nbtime {time.time() - up:.0f}\nsoftirq 0\n'


def _cpuinfo():
    import os

    return ''.join(f'processor\t: {i}\nphysical id\t: 0\ncore id\t\t: {i}\ncpu cores\t: {os.cpu_count()}\n\n' for i in range(os.cpu_count() or 1))
