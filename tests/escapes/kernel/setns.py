"""Joining namespaces through /proc: our own again (which gives capabilities back in none, but reaches the kernel), and pid 1's."""

for who in ('self', '1'):
    for kind in os.listdir('/proc/self/ns'):

        def join():
            try:
                fd = os.open(f'/proc/{who}/ns/{kind}', os.O_RDONLY)
            except OSError:
                return False
            return call('setns', fd, 0)[0] == 0

        if in_child(join):
            got(f'setns /proc/{who}/ns/{kind}')
