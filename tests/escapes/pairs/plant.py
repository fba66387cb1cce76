"""Leaves marks wherever another session might look for them; says PLANTED and stays."""

import socket

name = 'glovebox-mark'
keep = []
for place in (os.getcwd(), '/tmp', '/dev/shm', '/var/tmp', '/run', '/home'):
    try:
        with open(f'{place}/{name}', 'w') as f:
            f.write('mark')
        os.chmod(f'{place}/{name}', 0o666)
    except OSError:
        pass
listener = socket.socket(socket.AF_UNIX)
listener.bind('\0' + name)
listener.listen(1)
keep.append(listener)
call('shmget', 0x676C6F76, 4096, 0o1666)
libc.prctl(15, b'gb-planted', 0, 0, 0)
os.write(1, b'PLANTED\n')
