"""Tracing: a child, the parent, the init; and reading memory without tracing."""

PTRACE_TRACEME, PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_DETACH = 0, 16, 0x4206, 17
secret = ctypes.create_string_buffer(b'only in the parent', 32)

if in_child(lambda: call('ptrace', PTRACE_TRACEME, 0, 0, 0)[0]) == 0:
    got('PTRACE_TRACEME')


def read_parent():
    there, here = (ctypes.c_uint64 * 2)(ctypes.addressof(secret), 18), ctypes.create_string_buffer(32)
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(here), 18)
    return call('process_vm_readv', os.getppid(), local, 1, there, 1, 0)[0]


if in_child(read_parent) == 18:
    got("read a process's memory with process_vm_readv")
for pid in {1, os.getppid()} - {0}:
    if call('ptrace', PTRACE_SEIZE, pid, 0, 0)[0] == 0:
        call('ptrace', PTRACE_DETACH, pid, 0, 0)
        got(f'seize pid {pid}')
    if tries(f'open the memory of pid {pid}', os.open, f'/proc/{pid}/mem', os.O_RDWR) is None:
        tries(f'list the mappings of pid {pid}', lambda: open(f'/proc/{pid}/maps').read(1))
