"""What is made ahead of need: guests that wait, empty jails; and that nobody can tell from inside."""

import concurrent.futures
import contextlib
import os
import signal
import statistics
import time
from pathlib import Path

import pytest

import gb

SPARE_JAILS = 4


def private_mb(pid):
    """Memory that only this process has."""
    fields = dict(line.split()[:2] for line in Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()[1:])
    return (int(fields['Private_Dirty:']) + int(fields['Private_Clean:'])) / 1024


def guests(daemon):
    return [pid for pid in daemon.children('python3') if Path(f'/proc/{pid}/root').exists()]


@pytest.fixture
def rehearsed(science_daemon):
    """The daemon when it has no session, and all guests in its stock have waited long enough to use the time."""

    def all_did():
        waiting = guests(science_daemon)
        with contextlib.suppress(OSError):
            return len(waiting) == science_daemon.ready and min(map(private_mb, waiting)) > 0.8
        return False

    gb.wait_until(all_did, 'guests in stock copied what a first cell writes to')
    return science_daemon


LOOK = """import builtins, linecache, random, sys, gc
sorted(globals()), hasattr(builtins, '_'), [k for k in linecache.cache if k.startswith('<')], gc.isenabled(), sys.exc_info()"""
NOTHING = "(['__builtins__', '__doc__', '__loader__', '__name__', '__package__', '__spec__', 'builtins', 'gc', 'linecache', 'random', 'sys'], False, ['<cell 1>'], True, (None, None, None))"


def test_a_rehearsal_leaves_no_trace(rehearsed):
    with rehearsed.api() as api:
        session = api.session()
        assert session.execute(LOOK).ok().text == NOTHING
        assert session.value('__import__("pandas").DataFrame({"a": [1, 2]})["a"].sum()') in ('3', 'np.int64(3)')


def test_rehearsed_guests_draw_their_own_numbers(rehearsed):
    with rehearsed.api() as api:
        drawn = {
            api.session().value('import random, numpy; random.random(), numpy.random.rand()')
            for _ in range(2)
        }
        seeded = {
            api.session(seed=5).value('import random, numpy; random.random(), numpy.random.rand()')
            for _ in range(2)
        }
    assert len(drawn) == 2 and len(seeded) == 1


def test_sessions_made_in_a_row_stay_small(science_daemon):
    """Several clients at once, so that no guest waits in stock for its session, however slow the machine is."""
    with science_daemon.api() as api:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            sessions = list(pool.map(lambda _: api.session(), range(20)))
        for session in sessions:
            session.execute('x = 1').ok()
        time.sleep(0.5)  # sessions do not rehearse, however long they wait
        sizes = [private_mb(session.get()['pid']) for session in sessions]
        assert statistics.median(sizes) < 0.8, sizes
        for session in sessions:
            session.delete()


def test_jails_are_made_ahead_without_guests():
    with gb.running_daemon(
        '--preload', 'json', '--ready', '0', '--grace', '1'
    ) as daemon, daemon.api() as api:
        gb.wait_until(lambda: len(daemon.children('glovebox-init')) == SPARE_JAILS, 'jails wait')
        assert not guests(daemon)
        sessions = [api.session() for _ in range(SPARE_JAILS + 2)]
        assert [session.value('1 + 1') for session in sessions] == ['2'] * len(sessions)
        gb.wait_until(
            lambda: len(daemon.children('glovebox-init')) == len(sessions) + SPARE_JAILS, 'new jails wait'
        )
        for session in sessions:
            session.delete()
        gb.wait_until(lambda: len(daemon.children('glovebox-init')) == SPARE_JAILS, 'theirs are gone')


def test_a_spare_jail_that_dies_is_replaced():
    with gb.running_daemon(
        '--preload', 'json', '--ready', '0', '--grace', '1'
    ) as daemon, daemon.api() as api:
        gb.wait_until(lambda: len(daemon.children('glovebox-init')) == SPARE_JAILS, 'jails wait')
        jails = daemon.children('glovebox-init')
        for pid in jails:
            os.kill(pid, signal.SIGKILL)
        gb.wait_until(lambda: not set(jails) & set(daemon.children('glovebox-init')), 'they are dead')
        assert api.session().value('1 + 1') == '2'


def test_guests_that_die_in_stock_are_replaced():
    """Also when nobody asks for a session meanwhile."""
    with gb.running_daemon('--preload', 'json', '--ready', '2', '--grace', '1') as daemon, daemon.api() as api:
        full = lambda: len(guests(daemon)) == 2 == api.metric('glovebox_guests_ready') and guests(daemon)
        dead = gb.wait_until(full, 'two guests wait')
        for pid in dead:
            os.kill(pid, signal.SIGKILL)
        gb.wait_until(lambda: (now := full()) and not set(now) & set(dead), 'two others wait')
        assert api.session().value('1 + 1') == '2'


# ---- hooks of modules that were imported before the guest was forked -------------------------

FORK = """import os, random
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(w, repr(random.random()).encode())
    os._exit(0)
os.waitpid(pid, 0)
float(os.read(r, 100)) != random.random()"""


def test_at_fork_hooks_of_preloaded_modules_run(session):
    assert session.value(FORK) == 'True', 'random re-seeds itself in a child'


ORDER = """import os
seen = []
for n in (1, 2):
    os.register_at_fork(before=lambda n=n: seen.append(-n), after_in_parent=lambda n=n: seen.append(n))
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
seen, os.register_at_fork.__name__, os.register_at_fork is __import__('posix').register_at_fork"""


def test_at_fork_hooks_of_a_cell(session):
    assert session.execute(ORDER).ok().text == "([-2, -1, 1, 2], 'register_at_fork', True)"
