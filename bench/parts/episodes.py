"""Episodes as a trainer runs them: a new session, ten steps, its end; by 1, 8 and 64 clients."""

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


class Client:
    """One of the clients: a connection and where its episode is."""

    def __init__(self, daemon):
        self.connection = daemon.connect()
        self.episodes = 0

    def begin(self):
        self.session, self.step = None, 0
        self.began = time.perf_counter()
        self.connection.send(CREATE)

    def go_on(self, row):
        """Takes the answer that has come and sends the next request; adds the episode's time when it ended."""
        status, body = self.connection.receive()
        if status >= 300:
            raise Refused(f'{status} {body[:300]!r}')
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
            row.add((time.perf_counter() - self.began) * 1e3)
            self.episodes += 1
            self.begin()
            return
        self.step += 1


def run_clients(daemon, n, seconds, row):
    """Episodes a second that n clients get."""
    clients = [Client(daemon) for _ in range(n)]
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
    episodes = sum(client.episodes for client in clients)
    for client in clients:
        client.connection.close()
    return episodes / took


def by_python(row):
    """The same with nothing around it: a python3 started for the episode, which then runs ten pieces of code."""
    began = time.perf_counter()
    with Worker() as worker:
        for _ in range(STEPS):
            worker.run(STEP.replace('print(total)', 'answer = total'))
    row.add((time.perf_counter() - began) * 1e3)


def episodes(effort):
    """an episode of ten steps, with 1, 8 and 64 clients at once"""
    section = Section(
        'episodes',
        'Episodes: a session, ten steps, its end',
        'Each client begins the next episode when one has ended. All clients are one Python program, which needs a CPU too.',
    )
    peer = section.row('a bare python3 per episode, one at a time', 'ms')
    rows = [section.row(f'{n} client{"s" * (n > 1)}', 'ms', peer) for n in CLIENTS]
    curve = section.curve('rate', 'Episodes a second', 'clients', 'episodes/s')
    with Daemon('--max-sessions', '1000') as daemon:
        for _ in range(effort(20, 4)):
            by_python(peer)
        for n, row in zip(CLIENTS, rows):
            rate = run_clients(daemon, n, effort(SECONDS, 2), row)
            curve.point('glovebox', n, rate)
            section.fact(f'{n} clients: {rate:.0f} episodes and {rate * STEPS:.0f} steps a second')
            time.sleep(1)
    return section
