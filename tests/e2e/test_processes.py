"""Every kind of process the daemon has: its filter, its privileges, who may look at it, and which descriptors it holds."""

import contextlib
import os
import re
from pathlib import Path

import gb
import pytest

NOBODY = 65534
KINDS = ['daemon', 'launcher', 'jailer', 'zygote', 'init', 'guest']


def status(pid, key):
    return re.search(rf'^{key}:\s*(.*)$', Path(f'/proc/{pid}/status').read_text(), re.M)[1].split()


def descriptors(pid):
    """{number: what it is}, without the inode numbers."""
    held = {}
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):  # closed in between
            held[int(fd)] = re.sub(r':?\[[0-9]+\]', '', os.readlink(f'/proc/{pid}/fd/{fd}'))
    return held


def members(daemon, session):
    """A process of each kind."""
    names = {'launcher': 'glovebox-launch', 'jailer': 'glovebox-jailer', 'zygote': 'glovebox-zygote'}
    found = {'daemon': daemon.pid, 'guest': session.get()['pid']}
    for kind, name in names.items():
        wanted = {'launcher': [2], 'zygote': [1, 2]}.get(kind, [1])  # a second zygote while the modules are imported, and for some time after
        gb.wait_until(lambda name=name, wanted=wanted: len(daemon.children(name)) in wanted, f'there is {name}')
        found[kind] = daemon.children(name)[0]
    space = os.readlink(f'/proc/{found["guest"]}/ns/pid')
    found['init'] = next(p for p in daemon.children('glovebox-init') if os.readlink(f'/proc/{p}/ns/pid') == space)
    return found


@pytest.fixture(scope='module', params=[0, NOBODY], ids=['root', 'ordinary user'])
def family(request):
    args = ['--preload', 'json', '--ready', '1']
    user = None if request.param == 0 else request.param
    args += ['--waive', 'cgroup'] if user else []
    with gb.running_daemon(*args, user=user) as daemon, daemon.api() as api:
        session = api.session()
        session.execute('1').ok()
        yield members(daemon, session)


@pytest.mark.parametrize('kind', [k for k in KINDS if k != 'launcher'])
def test_filter(family, kind):
    assert status(family[kind], 'Seccomp') == ['2']
    assert status(family[kind], 'NoNewPrivs') == ['1']
    wanted = {'guest': 2, 'init': 2}.get(kind, 1)  # their own over the one they were born under
    assert int(status(family[kind], 'Seccomp_filters')[0]) >= wanted


def test_the_launcher_starts_what_needs_more_than_the_daemon(family):
    assert int(status(family['launcher'], 'PPid')[0]) == family['daemon']
    assert status(family['launcher'], 'Seccomp') == status('self', 'Seccomp')


@pytest.mark.parametrize('kind', ['init', 'guest'])
def test_no_capabilities(family, kind):
    for names in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
        assert int(status(family[kind], names)[0], 16) == 0, names


@pytest.mark.parametrize('kind', [k for k in KINDS if k != 'guest'])
def test_nobody_looks_into_it(family, kind):
    """What is not dumpable belongs to root in /proc, whoever runs it (to the root of its own user namespace: whoever started it)."""
    mine = os.stat(f'/proc/{family[kind]}/environ').st_uid
    runs_as = int(status(family[kind], 'Uid')[1])
    starter = int(status(family['daemon'], 'Uid')[1])
    if kind in ('daemon', 'launcher'):
        assert mine == 0
    else:
        assert mine in (0, starter) and (runs_as == starter or mine != runs_as)


def test_environment(family):
    for kind in ('launcher', 'jailer', 'zygote', 'init', 'guest'):
        names = [e.partition(b'=')[0] for e in Path(f'/proc/{family[kind]}/environ').read_bytes().split(b'\0') if e]
        assert not [n for n in names if n.startswith((b'GLOVEBOX_T', b'HOSTNAME', b'SSH'))], (kind, names)


