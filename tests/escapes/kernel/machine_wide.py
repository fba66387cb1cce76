"""Calls that would change the whole machine, with arguments that do nothing where they are allowed."""

empty = ctypes.create_string_buffer(256)
for name, args in {
    'clock_settime': (0, None),
    'settimeofday': (ctypes.create_string_buffer(struct.pack('qq', 0, -1), 16), None),
    'init_module': (empty, 0, b''),
    'finit_module': (-1, b'', 0),
    'delete_module': (b'glovebox-no-such-module', 0),
    'reboot': (0, 0, 0, None),
    'swapon': (b'/nonexistent', 0),
    'swapoff': (b'/nonexistent',),
    'acct': (b'/nonexistent',),
    'quotactl': (0, None, 0, None),
    'syslog': (9, None, 0),
    'sethostname': (None, 64),
    'setdomainname': (None, 64),
    'ioperm': (0, 0, 0),
}.items():
    if reached(name, *args):
        got(name)
