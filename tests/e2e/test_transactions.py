"""Cells that end the interpreter and do not cost its state."""

import os
import signal

import gb
import pytest

ENDS = {
    'os._exit': 'import os; os._exit(7)',
    'SIGKILL': 'import os; os.kill(os.getpid(), 9)',
    'killpg': 'import os; os.killpg(0, 9)',
    'segfault': 'import ctypes; ctypes.string_at(0)',
    'exec': 'import os; os.execv("/bin/true", ["true"])',
    'stack overflow': 'import ctypes; ctypes.memset(id(None), 255, 1 << 20)',
    'deaf loop': 'import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass',
    'children': 'import os\nfor _ in range(20):\n  if os.fork() == 0:\n    while True: open("stray", "a").write("x")\nos._exit(1)',
}


def idle(session):
    """Waits until a copy was parked, which happens when nothing comes for a moment."""
    before = session.api.metrics()['glovebox_copies_parked_total']
    session.execute('"parked"', transaction=True).ok()
    gb.wait_until(lambda: session.api.metrics()['glovebox_copies_parked_total'] > before, 'a copy is parked')


@pytest.mark.parametrize('at_once', [True, False])
@pytest.mark.parametrize('kind', ENDS)
def test_state_is_as_before(session, kind, at_once):
    session.execute('x = [1]; f = open("data", "w+"); f.write("one"); f.flush()').ok()
    if not at_once:
        idle(session)
    seen = session.execute(
        'import shutil, os\nx.append(2); f.write("two"); f.flush(); open("more", "w").write("x"); y = 1\n' + ENDS[kind],
        timeout_s=0.5 if kind == 'deaf loop' else 20,
    )
    assert seen.rolled_back and seen.files_rolled_back and not seen.state_lost
    assert seen.status in ('killed', 'timeout')
    seen = session.execute('import os\nf.write("-"); f.flush()\nx, "y" in globals(), open("data").read(), sorted(os.listdir())').ok()
    assert seen.text == "([1], False, 'one-', ['data'])"


def test_again_and_again(session):
    session.execute('x = 0').ok()
    for i in range(10):
        assert session.execute('x = -1; import os; os._exit(1)').rolled_back
        assert session.value('x += 1; x') == str(i + 1)


def test_random_state_is_kept(session):
    session.execute('import random, numpy as np; random.seed(42); np.random.seed(42)').ok()
    idle(session)
    session.execute('a = random.random(), np.random.rand(); import os; os._exit(1)')
    assert session.value('import random; (random.random(), np.random.rand()) == (random.Random(42).random(), np.random.RandomState(42).rand())') == 'True'


def test_out_of_memory_is_rolled_back(api):
    session = api.session(limits={'memory_bytes': 200 << 20})
    session.execute('x = list(range(1000))').ok()
    seen = session.execute('open("/dev/shm/a", "wb").write(b"x" * (60 << 20))\nimport os\nfor i in range(9): os.fork() or b"x" * (100 << 20) and bytearray(100 << 20)\n'
        'import mmap\nm = [mmap.mmap(-1, 50 << 20) for _ in range(20)]\nfor p in m: p.write(b"x" * (50 << 20))', timeout_s=60)  # fmt: skip
    assert seen.status in ('out_of_memory', 'killed') and seen.rolled_back, seen
    assert session.value('sum(x)') == '499500'


def test_opting_out(api, session):
    session.execute('x = 1').ok()
    assert session.execute('import os; os._exit(1)', transaction=False).state_lost
    assert session.execute('x').error['type'] == 'NameError'
    session = api.session(transactions=False)
    session.execute('x = 1').ok()
    assert session.execute('import os; os._exit(1)').state_lost


def test_files_stay_when_asked(api):
    session = api.session(keep_files_bytes=0)
    session.execute('x = 1; open("a", "w").write("1")').ok()
    seen = session.execute('x = 2; open("a", "w").write("2"); import os; os._exit(1)')
    assert seen.rolled_back and not seen.files_rolled_back
    assert session.value('x, open("a").read()') == "(1, '2')"


