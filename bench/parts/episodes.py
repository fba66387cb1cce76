"""What is done in a second: episodes as a trainer runs them (a session, ten steps, its end), and single runs; by 1, 8 and 64 clients."""

import json
import selectors
import time

from harness.client import Refused, request_bytes
from harness.daemon import Daemon
from harness.peers import Worker
from harness.stats import Section

STEPS = 10
CLIENTS = 1, 8, 64
SECONDS = 6
CREATE = request_bytes('POST', '/v1/sessions', {})
STEP = 'total = sum(i * i for i in range(100))\nprint(total)'
RUN = request_bytes('POST', '/v1/run', {'code': STEP})


class Client:
    """One of the clients: a connection, and what it has done."""

    def __init__(self, daemon):
        self.connection = daemon.connect()
        self.done = 0

    def receive(self):
        status, body = self.connection.receive()
        if status >= 300:
            raise Refused(f'{status} {body[:300]!r}')
        return body

    def end(self, row):
        row.add((time.perf_counter() - self.began) * 1e3)
        self.done += 1
        self.begin()


class OneShot(Client):
    """Runs the step again and again, in a session of its own each time."""

    def begin(self):
        self.began = time.perf_counter()
        self.connection.send(RUN)

    def go_on(self, row):
        if b'328350' not in (body := self.receive()):
            raise Refused(f'a run answered {body[:300]!r}')
        self.end(row)


class Episode(Client):
    """Episode after episode; knows where in it it is."""

    def begin(self):
        self.session, self.step = None, 0
        self.began = time.perf_counter()
        self.connection.send(CREATE)

    def go_on(self, row):
        """Takes the answer that has come and sends the next request; adds the episode's time when it ended."""
        body = self.receive()
        if self.session is None:
            self.session = json.loads(body)['id']
            self.request = request_bytes('POST', f'/v1/sessions/{self.session}/execute', {'code': STEP})
        elif self.step <= STEPS and b'328350' not in body:
            raise Refused(f'a step answered {body[:300]!r}')
        if self.step < STEPS:
            self.connection.send(self.request)
        elif self.step == STEPS:
            self.connection.send(request_bytes('DELETE', f'/v1/sessions/{self.session}'))
        else:
            self.end(row)
            return
        self.step += 1


def run_clients(kind, daemon, n, seconds, row):
    """Episodes, or runs, a second that n clients get."""
    clients = [kind(daemon) for _ in range(n)]
    with selectors.DefaultSelector() as selector:
        began = time.perf_counter()
        for client in clients:
            selector.register(client.connection, selectors.EVENT_READ, client)
            client.begin()
        while time.perf_counter() - began < seconds:
            for key, _ in selector.select(1):
                try:
                    key.data.go_on(row)
                except (Refused, OSError, ValueError) as e:
                    row.failures.append(str(e)[:300])
                    selector.unregister(key.fileobj)
        took = time.perf_counter() - began
    done = sum(client.done for client in clients)
    for client in clients:
        client.connection.close()
    return done / took


def by_python(row):
    """The same with nothing around it: a python3 started for the episode, which then runs ten pieces of code."""
    began = time.perf_counter()
    with Worker() as worker:
        for _ in range(STEPS):
            worker.run(STEP.replace('print(total)', 'answer = total'))
    row.add((time.perf_counter() - began) * 1e3)


def episodes(effort):
    """an episode of ten steps, and single runs, with 1, 8 and 64 clients at once"""
    section = Section(
        'episodes',
        'Episodes (a session, ten steps, its end) and single runs',
        'Each client starts the next episode or run when the previous one has ended. All clients are one Python program, which also needs CPU time.',
    )
    peer = section.row('a bare python3 per episode, one at a time', 'ms')
    curve = section.curve('rate', 'Done in a second', 'clients', 'a second')
    kinds = {'episodes': Episode, 'POST /v1/run': OneShot}
    rows = {kind: {n: section.row(f'{kind}, {n} client{"s" * (n > 1)}', 'ms', peer) for n in CLIENTS} for kind in kinds}
    with Daemon('--max-sessions', '1000') as daemon:
        for _ in range(effort(20, 4)):
            by_python(peer)
        for kind, client in kinds.items():
            for n, row in rows[kind].items():
                rate = run_clients(client, daemon, n, effort(SECONDS, 2), row)
                curve.point(kind, n, rate)
                time.sleep(1)
    section.fact('an episode is ten steps: the steps a second are ten times its figure')
    return section
