"""The way of a tool call: out of the jail, to a function of the client, and back."""

import json
import socket
import sys
import threading
import time
from pathlib import Path

from harness.client import Refused
from harness.daemon import Daemon
from harness.stats import Section

CHUNK = 100
CELL = f"""
from time import perf_counter as now
took = []
for i in range({CHUNK}):
    began = now()
    assert add(i, b=1) == i + 1
    took.append((now() - began) * 1e6)
[round(t, 1) for t in took]
"""
AT_ONCE = f"""
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter as now
began = now()
with ThreadPoolExecutor(8) as pool:
    assert list(pool.map(lambda i: add(i, b=1), range({CHUNK}))) == list(range(1, {CHUNK} + 1))
(now() - began) / {CHUNK} * 1e6
"""


def client():
    """The Python client of this tree."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'clients/python/src'))
    import glovebox

    return glovebox


def add(a: int, b: int = 0) -> int:
    return a + b


class Echo:
    """What two Python threads need at least: a line of JSON there and one back, over a socket, without any server between."""

    def __init__(self):
        self.near, far = socket.socketpair()
        self.lines = self.near.makefile('rwb')
        threading.Thread(target=self._serve, args=(far,), daemon=True).start()

    @staticmethod
    def _serve(far):
        lines = far.makefile('rwb')
        for line in lines:
            given = json.loads(line)
            lines.write(json.dumps({'value': add(**given)}).encode() + b'\n')
            lines.flush()

    def call(self):
        began = time.perf_counter()
        self.lines.write(json.dumps({'a': 1, 'b': 1}).encode() + b'\n')
        self.lines.flush()
        if json.loads(self.lines.readline())['value'] != 2:
            raise Refused('a wrong sum')
        return (time.perf_counter() - began) * 1e6

    def close(self):
        self.lines.close()
        self.near.close()


def chunk(row, session):
    try:
        for value in session.run(CELL, check=True).value:
            row.add(value)
    except Exception as e:
        row.failures.append(f'{type(e).__name__}: {e}'[:300])


def tools(effort):
    """a tool call: from code in a session to a function of the client and back"""
    section = Section(
        'tools',
        'A call of a tool',
        'Measured by the code in the session, over the WebSocket of the Python client; arguments and result are checked against their schemas.',
    )
    floor = section.row('two Python threads: JSON over a socket, nothing between', 'µs')
    one = section.row('glovebox: add(i, b=1), one after another', 'µs', floor)
    many = section.row('glovebox: the same from 8 threads at once, per call', 'µs', floor)
    echo = Echo()
    with Daemon() as daemon, client().Glovebox(f'http://127.0.0.1:{daemon.port}') as box, box.session(tools=[add]) as session:
        session.run(CELL, check=True)
        for _ in range(effort(15)):
            for _ in range(CHUNK):
                floor.attempt(echo.call)
            chunk(one, session)
            many.attempt(lambda: session.run(AT_ONCE, check=True).value)
    echo.close()
    section.target('a tool call and back, median', one.median, 500, 'µs')
    return section
