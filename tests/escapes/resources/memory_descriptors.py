"""Memory that belongs to no file system: memory files."""
# limits: {"memory_bytes": 268435456}
# ends: out_of_memory
# needs: cgroups

NOEXEC_SEAL = 8
held, files = 0, []
while held < 700:
    fd, _ = call('memfd_create', b'x', NOEXEC_SEAL)
    if fd < 0:
        break
    files.append(fd)
    try:
        for _ in range(50):
            os.write(fd, bytes(1 << 20))
            held += 1
    except OSError:
        break
if held > 400:
    got(f'{held} MB')
