"""Processes that leave their parent: each is reaped by the init, none of their numbers is lost."""
# limits: {"processes": 40}
# control: none: it shows that a limit is given back, which a machine without one cannot

for _ in range(400):
    for attempt in range(200):
        try:
            pid = os.fork()
            break
        except OSError:
            time.sleep(0.005)
    else:
        got('orphans that ended use the limit up')
        break
    if pid == 0:
        try:
            os.fork()
        except OSError:
            pass
        os._exit(0)
    os.waitpid(pid, 0)
