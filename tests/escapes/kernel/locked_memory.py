"""Memory that cannot be swapped out, more than everybody may have: as a mapping, and as a segment."""
# control: fresh

MAP_LOCKED, SHM_LOCK, IPC_RMID, SIZE = 0x2000, 11, 0, 64 << 20
libc.mmap.restype = ctypes.c_long
if libc.mmap(None, ctypes.c_size_t(SIZE), 3, 0x22 | MAP_LOCKED, -1, ctypes.c_long(0)) != -1:
    got('a mapping')
segment, _ = call('shmget', 0, SIZE, 0o1600)
if segment >= 0:
    if call('shmctl', segment, SHM_LOCK, 0)[0] == 0:
        got('a segment')
    call('shmctl', segment, IPC_RMID, 0)
