"""After a cell that ends its interpreter the state is exactly the one before, also when cells follow each other without a pause."""

import json

import pytest

CRASH = 'import os; os._exit(1)'

# What a cell does that would be different the next time, ten times in a row: `seen` collects it.
SOURCES = {
    'uuid4': 'import uuid; seen.append(str(uuid.uuid4()))',
    'time': 'import time; seen.append(time.time())',
    'datetime': 'import datetime; seen.append(str(datetime.datetime.now()))',
    'perf_counter': 'import time; seen.append(time.perf_counter_ns())',
    'os.urandom': 'import os; seen.append(os.urandom(8).hex())',
    'secrets': 'import secrets; seen.append(secrets.token_hex())',
    'random': 'import random; seen.append(random.random())',
    'numpy.random': 'import numpy as np; seen.append(np.random.rand())',
    'default_rng': 'import numpy as np; seen.append(np.random.default_rng().random())',
    'pandas': 'import pandas as pd; seen.append(str(pd.Timestamp.now()))',
    'tempfile': 'import tempfile; seen.append(tempfile.mkdtemp())',
    'a program': 'import subprocess; seen.append(subprocess.run(["date", "+%N"], capture_output=True, text=True).stdout)',
    'a shell': 'import os; seen.append(os.popen("date +%N").read())',
    'a child': 'import os; p = os.fork()\nif not p: os._exit(0)\nseen.append(p); os.waitpid(p, 0)',
    'a thread': 'import threading\nt = threading.Thread(target=lambda: seen.append(threading.get_native_id())); t.start(); t.join()',
    'a device': 'seen.append(open("/dev/urandom", "rb").read(8).hex())',
    'a device that is open': 'f = globals().get("f") or open("/dev/urandom", "rb", buffering=0); seen.append(f.read(8).hex())',
    'ctypes': 'import ctypes; g = globals().get("g") or ctypes.CDLL(None).rand; t = ctypes.CDLL(None).time(None)\n'
    'b = ctypes.create_string_buffer(8); ctypes.CDLL(None).getrandom(b, 8, 0); seen.append(b.raw.hex())',
    'sqlite': 'import sqlite3; c = sqlite3.connect(":memory:"); seen.append(c.execute("select random()").fetchone()[0]); c.close()',
    'appends to /tmp': 'f = open("/tmp/log", "a"); f.write("x"); f.close(); seen.append(open("/tmp/log").read())',
    'appends to /workspace': 'f = open("log", "a"); f.write("x"); f.close(); seen.append(open("log").read())',
    'times of files': 'import os; open("log", "w").close(); seen.append(os.stat("log").st_mtime_ns)',
    'plain numbers': 'seen.append(sum(seen) * 2 + 1)',
}


def cells(session, code, times=10):
    for _ in range(times):
        session.execute(code).ok()
    return session.value('seen')


@pytest.mark.parametrize('kind', SOURCES)
@pytest.mark.parametrize('from_the_start', [True, False])
def test_state_is_exactly_as_before(session, kind, from_the_start):
    session.execute('seen = []').ok()
    if not from_the_start:
        session.execute('"a snapshot"', transaction=True).ok()
    before = cells(session, SOURCES[kind])
    died = session.execute('seen.append("crash"); ' + CRASH)
    assert died.rolled_back and died.may_differ == [], died
    assert session.value('seen') == before
    if kind != 'plain numbers':
        return
    assert died.replayed <= 12  # fewer, when the machine was slow and there was a pause for a snapshot
    if died.replayed:
        again = '1 cell was' if died.replayed == 1 else f'{died.replayed} cells were'
        assert f'{again} run again' in died.error['remediation']


def test_cells_that_use_files_of_the_workspace_are_replayed(session):
    """Their files are restored before, so that they need no snapshot each."""
    session.execute('"a snapshot"; seen = []', transaction=True).ok()
    before = cells(session, 'with open("log", "a+") as f: _ = f.write("x" * len(seen)), f.seek(0), seen.append(f.read())', 8)
    died = session.execute('open("log", "w").write("gone"); ' + CRASH)
    assert died.rolled_back and died.files_rolled_back and died.may_differ == [], died
    assert session.value('seen') == before and session.value('open("log").read()') == repr('x' * 28)


# Uses of files that a replay would not repeat: a snapshot is taken after such a cell, however quickly the next one comes.
NOT_REPEATABLE = {
    'a file of /proc': 'seen.append(open("/proc/self/stat").read())',
    'the session\'s own file of /proc': 'seen.append(open("/proc/uptime").read())',
    'a link to a device': 'import os\nif not os.path.islink("l"): os.symlink("/dev/urandom", "l")\nseen.append(open("l", "rb").read(4).hex())',
    'a device from another directory': 'import os; os.chdir("/dev"); seen.append(open("urandom", "rb").read(4).hex()); os.chdir("/workspace")',
    'a pipe': 'import os; r, w = os.pipe(); os.write(w, b"x"); seen.append(os.read(r, 1)); os.close(r); os.close(w)',
    'times of an open file': 'import os; f = open("log", "w"); f.write("x"); f.flush(); seen.append(os.fstat(f.fileno()).st_mtime_ns); f.close()',
}


