"""An ordinary user without control groups has rollback, checkpoints and forks; memory and processes of a session are bounded together all the same."""

import re

import gb
import pytest

USER = 60001
SPARE = 80 + 8  # snapshots may come on top of the limit of processes, and a few of Glovebox's own are in each jail


@pytest.fixture(scope='module')
def user_daemon():
    with gb.running_daemon('--preload', 'json', '--ready', '1', user=USER) as daemon:
        yield daemon


@pytest.fixture
def user(user_daemon):
    with user_daemon.api() as api:
        yield api


def space_of(session):
    """The pid namespace of the session, which all its interpreters have; while one is there."""
    (space,) = {n for n in gb.namespaces([session.get()['pid']]) if n.startswith('pid:')}
    return space


def below(session, space=None):
    """Processes in that namespace, seen from outside."""
    space = space or space_of(session)
    return {p for p in gb.processes() if space in gb.namespaces([p]) and (s := gb._stat(p)) and s[2] not in 'ZX'}


def post(session, path, **body):
    answer = session.api.post(f'{session.path}/{path}', json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def test_it_starts_and_says_in_one_line_what_is_missing(user_daemon, user):
    lines = [line for line in user_daemon.log().splitlines() if 'control groups' in line]
    assert len(lines) == 1 and 'limits.cpus is refused' in lines[0] and 'glovebox doctor' in lines[0]
    version = user.get('/version').json()
    assert version['layers']['cgroup'] == 'none' and version['limits_not_enforced'] == ['cpus']
    gb.assert_problem(user.post('/v1/run', json={'code': '1', 'limits': {'cpus': 0.5}}), 501, 'limit_not_enforced', 'control groups')


def run(daemon, *words):
    command = [*gb.as_user(USER), daemon.dir / 'glovebox', 'run', *words]
    env = gb.clean_env(HOME=daemon.dir / 'state')
    return gb.subprocess.run(command, capture_output=True, text=True, timeout=gb.PATIENCE, env=env, cwd='/')


def test_run_says_nothing_about_it(user_daemon):
    done = run(user_daemon, '-c', 'print(1)')
    assert (done.stdout, done.stderr, done.returncode) == ('1\n', '', 0)


def test_run_refuses_what_it_cannot_enforce(user_daemon):
    done = run(user_daemon, '--cpus', '0.5', '-c', 'print(1)')
    assert (done.stdout, done.returncode) == ('', 125) and '--cpus cannot be enforced without control groups' in done.stderr


def test_a_setting_that_is_not_enforced_is_named():
    with gb.running_daemon('--preload', 'none', '--ready', '1', '--cpus', '0.5', user=USER) as daemon:
        assert 'warning the setting cpus (0.5) is not enforced without control groups' in daemon.log()


def test_a_death_is_undone(user):
    session = user.session()
    session.execute('import os, subprocess; x = [1]; open("f", "w").write("one")').ok()
    o = session.execute('x.append(2); open("f", "w").write("two"); subprocess.Popen(["sleep", "1000"]); os._exit(1)')
    assert o.rolled_back and not o.state_lost
    assert session.value('x, open("f").read()') == "([1], 'one')"
    gb.wait_until(lambda: 'sleep' not in {gb.command_of(p) for p in below(session)}, 'what the cell had started is gone')


def test_a_process_that_hides_dies_too(user):
    """Not a child of the interpreter, undumpable, in a session of its own: the daemon sees it all the same."""
    session = user.session()
    session.execute('import ctypes, os; x = 1').ok()
    number = {'x86_64': 56, 'aarch64': 220}[gb.os.uname().machine]
    o = session.execute(f"""
libc = ctypes.CDLL(None)
if libc.syscall({number}, 0x8000, 0, 0, 0, 0) == 0:
    libc.prctl(15, b'hidden', 0, 0, 0), libc.prctl(4, 0, 0, 0, 0)
    os.setsid()
    open('there', 'w')
    while True: os.read(0, 1) or libc.pause()
import time
while not os.path.exists('there'): time.sleep(0.01)
os._exit(1)
""")
    assert o.rolled_back
    assert session.value('x') == '1'
    gb.wait_until(lambda: 'hidden' not in {gb.command_of(p) for p, _ in gb.descendants(gb._stat(session.get()['pid'])[0])}, 'it is gone')


def test_checkpoints(user):
    session = user.session()
    session.execute('x = 1').ok()
    post(session, 'checkpoints', name='one')
    session.execute('x = 2').ok()
    post(session, 'rollback', checkpoint='one')
    assert session.value('x') == '1'


def test_forks(user):
    session = user.session()
    session.execute('x = [1]; open("f", "w").write("a")').ok()
    forks = [user.adopt(s) for s in post(session, 'fork', count=3)['sessions']]
    for i, fork in enumerate(forks):
        fork.execute(f'x.append({i}); f = open("f", "a"); f.write("{i}"); f.close()').ok()
        assert fork.value('x, open("f").read()') == f"([1, {i}], 'a{i}')"
    assert forks[0].execute('import os; os._exit(1)').rolled_back and forks[0].value('x') == '[1, 0]'
    assert session.execute('import os; os._exit(1)').rolled_back, 'the end of its processes leaves its forks alone'
    assert forks[1].value('x') == '[1, 1]' and session.value('x') == '[1]'
    pids = {fork.get()['pid'] for fork in forks}
    session.delete()
    assert forks[2].value('x') == '[1, 2]'
    for fork in forks:
        fork.delete()
    gb.wait_until(lambda: not pids & set(gb.processes()), 'nothing of the forks is left')


def test_a_fork_bomb_is_bounded(user):
    session = user.session(limits={'processes': 40})
    session.execute('import os; x = 1').ok()
    space = space_of(session)
    cell = session.in_background('while True:\n  try: os.fork()\n  except BaseException: pass', timeout_s=2)
    most = 0
    while cell.thread.is_alive():
        most = max(most, len(below(session, space)))
    o = cell.result()
    assert o.status == 'timeout' and 20 < most <= 40 + SPARE
    if not o.rolled_back:  # it stopped when it was interrupted, and its children go on
        session.reset()
    assert session.execute('x').status == ('ok' if o.rolled_back else 'error')
    gb.wait_until(lambda: len(below(session, space)) <= 4, 'all of them are gone')


BOMBS = {
    'children': """
for i in range(8):
    if os.fork() == 0:
        b = bytearray(os.urandom(1)) * (100 << 20)
        while True: time.sleep(1)
os.wait()[1]
""",
    'files without a name': """
for i in range(8):
    fd = os.memfd_create('a', os.MFD_CLOEXEC | 8)
    os.write(fd, b'x' * (100 << 20))
while True: time.sleep(1)
""",
    'shared memory': """
import mmap
maps = []
for i in range(8):
    maps.append(mmap.mmap(-1, 100 << 20))
    maps[-1].write(b'x' * (100 << 20))
while True: time.sleep(1)
""",
}


@pytest.mark.parametrize('bomb', BOMBS)
def test_memory_of_all_processes_together_is_bounded(user, bomb):
    session = user.session(limits={'memory_bytes': 256 << 20})
    session.execute('import os, time; x = 1').ok()
    o = session.execute(BOMBS[bomb], timeout_s=60)
    if bomb == 'children':  # the largest ones are killed, one after another, until the others fit
        assert o.ok().text == '9'
    else:
        assert o.status == 'out_of_memory' and o.error['code'] == 'out_of_memory', o
        assert o.rolled_back and session.value('x') == '1'


def test_pages_that_processes_share_count_once(user):
    session = user.session(limits={'memory_bytes': 256 << 20})
    o = session.execute("""
import os, time
data = bytearray(b'x') * (120 << 20)
children = []
for i in range(6):
    pid = os.fork()
    if pid == 0:
        time.sleep(2)
        os._exit(data[-1] != ord('x'))
    children.append(pid)
[os.waitpid(pid, 0)[1] for pid in children]
""", timeout_s=60)
    assert o.ok().text == str([0] * 6)


def test_cpu_time_of_children_counts(user):
    o = user.session(limits={'cpu_s': 1}).execute('import os\nif os.fork() == 0:\n  while True: pass\nos.wait()', timeout_s=100)
    assert o.error['code'] == 'cpu_limit'


def test_snapshots_that_hold_too_much_are_evicted(user):
    session = user.session(limits={'memory_bytes': 512 << 20})
    evicted = []
    for i in range(6):
        session.execute(f'data = bytearray(b"x") * (70 << 20); x = {i}').ok()
        evicted += post(session, 'checkpoints', name=f'c{i}')['evicted']
    kept = session.api.get(f'{session.path}/checkpoints').json()['checkpoints']
    assert evicted and 1 <= len(kept) <= 4 and kept[-1]['name'] == 'c5'
    post(session, 'rollback', checkpoint='c5')
    assert session.value('x') == '5'


def test_programs_beside_the_interpreter_outlive_its_death(user):
    session = user.session()
    post(session, 'processes', argv=['sleep', '1000'], background=True)
    session.execute('import os; x = 1').ok()
    assert session.execute('os._exit(1)').rolled_back
    assert 'sleep' in {gb.command_of(p) for p in below(session)}


def test_a_user_manager_is_asked_for_control_groups(tmp_path):
    """The program starts itself again through systemd-run, here one that only notes how it was called."""
    tmp_path.chmod(0o755)
    notes = tmp_path / 'notes'
    notes.mkdir(mode=0o777)
    notes.chmod(0o777)
    (tmp_path / 'systemd').mkdir()
    (tmp_path / 'systemd/private').touch()
    (tmp_path / 'systemd/private').chmod(0o666)
    fake = tmp_path / 'systemd-run'
    fake.write_text(f'#!/bin/sh\necho "$@" >> {notes}/calls\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    fake.chmod(0o755)
    before = ['unshare', '-m', 'sh', '-c', 'umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup && exec "$@"', '-']
    env = {'PATH': f'{tmp_path}:{gb.os.environ["PATH"]}', 'XDG_RUNTIME_DIR': tmp_path}
    for parent in reversed(tmp_path.parents[:-2]):
        parent.chmod(0o755)
    with gb.running_daemon('--preload', 'json', '--ready', '1', before=before, user=USER, env=env) as daemon, daemon.api() as api:
        assert api.run('6 * 7').ok().text == '42'
        assert len(re.findall('systemd-run --user --scope -p Delegate=yes', daemon.log())) == 1
    tried, done = (notes / 'calls').read_text().splitlines()
    assert tried == '--user --scope --quiet --collect --description=glovebox -p Delegate=yes -- true'
    assert re.fullmatch(r'--user --scope --quiet --collect --description=glovebox -p Delegate=yes -- \S+/glovebox serve --listen .*--ready 1', done)
