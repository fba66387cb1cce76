"""The round trip of small cells in a session that is already there."""

import contextlib
import json
import time

from harness.client import Refused, request_bytes
from harness.daemon import Daemon
from harness.peers import Kernel, kernel_available
from harness.stats import Section

CELLS = {
    'x = 1 + 1': 'x = 1 + 1',
    '1 + 1, with its value': '1 + 1',
    'print("hi")': 'print("hi")',
    '1 / 0, with its traceback': '1 / 0',
}
CHUNK = 100


def timed(connection, request):
    """Microseconds of one request on a kept-alive connection."""
    began = time.perf_counter()
    status, body = connection.ask(request)
    took = time.perf_counter() - began
    if status != 200:
        raise Refused(f'{status} {body[:300]!r}')
    return took * 1e6


def timed_cell(connection, request, expected):
    began = time.perf_counter()
    status, body = connection.ask(request)
    took = time.perf_counter() - began
    if status != 200 or json.loads(body)['status'] != expected:
        raise Refused(f'{status} {body[:300]!r}')
    return took * 1e6


def in_process(space={'__name__': '__main__'}):
    began = time.perf_counter()
    exec(compile('x = 1 + 1', '<cell>', 'exec'), space)
    return (time.perf_counter() - began) * 1e6


def by_kernel(kernel):
    began = time.perf_counter()
    kernel.execute('x = 1 + 1')
    return (time.perf_counter() - began) * 1e6


def cell(effort):
    """the round trip of small cells over one connection, beside ipykernel and an in-process exec"""
    section = Section(
        'cell',
        'A small cell in an existing session',
        'Cells run one after another over one kept-alive connection.',
    )
    plain = section.row('in-process exec of x = 1 + 1', 'µs')
    health = section.row('GET /health: HTTP alone', 'µs')
    has_kernel = kernel_available()
    theirs = section.row('ipykernel: x = 1 + 1', 'µs')
    rows = [section.row(f'glovebox: {name}', 'µs', theirs if has_kernel else health) for name in CELLS]
    asleep = section.row('glovebox --no-low-idle-latency: x = 1 + 1', 'µs', rows[0])
    with Daemon() as daemon, Daemon('--no-low-idle-latency') as sleeper, contextlib.ExitStack() as stack:
        connection, other = (stack.enter_context(contextlib.closing(d.connect())) for d in (daemon, sleeper))
        session = connection.create()['id']
        slow = request_bytes('POST', f'/v1/sessions/{other.create()["id"]}/execute', {'code': 'x = 1 + 1'})
        path = f'/v1/sessions/{session}/execute'
        requests = [request_bytes('POST', path, {'code': code}) for code in CELLS.values()]
        probe = request_bytes('GET', '/health')
        kernel = stack.enter_context(Kernel()) if has_kernel else None
        if kernel:
            kernel.execute('pass')
            kernel.wait_until_idle()
        for request in requests:
            connection.ask(request)
        turns = [
            (row, timed_cell, connection, request, 'error' if '/' in code else 'ok')
            for row, request, code in zip(rows, requests, CELLS.values())
        ]
        turns += [(asleep, timed_cell, other, slow, 'ok'), (health, timed, connection, probe), (plain, in_process)]
        for i in range(effort(15)):
            for row, *call in turns[i % len(turns) :] + turns[: i % len(turns)]:
                for _ in range(CHUNK):
                    row.attempt(*call)
            if kernel:
                for _ in range(5):
                    theirs.attempt(by_kernel, kernel)
                kernel.wait_until_idle()
        connection.delete(session)
    section.fact(f'above HTTP alone, x = 1 + 1 takes {rows[0].median - health.median:.0f} µs more')
    section.target('x = 1 + 1 over one connection, median', rows[0].median, 250, 'µs')
    return section
