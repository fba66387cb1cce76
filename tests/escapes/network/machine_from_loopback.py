# network: "loopback"
"""From a session with a loopback of its own to a server on the machine's: by every name of it, TCP, UDP and abstract sockets."""

import socket

PORT = @VICTIM@


def ask(family, kind, address):
    with socket.socket(family, kind) as s:
        s.settimeout(3)
        s.connect(address)
        s.send(b'GET / HTTP/1.0\r\n\r\n')
        return b'CAUGHT' in s.recv(4096)


for what, family, kind, address in (
    ('127.0.0.1', socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', PORT)),
    ('0.0.0.0', socket.AF_INET, socket.SOCK_STREAM, ('0.0.0.0', PORT)),
    ('127.0.1.1', socket.AF_INET, socket.SOCK_STREAM, ('127.0.1.1', PORT)),
    ('::1', socket.AF_INET6, socket.SOCK_STREAM, ('::1', PORT)),
    ('a mapped address', socket.AF_INET6, socket.SOCK_STREAM, ('::ffff:127.0.0.1', PORT)),
    ('UDP', socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', PORT)),
    ('an abstract socket', socket.AF_UNIX, socket.SOCK_STREAM, f'\0glovebox-victim-{PORT}'),
):
    try:
        if ask(family, kind, address):
            got(what)
    except OSError:
        pass
