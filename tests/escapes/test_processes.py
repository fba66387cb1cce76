"""A process beside the interpreter of a session (POST …/processes) has the walls of the interpreter."""

import json
import os
from pathlib import Path

import gb
import pytest

HERE = Path(__file__).resolve().parent
PRELUDE = (HERE / 'prelude.py').read_text()

# Lines of /proc/self/status that say which walls hold.
WALLS = ['NoNewPrivs', 'Seccomp', 'Seccomp_filters', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'Uid', 'Gid', 'Groups']
TELL_WALLS = f"""
def walls():
    told = dict(line.rstrip().split(':', 1) for line in open('/proc/self/status'))
    return {{k: told[k].strip() for k in {WALLS!r} if k in told}}
"""

# Tries its hand at the jail's init, which looks after the interpreter, and at the interpreter itself.
ATTACK = """
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
there, here = (ctypes.c_uint64 * 2)(0x400000, 16), ctypes.create_string_buffer(16)
local = (ctypes.c_uint64 * 2)(ctypes.addressof(here), 16)
for pid in (1, int(sys.argv[1])):
    for name, request in (('attach to', PTRACE_ATTACH), ('seize', PTRACE_SEIZE)):
        if call('ptrace', request, pid, 0, 0)[0] == 0:
            got(f'{name} pid {pid}')
    if reached('process_vm_readv', pid, local, 1, there, 1, 0):
        got(f'read the memory of pid {pid}')
    for what in ('mem', 'fd', 'environ', 'maps'):
        try:
            path = f'/proc/{pid}/{what}'
            got(f'{what} of pid {pid}: {os.listdir(path) if what == "fd" else open(path, "rb").read(1)}')
        except OSError:
            pass
    pidfd = call('pidfd_open', pid, 0)[0]
    for fd in range(0, 8):
        if pidfd >= 0 and call('pidfd_getfd', pidfd, fd, 0)[0] >= 0:
            got(f'descriptor {fd} of pid {pid}')
for sig in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL, signal.SIGSEGV):
    call('kill', 1, sig)
    call('tgkill', 1, 1, sig)
verdict()
"""

DESCRIPTORS = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')))"


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '1', '--preload', 'none') as d:
        yield d


@pytest.fixture
def session(daemon):
    with daemon.api() as api:
        yield api.session()


def start(session, *argv, **fields):
    return session.api.post(f'{session.path}/processes', json={'argv': list(argv), **fields})


def run(session, code, *arguments):
    answer = start(session, '/usr/bin/python3', '-c', code, *arguments)
    assert answer.status_code == 200, answer.text
    assert answer.json()['exit_code'] == 0, answer.json()
    return answer.json()['stdout']


def test_it_reaches_neither_the_init_nor_the_interpreter(session):
    inner = session.value('__import__("os").getpid()')
    session.execute('kept = 1').ok()
    before = session.get()['pid']
    assert run(session, PRELUDE + ATTACK, inner).strip() == 'CONTAINED'
    assert session.value('kept') == '1' and session.get()['pid'] == before


def test_it_has_its_standard_streams_and_no_other_descriptor(session):
    assert json.loads(run(session, DESCRIPTORS)) == [0, 1, 2]


def test_its_walls_are_those_of_the_interpreter(session):
    own = json.loads(run(session, TELL_WALLS + 'import json; print(json.dumps(walls()))'))
    session.execute(TELL_WALLS).ok()
    assert own == json.loads(session.execute('import json; print(json.dumps(walls()))').ok().stdout)
    assert own['NoNewPrivs'] == '1' and own['Seccomp'] == '2'
    assert {own[k] for k in own if k.startswith('Cap')} == {'0' * 16}


def test_it_is_in_the_namespaces_and_control_groups_of_the_interpreter(session):
    interpreter = session.get()['pid']
    jail = os.readlink(f'/proc/{interpreter}/ns/pid')
    answer = start(session, '/bin/sleep', '4711', background=True)
    assert answer.status_code == 201, answer.text

    def is_it(pid):
        try:
            return os.readlink(f'/proc/{pid}/ns/pid') == jail and Path(f'/proc/{pid}/cmdline').read_bytes() == b'/bin/sleep\0004711\0'
        except OSError:
            return False

    pid = gb.wait_until(lambda: next((p for p in gb.processes() if is_it(p)), None), 'the process runs')
    assert Path(f'/proc/{pid}/cgroup').read_text() == Path(f'/proc/{interpreter}/cgroup').read_text()
    for kind in ('user', 'mnt', 'net', 'ipc', 'uts'):
        assert os.readlink(f'/proc/{pid}/ns/{kind}') == os.readlink(f'/proc/{interpreter}/ns/{kind}')


@pytest.mark.parametrize('fields, code', [({'exec': 'none'}, 'exec_not_allowed'), ({'profile': 'smolagents'}, 'policy_process')])
def test_sessions_that_start_no_programs_refuse_it(daemon, fields, code):
    with daemon.api() as api:
        answer = start(api.session(**fields), '/bin/true')
        assert answer.status_code == 403 and answer.json()['code'] == code
