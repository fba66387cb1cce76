"""Signals and the like to pid 1, which holds the jail. Only number 0 and harmless ones, so that the control is harmless too."""

SIGURG = signal.SIGURG  # ignored by whoever does not ask for it
info = ctypes.create_string_buffer(struct.pack('iii', SIGURG, 0, -1), 128)
for name, args in {
    'kill': (1, 0),
    'kill with a high bit': (1 | 1 << 32, 0),
    'tkill': (1, 0),
    'tgkill': (1, 1, 0),
    'rt_sigqueueinfo': (1, SIGURG, info),
    'rt_tgsigqueueinfo': (1, 1, SIGURG, info),
    'prlimit64': (1, 7, None, ctypes.create_string_buffer(16)),
    'pidfd_open': (1, 0),
    'process_mrelease': (1, 0),
}.items():
    if call(name.split()[0], *args)[0] != -1:
        got(name)
r, w = os.pipe()
F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE, F_NOTIFY = 8, 15, 10, 1024, 1026
for name, args in {'F_SETOWN': (F_SETOWN, 1), 'F_SETOWN_EX': (F_SETOWN_EX, (ctypes.c_int * 2)(1, 1)), 'F_SETSIG': (F_SETSIG, 23), 'F_NOTIFY': (F_NOTIFY, 0)}.items():
    if reached('fcntl', r, *args):
        got(name)
