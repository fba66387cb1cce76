"""Events about files of the system, whose inodes the whole machine shares: who opens and reads them."""

fd, _ = call('inotify_init1', os.O_NONBLOCK)
if fd >= 0:
    for name, mask in (('opened', 0x20), ('read', 1), ('closed', 0x10), ('everything', 0xFFF), ('opened, with high bits', 1 << 40 | 0x20)):
        for path in (b'/usr/bin', b'/usr/lib', b'/dev/null', b'/'):
            if call('inotify_add_watch', fd, path, mask)[0] >= 0:
                got(f'who {name} {path.decode()}')
                break
