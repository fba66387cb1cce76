"""More processor time than the share."""
# limits: {"cpus": 0.2}
# timeout: 20
# needs: cgroups

children = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            pass
        os._exit(0)
    children.append(pid)
start = time.monotonic()
for pid in children:
    os.waitpid(pid, 0)
used = os.times()
share = (used.children_user + used.children_system) / (time.monotonic() - start)
if share > 0.4:
    got(f'{share:.2f} processors')
