"""Descriptors that were left open: a directory or a file of the host's would be a way out."""
# control-opens: /

import socket

for fd in map(int, os.listdir('/proc/self/fd')):
    try:
        found = os.fstat(fd)
    except OSError:
        continue  # the one that listed them
    if fd <= 2 and stat.S_ISCHR(found.st_mode):
        continue
    if stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode) or stat.S_ISBLK(found.st_mode):
        where = os.readlink(f'/proc/self/fd/{fd}')
        if not where.startswith('/proc/'):
            got(f'{fd} is {where}')
    elif stat.S_ISSOCK(found.st_mode):
        # What is sent to us belongs to us; whoever is at the other end must not hand over more.
        with socket.socket(fileno=os.dup(fd)) as s:
            if s.family != socket.AF_UNIX:
                got(f'{fd} is a socket of family {s.family}')
