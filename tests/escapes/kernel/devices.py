"""Device nodes: those of the host, and new ones."""

for name in (
    'mem kmem port kmsg kvm fuse loop-control loop0 vda sda nvme0n1 mapper/control net/tun vhost-net uinput userfaultfd '
    'tty0 console hpet cpu_dma_latency snapshot rtc0 dri/card0 input/event0 vfio/vfio pts/0 hwrng mqueue hugepages'
).split():
    if os.path.exists(f'/dev/{name}'):
        got(f'/dev/{name} is there')
if os.path.exists('/dev/tty'):  # the terminal of whoever opens it, of which code has none that it did not make
    tries('a terminal', os.open, '/dev/tty', os.O_RDWR)
for name, mode, device in (('memory', stat.S_IFCHR, os.makedev(1, 1)), ('disk', stat.S_IFBLK, os.makedev(254, 0)), ('null', stat.S_IFCHR, os.makedev(1, 3))):
    if call('mknodat', -100, f'node-{name}'.encode(), mode | 0o600, device)[0] == 0:
        os.unlink(f'node-{name}')
        got(f'made a node for {name}')
