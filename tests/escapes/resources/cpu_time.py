"""Processor time used by others: children of children that nobody waits for, so that the interpreter itself looks idle."""

# limits: {"cpu_s": 0.5}
# timeout: 60
# ends: timeout
# needs: cgroups

for _ in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            while time.process_time() < 2:
                pass
        os._exit(0)
time.sleep(10)
got('four seconds of processor time that nobody counted')