@pytest.mark.parametrize('kind', KINDS)
def test_descriptors(family, kind):
    """Exactly those that were meant for it."""
    if kind == 'guest':  # it parks a copy of itself after a cell, and talks to it for a moment
        gb.wait_until(lambda: descriptors(family[kind]) == {0: '/dev/null', 1: 'pipe', 2: 'pipe', 1023: 'socket'}, 'it has those of a guest at rest')
        return
    held = descriptors(family[kind])
    log = held.pop(1) if kind != 'init' else None
    if log:
        assert held.pop(2) == log
    wanted = {
        'launcher': {0: '/dev/null', 3: 'socket'},
        'jailer': {0: '/dev/null', 3: 'socket', 4: 'net'},  # its own empty network, to return to (src/jail/idle_net.h)
        'zygote': {0: '/dev/null', 3: 'socket'},
        'init': {
                **dict.fromkeys((0, 1, 2), '/dev/null'),
                3: 'socket',
                **{4 + i: f'/dev/shm/{name} (deleted)' for i, name in enumerate(('stat', 'meminfo', 'uptime', 'loadavg'))},
                8: 'anon_inode:[signalfd]',
            },
    }
    if kind == 'init':
        held.pop(9, None)  # where a snapshot waits for orders: kept for the daemon (src/jail/kept_sockets.h)
    if kind != 'daemon':
        assert held == wanted[kind]
        return
    plain = {'socket', 'pipe', 'anon_inode:[eventpoll]', 'anon_inode:[eventfd]', 'anon_inode:[pidfd]', 'pidfd', '/dev/null', '/workspace', '/run/glovebox.ids', '/dev/cpu_dma_latency'}
    # The namespace of the jails' tree, for a jailer that is started again; the daemon alone holds it.
    namespaces = [f for f in held.values() if f == 'mnt']
    assert len(namespaces) <= 1
    plain.add('mnt')
    # Without control groups the daemon looks at the processes of a jail through a /proc of that jail.
    if int(status(family['daemon'], 'Uid')[1]) != 0:
        plain.add('/proc')
    odd = {f for f in held.values() if f not in plain and not f.startswith(('/sys/fs/cgroup/', '/tmp/glovebox-e2e-'))}
    assert not odd


def test_an_init_has_no_libraries_that_it_does_not_call():
    """Each mapping makes the fork and the end of a jail slower. The jailer, of which an init is a copy, has them."""

    def libraries(pid):
        maps = Path(f'/proc/{pid}/maps').read_text()
        return {re.split(r'[-.]', line.rpartition('/')[2])[0] for line in maps.splitlines() if '.so' in line}

    with gb.running_daemon('--preload', 'json', '--ready', '1') as daemon, daemon.api() as api:
        session = api.session()
        session.execute('1').ok()
        assert {'libuv', 'libjansson', 'libseccomp'} < libraries(daemon.children('glovebox-jailer')[0])
        for pid in daemon.children('glovebox-init'):
            assert libraries(pid) <= {'libc', 'libm', 'ld'}, libraries(pid)


def test_a_helper_that_dies_comes_from_the_launcher(family):
    with gb.running_daemon('--preload', 'json', '--ready', '1') as daemon, daemon.api() as api:
        api.run('1').ok()
        for name in ('glovebox-jailer', 'glovebox-zygote'):
            gb.wait_until(lambda name=name: len(daemon.children(name)) == 1, f'there is one {name}')
            before = daemon.children(name)
            os.kill(before[0], 9)
            gb.wait_until(lambda name=name, before=before: daemon.children(name) not in ([], before), f'a new {name}')
            assert api.run('6 * 7').ok().text == '42'


def test_the_mover():
    """The helper that puts guests of forks into their control groups, there since the first fork."""
    with gb.running_daemon('--preload', 'json', '--ready', '1') as daemon, daemon.api() as api:
        session = api.session()
        session.execute('1').ok()
        answer = api.post(f'{session.path}/fork', json={})
        if answer.status_code == 409 and 'control groups' in answer.text:
            pytest.skip('no control groups on this machine')
        assert answer.status_code == 201, answer.text
        (pid,) = daemon.children('glovebox-mover')
        assert status(pid, 'Seccomp') == ['2'] and status(pid, 'NoNewPrivs') == ['1']
        assert os.stat(f'/proc/{pid}/environ').st_uid == 0
        held = descriptors(pid)
        assert set(held) == {0, 1, 2, 3, 4} and held[3] == 'socket' and held[4].endswith('/cgroup.procs'), held
        os.kill(pid, 9)
        answer = api.post(f'{session.path}/fork', json={})
        assert answer.status_code == 201, answer.text  # another one does it
        assert daemon.children('glovebox-mover') not in ([], [pid])
