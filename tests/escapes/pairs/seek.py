"""Looks for the marks that plant.py left in another session."""

import socket

name = 'glovebox-mark'
for place in ('/workspace', '/tmp', '/dev/shm', '/var/tmp', '/run', '/home'):
    if os.path.exists(f'{place}/{name}'):
        got(f'a file in {place}')
try:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect('\0' + name)
        got('an abstract socket')
except OSError:
    pass
if call('shmget', 0x676C6F76, 4096, 0)[0] != -1:
    got('a shared segment')
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        if open(f'/proc/{pid}/comm').read().strip() == 'gb-planted':
            got('the process')
    except OSError:
        pass
