"""More memory than the limit, in a program that was started."""
# limits: {"memory_bytes": 268435456}
# ends: out_of_memory

import subprocess

done = subprocess.run(
    ['/usr/bin/python3', '-c', 'x = b"x" * (700 << 20); print("held")'], capture_output=True, text=True, timeout=20
)
if 'held' in done.stdout:
    got('700 MB')
