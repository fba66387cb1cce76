"""Programs attached to sockets: the kernel checks and compiles them, so they are a way to bring code of one's own into it."""

import socket

ATTACH_FILTER, ATTACH_REUSEPORT = 26, 51
program = ctypes.create_string_buffer(struct.pack('HBBI', 0x06, 0, 0, 0xFFFFFFFF))
request = struct.pack('HxxxxxxP', 1, ctypes.addressof(program))
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    tries('a filter on a unix socket', one.setsockopt, socket.SOL_SOCKET, ATTACH_FILTER, request)
    one.close(), other.close()
