"""Where the time of a session's start and of a cell goes."""

import contextlib
import time

from harness.client import request_bytes
from harness.daemon import Daemon
from harness.stats import Section
from parts.cell import timed

CELL = 'x = 1'
PAUSE = 0.15  # longer than a new guest waits before it uses its idle time


def took(work, *args):
    """(what it returns, milliseconds)"""
    began = time.perf_counter()
    value = work(*args)
    return value, (time.perf_counter() - began) * 1e3


def steps(effort):
    """parts of a session's start and of a cell"""
    section = Section(
        'steps',
        'Where the time goes',
        f'Cells are `{CELL}`; ready guests have waited for {PAUSE * 1e3:.0f} ms.',
    )
    http = section.row('HTTP alone: GET /health', 'ms')
    create = section.row('create, guest ready', 'ms', http)
    first = section.row('first cell of a guest that was ready', 'ms')
    inside = section.row('… its CPU time in the guest', 'ms')
    demand = section.row('create and first cell, forked on demand', 'ms', first)
    inside_demand = section.row('… CPU time of that cell in the guest', 'ms', inside)
    later = section.row('a later cell', 'ms')
    inside_later = section.row('… its CPU time in the guest', 'ms')
    end = section.row('delete', 'ms', http)
    probe = request_bytes('GET', '/health')
    with Daemon() as warm, Daemon('--ready', '0') as bare, contextlib.ExitStack() as stack:
        near, far = (stack.enter_context(contextlib.closing(d.connect())) for d in (warm, bare))
        for _ in range(effort(60, 5)):
            time.sleep(PAUSE)
            http.add(timed(near, probe) / 1e3)
            session, ms = took(near.create)
            create.add(ms)
            for row, cpu in ((first, inside), (later, inside_later)):
                answer, ms = took(near.cell, session['id'], CELL)
                row.add(ms)
                cpu.add(answer['usage']['cpu_ms'])
            end.add(took(near.delete, session['id'])[1])
            (session, answer), ms = took(_create_and_run, far)
            demand.add(ms)
            inside_demand.add(answer['usage']['cpu_ms'])
            far.delete(session)
    return section


def _create_and_run(connection):
    session = connection.create()['id']
    return session, connection.cell(session, CELL)
