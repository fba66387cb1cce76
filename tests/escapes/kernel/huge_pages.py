"""The machine's reserved huge pages, which no limit of a session counts."""

MAP_HUGETLB, MAP_NORESERVE, MFD_HUGETLB, NOEXEC_SEAL = 0x40000, 0x4000, 4, 8
libc.mmap.restype = ctypes.c_long
if libc.mmap(None, ctypes.c_size_t(2 << 20), 3, 0x22 | MAP_NORESERVE | MAP_HUGETLB, -1, ctypes.c_long(0)) != -1:
    got('a mapping of them')  # not touched: there may be none
for flags in (MFD_HUGETLB, MFD_HUGETLB | NOEXEC_SEAL):
    if call('memfd_create', b'x', flags)[0] >= 0:
        got('a file of them')
