"""Garbage and half frames on every descriptor that could lead to the daemon."""
# ends: killed ok error timeout
# timeout: 3
# control: none: there is no daemon to confuse
# watch: yes

for fd in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode) or stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.set_blocking(fd, False)
            for data in (b'\xff' * 64, struct.pack('<IB', 0xFFFFFFF0, 7) + b'x' * 4096, os.urandom(100000)):
                os.write(fd, data)
    except OSError:
        pass
