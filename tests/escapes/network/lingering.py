"""A socket whose last owner waits when he closes it (SO_LINGER): sent to the daemon, which closes what it did not ask for, it would stop it for as long
as the sender likes."""
# network: "loopback"
# watch: yes
# ends: killed
# timeout: 10

import array
import socket

SECONDS = 3

server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
client.setblocking(False)
try:
    while True:
        client.send(b'x' * 65536)
except BlockingIOError:
    pass
client.setblocking(True)
try:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, SECONDS))
except OSError:
    pass

try:
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(1023))
except OSError:  # on the machine itself: somebody who closes what is sent to him
    control, other = socket.socketpair()
    start = time.monotonic()
    array_of_one = array.array('i', [client.fileno()])
    control.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array_of_one)])
    client.close()
    _, (rights, *_), *_ = other.recvmsg(1, 100)
    os.close(array.array('i', rights[2])[0])
    if time.monotonic() - start > SECONDS / 2:
        got('a close that waits')
else:
    for fd in (client.detach(), 0):  # the second makes it close the first
        control.sendmsg([b'\0'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))])
        if fd:
            os.close(fd)
        time.sleep(0.3)
