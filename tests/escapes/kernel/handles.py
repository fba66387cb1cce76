"""Handles that lead further: from a namespace to its owner and its parent, from a child to its descriptors, from mapped memory to its file."""

for kind in os.listdir('/proc/self/ns'):
    fd = os.open(f'/proc/self/ns/{kind}', os.O_RDONLY)
    for request in range(0xB701, 0xB70C):
        if reached('ioctl', fd, request, 0):
            got(f'the {kind} namespace answers {request:#x}')
            break
    os.close(fd)

CLONE_PIDFD = 0x1000
handle = (ctypes.c_int * 1)(-1)
pid, _ = call('clone', CLONE_PIDFD | signal.SIGCHLD, 0, handle, 0, 0)
if pid == 0:
    os._exit(0)
if pid > 0:
    for request in range(0xFF01, 0xFF0C):
        if reached('ioctl', handle[0], request, 0):
            got(f'a process answers {request:#x}')
            break
    for name, args in {'pidfd_getfd': (0, 0), 'pidfd_send_signal': (0, None, 0), 'setns': (0x10000000,), 'process_madvise': (None, 0, 20, 0)}.items():
        if reached(name, handle[0], *args):
            got(name)
    os.waitpid(pid, 0)

for name in os.listdir('/proc/self/map_files')[:1]:
    tries('the file behind a mapping', os.open, f'/proc/self/map_files/{name}', os.O_RDONLY)
