"""The calls with which copies of a session move into jails of their own, with the mark that lets them pass: without what only the daemon
hands over they must lead nowhere."""

# control: fresh

MARK = 0x6C696A67
KINDS = {'user': 0x10000000, 'mnt': 0x20000, 'net': 0x40000000, 'ipc': 0x8000000, 'uts': 0x4000000, 'pid': 0x20000000}


def attempts():
    worked = []
    for pid in ('self', *[p for p in os.listdir('/proc') if p.isdigit()]):
        for name, kind in KINDS.items():
            try:
                fd = os.open(f'/proc/{pid}/ns/{name}', os.O_RDONLY)
            except OSError:
                continue
            if call('setns', fd, kind, MARK)[0] == 0:
                worked.append(f'setns {name} of {pid}')
            os.close(fd)
    if call('unshare', 0x2000000, MARK)[0] == 0:
        worked.append('a cgroup namespace')
    head = struct.pack('Ii', 0x20080522, 0)
    if call('capset', head, struct.pack('6I', *[0xFFFFFFFF] * 6), MARK)[0] == 0:
        worked.append('capabilities')
    if call('prctl', 28, 0, 0, 0, 0, MARK)[0] == 0:
        worked.append('securebits')
    return worked


for what in in_child(attempts):
    got(what)
