"""How fast code runs inside a session, against the same interpreter outside."""

import contextlib
import json
import statistics

from harness.daemon import Daemon
from harness.peers import Worker
from harness.stats import Section

LIMIT = 1.03
TURNS = 15  # short ones: some fall into moments in which nothing else runs

# Each leaves in `answer` the CPU seconds of its first call, and of the best of the calls after it: time in which somebody
# else had the CPU does not count.
_TIMED = """
import time
def work():
{body}
def timed():
    began = time.process_time()
    work()
    return time.process_time() - began
answer = [timed(), min(timed() for _ in range(3))]
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
    'numpy': """
    import numpy
    values = numpy.arange(20_000, dtype='f8')
    for _ in range(50):
        values = numpy.sqrt(values * values + 1)
    return float(values.sum())
""",
}
WITH_TARGET = 'loop', 'string', 'recursion'


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


class _Pair:
    """A program's two rows, and what the first call in each cell took."""

    def __init__(self, section, name):
        self.outside = section.row(f'{name}: python3', 'ms')
        self.inside = section.row(f'{name}: session', 'ms', self.outside)
        self.first = {self.outside: [], self.inside: []}

    def attempt(self, row, run):
        def call():
            first, best = run()
            self.first[row].append(first * 1e3)
            return best * 1e3

        row.attempt(call)

    @property
    def first_costs(self):
        """What a first call takes more inside than outside, in ms."""
        return statistics.median(self.first[self.inside]) - statistics.median(self.first[self.outside])


def take_turns(pairs, code, worker, here):
    for turn in range(TURNS):
        for name, pair in pairs.items():
            sides = [
                (pair.outside, lambda: worker.run(code[name])[1]),
                (pair.inside, lambda: here.run(code[name])),
            ]
            # Who goes first changes: a warm CPU helps whoever comes second.
            for row, run in sides if turn % 2 else reversed(sides):
                pair.attempt(row, run)


def compute(effort):
    """a loop, strings, recursion and numpy inside a session and in python3"""
    section = Section(
        'compute',
        'Speed of code inside a session',
        'CPU time of the same function, measured alternately in a session and in python3, which are restarted several '
        'times; the best of three calls in a cell. On a shared machine the best times are more meaningful than the '
        'medians. The first call in a cell also copies memory pages that a snapshot shares with the session.',
    )
    pairs = {name: _Pair(section, name) for name in PROGRAMS}
    code = {name: _TIMED.format(body=body.strip('\n')) for name, body in PROGRAMS.items()}
    # Where a process's memory happens to lie makes a few percent: so several of both, and of the daemon they come from.
    for _ in range(effort(5, 1)):
        with Daemon() as daemon:
            for _ in range(2):
                with Worker() as worker, contextlib.closing(_Here(daemon)) as here:
                    take_turns(pairs, code, worker, here)
    for name, pair in pairs.items():
        ratio = pair.inside.best / pair.outside.best
        each = statistics.median(i / o for i, o in zip(pair.inside.samples, pair.outside.samples))
        section.fact(
            f'{name}: best against best {ratio:.3f}, median of the pairs {each:.3f}; '
            f'the first call in a cell takes {pair.first_costs:.2f} ms more than in python3'
        )
        if name in WITH_TARGET:
            section.target(f'{name} in a session against python3, best against best', ratio, LIMIT, '×')
    return section
