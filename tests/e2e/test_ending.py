"""What is left: of sessions that ended, of a daemon that was killed, and of two daemons side by side, counted from outside."""

import concurrent.futures
import os
import signal
from pathlib import Path

import gb
import pytest

SESSIONS = 60
CGROUPS = Path('/sys/fs/cgroup')


def groups_of(pid):
    """Control groups of the daemon with this pid, wherever they are."""
    found = []
    for line in Path('/proc/self/cgroup').read_text().splitlines():
        _, controllers, path = line.split(':', 2)
        for name in [*controllers.split(','), 'unified', '']:
            for place in (CGROUPS / name / path.lstrip('/'), CGROUPS / name):
                home = place / f'glovebox-{pid}'
                if home.is_dir():
                    found += [str(p) for p in [home, *home.iterdir()] if p.is_dir()]
    return set(found)


def uids(daemon):
    """Host ids of everything below a daemon that is not its own."""
    found = set()
    for pid, _ in gb.descendants(daemon.pid):
        try:
            found.add(os.stat(f'/proc/{pid}/task').st_uid if gb.command_of(pid) == 'python3' else 0)
        except FileNotFoundError:
            pass
    return found - {0}


def count(daemon):
    """Processes, descriptors, groups, mounts and unix sockets now."""
    return {
        'processes': len(gb.descendants(daemon.pid)),
        'descriptors': daemon.fds(),
        'groups': len(groups_of(daemon.pid)),
        'mounts': len(Path(f'/proc/{daemon.pid}/mountinfo').read_text().splitlines()),
        'mounts of the jailer': len(Path(f'/proc/{daemon.children("glovebox-jailer")[0]}/mountinfo').read_text().splitlines()),
        'files': sum(len(files) for _, _, files in os.walk(daemon.dir / 'state')),
    }


def busy_life(api):
    """A session that leaves as much as it can."""
    code = (
        'import os, socket, subprocess, tempfile, threading, time, mmap\n'
        'open("/dev/shm/x", "w").write("x"); tempfile.mkdtemp()\n'
        's = socket.socket(socket.AF_UNIX); s.bind("/tmp/s"); s.listen()\n'
        'threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n'
        'if os.fork() == 0: os.setsid(); time.sleep(60)\n'
        'subprocess.Popen(["/bin/sleep", "60"])\n'
        'print("y" * 100_000)'
    )
    session = api.session(network='loopback') if hash(api) % 2 else api.session()
    session.execute(code).ok()
    session.delete()


@pytest.fixture
def own():
    with gb.running_daemon('--preload', 'json', '--ready', '2', '--grace', '1') as daemon:
        yield daemon


def settled(daemon):
    daemon.settled_fds()
    return count(daemon)


def test_many_sessions_leave_nothing(own):
    with own.api() as api:
        busy_life(api)  # what is made once
    before = settled(own)

    def live(_):
        with own.api() as api:
            busy_life(api)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(live, range(SESSIONS)))
    gb.wait_until(lambda: settled(own) == before, f'as before: {before}, now {count(own)}')


@pytest.mark.parametrize('kind', ['guest', 'init', 'glovebox-jailer', 'glovebox-zygote', 'glovebox-launch'])
def test_a_killed_process_leaves_nothing(own, kind):
    before = settled(own)
    with own.api() as api:
        session = api.session()
        session.execute('import subprocess; subprocess.Popen(["/bin/sleep", "60"])').ok()
        guest = session.get()['pid']
        space = os.readlink(f'/proc/{guest}/ns/pid')
        if kind == 'guest':
            victim = guest
        elif kind == 'init':
            victim = next(p for p in own.children('glovebox-init') if os.readlink(f'/proc/{p}/ns/pid') == space)
        else:
            gb.wait_until(lambda: len(own.children(kind)) == 1, f'there is one {kind}')
            victim = own.children(kind)[0]
        os.kill(victim, signal.SIGKILL)
        gb.wait_until(lambda: api.run('6 * 7').get('result'), 'work goes on')
        # A cell that was on its way to the dead interpreter says so; the next one has a new one.
        gb.wait_until(lambda: session.execute('6 * 7').status == 'ok', 'the session goes on')
        session.delete()
    if kind == 'glovebox-launch':
        before['processes'] -= 1  # nothing starts it again: see base/launcher.h
    gb.wait_until(lambda: settled(own)['processes'] == before['processes'] and settled(own)['groups'] == before['groups'], 'as before')


def test_a_killed_daemon_leaves_nothing_that_the_next_does_not_take_away():
    first = gb.Daemon('--preload', 'json', '--ready', '1')
    with first.api() as api:
        api.session().execute('import subprocess; subprocess.Popen(["/bin/sleep", "60"])').ok()
        family = gb.descendants(first.pid)
        assert len(family) > 4 and groups_of(first.pid)
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    gb.wait_until(lambda: not gb.still_there(family), 'its processes are gone')
    with gb.running_daemon('--preload', 'json', '--ready', '1') as second, second.api() as api:
        assert api.run('6 * 7').ok().text == '42'
        gb.wait_until(lambda: not groups_of(first.pid), 'its groups are gone')
    first.remove()


def test_two_daemons_do_not_disturb_each_other():
    args = ['--preload', 'json', '--ready', '2']
    with gb.running_daemon(*args) as one, gb.running_daemon(*args) as two, one.api() as a, two.api() as b:
        mine, yours = [a.session() for _ in range(5)], [b.session() for _ in range(5)]
        for session in mine + yours:
            session.execute('x = 1').ok()
        assert len(uids(one)) >= 5 and len(uids(two)) >= 5
        assert not uids(one) & uids(two), 'one host id, two sessions'
        assert not groups_of(one.pid) & groups_of(two.pid)
        family = gb.descendants(one.pid)
        one.kill()
        gb.wait_until(lambda: not gb.still_there(family), 'the other one is gone')
        assert [s.value('x') for s in yours] == ['1'] * 5
        assert b.run('6 * 7').ok().text == '42'
