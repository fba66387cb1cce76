"""Limits of a process that it would like to raise: size of a file, open files, processes, and above all those of the session."""

# limits: {"file_bytes": 1048576, "open_files": 64, "processes": 40}

import resource

for name, what in ((resource.RLIMIT_FSIZE, 'file size'), (resource.RLIMIT_NOFILE, 'open files'), (resource.RLIMIT_NPROC, 'processes')):
    try:
        resource.setrlimit(name, (resource.RLIM_INFINITY, resource.RLIM_INFINITY) if name != resource.RLIMIT_NOFILE else (4096, 4096))
    except (OSError, ValueError):
        pass
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with open('/tmp/glovebox-large', 'wb') as f:
        f.write(bytes(2 << 20))
    got('a file larger than one may be')
except OSError:
    pass
finally:
    os.unlink('/tmp/glovebox-large')
opened = []
try:
    for _ in range(200):
        opened.append(os.open('/dev/null', os.O_RDONLY))
    got('more open files')
except OSError:
    pass
for fd in opened:
    os.close(fd)
