"""Programs that try to get out of a session, or to take more than it has. Each runs twice: in a session, where it must be
CONTAINED, and as root on the machine itself, where it must get through (ESCAPED): a program that cannot fail is noticed there.

A program is prelude.py, its file, and a call of verdict(). Comments at its top say how it is run:

  # limits: JSON, # exec: KIND, # network: JSON, # timeout: SECONDS   of the session
  # ends: STATUS…      the cell may also end so, instead of saying CONTAINED
  # needs: cgroups     holds only where control groups are
  # watch: yes         a neighbour must stay quick meanwhile
  # arch: NAME         machine code
  # control: bare (the default) | fresh (in namespaces of its own, that nothing stays) | outlives (is still there after its
    time) | survivors (leaves a process behind) | none: WHY
  # control-opens: PATH, # control-env: yes   what the control finds lying about
"""

import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import gb
import pytest
import victim

HERE = Path(__file__).resolve().parent
PRELUDE = (HERE / 'prelude.py').read_text()
VICTIM = victim.start()  # a server on the machine's loopback that nobody in a session may reach
CANARY = 'canary-of-' + 'the-daemon-4711'
FRESH = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--ipc', '--uts']
QUICK = 1.0  # seconds for a neighbour's trivial cell, while a fork bomb runs on two processors; one in ten may have met something else


class Program:
    def __init__(self, path):
        self.path, self.name = path, path.stem
        text = path.read_text().replace('@VICTIM@', str(VICTIM))
        self.notes = dict(re.findall(r'^# ([a-z-]+): (.*)$', text, re.M))
        self.text = f'{PRELUDE}\n{text}\nverdict()\n'
        self.limits = json.loads(self.notes.get('limits', '{}'))
        self.timeout = float(self.notes.get('timeout', 15))
        self.ends = self.notes.get('ends', '').split()
        self.control, _, self.why_none = self.notes.get('control', 'bare').partition(': ')

    def __repr__(self):
        return self.name


PROGRAMS = [Program(path) for folder in ('kernel', 'network', 'resources') for path in sorted((HERE / folder).glob('*.py'))]


def lines(text):
    return [line for line in text.splitlines() if line.startswith(('ESCAPED', 'CONTAINED'))]


def skip_on_other_machines(program):
    if program.notes.get('arch', platform.machine()) != platform.machine():
        pytest.skip(f'machine code for {program.notes["arch"]}')


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon(
        '--preload', 'json', '--ready', '2', '--grace', '0.5', '--network', 'any', '--token', CANARY, token=CANARY, env={'A_SECRET': CANARY},
    ) as d:
        yield d


@pytest.fixture
def api(daemon):
    with daemon.api() as api:
        yield api


@contextlib.contextmanager
def quick_neighbour(api, wanted):
    """Another session, whose trivial cells are timed while the block runs."""
    if not wanted:
        yield
        return
    neighbour, took, stop = api.session(), [], []
    neighbour.execute('1 + 1').ok()

    def ask():
        with gb.Api(api.url, token=CANARY) as own:
            session = gb.Session(own, neighbour.info)
            while not stop:
                start = time.monotonic()
                session.execute('1 + 1').ok()
                own.get('/health').raise_for_status()
                took.append(time.monotonic() - start)
                time.sleep(0.02)

    import threading

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        stop.append(True)
        thread.join()
    slow = [seconds for seconds in took if seconds > QUICK]
    assert took and len(slow) <= 1 + len(took) // 10, f'a neighbour waited {slow} s in {len(took)} cells'


@pytest.mark.parametrize('program', PROGRAMS, ids=repr)
def test_contained(api, program):
    skip_on_other_machines(program)
    network = json.loads(program.notes.get('network', '"none"'))
    session = api.session(limits=program.limits, exec=program.notes.get('exec', 'system'), network=network)
    if program.notes.get('needs') == 'cgroups' and not in_a_group(session):
        pytest.skip('no control groups on this machine')
    with quick_neighbour(api, program.notes.get('watch')):
        start = time.monotonic()
        o = session.execute(program.text, timeout_s=program.timeout)
        took = time.monotonic() - start
    said = lines(o.stdout)
    assert not [line for line in said if line.startswith('ESCAPED')], said
    if o.status not in program.ends:
        assert o.status == 'ok' and said == ['CONTAINED'], (o.status, o.stdout[-2000:], o.stderr[-2000:], o.error)
    assert took < program.timeout + 30
    session.delete()
    if program.control == 'survivors':
        gb.wait_until(lambda: not named('gb-survivor'), 'nothing is left of the session')


def in_a_group(session):
    session.execute('0').ok()
    return 'glovebox-' in Path(f'/proc/{session.get()["pid"]}/cgroup').read_text()


