"""Sockets of every family there is, of every type; only unix ones may be made."""

AF_UNIX = 1
for family in range(46):
    if family == AF_UNIX:
        continue
    for kind in (1, 2, 3, 5):
        fd, _ = call('socket', family, kind, 0)
        if fd >= 0:
            got(f'family {family} type {kind}')
            os.close(fd)
            break
for trick in (2 | 1 << 32, 16 | 1 << 63):  # the kernel takes the low half
    fd, _ = call('socket', trick, 2, 0)
    if fd >= 0:
        got(f'family {trick:#x}')
        os.close(fd)
