"""What is left: of sessions that ended, of a daemon that was killed, and of two daemons side by side, counted from outside."""

import collections
import concurrent.futures
import contextlib
import os
import re
import signal
from pathlib import Path

import gb
import pytest

SESSIONS = 1000
CLIENTS = 4
BUSY_EVERY = 20  # of them leaves as much as it can
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


def descriptors(pids):
    """How many these processes hold together, by kind."""
    found = collections.Counter()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            for fd in os.listdir(f'/proc/{pid}/fd'):
                with contextlib.suppress(FileNotFoundError):
                    found[re.sub(r'[^a-z].*', '', os.readlink(f'/proc/{pid}/fd/{fd}'))] += 1
    return dict(found)  # socket, pipe, anon (pidfds …), net (namespaces)


def count(daemon):
    """Processes, descriptors, groups, mounts, namespaces, host ids and files now."""
    family = [pid for pid, _ in gb.descendants(daemon.pid)]
    helpers = [daemon.pid] + [pid for pid in family if gb.command_of(pid).startswith('glovebox-') and gb.command_of(pid) != 'glovebox-init']
    return {
        'processes': len(family),
        'descriptors': descriptors(helpers),
        'namespaces': len(gb.namespaces(family)),
        'host ids': len(uids(daemon)),
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
    with gb.running_daemon('--preload', 'json', '--ready', '2', '--grace', '1', '--no-heap-placement') as daemon:
        yield daemon


def settled(daemon):
    """What there is once it stays the same: the end of a connection takes the daemon a moment too."""
    daemon.settled_fds()
    seen = []

    def still():
        seen.append(count(daemon))
        return len(seen) >= 10 and all(s == seen[-1] for s in seen[-10:])

    gb.wait_until(still, 'nothing changes any more')
    return seen[-1]


def wait_until_as(daemon, before):
    """Until everything is as it was; what is not is told."""
    differ = {}

    def same():
        now = settled(daemon)
        differ.clear()
        differ.update({name: (before[name], now[name]) for name in before if now[name] != before[name]})
        return not differ

    try:
        gb.wait_until(same, 'as before')
    except AssertionError as e:
        raise AssertionError(f'before and now: {differ}') from e


def test_a_thousand_sessions_leave_nothing(own):
    with own.api() as api:
        busy_life(api)  # what is made once
    before, memory = settled(own), own.rss()

    def live(first):
        with own.api() as api:
            for i in range(first, SESSIONS, CLIENTS):
                if i % BUSY_EVERY == 0:
                    busy_life(api)
                else:
                    session = api.session()
                    assert session.value(f'{i} + 1') == str(i + 1)
                    session.delete()

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(live, range(CLIENTS)))
    wait_until_as(own, before)
    with own.api() as api:
        assert api.metric('glovebox_sessions_ended_total') > SESSIONS and api.metric('glovebox_sessions') == 0
    assert own.rss() - memory < 8 << 20


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
            most = 2 if kind == 'glovebox-launch' else 1  # a guest is a copy of the zygote, with its name too until it has taken its own
            gb.wait_until(lambda: len(own.children(kind)) == most, f'there is {kind}')
            victim = own.children(kind)[0]
        os.kill(victim, signal.SIGKILL)
        gb.wait_until(lambda: api.run('6 * 7').get('result'), 'work goes on')
        # A cell that was on its way to the dead interpreter says so; the next one has a new one.
        gb.wait_until(lambda: session.execute('6 * 7').status == 'ok', 'the session goes on')
        session.delete()
    wait_until_as(own, before)


def test_launchers_are_started_again_while_one_is_left(own):
    for turn in range(4):
        gb.wait_until(lambda: len(own.children('glovebox-launch')) == 2, 'there are two')
        victim = sorted(own.children('glovebox-launch'))[turn % 2]
        os.kill(victim, signal.SIGKILL)
        gb.wait_until(lambda: victim not in own.children('glovebox-launch') and len(own.children('glovebox-launch')) == 2, 'another takes its place')
    os.kill(own.children('glovebox-zygote')[0], signal.SIGKILL)  # what it is there for
    with own.api() as api:
        assert [api.run(f'{i}').ok().text for i in range(5)] == list('01234')
    assert own.log().count('the other one has started it again') == 4


def test_without_launchers_the_daemon_ends_and_says_why():
    daemon = gb.Daemon('--preload', 'json', '--ready', '1', '--drain', '1')
    family = gb.descendants(daemon.pid)
    try:
        launchers = daemon.children('glovebox-launch')
        for pid in launchers:
            os.kill(pid, signal.SIGSTOP)  # so that none starts the other in between
        for pid in launchers:
            os.kill(pid, signal.SIGKILL)
        assert daemon.process.wait(gb.PATIENCE) == 1
        assert 'both launchers of helper processes have ended' in daemon.log() and 'Start it again' in daemon.log()
        assert not gb.still_there(family)
    finally:
        daemon.kill()
        daemon.remove()


@pytest.mark.parametrize('kind', ['glovebox-screen', 'Xvfb', 'glovebox-proxy'])
def test_a_killed_helper_of_displays_or_networks_is_there_again(kind):
    window = "import tkinter\nroot = tkinter.Tk()\nroot.title('mine')\nroot.update()"
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--network', 'any') as daemon, daemon.api() as api:

        def work():
            seen = api.run(window, display=True, capture_screenshot=True).ok()
            assert [w['title'] for w in seen.screenshot['windows']] == ['mine']
            api.run('import socket; socket.create_server(("127.0.0.1", 0))', network={'allow': ['192.0.2.1:80']}).ok()

        work()
        victims = gb.wait_until(lambda: daemon.children(kind), f'there is {kind}')
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        gb.wait_until(lambda: not set(victims) & set(daemon.children(kind)), 'they are gone')
        work()
        gb.wait_until(lambda: daemon.children(kind), 'there is another one')


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
