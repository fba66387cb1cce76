"""Memory at address zero makes a null pointer of the kernel's a pointer of ours."""

MAP_FIXED, MAP_PRIVATE, MAP_ANONYMOUS = 0x10, 2, 0x20
libc.mmap.restype = ctypes.c_long
flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS
if libc.mmap(None, ctypes.c_size_t(4096), 3, flags, -1, ctypes.c_long(0)) == 0:
    got('mapped address 0')
    libc.munmap(None, ctypes.c_size_t(4096))