def named(name):
    return [pid for pid in gb.processes() if gb.command_of(pid) == name]


def run_control(program, cwd):
    """(stdout, whether it had to be killed) of the program on the machine itself."""
    opened = program.notes.get('control-opens')
    fds = [os.open(opened, os.O_RDONLY)] if opened else []
    env = {'PATH': '/usr/bin:/bin', 'LANG': 'C.UTF-8'} | ({'A_SECRET': CANARY} if 'control-env' in program.notes else {})
    command = (FRESH if program.control == 'fresh' else []) + [gb.PYTHON, '-I', '-c', program.text]
    with tempfile.TemporaryFile('w+') as out:
        process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, env=env, pass_fds=fds, start_new_session=True
        )
        killed = False
        try:
            if program.control == 'outlives':
                time.sleep(program.timeout)
                process.send_signal(signal.SIGINT)
                process.wait(0.7)
            else:
                process.wait(gb.PATIENCE)
        except subprocess.TimeoutExpired:
            killed = True
            process.kill()
            process.wait()
        for fd in fds:
            os.close(fd)
        out.seek(0)
        return out.read(), killed


@pytest.mark.parametrize('program', [p for p in PROGRAMS if p.control != 'none'], ids=repr)
def test_control(program, tmp_path):
    skip_on_other_machines(program)
    if os.geteuid() != 0:
        pytest.skip('the control runs as root')
    stdout, killed = run_control(program, tmp_path)
    if program.control == 'outlives':
        assert killed, stdout
    elif program.control == 'survivors':
        left = named('gb-survivor')
        assert left
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    else:
        assert [line for line in lines(stdout) if line.startswith('ESCAPED')], f'it could not get through: {stdout[-2000:]}'


@pytest.mark.parametrize('program', [p for p in PROGRAMS if p.control == 'none'], ids=repr)
def test_no_control_has_a_reason(program):
    assert len(program.why_none) > 10


# ---- sessions among themselves ----------------------------------------------------------------

PLANT, SEEK = (Program(HERE / f'pairs/{name}.py') for name in ('plant', 'seek'))


@pytest.mark.parametrize('after_its_end', [False, True], ids=['beside', 'after'])
def test_marks_of_another_session(api, after_its_end):
    first = api.session()
    assert 'PLANTED' in first.execute(PLANT.text).ok().stdout
    if after_its_end:
        first.delete()
    for _ in range(3):  # whichever waiting guest is taken
        assert lines(api.session().execute(SEEK.text).ok().stdout) == ['CONTAINED']


def test_marks_control(tmp_path):
    if os.geteuid() != 0:
        pytest.skip('the control runs as root')
    for program in (PLANT, SEEK):
        program.control = 'fresh'
    both = Program(PLANT.path)
    both.control = 'fresh'
    both.text = f'{PLANT.text}\nescapes.clear()\nif os.fork() == 0:\n    exec({SEEK.text!r})\n    os._exit(0)\nos.wait()\n'
    stdout, _ = run_control(both, tmp_path)
    for place in ('/tmp', '/dev/shm', '/var/tmp', '/run', '/home'):  # of the machine: only the mounts are its own there
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f'{place}/glovebox-mark')
    found = [line for line in lines(stdout) if line.startswith('ESCAPED')]
    assert found and all(word in found[0] for word in ('a file in /tmp', 'abstract', 'segment', 'process')), stdout


# ---- what exec means ---------------------------------------------------------------------------


def test_exec_any_starts_own_programs(api):
    """What exec_own_files and exec_memory cannot do with `system`, they do with `any`: the mode is what stops them."""
    for name in ('exec_own_files', 'exec_memory'):
        program = next(p for p in PROGRAMS if p.name == name)
        said = lines(api.session(exec='any').execute(program.text).ok().stdout)
        assert said and said[0].startswith('ESCAPED'), (name, said)


def test_exec_system_starts_the_systems(api):
    program = next(p for p in PROGRAMS if p.name == 'exec_nothing')
    said = lines(api.session().execute(program.text).ok().stdout)
    assert said and all(way in said[0] for way in ('execv', 'subprocess', 'posix_spawn', 'system')), said


# ---- more than an answer holds ------------------------------------------------------------------


def test_flood_of_output(daemon, api):
    before = daemon.rss()
    o = api.session().execute('import os\nfor _ in range(3000):\n    os.write(1, b"x" * 99999 + b"\\n")', timeout_s=30).ok()
    assert len(o.stdout) < 2 << 20 and o.truncated['stdout'] > 280 << 20
    assert daemon.rss() - before < 64 << 20
