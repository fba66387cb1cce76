"""Programs in memory files, which lie on no mount."""

AT_EMPTY_PATH = 0x1000
image = open('/bin/true', 'rb').read()
for name, flags in {'plain': 0, 'sealable': 2, 'executable': 0x10, 'huge': 4, 'sealed and executable': 0x18}.items():
    fd, _ = call('memfd_create', b'program', flags)
    if fd < 0:
        continue
    try:
        os.write(fd, image)
    except OSError:
        continue

    def start(by_fd):
        os.fchmod(fd, 0o755)
        if by_fd:
            empty = (ctypes.c_char_p * 2)(b'true', None)
            call('execveat', fd, b'', empty, (ctypes.c_char_p * 1)(None), AT_EMPTY_PATH)
        else:
            os.execv(f'/proc/self/fd/{fd}', ['true'])

    for by_fd in (True, False):
        pid = os.fork()
        if pid == 0:
            try:
                start(by_fd)
            finally:
                os._exit(99)
        if os.waitpid(pid, 0)[1] == 0:
            got(f'{name} memory file, {"by descriptor" if by_fd else "through /proc"}')
# A sealed one may be made; it must not become executable afterwards.
fd, _ = call('memfd_create', b'sealed', 8)
if fd >= 0:
    tries('made a sealed memory file executable', os.fchmod, fd, 0o755)
