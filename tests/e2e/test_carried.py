"""What a copy of a session carries, makes anew, or refuses: a test for each row of the table in docs/time-travel.md."""

import re
from pathlib import Path

import gb
import pytest

PAGE = Path(gb.__file__).resolve().parents[2] / 'docs' / 'time-travel.md'
ROWS = {}  # the first column of a row: the tests that stand for it


def row(text):
    def mark(test):
        ROWS.setdefault(text, []).append(test)
        return test

    return mark


def checkpoint(session, **body):
    answer = session.api.post(f'{session.path}/checkpoints', json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()['checkpoint']['id']


def rollback(session, id):
    answer = session.api.post(f'{session.path}/rollback', json={'checkpoint': id})
    assert answer.status_code == 200, answer.text


def fork(session, count=1, **body):
    answer = session.api.post(f'{session.path}/fork', json={'count': count, **body})
    assert answer.status_code == 201, answer.text
    return answer.json(), [session.api.adopt(s) for s in answer.json()['sessions']]


def everywhere(session, prepare, change, look, seen):
    """The same after a rollback, after a death and in a fork: `look` shows `seen`, whatever `change` did in between."""
    session.execute(prepare).ok()
    point = checkpoint(session)
    session.execute(change).ok()
    _, (child,) = fork(session, at=point, reseed=False)
    assert child.value(look) == seen, 'in a fork'
    child.delete()
    rollback(session, point)
    assert session.value(look) == seen, 'after a rollback'
    rollback(session, point)
    assert session.execute(change + '\nimport os; os._exit(1)').rolled_back
    assert session.value(look) == seen, 'after a death'


def refused(session, held, words, remedy=''):
    """A checkpoint and a fork are refused by name, and the session goes on."""
    session.execute(held).ok()
    for path, code in (('checkpoints', 'cannot_checkpoint'), ('fork', 'cannot_fork')):
        answer = session.api.post(f'{session.path}/{path}', json={})
        assert answer.status_code == 409 and answer.json()['code'] == code, answer.text
        assert words in answer.json()['detail'] and remedy in answer.json()['detail'], answer.text
    assert session.value('40 + 2') == '42', 'the session goes on'


def allowed(session, end):
    session.execute(end).ok()
    rollback(session, checkpoint(session))
    assert session.value('40 + 2') == '42'


# ---- carried ---------------------------------------------------------------------------


@row('variables, modules, functions, open figures, generators, sqlite databases in memory')
def test_state_of_every_kind(session):
    everywhere(
        session,
        'import sqlite3, json as j, functools\nx = {"a": [1]}\ndef f(n): return n + k\nk = 1\n'
        'def count():\n  n = 0\n  while True: n += yield n\ng = count(); next(g); g.send(5)\n'
        'c = sqlite3.connect(":memory:"); c.execute("create table t(x)"); c.execute("insert into t values(7)")\ncached = functools.lru_cache(f); cached(1)',
        'x["a"].append(2); k = 100; g.send(50); c.execute("delete from t"); del j',
        'x, f(1), g.send(1), c.execute("select * from t").fetchall(), j.dumps([1]), cached.cache_info().currsize',
        "({'a': [1]}, 2, 6, [(7,)], '[1]', 1)",
    )


@row('variables, modules, functions, open figures, generators, sqlite databases in memory')
def test_figures(science):
    everywhere(
        science,
        'import matplotlib.pyplot as plt, numpy as np\nfigure, axes = plt.subplots(); axes.plot([1, 2, 3]); a = np.arange(3); None',
        'axes.plot([3, 2, 1]); figure.clear(); a[:] = 0; None',
        'len(axes.lines), len(figure.axes), a.tolist()',
        '(1, 1, [0, 1, 2])',
    )


@row('state of `random` and `numpy.random`')
def test_random_numbers(science):
    science.execute('import random, numpy as np; random.seed(1); np.random.seed(1); g = np.random.default_rng(1)').ok()
    point = checkpoint(science)
    draw = 'random.random(), float(np.random.rand()), float(g.random())'
    first = science.value(draw)
    rollback(science, point)
    assert science.value(draw) == first != science.value(draw)


@row('open files')
def test_open_files(session):
    everywhere(
        session,
        'import os\nopen("in", "w").write("abcdef"); r = open("in"); r.read(2); w = open("out", "w"); w.write("one,")\n'
        'u = open("gone", "w+"); u.write("still"); u.flush(); os.unlink("gone")',
        'r.read(); w.write("two,"); w.flush()',
        '(r.read(1), r.tell(), open("out").read(), w.write("x"), w.flush(), open("out").read())',
        "('c', 3, '', 1, None, 'one,x')",
    )


@row('open files')
def test_offsets_are_their_own(session):
    session.execute('open("in", "w").write("abcdef"); r = open("in", "rb", buffering=0); r.read(1); w = open("log", "a")').ok()
    _, children = fork(session, 2)
    for i, s in enumerate([session, *children]):
        assert s.value('r.read(2)') == "b'bc'"
        s.execute(f'w.write("{i}"); w.flush()').ok()
        assert s.value('open("log").read()') == f"'{i}'"


@row('open files')
def test_files_without_a_name(session):
    session.execute('import os\nu = open("gone", "w+"); u.write("still"); u.flush(); os.unlink("gone")').ok()
    point = checkpoint(session)
    rollback(session, point)
    assert session.value('u.seek(0); u.read()') == "'still'"
    _, (child,) = fork(session)
    assert child.execute('u.seek(0); u.read()').error['type'] in ('OSError', 'ValueError'), 'not shared with another session'


@row('files under `/workspace`, `/tmp` and `/dev/shm`')
def test_files(session):
    everywhere(
        session,
        'import os\nos.makedirs("d/e"); open("d/e/f", "w").write("1"); os.symlink("d", "l"); open("x", "w").close(); os.chmod("x", 0o750); os.utime("x", (5, 5))',
        'import shutil; shutil.rmtree("d"); os.unlink("l"); os.unlink("x"); open("more", "w").close()',
        'sorted(os.listdir()), open("d/e/f").read(), os.readlink("l"), oct(os.stat("x").st_mode), os.stat("x").st_mtime',
        "(['d', 'l', 'x'], '1', 'd', '0o100750', 5.0)",
    )


@row('files under `/workspace`, `/tmp` and `/dev/shm`')
def test_files_elsewhere(session):
    everywhere(
        session,
        'import os\nfor p in ("/tmp/t", "/dev/shm/t"): open(p, "w").write("1")',
        'for p in ("/tmp/t", "/dev/shm/t"): open(p, "w").write("2"); open(p + "more", "w").close()',
        '[open(p).read() for p in ("/tmp/t", "/dev/shm/t")], [os.path.exists(p + "more") for p in ("/tmp/t", "/dev/shm/t")]',
        "(['1', '1'], [False, False])",
    )


@row('shared memory')
def test_shared_memory(session):
    session.execute('import mmap; m = mmap.mmap(-1, 4096); m[0] = 1').ok()
    point = checkpoint(session)
    session.execute('m[0] = 2').ok()
    rollback(session, point)
    assert session.value('m[0]') == '2'


@row('the event loop of cells that `await`')
def test_event_loop(session):
    everywhere(session, 'import asyncio\nx = await asyncio.sleep(0, 1)', 'x = await asyncio.sleep(0, 2)', 'x, await asyncio.sleep(0.01, 5)', '(1, 5)')


@row('timers (`signal.alarm`, `setitimer`)')
def test_timers(session):
    session.execute('import signal; rang = []; signal.signal(signal.SIGALRM, lambda *a: rang.append(1)); signal.setitimer(signal.ITIMER_REAL, 1000)').ok()
    rollback(session, checkpoint(session))
    assert session.value('signal.getitimer(signal.ITIMER_REAL), signal.getsignal(signal.SIGALRM).__name__') == "((0.0, 0.0), '<lambda>')"


@row('`os.getpid()`')
def test_pid(session):
    session.execute('import os; before = os.getpid()').ok()
    rollback(session, checkpoint(session))
    assert session.value('os.getpid() == before, os.getppid()')[:7] == '(False,'


# ---- refused ---------------------------------------------------------------------------

CROWDS = {
    'a thread': ('import threading; e = threading.Event(); t = threading.Thread(target=e.wait, name="mine"); t.start()', '1 thread is running', 'mine', 'e.set(); t.join()'),
    'threads': (
        'import threading; e = threading.Event(); t = [threading.Thread(target=e.wait) for _ in range(5)]; [x.start() for x in t]',
        '5 threads are running', '…', 'e.set(); [x.join() for x in t]',
    ),
    'thread pool': (
        'from concurrent.futures import ThreadPoolExecutor as T; p = T(2); p.submit(int).result()', 'a ThreadPoolExecutor is open', 'shutdown', 'p.shutdown()',
    ),
    'process pool': (
        'import multiprocessing; p = multiprocessing.Pool(1)', 'a multiprocessing pool is open', 'terminate', 'p.terminate(); p.join(); del p; import gc; gc.collect()',
    ),
    'pool of processes': (
        'from concurrent.futures import ProcessPoolExecutor as P; p = P(1); p.submit(int).result()', 'a ProcessPoolExecutor is open', 'shutdown', 'p.shutdown()',
    ),
    'library': (
        'import ctypes, os, time; sem = (ctypes.c_char * 64)(); c = ctypes.CDLL(None); c.sem_init(sem, 0, 0); t = ctypes.c_ulong()\n'
        'assert c.pthread_create(ctypes.byref(t), None, c.sem_wait, sem) == 0', '1 thread of a library is running', '', 'c.sem_post(sem); c.pthread_join(t, None)',
    ),
}  # fmt: skip


@row('threads, `ThreadPoolExecutor`, `multiprocessing.Pool`')
@pytest.mark.parametrize('kind', CROWDS)
def test_threads(session, kind):
    held, words, remedy, end = CROWDS[kind]
    refused(session, held, words, remedy)
    allowed(session, end)


# Frees its own values when it ends, which is long after join(): strlen() of a long text, called by the C library.
SLOW_END = '''
import ctypes, threading
libc, key, text = ctypes.CDLL(None), ctypes.c_uint(), b"x" * (128 << 20)
libc.pthread_key_create(ctypes.byref(key), libc.strlen)
def work(): libc.pthread_setspecific(key, ctypes.c_char_p(text))
def run(target, n):
    all = [threading.Thread(target=target) for i in range(n)]
    for t in all: t.start()
    for t in all: t.join()
'''


@row('threads, `ThreadPoolExecutor`, `multiprocessing.Pool`')
@pytest.mark.parametrize('threads', ['run(work, 3)', 'run(int, 20)'])
def test_threads_on_their_way_out(session, threads):
    """They have ended for Python, not for the kernel: they are waited for."""
    session.execute(SLOW_END).ok()
    for _ in range(5):
        allowed(session, threads)
        session.execute(threads).ok()
        _, (child,) = fork(session)
        child.delete()


@row('a child process that is running or has not been waited for')
@pytest.mark.parametrize('end', [
    'signal.signal(signal.SIGCHLD, signal.SIG_IGN); p.kill()',
    'p.kill(); del p',
    'q = multiprocessing.Process(target=int); q.start(); r = subprocess.Popen(["true"])\n'
    'for o in (q, r): os.waitid(os.P_PID, o.pid, os.WEXITED | os.WNOWAIT)\nos.killpg(p.pid, 9); del o, p, q, r',
    'q = [multiprocessing.Process(target=signal.pause) for _ in range(12)]; [o.start() for o in q]; [o.kill() for o in q]; p.kill(); del p, q',
])  # fmt: skip
def test_children_on_their_way_out(session, end):
    """Those that the kernel, or Python by itself, waits for."""
    session.execute('import multiprocessing, os, signal, subprocess').ok()
    refused(session, 'p = subprocess.Popen(["sleep", "1000"], start_new_session=True)', 'a child process is running')
    allowed(session, end)


@row('a child process that is running or has not been waited for')
def test_children(session):
    refused(session, 'import subprocess; p = subprocess.Popen(["sleep", "1000"])', 'a child process is running (sleep, ', 'wait for it')
    session.execute('p.kill(); import os; os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)').ok()
    refused(session, '1', 'has ended but has not been waited for', 'wait for it')
    allowed(session, 'p.wait()')


@row('a child process that is running or has not been waited for')
def test_the_process_that_watches_shared_memory(session):
    held = 'from multiprocessing import resource_tracker, shared_memory; m = shared_memory.SharedMemory(create=True, size=64)'
    refused(session, held, "multiprocessing's resource tracker is running", '_stop()')
    allowed(session, 'm.close(); m.unlink(); resource_tracker._resource_tracker._stop()')


@row('pipes, sockets, a connection to the display')
@pytest.mark.parametrize('held, words, end', [
    ('import socket; a, b = socket.socketpair()', 'a socket is open (descriptor', 'a.close(); b.close()'),
    ('import socket; a = socket.socket(socket.AF_UNIX)', 'a socket is open (descriptor', 'a.close()'),
    ('import os; r, w = os.pipe()', 'a pipe is open (descriptor', 'os.close(r); os.close(w)'),
])  # fmt: skip
def test_connections(session, held, words, end):
    refused(session, held, words, 'close it')
    allowed(session, end)


@row('pipes, sockets, a connection to the display')
def test_a_connection_to_the_display(api):
    session = api.session(display=True)
    session.execute('x = 1').ok()
    point = checkpoint(session)
    held = 'import socket, os; s = socket.socket(socket.AF_UNIX); s.connect("/tmp/.X11-unix/X" + os.environ["DISPLAY"].partition(":")[2].partition(".")[0]); x = 2'
    session.execute(held).ok()
    answer = session.api.post(f'{session.path}/checkpoints', json={})
    assert answer.status_code == 409 and 'a connection to the display is open' in answer.json()['detail'], answer.text
    answer = session.api.post(f'{session.path}/fork', json={})
    assert answer.status_code == 409 and 'display' in answer.json()['detail']
    rollback(session, point)
    assert session.value('x, "s" in globals()') == '(1, False)', 'one from before can be gone back to, and the connection is gone'
    checkpoint(session)


@row('pipes, sockets, a connection to the display')
def test_windows_of_tkinter(api):
    session = api.session(display=True)
    session.execute('x = 1').ok()
    point = checkpoint(session)
    session.execute('import tkinter; w = tkinter.Tk(); w.update(); x = 2').ok()
    detail = lambda: session.api.post(f'{session.path}/checkpoints', json={}).json()['detail']
    assert 'a connection to the display is open' in detail() and 'close its windows' in detail()
    session.execute('w.destroy(); del w').ok()
    assert 'a thread of Tcl is running' in detail() or 'display' in detail()
    rollback(session, point)
    gb.wait_until(lambda: session.api.get(f'{session.path}/windows').json()['windows'] == [], 'the window is gone')
    session.execute('import tkinter; w = tkinter.Tk(); w.update()').ok()
    assert session.value('x, w.winfo_exists()') == '(1, 1)', 'and another can be opened'


@row('a locked file, an open transaction of a file database')
def test_locks(session):
    refused(session, 'import sqlite3; c = sqlite3.connect("d.sqlite"); c.execute("create table t(x)"); c.execute("insert into t values(1)")', 'd.sqlite is locked', 'commit')
    session.execute('c.commit()').ok()
    point = checkpoint(session)
    session.execute('c.execute("insert into t values(2)"); c.commit()').ok()
    rollback(session, point)
    assert session.value('c.execute("select count(*) from t").fetchone()') == '(1,)'
    refused(session, 'import fcntl; f = open("lock", "w"); fcntl.flock(f, fcntl.LOCK_EX)', 'lock is locked')
    allowed(session, 'f.close()')


@row('more than half of `limits.memory_bytes` in use')
def test_memory(api):
    session = api.session(limits={'memory_bytes': 128 << 20})
    refused(session, 'x = bytearray(b"x") * (80 << 20)', 'more than half of its limits.memory_bytes')
    allowed(session, 'del x')


# ---- of forks alone --------------------------------------------------------------------


def test_generators_are_found_wherever_they_are(science):
    science.execute(
        'import random, numpy as np\nclass Holder: pass\nh = Holder(); h.rng = np.random.default_rng(1); h.inner = [{"r": random.Random(1)}]\n'
        'class C: rng = np.random.RandomState(1)\ndef draw(g=random.Random(2)): return g.random()\nbits = np.random.PCG64(1)\n'
        'def closed():\n  own = random.Random(3)\n  return lambda: own.random()\nc = closed()\n'
        'def look(): return [float(h.rng.random()), h.inner[0]["r"].random(), float(C.rng.rand()), draw(), bits.random_raw(), c()]'
    ).ok()
    told, children = fork(science, 2)
    assert told['same_numbers'] == ''
    seen = [eval(s.value('look()')) for s in [science, *children]]
    for numbers in zip(*seen):
        assert len(set(numbers)) == 3, seen


def test_those_that_keep_their_seed_are_named(session):
    session.execute(
        'import random, sys, types\nsys.modules["torch"] = types.ModuleType("torch")\n'
        'class Fixed(random.Random):\n  def seed(self, *a):\n    if hasattr(self, "made"): raise TypeError("no")\n    super().seed(1); self.made = True\n'
        'class Holder: pass\nh = Holder(); h.inner = [Fixed()]'
    ).ok()
    told, (child,) = fork(session)
    assert told['same_numbers'] == 'torch, h.inner[0]'
    assert child.get()['same_numbers'] == 'torch, h.inner[0]'
    assert session.api.post('/v1/sessions', json={'from': session.id}).json()['same_numbers'] == 'torch, h.inner[0]'


def test_a_large_heap_is_not_walked(session):
    """Looking for generators must not touch, and so copy, all of a fork's memory."""
    session.execute('import random; x = [[i] for i in range(1 << 20)]; g = random.Random(1)').ok()
    _, (child,) = fork(session)
    assert child.value('g.random()') != session.value('g.random()')
    private = re.search(r'^Private_Dirty: +(\d+)', Path(f'/proc/{child.get()["pid"]}/smaps_rollup').read_text(), re.M)
    assert int(private[1]) < 40 << 10, 'kilobytes'


USES = """
import asyncio, concurrent.futures, logging, multiprocessing, os, queue, sqlite3, subprocess, tempfile, threading
import numpy as np, pandas as pd, matplotlib.pyplot as plt
def use():
    seen = []
    seen.append(subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout)
    t = threading.Thread(target=seen.append, args=("thread",)); t.start(); t.join()
    with concurrent.futures.ThreadPoolExecutor(2) as pool: seen.append(sum(pool.map(abs, [-1, -2])))
    with multiprocessing.get_context("fork").Pool(1) as pool: seen.append(pool.map(abs, [-3]))
    with lock: seen.append(held.get_nowait()); held.put("again")
    log.warning("said"); seen.append(float((big @ big)[0, 0]))
    seen.append(int(pd.DataFrame({"a": [1, 2]}).groupby("a").size().sum()))
    figure, axes = plt.subplots(); axes.plot([1, 2]); figure.savefig("f.png"); plt.close(figure)
    with tempfile.TemporaryFile() as f: f.write(b"x")
    pid = os.fork()
    if pid == 0: os._exit(7)
    seen.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return seen
lock, held, log, big = threading.RLock(), queue.Queue(), logging.getLogger("mine"), np.ones((300, 300))
held.put("again")
"""
USED = "['hi\\n', 'thread', 3, [3], 'again', 300.0, 2, 7]"


def test_nothing_hangs_that_worked_before(science):
    """Locks, pools, threads, BLAS, child processes: in a session, after it went back, after a death, in a fork and in a fork of that."""
    science.execute(USES).ok()
    assert science.value('use()') == USED
    point = checkpoint(science)
    rollback(science, point)
    assert science.value('use()') == USED
    assert science.execute('import os; os._exit(1)').rolled_back
    assert science.value('use()') == USED
    _, (child,) = fork(science)
    _, (grandchild,) = fork(child)
    for s in (grandchild, child, science):
        assert s.value('use()') == USED
        assert s.value('await asyncio.sleep(0, 5)') == '5'


def test_each_row_has_a_test():
    text = PAGE.read_text()
    table = text[text.index('| in the session | in a snapshot |') :].split('\n\n')[0]
    rows = {line.split('|')[1].strip() for line in table.splitlines()[2:]}
    assert rows == set(ROWS)
