"""The calls that are a hundred calls in one: every option of prctl, fcntl and setsockopt that no program here needs."""

import socket

PRCTL = {1, 2, 3, 4, 15, 16, 21, 23, 38, 39}
FCNTL = {0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1031, 1032, 1033, 1034}
SOCKET = {1, 2, 5, 6, 7, 8, 9, 10, 12, 15, 16, 18, 19, 20, 21, 29, 42}
SETSOCKOPT = 54 if X86 else 208


def passed():
    near, far = socket.socketpair()
    value = ctypes.create_string_buffer(16)
    found = [f'prctl {op}' for op in (*range(90), 0x59616D61) if op not in PRCTL | {22} and reached('prctl', op, 0, 0, 0, 0)]
    found += [f'fcntl {op}' for op in (*range(60), *range(1020, 1050)) if op not in FCNTL and reached('fcntl', near.fileno(), op, 0)]
    found += [f'SOL_SOCKET {op}' for op in range(1, 100) if op not in SOCKET and reached(SETSOCKOPT, near.fileno(), 1, op, value, 4)]
    return found


result = in_child(passed)
for what in result if isinstance(result, list) else [str(result)]:
    got(what)
if in_child(lambda: reached('prctl', 22, 2, -1)):  # with it a second filter could be laid over the first
    got('prctl 22')
