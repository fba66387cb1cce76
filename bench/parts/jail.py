"""What the walls of a session cost when it starts."""

import subprocess

from harness.daemon import build_dir
from harness.stats import Section

TIMES = 300


def jail(effort):
    """what the jail adds to the start of a session"""
    section = Section(
        'jail',
        'The cost of the jail',
        'A process is cloned, exits at once and is waited for: without a jail, and in a prepared jail with namespaces, rlimits, privileges, Landlock and the filter. '
        'No Python and no daemon: the difference is the jail (bench/programs/jail_cost.c).',
    )
    bare = section.row('clone and wait', 'µs')
    walled = section.row('the same into a jail', 'µs', bare)
    done = subprocess.run([str(build_dir() / 'bench-jail'), str(effort(TIMES))], capture_output=True, text=True, timeout=300)
    for line in done.stdout.splitlines():
        first, _, second = line.partition(' ')
        if first == 'made':
            section.fact(f'making a jail, which happens ahead of need: {float(second) / 1000:.2f} ms on average')
            continue
        bare.add(float(first))
        walled.add(float(second))
    if not bare.samples:
        walled.failures.append(done.stderr[:300])
        return section
    section.target('the jail adds to a start, median', (walled.median - bare.median) / 1000, 1, 'ms')
    return section
