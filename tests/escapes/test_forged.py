"""Code that speaks in its interpreter's place: it answers the daemon's requests for copies with processes and sockets of its own.

What must hold: such code reaches that session only, stays in that session's control groups and limits, and delays nobody else.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gb
import pytest

HERE = Path(__file__).resolve().parent
PRELUDE = (HERE / 'prelude.py').read_text() + (HERE / 'hostile/wire.py').read_text()

PF_EXITING = 4  # of the flags in /proc/PID/stat

# Answers older kernels' way: there is no Landlock.
WITHOUT_LANDLOCK = """
import ctypes, os, struct, sys
code = [struct.pack('HBBI', 0x20, 0, 0, 0), struct.pack('HBBI', 0x15, 0, 1, 444), struct.pack('HBBI', 0x06, 0, 0, 0x00050000 | 38),
    struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b''.join(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack('HxxxxxxP', len(code), ctypes.addressof(program)), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""

# The loop of a guest that parks forged copies. `forged(order, descriptors)` is what such a copy does when it is told to live.
LOOP = """
notes = []
kin = SIBLING
def forge(w, ticket, process=None):
    ours, theirs = socket.socketpair()
    _, pidfd = spawn(process or (lambda: time.sleep(1000)), kin)
    w.send(PARKED, 0, field(T_TICKET, ticket), fds=[pidfd, theirs.fileno()])
    theirs.close()
    threading.Thread(target=copy, args=(ours,), daemon=True).start()

def copy(ours):
    o = Wire(ours.fileno())
    while True:
        kind, serial, f = o.receive()
        came, o.fds = o.fds, []
        notes.append([os.readlink(f'/proc/self/fd/{fd}') for fd in came])
        try:
            forged(o, f, came)
        except BaseException as e:
            notes.append([repr(e)])

w = Wire()
w.done(this_cell())
while True:
    kind, serial, f = w.receive()
    if kind == EXECUTE:
        try:
            said = repr(eval(f[T_CODE].decode()))
        except BaseException as e:
            said = repr(e)
        os.write(1, said.encode())
        w.done(serial)
    elif kind in (PARK, PARK_NEXT):
        forge(w, number(f[T_TICKET]))
"""


def hostile(api, forged, **fields):
    """A session in which forged(o, f, came) answers for its copies; what it evaluates is asked for by ask()."""
    session = api.session(**fields)
    session.execute(PRELUDE + forged + LOOP, timeout_s=20).ok()
    return session


def ask(session, expression):
    return session.execute(expression).ok().stdout


def fork(session, **body):
    return session.api.post(f'{session.path}/fork', json=body)


@pytest.fixture(scope='module', params=['landlock', 'no landlock'])
def daemon(request):
    extra = {} if request.param == 'landlock' else {'before': [gb.PYTHON, '-c', WITHOUT_LANDLOCK]}
    args = [] if request.param == 'landlock' else ['--waive', 'landlock']
    with gb.running_daemon('--preload', 'json', '--ready', '2', *args, **extra) as d:
        with d.api() as api:
            if api.get('/version').json()['layers']['cgroup'] == 'waived':
                pytest.skip('no control groups on this machine')
        yield d


@pytest.fixture
def api(daemon):
    with daemon.api() as api:
        yield api


def groups(daemon):
    """The daemon's control groups, of all hierarchies, by their path below its home."""
    home = f'glovebox-{daemon.pid}'
    return {path.partition(home + '/')[2] for path, _, _ in os.walk('/sys/fs/cgroup') if home + '/' in path}


def strays(daemon, pids):
    """Those that live, have a user id of sessions and are in none of the daemon's groups, in some hierarchy; {pid: lines}."""
    found = {}
    for pid in pids:
        try:
            uid = os.stat(f'/proc/{pid}').st_uid
            lines = Path(f'/proc/{pid}/cgroup').read_text().splitlines()
            stat = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
            ended = stat[0] in 'ZX' or int(stat[6]) & PF_EXITING  # an exiting process has left its group already
        except OSError:
            continue
        outside = [line for line in lines if set(line.split(':')[1].split(',')) & {'memory', 'pids'} and f'glovebox-{daemon.pid}/' not in line]
        if uid >= 1_000_000_000 and gb.command_of(pid) == 'python3' and outside and not ended:
            found[pid] = outside
    return found


def homeless(daemon):
    """Processes of sessions that are in none of the daemon's groups. Looked at twice: the group is read before the state."""
    found = strays(daemon, [pid for pid, _ in gb.descendants(daemon.pid)])
    return list(strays(daemon, found).items())


SLEEPS = 'def forged(o, f, came):\n    pass\n'


def test_no_authority_reaches_a_forged_copy(daemon, api):
    """What came with the order: three ends and six namespaces, and no file of a control group."""
    session = hostile(api, SLEEPS)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(fork, session)
        time.sleep(1)
        held = []
        for pid, _ in gb.descendants(daemon.pid):
            if gb.command_of(pid) == 'python3':
                held += [os.readlink(fd) for fd in Path(f'/proc/{pid}/fd').iterdir() if os.path.islink(fd)]
        assert any(link.startswith('user:') for link in held)
        assert not [link for link in held if 'cgroup' in link]
        assert answer.result().status_code == 409
    session.delete()


READY_WITHOUT_A_PROCESS = """
def forged(o, f, came):
    Wire(came[0]).send(READY)
"""


def test_a_copy_without_a_process_is_no_interpreter(api):
    """Nothing could end its cells: there is no process to kill."""
    session = hostile(api, READY_WITHOUT_A_PROCESS)
    answer = fork(session)
    assert answer.status_code == 409, answer.text
    session.delete()


ANY_CHILD = """
def forged(o, f, came):
    pid, pidfd = spawn(lambda: time.sleep(1000), SIBLING)
    Wire(came[0]).send(LIVED, 0, fds=[pidfd])
"""

KEEPS_CAPABILITIES = """
def forged(o, f, came):
    def parent():
        joined = join(came[3:9])
        pid, pidfd = clone_child(SIBLING)
        if pid == 0:
            time.sleep(1000)
        Wire(came[0]).send(LIVED, 0, fds=[pidfd])
        time.sleep(1000)
    spawn(parent)
"""


@pytest.mark.parametrize(('forged', 'why'), [(ANY_CHILD, "not in the fork's jail"), (KEEPS_CAPABILITIES, 'capabilities')], ids=['any child', 'keeps capabilities'])
def test_a_guest_that_is_none_is_refused(daemon, api, forged, why):
    before = groups(daemon)
    session = hostile(api, forged)
    for _ in range(3):
        answer = fork(session)
        assert answer.status_code == 409 and why in answer.json()['detail'], answer.text
    assert homeless(daemon) == []
    session.delete()
    gb.wait_until(lambda: not {g for g in groups(daemon) - before if g.startswith('f')}, 'no group of a fork is left')


def test_a_copy_that_is_no_child_of_the_daemon_is_refused(daemon, api):
    """Its number could become another process's: the daemon knows copies by their numbers."""
    session = hostile(api, SLEEPS)
    ask(session, 'globals().update(kin=CLONE_PIDFD | SIGCHLD)')
    answer = fork(session)
    assert answer.status_code == 409, answer.text
    assert ask(session, 'notes') == '[]'
    assert api.get('/health').status_code == 200
    session.delete()


GREEDY = """
def hog():
    held = [bytearray(48 << 20) for _ in range(3)]
    for block in held:
        for i in range(0, len(block), 4096):
            block[i] = 1
    time.sleep(1000)

def forged(o, f, came):
    for fd in came:
        try:
            os.write(fd, b'0')
        except OSError:
            pass
    pid, pidfd = spawn(hog)
    Wire(came[0]).send(LIVED, 0, fds=[pidfd])
"""


def test_memory_stays_within_the_session(daemon, api):
    """Each fork that a forged copy answers for brings no memory of its own."""
    session = hostile(api, GREEDY, limits={'memory_bytes': 192 << 20})
    pid = session.get()['pid']
    for _ in range(4):
        assert fork(session).status_code == 409
    time.sleep(0.5)
    uid = os.stat(f'/proc/{pid}').st_uid
    held = 0
    for other, _ in gb.descendants(daemon.pid):
        try:
            if os.stat(f'/proc/{other}').st_uid == uid:
                smaps = Path(f'/proc/{other}/smaps_rollup').read_text()
                held += int(smaps.split('Pss_Anon:')[1].split()[0]) << 10
        except (OSError, IndexError):
            continue
    assert held < (192 + 64 + 32) << 20, held >> 20
    assert homeless(daemon) == []
    session.delete()


STOPS_ALL = """
def stopper():
    me = os.getpid()
    while True:
        for pid in range(2, 400):
            if pid not in (me, os.getppid(), keep):
                try:
                    os.kill(pid, signal.SIGSTOP)
                except OSError:
                    pass
keep = os.getpid()
def forged(o, f, came):
    def parent():
        join(came[3:9])  # all capabilities in the fork's user namespace
        stopper()
    spawn(parent)
    Wire(came[0]).send(LIVED, 0, field(T_TEXT, b'no'))
for _ in range(2):
    spawn(stopper)
"""


def test_whoever_stops_what_makes_its_fork_delays_nobody(daemon, api):
    session = hostile(api, STOPS_ALL)
    with ThreadPoolExecutor(1) as pool, daemon.api() as other:
        wants = pool.submit(lambda: [fork(session, count=3).status_code for _ in range(2)])
        end = time.monotonic() + 8
        while time.monotonic() < end:
            start = time.monotonic()
            neighbour = other.session()
            assert neighbour.execute('6 * 7').ok().text == '42'
            neighbour.delete()
            assert other.get('/readyz').status_code == 200
            assert time.monotonic() - start < 5
        session.delete()
        assert set(wants.result()) <= {409, 404, 410, 201}


def test_ordinary_forks_still_work(daemon, api):
    session = api.session()
    session.execute('x = 1; open("f", "w").write("y" * 1000)').ok()
    answer = fork(session, count=3)
    assert answer.status_code == 201
    children = [api.adopt(s) for s in answer.json()['sessions']]
    for child in children:
        assert child.value('x, len(open("f").read())') == '(1, 1000)'
        lines = Path(f'/proc/{child.get()["pid"]}/cgroup').read_text()
        assert '/f' in lines and homeless(daemon) == []
    for child in children:
        child.delete()
    session.delete()
    gb.wait_until(lambda: not {g for g in groups(daemon) if g.startswith('f')}, 'the family has no group left')
