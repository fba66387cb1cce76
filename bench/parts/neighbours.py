"""What a session notices of another one that takes all it can get."""

import contextlib
import threading
import time

from harness.daemon import Daemon
from harness.stats import Section

CELLS = 200
IDLE = 'nobody else'
GREEDY = {
    'burns CPU (4 processes)': 'import os\nfor _ in range(3):\n    if os.fork() == 0: break\nwhile True: pass',
    'takes memory to its limit, again and again': 'while True:\n    try: x = bytearray(3 << 30)\n    except MemoryError: x = [bytearray(64 << 20) for _ in range(10)]; del x',
    'fills its disk': 'while True:\n    try: open("/tmp/x", "wb").write(bytes(300 << 20))\n    except OSError: open("/tmp/x", "wb").close()',
    'is a fork bomb': 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass',
    'prints without end': 'import os\nb = b"x" * 65536\nwhile True: os.write(1, b)',
}


class Greedy:
    """A session whose cell takes all it can until the block ends."""

    def __init__(self, daemon, code):
        self.daemon, self.code = daemon, code

    def __enter__(self):
        self.connection = self.daemon.connect()
        self.session = self.connection.create(limits={'total_output_bytes': 1 << 50})['id']
        self.connection.cell(self.session, '1')
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        time.sleep(0.5)

    def run(self):
        with contextlib.suppress(Exception):  # it is killed with its session
            self.connection.call('POST', f'/v1/sessions/{self.session}/execute', {'code': self.code, 'timeout_s': 600})

    def __exit__(self, *exc):
        with contextlib.closing(self.daemon.connect()) as other:
            other.delete(self.session)
        self.thread.join()
        self.connection.close()


def look(daemon, section, what, n, idle):
    """Cells of another session and /health, meanwhile."""
    cell = section.row(f'`1 + 1` while another session {what}' if idle else '`1 + 1`, alone', 'ms', idle and idle[0])
    health = section.row(f'/health while another session {what}' if idle else '/health, alone', 'ms', idle and idle[1])
    with contextlib.closing(daemon.connect()) as connection:
        session = connection.create()['id']
        connection.cell(session, '1')
        for _ in range(n):
            began = time.perf_counter()
            cell.attempt(lambda: connection.cell(session, '1 + 1') and (time.perf_counter() - began) * 1e3)
            began = time.perf_counter()
            health.attempt(lambda: connection.call('GET', '/health') and (time.perf_counter() - began) * 1e3)
            time.sleep(0.005)
        connection.delete(session)
    return cell, health


def neighbours(effort):
    """a greedy session beside another: the other's cells and /health"""
    n = effort(CELLS)
    section = Section(
        'neighbours',
        'Neighbours',
        'One session uses all resources that it can get; another runs trivial cells, 5 ms apart. Both CPUs are busy.',
    )
    with Daemon() as daemon:
        idle = look(daemon, section, IDLE, n, None)
        for what, code in GREEDY.items():
            with Greedy(daemon, code):
                cell, health = look(daemon, section, what, n, idle)
            section.target(f'cell while another {what}, against idle', cell.median / idle[0].median, 3, 'x')
            section.target(f'/health while another {what}, p99', health.p(99), 50, 'ms')
    return section
