"""Output: how fast it flows, and what others notice of it."""

import contextlib
import json
import select
import subprocess
import time

from harness.client import request_bytes
from harness.daemon import Daemon
from harness.peers import PYTHON
from harness.stats import Section

TOTAL = 100_000_000
WAYS = {
    'lines of 1 MB': 'line = "x" * 999_999\nfor _ in range(100):\n    print(line)',
    'lines of 100 bytes': 'line = "x" * 99\nfor _ in range(1_000_000):\n    print(line)',
}
BUSY = 'import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end:\n    pass'
PROBE = 'x = 1 + 1'


class Neighbour:
    """A session whose trivial cells are timed while something else goes on."""

    def __init__(self, daemon):
        self.connection = daemon.connect()
        session = self.connection.create()['id']
        self.request = request_bytes('POST', f'/v1/sessions/{session}/execute', {'code': PROBE})

    def ask(self, row):
        began = time.perf_counter()
        status, body = self.connection.ask(self.request)
        took = time.perf_counter() - began
        if status == 200 and json.loads(body)['status'] == 'ok':
            row.add(took * 1e6)
        else:
            row.failures.append(f'{status} {body[:200]!r}')
        time.sleep(0.0005)

    def alone(self, row, n):
        for _ in range(n):
            self.ask(row)

    def during(self, row, connection, request):
        """Times cells until the answer to `request` comes. Returns the seconds it took, and it."""
        began = time.perf_counter()
        connection.send(request)
        while not select.select([connection], [], [], 0)[0]:
            self.ask(row)
        status, body = connection.receive()
        return time.perf_counter() - began, json.loads(body)


def outside(code):
    """MB/s of python3 into a pipe that is read and thrown away."""
    process = subprocess.Popen([PYTHON, '-c', code], stdout=subprocess.PIPE, bufsize=0)
    first = process.stdout.read(65536)  # the interpreter's start is not printing
    began, seen = time.perf_counter(), len(first)
    while data := process.stdout.read(1 << 18):
        seen += len(data)
    took = time.perf_counter() - began
    process.wait()
    if seen != TOTAL:
        raise RuntimeError(f'{seen} bytes')
    return (seen - len(first)) / took / 1e6


def flood(connection, session, code, neighbour, row):
    """MB/s of one cell that prints, while the neighbour's cells are timed."""
    request = request_bytes('POST', f'/v1/sessions/{session}/execute', {'code': code})
    if neighbour:
        took, answer = neighbour.during(row, connection, request)
    else:
        began = time.perf_counter()
        answer = json.loads(connection.ask(request)[1])
        took = time.perf_counter() - began
    # JSON keeps head and tail; together with what was left out it must be all that was printed.
    kept = answer['stdout'].count('x') + answer['stdout'].count('\n')
    if answer['status'] != 'ok' or abs(kept + answer['truncated']['stdout'] - TOTAL) > 200:
        raise RuntimeError(f'{answer["status"]} {kept} {answer["truncated"]}')
    return TOTAL / took / 1e6


def printing(effort):
    """100 MB of printing: its speed, and how much slower other sessions' cells are meanwhile"""
    section = Section(
        'printing',
        'Printing 100 MB',
        'The answer keeps 1 MiB; time from the request to the answer. Meanwhile a neighbour runs `x = 1 + 1` in its own '
        'session. For comparison, the first session only computes, which also uses a CPU.',
    )
    quiet = section.row('neighbour: x = 1 + 1, nothing else', 'µs')
    busy = section.row('neighbour: while another computes', 'µs', quiet)
    rows = {}
    for name in WAYS:
        pipe = section.row(f'{name}: python3 into a pipe', 'MB/s')
        alone = section.row(f'{name}: session', 'MB/s', pipe)
        beside = section.row(f'{name}: session, neighbour timed', 'MB/s', pipe)
        rows[name] = pipe, alone, beside, section.row(f'neighbour: {name} beside it', 'µs', quiet)
    with Daemon() as daemon, contextlib.closing(daemon.connect()) as connection:
        session, neighbour = connection.create()['id'], Neighbour(daemon)
        neighbour.alone(section.row('', 'µs'), 20)
        section.rows.pop()  # the first ones do not count
        spin = request_bytes('POST', f'/v1/sessions/{session}/execute', {'code': BUSY})
        for _ in range(effort(5)):
            neighbour.alone(quiet, 200)
            neighbour.during(busy, connection, spin)
            for name, code in WAYS.items():
                pipe, alone, beside, felt = rows[name]
                pipe.attempt(outside, code)
                alone.attempt(flood, connection, session, code, None, None)
                neighbour.alone(quiet, 100)
                beside.attempt(flood, connection, session, code, neighbour, felt)
    for name, (pipe, alone, beside, felt) in rows.items():
        section.target(f'printing {name}, median', alone.median, 100, 'MB/s', at_least=True)
        section.target(
            f"a neighbour's cells meanwhile ({name}), against nothing else",
            felt.median / quiet.median,
            2,
            '×',
        )
    return section
