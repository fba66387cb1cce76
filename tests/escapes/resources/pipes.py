"""Kernel memory: pipes and sockets, filled and left."""
# limits: {"memory_bytes": 268435456}
# ends: out_of_memory
# needs: cgroups

import fcntl
import resource
import socket

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held, keep = 0, []
try:
    while held < 600 << 20:
        if held % 3:
            pair = socket.socketpair()
            pair[0].setblocking(False)
            end = pair[0].fileno()
            keep.append(pair)
        else:
            r, end = os.pipe()
            keep.append((r, end))
            os.set_blocking(end, False)
            try:
                fcntl.fcntl(end, 1031, 1 << 20)  # F_SETPIPE_SZ
            except OSError:
                pass
        try:
            while True:
                held += os.write(end, bytes(65536))
        except BlockingIOError:
            pass
except OSError:
    pass
if held > 400 << 20:
    got(f'{held >> 20} MB in pipes and sockets')
