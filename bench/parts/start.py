"""From the wish for a session to the first cell's answer."""

import contextlib
import json
import selectors
import time

from harness.client import Refused, request_bytes
from harness.daemon import Daemon
from harness.peers import Kernel, kernel_available, python_once
from harness.stats import Section

CELL = 'import pandas as pd\npd.DataFrame({"a": [1, 2, 3]})["a"].sum()'
PAUSE = 0.04  # after each sample: what a daemon does for the next session does not fall into the next sample
BURST = 100

# Requests are made before the clock runs, as far as they can be: after a pause, JSON in Python takes a tenth of a millisecond.
CREATE = request_bytes('POST', '/v1/sessions', {})
BEFORE_ID, AFTER_ID = request_bytes('POST', '/v1/sessions/ID/execute', {'code': CELL}).split(b'ID')
ID = b'"id":"'


def execute_bytes(created):
    """The request for the cell; `created`: the answer that has the session's id."""
    at = created.index(ID) + len(ID)
    return BEFORE_ID + created[at : created.index(b'"', at)] + AFTER_ID


def check_answer(status, body):
    answer = json.loads(body)
    if status != 200 or answer['status'] != 'ok' or answer['result'].get('application/json') != 6:
        raise Refused(f'{status} {body[:300]!r}')


def create_and_run(connection, created=None):
    """Milliseconds from sending the first request to having the cell's answer; the session is deleted after."""
    began = time.perf_counter()
    status, body = connection.ask(CREATE)
    if status != 201:
        raise Refused(f'{status} {body[:300]!r}')
    middle = time.perf_counter()
    status, answer = connection.ask(execute_bytes(body))
    ended = time.perf_counter()
    check_answer(status, answer)
    connection.delete(json.loads(body)['id'])
    if created is not None:
        created.add((middle - began) * 1e3)
    return (ended - began) * 1e3


def start_kernel():
    began = time.perf_counter()
    with Kernel() as kernel:
        kernel.execute(CELL)
        return (time.perf_counter() - began) * 1e3


class _Member:
    """One of a burst: a connection that creates a session and then runs the cell."""

    def __init__(self, connection):
        self.connection, self.session, self.took = connection, None, None

    def begin(self):
        self.began = time.perf_counter()
        self.connection.send(CREATE)

    def go_on(self):
        """Reads the answer that has come; True when it was the last one."""
        status, body = self.connection.receive()
        if self.session is None:
            if status != 201:
                raise Refused(f'{status} {body[:300]!r}')
            self.session = json.loads(body)['id']
            self.connection.send(execute_bytes(body))
            return False
        check_answer(status, body)
        self.took = (time.perf_counter() - self.began) * 1e3
        return True


def burst(daemon, row):
    """All at once on connections of their own. Returns milliseconds until the last one has its answer."""
    members = [_Member(daemon.connect()) for _ in range(BURST)]
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.connection, selectors.EVENT_READ, member)
        began = time.perf_counter()
        for member in members:
            member.begin()
        waiting = len(members)
        while waiting and (ready := selector.select(30)):
            for key, _ in ready:
                try:
                    done = key.data.go_on()
                except (Refused, OSError, ValueError) as e:
                    row.failures.append(str(e)[:300])
                    done = True
                if done:
                    selector.unregister(key.fileobj)
                    waiting -= 1
        total = (time.perf_counter() - began) * 1e3
    for member in members:
        if member.took is not None:
            row.add(member.took)
        if member.session:
            member.connection.delete(member.session)
        member.connection.close()
    row.failures += ['no answer within 30 s'] * waiting
    return total


def start(effort):
    """a session's start to its first answer, beside python3 and ipykernel"""
    section = Section(
        'start',
        'From nothing to the first answer',
        'Create a session, run `import pandas as pd; pd.DataFrame({"a": [1, 2, 3]})["a"].sum()`, and wait for its answer, '
        'over HTTP. '
        '`python3 -c` and ipykernel run the same line.',
    )
    python = section.row('python3 -c', 'ms')
    kernel = section.row('ipykernel with jupyter_client', 'ms', python)
    ready = section.row('guest ready', 'ms', python)
    created = section.row('… of which creating', 'ms')
    demand = section.row('forked on demand', 'ms', python)
    row = section.row('back to back', 'ms', python)
    crowd = section.row(f'{BURST} at once', 'ms', python)
    with Daemon() as warm, Daemon('--ready', '0') as bare, contextlib.ExitStack() as stack:
        near, far = (stack.enter_context(contextlib.closing(d.connect())) for d in (warm, bare))
        has_kernel = kernel_available()
        rounds = effort(200, 20)
        for i in range(rounds):
            ready.attempt(create_and_run, near, created)
            time.sleep(PAUSE)
            demand.attempt(create_and_run, far)
            time.sleep(PAUSE)
            if i % max(rounds // effort(10), 1) == 0:
                python.attempt(lambda: python_once(CELL) * 1e3)
                if has_kernel:
                    kernel.attempt(start_kernel)
                time.sleep(PAUSE)
        for _ in range(effort(200)):
            row.attempt(create_and_run, near)
        totals = []
        for _ in range(effort(3, 1)):
            time.sleep(0.5)
            totals.append(burst(warm, crowd))
    if not has_kernel:
        section.fact('ipykernel is not installed: apt install python3-ipykernel python3-jupyter-client')
    section.fact(
        f'{BURST} at once: the last one had its answer after {min(totals):.0f} ms (best of {len(totals)})'
    )
    section.target('create → first answer, guest ready, median', ready.median, 2, 'ms')
    section.target('create → first answer, guest ready, p99', ready.p(99), 25, 'ms')
    section.target('create → first answer, forked on demand, median', demand.median, 8, 'ms')
    section.target('create → first answer, forked on demand, p99', demand.p(99), 25, 'ms')
    section.target(
        f'{BURST} creates at once, answered',
        len(crowd.samples) / crowd.attempts * 100,
        100,
        '%',
        at_least=True,
    )
    return section
