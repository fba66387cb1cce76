"""System V segments, which outlive the processes that made them."""
# limits: {"memory_bytes": 268435456}
# ends: out_of_memory killed
# control: fresh
# needs: cgroups

libc.shmat.restype = ctypes.c_long
held = 0
for _ in range(14):
    segment, _ = call('shmget', 0, 50 << 20, 0o1600)
    address = -1 if segment < 0 else libc.shmat(segment, None, 0)
    if address == -1:
        break
    ctypes.memset(ctypes.c_void_p(address), 1, 50 << 20)
    libc.shmdt(ctypes.c_void_p(address))  # not counted as memory of the process any more
    held += 50
if held > 400:
    got(f'{held} MB')
