"""Checkpoints, rollbacks, forks and cells that end their interpreter, over sizes of the heap, beside CRIU and running the cells again."""

import json
import re
import time
from pathlib import Path

from harness.client import request_bytes
from harness.criu import Criu
from harness.daemon import Daemon
from harness.stats import Section

HEAPS = {
    'empty heap': 'a = 1',
    '100 MB of numpy': 'import numpy as np; a = np.ones(100 << 17)',
    '100 MB of small objects': 'a = [str(i) * 3 for i in range(1_200_000)]',
    '1 GB of numpy': 'import numpy as np; a = np.ones(1000 << 17)',
    '1 GB of small objects': 'a = [str(i) * 3 for i in range(12_000_000)]',
}
# The same as points of a picture: MB, and the lines they belong to.
SIZES = {
    'empty heap': (0, ('numpy', 'small objects')),
    '100 MB of numpy': (100, ('numpy',)),
    '100 MB of small objects': (100, ('small objects',)),
    '1 GB of numpy': (1000, ('numpy',)),
    '1 GB of small objects': (1000, ('small objects',)),
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


def forked(row, driver, path, count):
    """Milliseconds until all of them have answered a first cell."""
    began = time.perf_counter()
    made = ['/v1/sessions/' + s['id'] for s in driver.ask('POST', f'{path}/fork', {'count': count})['sessions']]
    for child in made:
        driver.ask('POST', f'{child}/execute', {'code': 'b = 3', 'transaction': False})
    row.add((time.perf_counter() - began) * 1e3)
    for child in made:
        driver.ask('DELETE', child)


def by_criu(section, name, code, rounds, checkpoint, rollback):
    """The same with CRIU, beside our rows."""
    dump = section.row(f'CRIU: checkpoint (dump), {name}', 'ms', checkpoint)
    restore = section.row(f'CRIU: rollback (restore), {name}', 'ms', rollback)
    image = section.row(f'CRIU: size of a checkpoint, {name}', 'MB')
    with Criu(code) as peer:
        for _ in range(rounds):
            if dump.attempt(peer.checkpoint) is None or restore.attempt(peer.rollback) is None:
                break
        image.attempt(lambda: peer.image_bytes() / 1e6)


def one_heap(section, driver, name, code, rounds, criu):
    again = section.row(f'the same state by running the cells again, {name}', 'ms')
    checkpoint = section.row(f'checkpoint, {name}', 'ms', again)
    rollback = section.row(f'rollback, to its answer, {name}', 'ms', again)
    death = section.row(f'a cell that ends its interpreter, rolled back, {name}', 'ms', again)
    one = section.row(f'fork, to its first answer, {name}', 'ms', again)
    fork = section.row(f'fork into {CHILDREN}, all answering, {name}', 'ms')
    memory = section.row(f'memory of a parked copy alone, after one more cell, {name}', 'kB')
    path = driver.session(limits={'memory_bytes': 4 << 30})
    driver.ask('POST', f'{path}/execute', {'code': code, 'timeout_s': 120})
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
        forked(one, driver, path, 1)
        forked(fork, driver, path, CHILDREN)
        began = time.perf_counter()
        fresh = driver.session(limits={'memory_bytes': 4 << 30})
        driver.ask('POST', f'{fresh}/execute', {'code': code, 'timeout_s': 120})
        again.add((time.perf_counter() - began) * 1e3)
        driver.ask('DELETE', fresh)
    driver.ask('DELETE', path)
    if criu:
        by_criu(section, name, code, max(2, rounds // 3), checkpoint, rollback)
    return {'checkpoint': checkpoint, 'rollback': rollback, 'fork': one, f'fork into {CHILDREN}': fork, 'running the cells again': again}


def grow(section, measured):
    """The same as pictures: each figure over the size of the heap."""
    for what in measured['empty heap']:
        curve = section.curve(f'travel-{what.replace(" ", "-")}', f'{what[0].upper()}{what[1:]}', 'MB of heap', 'ms')
        for name, (size, lines) in SIZES.items():
            for line in lines:
                curve.point(line, size, measured[name][what].median)


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
    """checkpoints, rollbacks, forks and transactions, over heap sizes, beside CRIU and running the cells again"""
    remark = 'Over one kept-alive connection; the heap is created once, then copied. CRIU dumps and restores a plain python3 with the same heap.'
    section = Section('travel', 'Time travel', remark)
    rounds = effort(10)
    absent = Criu.missing()
    if absent:
        section.row(f'CRIU, checkpoint and rollback: not measured, {absent}', 'ms')
    with Daemon() as daemon:
        driver = Driver(daemon)
        cost = overhead(section, driver, rounds)
        few = max(2, rounds // 3)
        measured = {name: one_heap(section, driver, name, code, few if '1 GB' in name else rounds, not absent) for name, code in HEAPS.items()}
    grow(section, measured)
    section.target('what transactions add to a trivial cell, sent at once, median', cost[0], 0.5, 'ms')
    for pause in PAUSES[1:]:
        section.target(f'the same {pause * 1e3:g} ms after the one before', cost[pause], 0.5, 'ms')
    for name in ('100 MB of numpy', '100 MB of small objects'):
        section.target(f'rollback at {name}, median', measured[name]['rollback'].median, 5, 'ms')
        section.target(f'fork of {name} into {CHILDREN}, all answering, median', measured[name][f'fork into {CHILDREN}'].median, 100, 'ms')
    return section
