"""More memory than the limit, in one process: a MemoryError, and Python goes on."""
# limits: {"memory_bytes": 268435456}

try:
    data = bytearray(600 << 20)
    data[:: mmap.PAGESIZE] = b'x' * len(data[:: mmap.PAGESIZE])
    got('600 MB')
except MemoryError:
    pass
