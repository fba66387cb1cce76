"""Where a session's start and a cell's round trip spend their time, as the daemon and the guests count it themselves."""

import contextlib
import re
import time

from harness.client import request_bytes
from harness.daemon import Daemon
from harness.stats import Section
from parts.start import CELL

START = {
    'clone': 'copying the zygote: page tables, to the first instruction',
    'join': 'joining the control groups',
    'enter': 'namespaces, limits, user, capabilities, Landlock',
    'filter': 'loading the system call filter',
    'python': 'Python after a fork',
    'spawn': 'between: waking up, waiting for a CPU, the daemon',
}
CELLS = {
    'setup': 'environment, limits and seed of the session',
    'compile': 'source to code',
    'run': 'the code itself',
    'value': 'its value or error, as people see it',
    'report': 'flushing what was printed, looking for changed files',
    'cell': 'between: waking up, waiting for a CPU, the daemon',
    'encode': 'the observation as JSON, sent',
}
_LINE = re.compile(r'glovebox_step_seconds_(sum|count)\{step="(\w+)"\} (\S+)')


def read_steps(connection):
    """step → (seconds, times) since the daemon's start"""
    _, body = connection.ask(request_bytes('GET', '/metrics'))
    found = {}
    for kind, step, value in _LINE.findall(body.decode()):
        found.setdefault(step, {})[kind] = float(value)
    return {step: (v['sum'], v['count']) for step, v in found.items()}


class Split:
    """Rows for the steps, filled with the difference between two readings."""

    def __init__(self, section, name, steps):
        self.total = section.row(f'{name}: as the client sees it', 'ms')
        self.rows = {step: section.row(f'… {text} ({step})', 'ms') for step, text in steps.items()}
        self.rest = section.row('… all else: HTTP, the client itself', 'ms')

    def add(self, before, after, ms):
        """One sample: milliseconds of the client, and the steps in between."""
        rest = ms
        self.total.add(ms)
        for step, row in self.rows.items():
            spent = (after[step][0] - before[step][0]) * 1e3
            row.add(spent)
            rest -= spent
        self.rest.add(max(rest, 0))


def measure(connection, split, work):
    before = read_steps(connection)
    began = time.perf_counter()
    value = work()
    ms = (time.perf_counter() - began) * 1e3
    split.add(before, read_steps(connection), ms)
    return value


def create_and_run(connection):
    session = connection.create()['id']
    connection.cell(session, CELL)
    return session


def explain(effort):
    """a session's start and a cell's round trip, taken apart"""
    section = Section(
        'explain',
        'Where the time goes, step by step',
        'Measured by the daemon and the guests themselves (`glovebox_step_seconds` in /metrics), one session at a time.',
    )
    start = Split(section, 'create and a first cell with pandas, forked on demand', {**START, **CELLS})
    ready = Split(section, 'the same in a guest that was ready', CELLS)
    later = Split(section, 'a trivial cell', {k: v for k, v in CELLS.items() if k != 'setup'})
    with Daemon('--ready', '0') as bare, Daemon() as warm, contextlib.ExitStack() as stack:
        far, near = (stack.enter_context(contextlib.closing(d.connect())) for d in (bare, warm))
        for _ in range(effort(60, 5)):
            time.sleep(0.15)
            session = measure(far, start, lambda: create_and_run(far))
            far.delete(session)
            session = measure(near, ready, lambda: create_and_run(near))
            for _ in range(3):
                measure(near, later, lambda: near.cell(session, 'x = 1'))
            near.delete(session)
    return section
