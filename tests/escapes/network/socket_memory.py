# network: "loopback"
# limits: {"memory_bytes": 134217728}
# ends: out_of_memory
# needs: cgroups
# timeout: 30
"""Memory of the kernel's, from the one pool that all sockets of the machine share: connections and datagrams that nobody reads."""

import socket

MOST, WANTED = 320 << 20, 256 << 20


def connections():
    listener = socket.create_server(('127.0.0.1', 0), backlog=500)
    while True:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        near.setblocking(False)
        keep.extend((near, far))
        yield lambda: near.send(bytes(65536))


def datagrams():
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setblocking(False)
    keep.append(sender)
    while True:
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.bind(('127.0.0.1', 0))
        keep.append(receiver)
        left = iter(range(4))  # as many as its buffer takes; what is beyond is dropped without a word
        yield lambda: sender.sendto(bytes(50000), receiver.getsockname()) if next(left, None) is not None else 1 // 0


def used():
    """Bytes in sockets, of the machine; our own are most of what is added while we run."""
    text = open('/proc/self/net/sockstat').read().split()
    return sum(int(text[i + 1]) for i, word in enumerate(text) if word == 'mem') * mmap.PAGESIZE


for kind in (connections, datagrams):
    keep, before, most = [], used(), 0
    try:
        for send in kind():
            try:
                while most < MOST:
                    send()
            except (BlockingIOError, ZeroDivisionError):
                pass
            most = used() - before
            if most >= MOST:
                break
    except OSError:
        pass
    if most > WANTED:
        got(f'{most >> 20} MB in {kind.__name__}')
    for sock in keep:
        sock.close()
