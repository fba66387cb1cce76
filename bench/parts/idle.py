"""What a thousand sessions that wait cost."""

import contextlib
import time

from harness import memory
from harness.daemon import Daemon
from harness.stats import Row, Section

SESSIONS = 1000
LOOKED_AT = 200  # reading smaps of one process takes some milliseconds
ASKED = 20  # for a variable, in the end
SETTLE = 15  # seconds in which the kernel takes namespaces and page tables apart
MB = 1e6


def make(connection, row):
    """One more session with a cell behind it: its description, with its process."""
    began = time.perf_counter()
    session = connection.create()['id']
    connection.cell(session, 'x = 1')
    row.add((time.perf_counter() - began) * 1e3)
    return connection.call('GET', f'/v1/sessions/{session}')


def make_all(connection, n, row):
    sessions = []
    for _ in range(n):
        try:
            sessions.append(make(connection, row))
        except Exception as e:
            row.failures.append(str(e)[:300])
    return sessions


def every(things, n):
    """About n of them, evenly spread."""
    return things[:: max(len(things) // n, 1)]


def pss_of_inits(daemon):
    """(how many jails there are, what the init of one takes)"""
    inits = [pid for pid, name in daemon.children().items() if name == 'glovebox-init']
    looked_at = every(inits, LOOKED_AT // 4)
    return len(inits), sum(map(memory.pss, looked_at)) / max(len(looked_at), 1)


def count_alive(connection, sessions):
    states = [connection.call('GET', f'/v1/sessions/{s["id"]}')['state'] for s in sessions]
    return states.count('idle')


def count_remembering(connection, sessions):
    return sum(connection.cell(s['id'], 'x')['result']['text/plain'] == '1' for s in sessions)


def idle(effort):
    """a thousand idle sessions: memory of each, of the daemon, of the machine"""
    n = effort(SESSIONS)
    section = Section(
        'idle',
        f'{n:,} idle sessions at once',
        'The default template; each session has run one trivial cell. PSS divides shared memory among the processes that share it.',
    )
    took = section.row('create and one trivial cell, as their number grows', 'ms')
    alone = section.row('PSS of one session when it is the only one (guest)', 'MB')
    shared = section.row('PSS of a session (guest and init)', 'MB', alone)
    own = section.row('memory that only this session has (guest)', 'MB')
    with Daemon() as daemon, contextlib.closing(daemon.connect()) as connection:
        first = make(connection, Row('the first', 'ms'))
        alone.add(memory.pss(first['pid']) / MB)
        connection.delete(first['id'])
        time.sleep(1)
        rss, free = [memory.rss(daemon.pid)], [memory.available()]

        began = time.perf_counter()
        sessions = make_all(connection, n, took)
        making = time.perf_counter() - began
        time.sleep(1)
        rss.append(memory.rss(daemon.pid))
        free.append(memory.available())
        jails, init = pss_of_inits(daemon)
        for session in every(sessions, LOOKED_AT):
            shared.add((memory.pss(session['pid']) + init) / MB)
            own.add(memory.private(session['pid']) / MB)
        alive = count_alive(connection, sessions)
        asked = every(sessions, ASKED)
        remembering = count_remembering(connection, asked)

        began = time.perf_counter()
        for session in sessions:
            connection.delete(session['id'])
        ending = time.perf_counter() - began
        time.sleep(SETTLE)
        rss.append(memory.rss(daemon.pid))
        free.append(memory.available())
    section.fact(
        f'{alive:,} of {n:,} alive; {remembering} of {len(asked)} that were asked still knew their variable'
    )
    section.fact(f'made in {making:.1f} s ({n / making:.0f} a second), ended in {ending:.1f} s')
    section.fact(f'{jails:,} jails, with those in stock; the init of one takes {init / MB:.2f} MB')
    taken, missing = free[0] - free[1], free[0] - free[2]
    section.fact(
        f'MemAvailable fell by {taken / MB:,.0f} MB: {taken / n / MB:.2f} MB a session, all the kernel keeps included'
    )
    section.fact(f'{SETTLE} s after they ended it is {missing / MB:,.0f} MB below where it began')
    section.fact(
        'daemon RSS before, with them, and after: ' + ', '.join(f'{r / MB:.1f}' for r in rss) + ' MB'
    )
    section.target(f'idle sessions alive at once (of {n:,})', alive, n, '', at_least=True)
    section.target(f'PSS of a session with {n:,} alive, median', shared.median, 3, 'MB')
    section.target(f'daemon RSS with {n:,} sessions', rss[1] / MB, 64, 'MB')
    return section
