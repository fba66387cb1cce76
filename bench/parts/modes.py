"""Time to the first result in the three ways people publish it: one after another, every 200 ms, all at once."""

import contextlib
import subprocess
import threading
import time

from harness.daemon import Daemon
from harness.peers import PYTHON, python_once
from harness.stats import Section
from parts.start import BURST, CELL, burst, create_and_run

STAGGER = 0.2  # seconds between two starts
PEERS_AT_ONCE = 20  # of python3: a hundred of them take this kind of machine half a minute


def staggered(row, starts, begin):
    """Calls begin() in a thread of its own every 200 ms; each adds what it took."""
    threads = []
    for _ in range(starts):
        thread = threading.Thread(target=row.attempt, args=(begin,))
        thread.start()
        threads.append(thread)
        time.sleep(STAGGER)
    for thread in threads:
        thread.join()


def by_session(daemon):
    with contextlib.closing(daemon.connect()) as connection:
        return create_and_run(connection)


def python_at_once(row, n):
    began = time.perf_counter()
    waiting = [
        subprocess.Popen([PYTHON, '-c', CELL], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(n)
    ]
    for process in waiting:
        if process.wait():
            row.failures.append(f'exit code {process.returncode}')
        else:
            row.add((time.perf_counter() - began) * 1e3)


def modes(effort):
    """time to the first result: sequential, staggered by 200 ms, a burst of 100"""
    section = Section(
        'modes',
        'Time to the first result, three ways',
        f'The cell of the first table, each over a new connection: one after another; one every {STAGGER * 1e3:.0f} ms whether or '
        f'not the previous one has ended; {BURST} at once (python3: {PEERS_AT_ONCE} at once).',
    )
    names = 'one after another', 'every 200 ms', 'all at once'
    peers = [section.row(f'{name}: python3 -c', 'ms') for name in names]
    ours = [section.row(f'{name}: glovebox', 'ms', peer) for name, peer in zip(names, peers)]
    with Daemon() as daemon:
        for _ in range(effort(10, 3)):
            peers[0].attempt(lambda: python_once(CELL) * 1e3)
            for _ in range(5):
                ours[0].attempt(by_session, daemon)
        for row, begin in (
            (peers[1], lambda: python_once(CELL) * 1e3),
            (ours[1], lambda: by_session(daemon)),
        ):
            staggered(row, effort(30, 5), begin)
        python_at_once(peers[2], PEERS_AT_ONCE)
        for _ in range(effort(3, 1)):
            time.sleep(0.5)
            burst(daemon, ours[2])
    return section
