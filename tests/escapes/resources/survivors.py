"""A process that leaves session, group and parent, to live longer than what started it."""
# control: survivors

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3):
            os.dup2(os.open('/dev/null', os.O_RDWR), fd)
        libc.prctl(15, b'gb-survivor', 0, 0, 0)
        time.sleep(120)
    os._exit(0)
time.sleep(0.3)
