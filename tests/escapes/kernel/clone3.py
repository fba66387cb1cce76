"""clone3, whose flags lie in memory where no filter sees them."""


def try_it(flags):
    args = (ctypes.c_uint64 * 11)()
    args[0], args[4] = flags, signal.SIGCHLD
    pid, _ = call('clone3', args, ctypes.sizeof(args))
    if pid == 0:
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
    return pid > 0


for name, flags in {'user': 0x10000000, 'mount': 0x20000, 'net': 0x40000000}.items():
    if in_child(lambda: try_it(flags)):
        got(f'clone3 into a new {name} namespace')
