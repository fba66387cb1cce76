"""Memory as files: /workspace, /tmp and /dev/shm have their sizes, and what is deleted but open counts too."""
# limits: {"disk_bytes": 16777216, "memory_bytes": 536870912}

MB = 1 << 20
for place in (os.getcwd(), '/tmp', '/dev/shm'):
    limit = (64 if place == '/dev/shm' else 16) * MB
    path = f'{place}/gb-fill-{os.getpid()}'
    written = 0
    with open(path, 'wb', 0) as f:
        os.unlink(path)
        try:
            while written < limit + 40 * MB:
                written += f.write(bytes(MB))
        except OSError:
            pass
    if written > limit:
        got(f'{written // MB} MB in {place}')
