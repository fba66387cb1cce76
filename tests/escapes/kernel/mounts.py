"""The old mount calls: new file systems, binds, making read-only writable, taking covers away, another root."""
# control: fresh

here = os.getcwd().encode()
os.makedirs('target', exist_ok=True)
target = here + b'/target'
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC = 1, 32, 4096, 16384

for kind in (b'tmpfs', b'proc', b'sysfs', b'devtmpfs', b'cgroup2', b'overlay'):
    if in_child(lambda: call('mount', b'none', target, kind, 0, None)[0]) == 0:
        got(f'mount {kind.decode()}')
if in_child(lambda: call('mount', b'/', target, None, MS_BIND | MS_REC, None)[0]) == 0:
    got('bind /')
if in_child(lambda: call('mount', None, b'/', None, MS_REMOUNT | MS_BIND, None)[0]) == 0:
    got('remount / writable')
if in_child(lambda: call('umount2', b'/proc', 2)[0]) == 0:
    got('uncover what lies below /proc')
if in_child(lambda: call('chroot', target)[0]) == 0:
    got('chroot')
if in_child(lambda: reached('pivot_root', b'.', b'.')):
    got('pivot_root')