def test_more_files_than_are_kept(api):
    session = api.session(keep_files_bytes=1 << 20)
    session.execute('x = 1; open("a", "wb").write(bytes(2 << 20))').ok()
    idle(session)
    seen = session.execute('x = 2; open("a", "w").write("2"); import os; os._exit(1)')
    assert seen.rolled_back and not seen.files_rolled_back and 'larger' in seen.error['remediation']
    assert session.value('x, open("a").read()') == "(1, '2')"


def test_all_kinds_of_files(session):
    session.execute(
        'import os\nos.makedirs("d/e"); open("d/e/f", "w").write("x" * 100000); os.symlink("d/e/f", "l"); os.mkfifo("p")\n'
        'open("x.sh", "w").write("#!"); os.chmod("x.sh", 0o750); os.mkdir("ro"); open("ro/f", "w").write("1"); os.chmod("ro", 0o555)\n'
        'def look():\n  s = [(r, sorted(d), sorted(f)) for r, d, f in os.walk(".")]\n'
        '  return sorted(s), os.readlink("l"), len(open("d/e/f").read()), oct(os.stat("x.sh").st_mode), oct(os.stat("ro").st_mode), os.stat("x.sh").st_mtime'
    ).ok()
    before = session.value('look()')
    idle(session)
    seen = session.execute(
        'import shutil; shutil.rmtree("d"); os.unlink("l"); os.mkdir("l"); os.unlink("p"); os.chmod("x.sh", 0o600)\n'
        'os.chmod("ro", 0o755); os.unlink("ro/f"); os.makedirs("n/m"); open("n/m/o", "w").write("1"); os.chmod("n", 0o555)\nos._exit(1)'
    )
    assert seen.files_rolled_back, seen
    assert session.value('look()') == before


def test_uploads_between_cells_stay(session):
    session.execute('x = 1').ok()
    session.put_file('up.txt', b'up')
    seen = session.execute('import os; os.unlink("up.txt"); os._exit(1)')
    assert seen.rolled_back and seen.files_rolled_back
    assert session.value('x, open("up.txt").read()') == "(1, 'up')"


@pytest.mark.parametrize(
    'held, words',
    [
        ('import threading, time; threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()', '1 thread is running'),
        ('import subprocess; p = subprocess.Popen(["sleep", "1000"])', 'child process'),
        ('import socket; s = socket.socketpair()', 'socket'),
        ('import os; r, w = os.pipe()', 'pipe'),
        ('import sqlite3; c = sqlite3.connect("d.sqlite"); c.execute("create table t(x)"); c.execute("insert into t values(1)")', 'd.sqlite'),
        ('from concurrent.futures import ThreadPoolExecutor as T; p = T(2); p.submit(int).result()', 'ThreadPoolExecutor'),
    ],
)
def test_what_stands_in_the_way(session, held, words):
    """Without a copy of that very moment the state is lost, and the answer says why there was none."""
    session.execute(held).ok()
    seen = session.execute('import os; os._exit(1)', transaction=True)
    assert seen.state_lost and not seen.rolled_back
    assert words in seen.error['remediation'], seen.error


def test_the_copy_is_not_seen(session):
    session.execute('x = 1').ok()
    idle(session)
    assert session.value('import os; [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]') == '[]'


def test_copies_end_with_the_session(daemon, api):
    before = len(gb.processes())
    sessions = [api.session() for _ in range(4)]
    for s in sessions:
        s.execute('x = 1').ok()
        idle(s)
    for s in sessions:
        s.delete()
    gb.wait_until(lambda: len(gb.processes()) <= before + 12, 'all are gone')


def test_event_loop_goes_on(session):
    session.execute('import asyncio\nawait asyncio.sleep(0)\nx = 1').ok()
    idle(session)
    assert session.execute('x = 2; import os; os._exit(1)').rolled_back
    assert session.value('await asyncio.sleep(0.01, x)') == '1'


def test_killed_from_outside_while_idle(session):
    session.execute('x = 1').ok()
    idle(session)
    pid = session.get()['pid']
    os.kill(pid, signal.SIGKILL)
    gb.wait_until(lambda: session.get()['pid'] not in (0, pid), 'a copy took over')
    assert session.value('x') == '1'
