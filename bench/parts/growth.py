"""What a session and a cell cost as more sessions live, and as a session holds more."""

import contextlib
import statistics
import time

from harness import memory
from harness.client import request_bytes
from harness.daemon import Daemon
from harness.stats import Section
from parts.cell import timed

LOOKED_AT = 20  # sessions whose memory is read: reading it takes some milliseconds each
ALIVE = 1, 10, 100, 1000
HEAPS_MB = 0, 100, 1000
SAMPLES = 60
# Half of it in one array, half in small objects, as programs have it.
FILL = """
import numpy
held = [numpy.ones({mb} * 500_000, dtype='u1'), [bytes(1000) for _ in range({mb} * 480)]]
"""
CELL = 'x = 1 + 1'


def execute(session):
    return request_bytes('POST', f'/v1/sessions/{session}/execute', {'code': CELL})


def sample_starts(connection, row):
    for _ in range(SAMPLES):
        time.sleep(0.02)
        began = time.perf_counter()
        session = connection.create()['id']
        connection.cell(session, CELL)
        row.add((time.perf_counter() - began) * 1e3)
        connection.delete(session)


def median_pss(connection, sessions):
    """MB of a session in the middle, of some of them."""
    some = sessions[:: max(len(sessions) // LOOKED_AT, 1)]
    return statistics.median(memory.pss(connection.call('GET', f'/v1/sessions/{s}')['pid']) for s in some) / 1e6


def with_many(section, effort):
    sizes = section.curve('memory', 'Memory of a session (PSS) with so many alive', 'sessions alive', 'MB')
    curve = section.curve('sessions', 'With so many sessions alive', 'sessions alive', 'ms')
    with Daemon() as daemon, contextlib.closing(daemon.connect()) as connection:
        alive = []
        for n in (n for n in ALIVE if n <= effort(ALIVE[-1], 100)):
            while len(alive) < n:
                alive.append(connection.create()['id'])
                connection.cell(alive[-1], 'x = 1')
            start = section.row(f'{n:,} alive: create and a trivial cell', 'ms')
            cell = section.row(f'{n:,} alive: a trivial cell in one of them', 'ms')
            sample_starts(connection, start)
            for i in range(SAMPLES * 3):
                cell.add(timed(connection, execute(alive[i % n])) / 1e3)
            sizes.point('median of the guests', n, median_pss(connection, alive))
            curve.point('create and a trivial cell', n, start.median)
            curve.point('a trivial cell in one of them', n, cell.median)
        for session in alive:
            connection.delete(session)


def with_heap(section, effort):
    curve = section.curve('heap', 'With so much in the session', 'MB held', 'ms')
    with Daemon() as daemon, contextlib.closing(daemon.connect()) as connection:
        for mb in HEAPS_MB:
            session = connection.create(limits={'memory_bytes': 4_000_000_000})['id']
            connection.cell(session, FILL.format(mb=mb))
            cell = section.row(f'{mb:,} MB held: a trivial cell', 'ms')
            for _ in range(SAMPLES * 3):
                cell.attempt(lambda: timed(connection, execute(session)) / 1e3)
            pid = connection.call('GET', f'/v1/sessions/{session}')['pid']
            section.fact(f'{mb:,} MB held: the guest has {memory.rss(pid) / 1e6:,.0f} MB in memory')
            began = time.perf_counter()
            connection.delete(session)
            curve.point('a trivial cell', mb, cell.median)
            curve.point('its end (delete)', mb, (time.perf_counter() - began) * 1e3)


def growth(effort):
    """cost against 1 to 1,000 sessions alive, and against 0 to 1 GB of heap"""
    section = Section('growth', 'As it grows', '')
    with_many(section, effort)
    with_heap(section, effort)
    return section
