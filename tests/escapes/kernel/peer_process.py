"""A handle of the process at the other end of a socket (SO_PEERPIDFD): of the control socket that is the daemon. Where it can be had, it can be handed
back to the daemon as something else, which then signals itself."""

import socket

SO_PEERPIDFD, SO_PASSPIDFD = 77, 76

near, far = socket.socketpair()
mine = [near] + [socket.socket(fileno=os.dup(fd)) for fd in (1023, *range(980, 1000)) if os.path.exists(f'/proc/self/fd/{fd}')]
for sock in mine:
    try:
        sock.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
        got('a handle of who is at the other end')
    except OSError:
        pass
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_PASSPIDFD, 1)
        got('handles with every message')
    except OSError:
        pass
