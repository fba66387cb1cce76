"""Processes that make processes, without end; the neighbours must not notice."""
# limits: {"processes": 60}
# timeout: 2
# ends: timeout killed
# control: none: without a limit it takes the machine down
# watch: yes

while True:
    try:
        os.fork()
    except OSError:
        pass
