"""The newer mount calls, which work on descriptors."""
# control: fresh

AT_FDCWD, OPEN_TREE_CLONE = -100, 1
for name, args in {
    'fsopen': (b'tmpfs', 0),
    'open_tree': (AT_FDCWD, b'/', OPEN_TREE_CLONE),
    'move_mount': (AT_FDCWD, b'/tmp', AT_FDCWD, b'/tmp', 0),
    'fsmount': (0, 0, 0),
    'mount_setattr': (AT_FDCWD, b'/', 0, (ctypes.c_uint64 * 4)(), 32),
    'statmount': ((ctypes.c_uint64 * 4)(), ctypes.create_string_buffer(512), 512, 0),
    'listmount': ((ctypes.c_uint64 * 4)(), ctypes.create_string_buffer(512), 64, 0),
}.items():
    if reached(name, *args):
        got(name)
