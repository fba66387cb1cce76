"""CPU time and page faults of a daemon and of everything below it."""

import os
from pathlib import Path

TICK_MS = 1000 / os.sysconf('SC_CLK_TCK')
KERNEL_PARENT = 2  # kthreadd


def _stat(pid):
    """The fields of /proc/PID/stat that follow the name; None when the process has ended."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(') ')[2].split()
    except OSError:
        return None


def _children(pid):
    try:
        return [int(child) for child in Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]
    except OSError:
        return []


class Spent:
    """CPU milliseconds and page faults, so far: of live processes and of those that their parents have reaped."""

    def __init__(self, ms=0, faults=0):
        self.ms, self.faults = ms, faults

    def __sub__(self, other):
        return Spent(self.ms - other.ms, self.faults - other.faults)

    def __add__(self, other):
        return Spent(self.ms + other.ms, self.faults + other.faults)


def _of(fields):
    minor, reaped_minor, major, reaped_major = (int(f) for f in fields[7:11])
    return Spent(sum(int(f) for f in fields[11:15]) * TICK_MS, minor + reaped_minor + major + reaped_major)


def below(pid):
    """What the process and all its descendants have spent. A process that ends meanwhile moves to its parent, so a parent is read last."""
    spent = Spent()
    for child in _children(pid):
        spent += below(child)
    fields = _stat(pid)
    return spent + _of(fields) if fields else spent


def kernel_threads():
    """CPU milliseconds of all kernel threads of the machine: the destruction of namespaces and control groups happens there."""
    spent = 0
    for entry in os.scandir('/proc'):
        if entry.name.isdigit() and (fields := _stat(entry.name)) and int(fields[1]) in (0, KERNEL_PARENT) and int(entry.name) != 1:
            spent += _of(fields).ms
    return spent
