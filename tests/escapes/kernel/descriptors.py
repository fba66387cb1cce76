"""Descriptors that were left open: a directory or a file of the host's would be a way out."""
# control-opens: /

CONTROL = 1023  # the socket a guest has to its own daemon, for frames only
for fd in map(int, os.listdir('/proc/self/fd')):
    try:
        os.fstat(fd)
    except OSError:
        continue  # the one that listed them
    link = os.readlink(f'/proc/self/fd/{fd}')
    if fd > 2 and fd != CONTROL:
        got(f'{fd} is {link}')
if os.path.lexists(f'/proc/self/fd/{CONTROL}'):
    import socket

    with socket.socket(fileno=os.dup(CONTROL)) as s:
        if s.family != socket.AF_UNIX:
            got(f'the control socket is of family {s.family}')