@pytest.mark.parametrize('kind', NOT_REPEATABLE)
def test_other_uses_of_files_are_not_replayed(session, kind):
    session.execute('"a snapshot"; seen = []', transaction=True).ok()
    before = cells(session, NOT_REPEATABLE[kind], 3)
    died = session.execute(CRASH)
    assert died.rolled_back and died.may_differ == [], died
    assert session.value('seen') == before


def test_nothing_was_replayed(session):
    session.execute('import uuid; a = uuid.uuid4()').ok()
    died = session.execute(CRASH)
    assert died.rolled_back and died.replayed == 0 and 'run again' not in died.error['remediation']
    assert session.execute('a').ok().replayed == 0


@pytest.mark.parametrize('place', ['/tmp', '/dev/shm', '/workspace'])
def test_files_are_as_before(session, place):
    session.execute(
        f'import os\nos.chdir("{place}")\nos.makedirs("d/e"); open("d/e/f", "w").write("one"); os.symlink("d", "l"); open("x", "w").write("x")\nos.chmod("x", 0o640)\n'
        'def look(): return sorted((r, sorted(d), sorted(f)) for r, d, f in os.walk(".")), open("d/e/f").read(), os.stat("x").st_mode, os.stat("x").st_mtime_ns'
    ).ok()
    before = session.value('look()')
    died = session.execute('open("d/e/f", "a").write("two"); os.unlink("x"); os.makedirs("n/m"); os.unlink("l"); os._exit(1)')
    assert died.rolled_back and died.files_rolled_back, died
    assert session.value('look()') == before


@pytest.mark.parametrize('place', ['/tmp', '/dev/shm'])
def test_files_that_are_too_large_are_named(api, place):
    session = api.session(keep_files_bytes=1 << 20)
    session.execute(f'x = 1; open("{place}/large", "wb").write(bytes(2 << 20)); open("kept", "w").write("1")').ok()
    died = session.execute(f'x = 2; open("{place}/large", "w").write("2"); open("kept", "w").write("2"); {CRASH}')
    assert died.rolled_back and not died.files_rolled_back
    assert place in died.error['remediation'] and 'larger' in died.error['remediation']
    assert session.value(f'x, open("{place}/large").read(), open("kept").read()') == "(1, '2', '1')"


def test_a_replay_that_may_differ_says_so(session):
    """A thread stands in the way of a snapshot: then the cells are run again, and the answer says which may differ."""
    session.execute('x = 1').ok()
    session.execute('import threading, time; t = threading.Thread(target=time.sleep, args=(1e6,), daemon=True); t.start()').ok()
    session.execute('y = 2').ok()
    died = session.execute(CRASH)
    assert died.rolled_back and died.replayed == 3 and died.may_differ == [2, 3], died
    assert 'may_differ' in died.error['remediation']
    assert session.value('x, y, t.is_alive()') == '(1, 2, True)'


def test_undo_says_what_was_replayed(session):
    for i in range(3):
        session.execute(f'x = {i}').ok()
    answer = session.api.post(f'{session.path}/rollback', json={'undo': True}).json()
    assert answer['replayed'] in (0, 2) and answer['may_differ'] == []  # 0: there was a pause
    assert session.value('x') == '1'


def test_undo_after_a_cell_that_cannot_be_replayed(session):
    for i in range(3):
        session.execute(f'x = {i}').ok()
    session.execute('import uuid; x = uuid.uuid4()').ok()
    answer = session.api.post(f'{session.path}/rollback', json={'undo': True})
    assert answer.status_code == 200, answer.text
    assert answer.json()['may_differ'] == []
    assert session.value('x') == '2'


def test_fields_are_told_everywhere(session, api):
    seen = json.loads(api.post('/v1/run', json={'code': '1'}).text)
    assert seen['replayed'] == 0 and seen['may_differ'] == []
    assert {'replayed', 'may_differ'} <= set(api.get('/openapi.json').json()['components']['schemas']['Observation']['properties'])


def test_the_wait_for_a_snapshot_is_not_the_cells_time(api):
    """Orphans fill the session's processes, so that a snapshot takes as long as somebody waits for one of them to end."""
    session = api.session(limits={'processes': 8})
    session.execute(
        'import os, time\nchild = os.fork()\nif not child:\n  if not os.fork():\n    try:\n      while os.fork(): time.sleep(0.01)\n    except OSError: pass\n    time.sleep(60)\n'
        '  os._exit(0)\nos.waitpid(child, 0)\nwhile len([p for p in os.listdir("/proc") if p.isdigit()]) < 8: time.sleep(0.01)'
    ).ok()
    seen = session.execute('import os; os._exit(9)', timeout_s=1)
    assert seen.status == 'killed' and seen.exit_code == 9, seen


def test_libraries_that_a_cell_loads_are_watched_too(session):
    """The template has not loaded the library behind uuid1(): its calls are seen in later cells."""
    session.execute('seen = []\nimport uuid, _uuid').ok()
    before = cells(session, 'seen.append(_uuid.generate_time_safe()[0].hex())')
    died = session.execute(CRASH)
    assert died.rolled_back and died.may_differ == []
    assert session.value('seen') == before
