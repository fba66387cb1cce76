"""A core file is memory written to a place that somebody else chose."""

import resource

_, hard = resource.getrlimit(resource.RLIMIT_CORE)
pid = os.fork()
if pid == 0:
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY if hard == resource.RLIM_INFINITY else max(hard, 1 << 30),) * 2)
    except (OSError, ValueError):
        pass
    os.kill(os.getpid(), signal.SIGQUIT)
    time.sleep(5)
    os._exit(0)
_, status = os.waitpid(pid, 0)
if os.WCOREDUMP(status):
    got('the kernel wrote a core file')
for name in os.listdir('.'):
    if name.startswith('core'):
        os.unlink(name)
