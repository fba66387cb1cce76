"""More memory than the limit, spread over processes of which each stays below it."""
# limits: {"memory_bytes": 268435456}
# ends: out_of_memory
# needs: cgroups

r, w = os.pipe()
children = []
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        os.close(r)
        data = b'x' * (130 << 20)
        os.write(w, b'1')
        signal.pause()
    children.append(pid)
os.close(w)
os.set_blocking(r, False)
held, end = 0, time.monotonic() + 4
while held < len(children) and time.monotonic() < end and any(os.waitpid(p, os.WNOHANG)[0] == 0 for p in children[:1]):
    try:
        held += len(os.read(r, 8))
    except BlockingIOError:
        time.sleep(0.02)
for pid in children:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
if held == len(children):
    got('650 MB in five processes')
