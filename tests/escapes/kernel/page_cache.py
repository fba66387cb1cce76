"""Throws a file of the system out of the page cache, which all sessions and the machine share: whoever needs it next waits for the disk."""

RWF_NOWAIT = 8
DONTNEED = 4


def cached(fd):
    """Whether its start can be read without waiting."""
    try:
        return os.preadv(fd, [bytearray(4096)], 0, RWF_NOWAIT) > 0
    except BlockingIOError:
        return False
    except OSError:
        return True  # it is not told


def sizeable(folder):
    for root, _, names in os.walk(folder):
        for name in names:
            path = f'{root}/{name}'
            if not os.path.islink(path) and os.path.getsize(path) > 50_000:
                yield path


for number, path in zip(range(20), sizeable('/usr/share')):  # one that nobody has mapped, which would keep it
    fd = os.open(path, os.O_RDONLY)
    os.read(fd, 1 << 20)
    before = cached(fd)
    try:
        os.posix_fadvise(fd, 0, 0, DONTNEED)
    except OSError:
        pass
    if before and not cached(fd):
        got(f'{path} is no longer in memory')
        break
    os.close(fd)
