"""Output without end, past Python, by processes of its own."""

# limits: {"total_output_bytes": 4194304}
# ends: error killed

import subprocess

done = subprocess.run(['/bin/sh', '-c', 'i=0; while [ $i -lt 200 ]; do printf "%0100000d" 0; i=$((i + 1)); done >&2'])
if done.returncode == 0:
    got('twenty million bytes of output')
