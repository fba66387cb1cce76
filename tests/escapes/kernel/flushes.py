"""Flushes of the machine's disk, thousands a second, through a file that may only be read. Where the call gets to the kernel, it complains
about a descriptor and an address that are none."""

closed = os.dup(0)
os.close(closed)
for name, number in {'fsync': 74 if X86 else 82, 'fdatasync': 75 if X86 else 83, 'syncfs': 306 if X86 else 267, 'sync_file_range': 277 if X86 else 84}.items():
    if call(number, closed, 0, 0, 0)[1] == errno.EBADF:
        got(name)
MS_SYNC, nowhere = 4, 1 << 46
if call(26 if X86 else 227, nowhere, 4096, MS_SYNC)[1] == errno.ENOMEM:
    got('msync')
