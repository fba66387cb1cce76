"""Checkpoints, rollbacks, forks and cells that end their interpreter, over sizes of the heap, beside running the cells again."""

import json
import time

from harness.client import request_bytes
from harness.daemon import Daemon
from harness.stats import Section

HEAPS = {
    'empty heap': 'a = 1',
    '100 MB of numpy': 'import numpy as np; a = np.ones(100 << 17)',
    '100 MB of small objects': 'a = [str(i) * 3 for i in range(1_200_000)]',
    '1 GB of numpy': 'import numpy as np; a = np.ones(1000 << 17)',
}
CHILDREN = 10


class Driver:
    def __init__(self, daemon):
        self.connection = daemon.connect()

    def ask(self, method, path, body=None):
        status, answer = self.connection.ask(request_bytes(method, path, body))
        assert status < 400, answer[:300]
        return json.loads(answer) if answer else None

    def timed(self, row, method, path, body=None):
        began = time.perf_counter()
        answer = self.ask(method, path, body)
        row.add((time.perf_counter() - began) * 1e3)
        return answer

    def session(self, **fields):
        return '/v1/sessions/' + self.ask('POST', '/v1/sessions', fields)['id']


def one_heap(section, driver, name, code, rounds):
    again = section.row(f'the same state by running the cells again, {name}', 'ms')
    checkpoint = section.row(f'checkpoint, {name}', 'ms', again)
    rollback = section.row(f'rollback, to its answer, {name}', 'ms', again)
    death = section.row(f'a cell that ends its interpreter, rolled back, {name}', 'ms', again)
    fork = section.row(f'fork into {CHILDREN}, all answering, {name}', 'ms')
    path = driver.session(limits={'memory_bytes': 4 << 30})
    driver.ask('POST', f'{path}/execute', {'code': code})
    for _ in range(rounds):
        driver.ask('POST', f'{path}/execute', {'code': 'b = 1'})
        driver.timed(checkpoint, 'POST', f'{path}/checkpoints', {'name': 'here'})
        driver.ask('POST', f'{path}/execute', {'code': 'b = 2'})
        driver.timed(rollback, 'POST', f'{path}/rollback', {'checkpoint': 'here'})
        driver.timed(death, 'POST', f'{path}/execute', {'code': 'import os; os._exit(1)'})
        began = time.perf_counter()
        made = ['/v1/sessions/' + s['id'] for s in driver.ask('POST', f'{path}/fork', {'count': CHILDREN})['sessions']]
        for child in made:
            driver.ask('POST', f'{child}/execute', {'code': 'b = 3', 'transaction': False})
        fork.add((time.perf_counter() - began) * 1e3)
        for child in made:
            driver.ask('DELETE', child)
        began = time.perf_counter()
        fresh = driver.session(limits={'memory_bytes': 4 << 30})
        driver.ask('POST', f'{fresh}/execute', {'code': code})
        again.add((time.perf_counter() - began) * 1e3)
        driver.ask('DELETE', fresh)
    driver.ask('DELETE', path)
    return rollback, fork


def overhead(section, driver, rounds):
    """A trivial cell with and without transactions: at once after the one before, and after a pause. The cost of the first, in ms."""
    cost = {}
    for pause in (0, 0.005):
        when, rows = '5 ms after' if pause else 'at once after', []
        for on in (False, True):
            rows.append(section.row(f'x = 1 + 1, {when} the one before, {"with" if on else "without"} transactions', 'ms', rows[0] if rows else None))
        paths = [driver.session(transactions=on) for on in (False, True)]
        for _ in range(rounds * 5):
            for row, path in zip(rows, paths):
                for _ in range(20):
                    driver.timed(row, 'POST', f'{path}/execute', {'code': 'x = 1 + 1'})
                    time.sleep(pause)
        for path in paths:
            driver.ask('DELETE', path)
        cost[pause] = rows[1].median - rows[0].median
    return cost


def travel(effort):
    """checkpoints, rollbacks, forks and transactions, over heap sizes, beside running the cells again"""
    section = Section('travel', 'Time travel', 'Over one kept-alive connection; the heap is made once, then copied.')
    rounds = effort(10)
    with Daemon() as daemon:
        driver = Driver(daemon)
        cost = overhead(section, driver, rounds)
        measured = {name: one_heap(section, driver, name, code, rounds) for name, code in HEAPS.items()}
    rollback, fork = measured['100 MB of numpy']
    section.target('what transactions add to a trivial cell, sent at once, median', cost[0], 0.5, 'ms')
    section.target('the same 5 ms after the one before', cost[0.005], 0.5, 'ms')
    section.target('rollback at 100 MB of numpy, median', rollback.median, 5, 'ms')
    section.target(f'fork of 100 MB of numpy into {CHILDREN}, all answering, median', fork.median, 100, 'ms')
    return section
