"""Checkpoints, rollbacks, forks and cells that end their interpreter, over sizes of the heap, beside running the cells again."""

import json
import re
import time
from pathlib import Path

from harness.client import request_bytes
from harness.daemon import Daemon
from harness.stats import Section

HEAPS = {
    'empty heap': 'a = 1',
    '100 MB of numpy': 'import numpy as np; a = np.ones(100 << 17)',
    '100 MB of small objects': 'a = [str(i) * 3 for i in range(1_200_000)]',
    '1 GB of numpy': 'import numpy as np; a = np.ones(1000 << 17)',
    '1 GB of small objects': 'a = [str(i) * 3 for i in range(12_000_000)]',
}
CHILDREN = 10
PAUSES = (0, 0.005, 0.1)


class Driver:
    def __init__(self, daemon):
        self.daemon, self.connection = daemon, daemon.connect()

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


def own_kilobytes(pid):
    """What a process has that no other one shares, with its page tables."""
    shown = Path(f'/proc/{pid}/smaps_rollup').read_text() + Path(f'/proc/{pid}/status').read_text()
    return sum(int(kb) for kb in re.findall(r'^(?:Private_Clean|Private_Dirty|VmPTE): *(\d+) kB', shown, re.M))


def one_heap(section, driver, name, code, rounds):
    again = section.row(f'the same state by running the cells again, {name}', 'ms')
    checkpoint = section.row(f'checkpoint, {name}', 'ms', again)
    rollback = section.row(f'rollback, to its answer, {name}', 'ms', again)
    death = section.row(f'a cell that ends its interpreter, rolled back, {name}', 'ms', again)
    fork = section.row(f'fork into {CHILDREN}, all answering, {name}', 'ms')
    memory = section.row(f'memory of a parked copy alone, after one more cell, {name}', 'kB')
    path = driver.session(limits={'memory_bytes': 4 << 30})
    driver.ask('POST', f'{path}/execute', {'code': code})
    for _ in range(rounds):
        driver.ask('POST', f'{path}/execute', {'code': 'b = 1'})
        there = set(driver.daemon.children())
        driver.timed(checkpoint, 'POST', f'{path}/checkpoints', {'name': 'here'})
        copies = [pid for pid, name in driver.daemon.children().items() if pid not in there and name == 'python3']
        driver.ask('POST', f'{path}/execute', {'code': 'b = 2'})
        if len(copies) == 1:  # else one of them was made for the stock
            memory.add(own_kilobytes(copies[0]))
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
    """A trivial cell with and without transactions: at once after the one before, and after a pause, {pause: cost in ms}. Nothing is copied in the
    short one after a cell that was so quick; in the long one a copy is taken each time."""
    cost = {}
    for pause in PAUSES:
        when, rows = f'{pause * 1e3:g} ms after' if pause else 'at once after', []
        for on in (False, True):
            rows.append(section.row(f'x = 1 + 1, {when} the one before, {"with" if on else "without"} transactions', 'ms', rows[0] if rows else None))
        paths = [driver.session(transactions=on) for on in (False, True)]
        for _ in range(rounds if pause > 0.01 else rounds * 5):
            for row, path in zip(rows, paths):
                for _ in range(5 if pause > 0.01 else 20):
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
        measured = {name: one_heap(section, driver, name, code, rounds if '1 GB' not in name else max(2, rounds // 3)) for name, code in HEAPS.items()}
    section.target('what transactions add to a trivial cell, sent at once, median', cost[0], 0.5, 'ms')
    for pause in PAUSES[1:]:
        section.target(f'the same {pause * 1e3:g} ms after the one before', cost[pause], 0.5, 'ms')
    for name in ('100 MB of numpy', '100 MB of small objects'):
        rollback, fork = measured[name]
        section.target(f'rollback at {name}, median', rollback.median, 5, 'ms')
        section.target(f'fork of {name} into {CHILDREN}, all answering, median', fork.median, 100, 'ms')
    return section
