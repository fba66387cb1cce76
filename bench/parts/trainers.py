"""What a trainer gets: programs a second over SandboxFusion's /run_code and over /v1/batch, beside a fresh python3 for each (SandboxFusion's way)."""

import json
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.client import request_bytes
from harness.daemon import Daemon
from harness.stats import Section
from parts.episodes import Client, run_clients

PYTHON = '/usr/bin/python3'
IN_FLIGHT = 64, 512
SECONDS = 6
CODE = 'n = int(input())\nprint(sum(i * i for i in range(n)))'
BODY = {'code': CODE, 'language': 'python', 'stdin': '100', 'run_timeout': 10, 'compile_timeout': 60}
RUN_CODE = request_bytes('POST', '/run_code', BODY)


class RunCode(Client):
    """Asks again when it is answered."""

    def begin(self):
        self.began = time.perf_counter()
        self.connection.send(RUN_CODE)

    def go_on(self, row):
        if b'328350' not in (body := self.receive()):
            raise ValueError(f'/run_code answered {body[:300]!r}')
        self.end(row)


def fresh_python(folder):
    """A directory, a file, a process: what SandboxFusion does for each request."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        script = Path(home) / 'main.py'
        script.write_text(CODE)
        done = subprocess.run([PYTHON, script], input='100', capture_output=True, text=True, cwd=home)
        assert done.stdout == '328350\n'


def fresh_rate(in_flight, seconds):
    """Programs a second with so many threads that each start one."""
    end = time.perf_counter() + seconds
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(in_flight) as pool:

        def work(_):
            n = 0
            while time.perf_counter() < end:
                fresh_python(folder)
                n += 1
            return n

        began = time.perf_counter()
        return sum(pool.map(work, range(in_flight))) / (time.perf_counter() - began)


def batch_rate(daemon, n):
    """Programs a second of one batch of n; all of its lines must be there and right."""
    items = [{'code': CODE, 'stdin': '100', 'expected_output': '328350'}] * n
    connection = daemon.connect()
    began = time.perf_counter()
    connection.send(request_bytes('POST', '/v1/batch', {'items': items}))
    status, body = connection.receive()
    took = time.perf_counter() - began
    last = json.loads(body.splitlines()[-1])
    assert status == 200 and last['passed'] == n, last
    return n / took


def trainers(effort):
    """programs a second over /run_code and /v1/batch, 64 and 512 in flight, beside a fresh python3 for each"""
    section = Section(
        'trainers',
        'Programs as trainers ask for them',
        'A small program with input, each in a session of its own, with 64 and 512 requests in flight; python3: a fresh process for each.',
    )
    curve = section.curve('rate', 'Done in a second', 'in flight', 'a second')
    seconds = effort(SECONDS, 2)
    with Daemon('--max-sessions', '1000') as daemon:
        for n in IN_FLIGHT:
            fresh = section.row(f'fresh python3, {n} at once: per program', 'ms')
            ours = section.row(f'/run_code, {n} in flight: per program', 'ms', fresh)
            many = section.row(f'/v1/batch of {n}: per program', 'ms', fresh)
            times = section.row(f'/run_code, {n} in flight: from request to answer', 'ms')
            for _ in range(effort(5)):
                fresh.attempt(lambda n=n: 1e3 / fresh_rate(n, seconds))
                ours.attempt(lambda n=n, times=times: 1e3 / run_clients(RunCode, daemon, n, seconds, times))
                many.attempt(lambda n=n: 1e3 / batch_rate(daemon, n))
            for name, row in (('fresh python3', fresh), ('/run_code', ours), ('/v1/batch', many)):
                if row.samples:
                    curve.point(name, n, 1e3 / row.median)
            section.fact(f'{n} in flight: {len(times.samples)} requests answered, {len(times.failures)} lost')
    return section
