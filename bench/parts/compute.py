"""How fast code runs inside a session, against the same interpreter outside."""

import contextlib
import json
import statistics

from harness.daemon import Daemon
from harness.peers import Worker
from harness.stats import Section

LIMIT = 1.03
TURNS = 25  # short ones: some fall into moments in which nothing else runs

# Each leaves its CPU seconds in `answer`: time in which somebody else had the CPU does not count.
_TIMED = """
import time
def work():
{body}
began = time.process_time()
work()
answer = time.process_time() - began
"""
PROGRAMS = {
    'loop': """
    total = 0
    for i in range(200_000):
        total += i & 7
    return total
""",
    'string': """
    words = []
    for i in range(20_000):
        words.append(f'{i:05d}'.replace('0', 'o').upper())
    return len(','.join(words).split(','))
""",
    'recursion': """
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    return fib(22)
""",
}


class _Here:
    """A fresh session as one contender."""

    def __init__(self, daemon):
        self.connection = daemon.connect()
        self.session = self.connection.create()['id']

    def run(self, code):
        observation = self.connection.cell(self.session, code + '\nanswer')
        return json.loads(observation['result']['text/plain'])

    def close(self):
        self.connection.delete(self.session)
        self.connection.close()


def take_turns(rows, code, worker, here):
    for turn in range(TURNS):
        for name, (outside, inside) in rows.items():
            # Who goes first changes: a warm CPU helps whoever comes second.
            for side in (outside, inside) if turn % 2 else (inside, outside):
                if side is outside:
                    side.attempt(lambda: worker.run(code[name])[1] * 1e3)
                else:
                    side.attempt(lambda: here.run(code[name]) * 1e3)


def compute(effort):
    """a loop, strings and recursion inside a session and in python3"""
    section = Section(
        'compute',
        'Speed of code inside a session',
        'CPU time of the same function, alternately in a session and in python3, both replaced by new ones several '
        'times. On a machine that others use too, the best times say more than the medians.',
    )
    rows = {}
    for name in PROGRAMS:
        outside = section.row(f'{name}: python3', 'ms')
        rows[name] = outside, section.row(f'{name}: session', 'ms', outside)
    code = {name: _TIMED.format(body=body.strip('\n')) for name, body in PROGRAMS.items()}
    # Where a process's memory happens to lie makes a few percent: so several of both, and of the daemon they come from.
    for _ in range(effort(5, 1)):
        with Daemon() as daemon:
            for _ in range(2):
                with Worker() as worker, contextlib.closing(_Here(daemon)) as here:
                    take_turns(rows, code, worker, here)
    for name, (outside, inside) in rows.items():
        pairs = statistics.median(i / o for i, o in zip(inside.samples, outside.samples))
        section.fact(
            f'{name}: best against best {inside.best / outside.best:.3f}, median of the pairs {pairs:.3f}'
        )
        section.target(
            f'{name} in a session against python3, best against best', inside.best / outside.best, LIMIT, '×'
        )
    return section
