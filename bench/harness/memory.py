"""Memory as the kernel counts it, in bytes."""


def rollup(pid):
    """The fields of /proc/PID/smaps_rollup."""
    fields = {}
    with open(f'/proc/{pid}/smaps_rollup') as f:
        for line in f:
            words = line.split()
            if words[-1] == 'kB':
                fields[words[0][:-1]] = int(words[1]) * 1024
    return fields


def pss(pid):
    """What the process takes, shared pages divided among those that share them."""
    return rollup(pid)['Pss']


def private(pid):
    """What the process alone has: everything it wrote or copied since it was forked."""
    fields = rollup(pid)
    return fields['Private_Dirty'] + fields['Private_Clean']


def rss(pid):
    return rollup(pid)['Rss']


def available():
    with open('/proc/meminfo') as f:
        for line in f:
            if line.startswith('MemAvailable:'):
                return int(line.split()[1]) * 1024
    raise RuntimeError('no MemAvailable in /proc/meminfo')
