"""What programs in sessions try to reach on the machine itself: TCP (both families) and UDP on one port, and an abstract unix socket of
that number, all of which say CAUGHT to whoever speaks to them."""

import contextlib
import socket
import threading

WORD = b'CAUGHT'


def _serve(server):
    while True:
        client, _ = server.accept()
        with client:
            try:
                client.settimeout(5)
                client.recv(4096)
                client.sendall(b'HTTP/1.0 200 OK\r\n\r\n' + WORD)
            except OSError:
                pass


def _echo(server):
    while True:
        _, peer = server.recvfrom(4096)
        server.sendto(WORD, peer)


def start():
    """Starts it for as long as this process lives; returns the port."""
    while True:
        tcp = socket.create_server(('127.0.0.1', 0))
        port = tcp.getsockname()[1]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        unix = socket.socket(socket.AF_UNIX)
        try:
            udp.bind(('127.0.0.1', port))
            unix.bind(f'\0glovebox-victim-{port}')
            break
        except OSError:  # somebody has that one: another port
            for taken in (tcp, udp, unix):
                taken.close()
    unix.listen()
    servers = [(_serve, tcp), (_serve, unix), (_echo, udp)]
    with contextlib.suppress(OSError):  # a machine without IPv6
        servers.append((_serve, socket.create_server(('::1', port), family=socket.AF_INET6)))
    for target, server in servers:
        threading.Thread(target=target, args=(server,), daemon=True).start()
    return port
