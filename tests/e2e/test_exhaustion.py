"""Things that run out: descriptors, processes, namespaces, memory, disk and inodes of the state directory. Each time requests get a definite
answer with the reason, /readyz tells, sessions that are there go on, and the server recovers by itself."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import time

import pytest

import gb

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason='needs root to limit the machine for one process')
SMALL = ('--preload', 'json', '--ready', '1')


def refused(answer):
    """A definite 503 that says what has run out."""
    assert answer.status_code == 503, (answer.status_code, answer.text)
    assert answer.headers['Content-Type'] == 'application/problem+json'
    problem = answer.json()
    assert problem['code'] == 'no_resources' and problem['remediation'] and int(answer.headers['Retry-After']) >= 1
    return problem['detail']


def fill(api, most=4000):
    """Makes sessions until one is refused, or cannot start; the reason. A session is created before its jail exists: without a cell in each,
    all could be created before the first jail fails."""
    for _ in range(most):
        answer = api.post('/v1/sessions', json={}, timeout=30)
        if answer.status_code != 201:
            return refused(answer)
        answer = api.adopt(answer.json()).post_code('1')
        if answer.status_code == 410:
            return answer.json()['detail']
        if answer.status_code != 200:
            return refused(answer)
    raise AssertionError(f'{most} sessions, and nothing has run out')


def tells(answer, reason):
    return answer.status_code == 503 and reason in answer.json()['detail']


def assert_told_and_recovers(daemon, api, reason, give_back):
    """While it lasts: refusals at once, readiness tells, what is there works. Then all is well again."""
    # A session that ended for want of it may have freed enough for one more start.
    assert reason in fill(api, 20)
    gb.wait_until(lambda: tells(api.post('/v1/run', json={'code': '1'}), reason), 'a run is refused')
    gb.wait_until(lambda: tells(api.get('/readyz'), reason), '/readyz tells')
    assert api.get('/health').status_code == 200
    give_back()
    gb.wait_until(lambda: api.get('/readyz').status_code == 200, 'the server is ready again')
    assert gb.wait_until(lambda: api.post('/v1/run', json={'code': 'print(6 * 7)'}), 'a run').json()['stdout'] == '42\n'


def end_all(api):
    for session in api.made:
        session.delete()
    api.made.clear()


def idle_cpu(daemon):
    """Seconds of CPU in a second in which nobody asks for anything."""

    def used():
        fields = open(f'/proc/{daemon.pid}/stat').read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    before = used()
    time.sleep(1)
    return used() - before


@contextlib.contextmanager
def limited(daemon, which, value):
    """One limit of the running daemon."""
    before = resource.prlimit(daemon.pid, which)
    resource.prlimit(daemon.pid, which, (value, before[1]))
    try:
        yield
    finally:
        resource.prlimit(daemon.pid, which, before)


def test_descriptors():
    with gb.running_daemon(*SMALL) as daemon, daemon.api() as api:
        kept = api.session()
        with limited(daemon, resource.RLIMIT_NOFILE, 400):
            assert 'Too many open files' in fill(api)
            assert kept.value('6 * 7') == '42'
            assert idle_cpu(daemon) < 0.5, 'the loop spins'
            assert_told_and_recovers(daemon, api, 'Too many open files', lambda: end_all(api))


def test_no_descriptor_for_a_connection():
    """Connections are turned away with an answer, nothing spins, and later ones are served."""
    with gb.running_daemon(*SMALL) as daemon:
        with contextlib.ExitStack() as stack:
            before = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (daemon.fds() + 20, before[1]))
            stack.callback(resource.prlimit, daemon.pid, resource.RLIMIT_NOFILE, before)
            held = [stack.enter_context(socket.create_connection(('127.0.0.1', daemon.port))) for _ in range(60)]
            held[-1].settimeout(gb.PATIENCE)
            assert b'503' in held[-1].recv(4096)
            assert idle_cpu(daemon) < 0.5, 'the loop spins'
        gb.wait_until(lambda: daemon.api().get('/health').status_code == 200, 'connections are taken again')


# Starts a program in a user namespace whose users may have 60 namespaces of a kind each. The machine's own limits stay as they are.
FEW_NAMESPACES = """
import ctypes, os, sys
ready, tell = os.pipe()
me = os.getpid()
if os.fork() == 0:
    os.read(ready, 1)
    for name in ('uid_map', 'gid_map'):
        open(f'/proc/{me}/{name}', 'w').write('0 0 1\\n%(user)d %(user)d 1\\n')
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000) == 0
os.write(tell, b'x')
os.wait()
open('/proc/sys/user/max_uts_namespaces', 'w').write('60')
os.execvp(sys.argv[1], sys.argv[1:])
"""


@ROOT
def test_namespaces():
    user = 60001
    before = (gb.PYTHON, '-c', FEW_NAMESPACES % {'user': user})
    with gb.running_daemon(*SMALL, '--waive', 'cgroup', '--waive', 'landlock', before=before, user=user) as daemon, daemon.api() as api:
        kept = api.session()
        assert 'No space left on device' in fill(api, 200)
        assert kept.value('6 * 7') == '42'
        assert_told_and_recovers(daemon, api, 'No space left on device', lambda: end_all(api))


def pids_group(limit):
    """A control group with a limit of processes, or None."""
    v1 = '/sys/fs/cgroup/pids'
    base = v1 if os.path.isdir(v1) else '/sys/fs/cgroup'
    path = f'{base}/glovebox-test-{os.getpid()}'
    os.mkdir(path)
    with open(f'{path}/pids.max', 'w') as f:
        f.write(str(limit))
    return path


@ROOT
def test_processes():
    """The daemon and all it starts are in a group with a limit. Its sessions' groups are below, and count."""
    try:
        group = pids_group('max')
    except OSError:
        pytest.skip('no control group of processes')
    inside = f'echo $$ > {group}/cgroup.procs; exec "$@"'
    try:
        with gb.running_daemon(*SMALL, before=('sh', '-c', inside, 'sh')) as daemon, daemon.api() as api:
            kept = api.session()
            now = int(open(f'{group}/pids.current').read())
            with open(f'{group}/pids.max', 'w') as f:
                f.write(str(now + 40))
            assert 'Resource temporarily unavailable' in fill(api, 200)
            assert kept.value('6 * 7') == '42'
            assert_told_and_recovers(daemon, api, 'Resource temporarily unavailable', lambda: end_all(api))
    finally:
        for root, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(root)


