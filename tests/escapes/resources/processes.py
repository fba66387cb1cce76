"""More processes than the limit."""
# limits: {"processes": 40}
# control: fresh

children = []
try:
    while len(children) < 300:
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        children.append(pid)
except OSError:
    pass
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
if len(children) > 40:
    got(f'{len(children)} processes')
