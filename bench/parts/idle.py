"""What a thousand sessions that wait cost."""

import contextlib
import time

from harness import memory
from harness.daemon import Daemon
from harness.stats import Row, Section

SESSIONS = 1000
LOOKED_AT = 200  # reading smaps of one process takes some milliseconds
MB = 1e6


def make(connection, row):
    """One more session with a cell behind it: its description, with its process."""
    began = time.perf_counter()
    session = connection.create()['id']
    connection.cell(session, 'x = 1')
    row.add((time.perf_counter() - began) * 1e3)
    return connection.call('GET', f'/v1/sessions/{session}')


def idle(effort):
    """a thousand idle sessions: memory of each, of the daemon, of the machine"""
    n = SESSIONS if not effort.quick else 200
    section = Section(
        'idle',
        f'{n:,} idle sessions at once',
        'The default template; each has run one trivial cell. PSS divides what is shared among those who share it.',
    )
    took = section.row('create and one trivial cell, as their number grows', 'ms')
    alone = section.row('PSS of one session when it is the only one (guest)', 'MB')
    shared = section.row('PSS of a session (guest and init)', 'MB', alone)
    own = section.row('memory that only this session has (guest)', 'MB')
    with Daemon() as daemon, contextlib.closing(daemon.connect()) as connection:
        first = make(connection, Row('the first', 'ms'))
        alone.add(memory.pss(first['pid']) / MB)
        connection.delete(first['id'])
        time.sleep(0.5)
        daemon_before, free_before = memory.rss(daemon.pid), memory.available()
        began = time.perf_counter()
        sessions = []
        for _ in range(n):
            try:
                sessions.append(make(connection, took))
            except Exception as e:
                took.failures.append(str(e)[:300])
        seconds = time.perf_counter() - began
        time.sleep(1)
        taken = free_before - memory.available()
        daemon_rss = memory.rss(daemon.pid)
        inits = [pid for pid, name in daemon.children().items() if name == 'glovebox-init']
        init = sum(memory.pss(pid) for pid in inits[: LOOKED_AT // 4]) / max(len(inits[: LOOKED_AT // 4]), 1)
        for session in sessions[:: max(n // LOOKED_AT, 1)]:
            shared.add((memory.pss(session['pid']) + init) / MB)
            own.add(memory.private(session['pid']) / MB)
        alive = sum(1 for s in sessions if connection.call('GET', f'/v1/sessions/{s["id"]}')['state'] == 'idle')
        check = [connection.cell(s['id'], 'x')['result']['text/plain'] for s in sessions[:: max(n // 20, 1)]]
        began = time.perf_counter()
        for session in sessions:
            connection.delete(session['id'])
        ended = time.perf_counter() - began
        time.sleep(1)
        daemon_after, free_after = memory.rss(daemon.pid), memory.available()
    section.fact(f'{alive:,} of {n:,} alive, {len(inits):,} jails; {check.count("1")} of {len(check)} asked still knew their variable')
    section.fact(f'made in {seconds:.1f} s ({n / seconds:.0f} a second), ended in {ended:.1f} s; an init takes {init / MB:.2f} MB')
    section.fact(f'MemAvailable fell by {taken / MB:,.0f} MB: {taken / n / MB:.2f} MB a session with all the kernel keeps for it')
    section.fact(
        f'daemon RSS: {daemon_before / MB:.1f} MB before, {daemon_rss / MB:.1f} MB with {n:,} sessions, {daemon_after / MB:.1f} MB after '
        f'they ended; MemAvailable then {(free_before - free_after) / MB:+,.0f} MB from where it began'
    )
    section.target(f'idle sessions alive at once (of {n:,})', alive, n, '', at_least=True)
    section.target(f'PSS of a session with {n:,} alive, median', shared.median, 3, 'MB')
    section.target(f'daemon RSS with {n:,} sessions', daemon_rss / MB, 64, 'MB')
    return section