@ROOT
@pytest.mark.parametrize('what', ['disk', 'inodes'])
def test_state_directory(what, tmp_path):
    state = tmp_path / 'state'
    state.mkdir()
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=24m,nr_inodes=400', 'tmpfs', state], check=True)
    try:
        with gb.running_daemon(*SMALL, '--state-dir', state) as daemon, daemon.api() as api:
            kept = api.session()
            if what == 'disk':
                (state / 'ballast').write_bytes(bytes(20 << 20))
                give_back = (state / 'ballast').unlink
            else:
                made = [state / f'i{i}' for i in range(380)]
                for path in made:
                    path.touch()
                give_back = lambda: [path.unlink() for path in made]  # noqa: E731
            gb.wait_until(lambda: api.get('/readyz').status_code == 503, '/readyz tells')
            assert kept.value('6 * 7') == '42'
            assert_told_and_recovers(daemon, api, 'state directory', give_back)
    finally:
        subprocess.run(['umount', state], check=True)


def memory_group(limit):
    v1 = '/sys/fs/cgroup/memory'
    base, name = (v1, 'memory.limit_in_bytes') if os.path.isdir(v1) else ('/sys/fs/cgroup', 'memory.max')
    path = f'{base}/glovebox-test-{os.getpid()}'
    os.mkdir(path)
    with open(f'{path}/{name}', 'w') as f:
        f.write(str(limit))
    return path


@ROOT
def test_memory():
    """The daemon and its sessions share a control group, which a session fills."""
    try:
        group = memory_group(600 << 20)
    except OSError:
        pytest.skip('no control group of memory')
    inside = f'echo $$ > {group}/cgroup.procs; exec "$@"'
    try:
        with gb.running_daemon(*SMALL, before=('sh', '-c', inside, 'sh')) as daemon, daemon.api() as api:
            kept, greedy = api.session(), api.session()

            def used():
                name = 'memory.usage_in_bytes' if 'memory/' in group else 'memory.current'
                return int(open(f'{group}/{name}').read())

            greedy.execute(f'b = bytearray({(600 << 20) - used() - (40 << 20)})').ok()
            gb.wait_until(lambda: api.get('/readyz').status_code == 503, '/readyz tells')
            assert kept.value('6 * 7') == '42'
            assert_told_and_recovers(daemon, api, 'MB of memory left', greedy.delete)
    finally:
        for root, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(root)


@pytest.mark.parametrize('limit', [1024, 3000])
def test_more_sessions_than_descriptors_are_not_promised(limit):
    before = ('prlimit', f'--nofile={limit}:{limit}')
    drop = gb.as_user(0)[:1] + ['--bounding-set=-sys_resource', '--inh-caps=-sys_resource'] if os.geteuid() == 0 else []
    with gb.running_daemon(*SMALL, '--max-sessions', '12000', '--max-connections', '100', before=(*before, *drop)) as daemon:
        said = [line for line in daemon.log().splitlines() if 'max-sessions is lowered from 12000 to' in line]
        assert said and 'descriptors' in said[0] and 'LimitNOFILE' in said[0]
        with daemon.api() as api:
            assert api.metric('glovebox_sessions_limit') < limit / 4


def test_descriptors_of_a_session():
    """Counted over many that have run a cell, and have a copy parked."""
    with gb.running_daemon(*SMALL) as daemon, daemon.api() as api:
        before, many = daemon.settled_fds(), 40
        for _ in range(many):
            api.session().execute('x = 1').ok()
        assert daemon.settled_fds() - before <= 4 * many + 2


def test_many_sessions_with_a_network_at_once():
    """Their requests to the jailer are long: more than its socket takes at once, while the jailer has no time for them."""
    rules = [f'host{n}.example:443' for n in range(60)]
    with gb.running_daemon('--network', 'any') as d:
        with d.api() as api:
            jailer = next(p for p, _ in gb.descendants(d.pid) if gb.command_of(p).endswith('jailer'))
            os.kill(jailer, signal.SIGSTOP)
            try:
                sessions = [api.session(network={'allow': rules}) for _ in range(80)]
            finally:
                os.kill(jailer, signal.SIGCONT)
            assert [s.execute('1 + 1')['status'] for s in sessions] == ['ok'] * 80
