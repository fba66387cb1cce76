"""The daemon as a process: helpers that die, signals, load and what remains of it, seen through /proc."""

import concurrent.futures
import contextlib
import os
import signal
import struct
import subprocess
from pathlib import Path

import pytest

import gb


@pytest.fixture
def own():
    """A daemon that a test may hurt."""
    # without heap placement no second zygote serves while the modules are imported for the first time
    with gb.running_daemon('--preload', 'json,random', '--ready', '2', '--grace', '1', '--drain', '10', '--no-heap-placement') as daemon:
        yield daemon


def the_one(daemon, command):
    # A guest is a copy of the zygote, with its name too until it has taken its own.
    gb.wait_until(lambda: len(daemon.children(command)) == 1, f'there is one {command}')
    return daemon.children(command)[0]


def zygote_of(daemon):
    return the_one(daemon, 'glovebox-zygote')


# ---- helpers that die --------------------------------------------------------------------


def test_zygote_killed_is_restarted_and_sessions_go_on(own):
    with own.api() as api:
        session = api.session()
        session.execute('x = 41').ok()
        running = session.hold('x + 1')
        zygote = zygote_of(own)
        os.kill(zygote, signal.SIGKILL)
        session.release()
        assert running.result().ok().text == '42', 'the running cell does not notice'
        gb.wait_until(lambda: own.children('glovebox-zygote') not in ([], [zygote]), 'a new zygote is there')
        assert session.value('x') == '41'
        fresh = api.session()
        assert fresh.execute('import sys; "random" in sys.modules').ok().text == 'True'
        assert api.metric('glovebox_zygote_restarts_total') == 1
        gb.wait_until(lambda: api.get('/readyz').status_code == 200, 'ready again')
        session.execute('import os; os._exit(1)')
        assert session.value('1 + 1') == '2', 'its interpreter comes from the new zygote'


def test_work_that_comes_while_the_zygote_is_gone_waits(own):
    with own.api() as api:
        for _ in range(3):  # use up what is ready
            api.session()
        os.kill(zygote_of(own), signal.SIGKILL)
        seen = [api.run(f'{i} + 1').ok().text for i in range(5)]
        assert seen == ['1', '2', '3', '4', '5']


def test_zygote_killed_again_and_again(own):
    with own.api() as api:
        session = api.session()
        session.execute('x = 1').ok()
        for _ in range(3):
            os.kill(gb.wait_until(lambda: own.children('glovebox-zygote'), 'a zygote is there')[0], signal.SIGKILL)
            gb.wait_until(lambda: api.get('/readyz').status_code == 503, 'its end is noticed')
            gb.wait_until(lambda: api.get('/readyz').status_code == 200, 'ready again')
        assert session.value('x') == '1' and api.run('2').ok().text == '2'


def test_zygote_that_is_stopped_harms_nobody_who_has_an_interpreter(own):
    with own.api() as api:
        session = api.session()
        session.execute('1').ok()
        zygote = zygote_of(own)
        os.kill(zygote, signal.SIGSTOP)
        try:
            assert session.value('2') == '2' and api.get('/health').status_code == 200
        finally:
            os.kill(zygote, signal.SIGCONT)
        assert api.run('3').ok().text == '3'


def test_jailer_killed_is_restarted(own):
    with own.api() as api:
        session = api.session()
        session.execute('x = 1').ok()
        os.kill(the_one(own, 'glovebox-jailer'), signal.SIGKILL)
        for i in range(6):
            assert api.run(f'{i}').ok().text == str(i)
        assert session.value('x') == '1'
        session.execute('import os; os._exit(0)')
        assert session.value('2') == '2'


def test_all_helpers_killed_at_once(own):
    with own.api() as api:
        session = api.session()
        session.execute('x = 1').ok()
        for pid in own.children('glovebox-jailer') + own.children('glovebox-zygote'):
            os.kill(pid, signal.SIGKILL)
        assert session.value('x') == '1'
        assert [api.run(str(i)).ok().text for i in range(6)] == [str(i) for i in range(6)]


def test_ready_guests_killed_are_made_anew(own):
    with own.api() as api:
        own.settled_fds()
        known = [zygote_of(own), the_one(own, 'glovebox-jailer'), *own.children('glovebox-launch')]
        doomed = {identity for identity in gb.descendants(own.pid) if identity[0] not in known}
        for pid, _ in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        gb.wait_until(lambda: not gb.still_there(doomed), 'they are gone')
        assert [api.run(str(i)).ok().text for i in range(4)] == ['0', '1', '2', '3']
        gb.wait_until(lambda: api.metric('glovebox_guests_ready') == 2, 'two are ready again')


# ---- the end -----------------------------------------------------------------------------


def busy_family(daemon, api):
    """Sessions with everything that could be left behind; returns the processes and their namespaces."""
    for i in range(4):
        session = api.session()
        session.execute(
            'import subprocess, os\nps = [subprocess.Popen(["sleep", "100000"]) for _ in range(3)]\n'
            'if os.fork() == 0:\n  os.setsid()\n  import time; time.sleep(1e6)'
        ).ok()
    session.in_background('while True: pass')
    session.wait_busy()
    family = gb.descendants(daemon.pid)
    return family, gb.namespaces(pid for pid, _ in family) - gb.namespaces([os.getpid()])


def assert_nothing_left(family, spaces, others):
    """`others` are all processes there were: numbers of namespaces are used again, so younger ones say nothing."""
    gb.wait_until(lambda: not gb.still_there(family), 'all processes are gone')
    assert not spaces & gb.namespaces(pid for pid, _ in gb.still_there(others)), 'namespaces are left'


def test_killed_daemon_leaves_nothing_behind():
    mounts = open('/proc/self/mountinfo').read()
    daemon = gb.Daemon('--preload', 'none', '--ready', '3')
    try:
        with daemon.api() as api:
            family, spaces = busy_family(daemon, api)
            assert len(family) >= 20 and spaces
            others = {(pid, stat[1]) for pid, stat in gb.processes().items()}
            daemon.kill()
            api.made.clear()
        assert_nothing_left(family, spaces, others)
        assert open('/proc/self/mountinfo').read() == mounts
    finally:
        daemon.kill()
        daemon.remove()


def test_terminated_daemon_leaves_nothing_behind():
    mounts = open('/proc/self/mountinfo').read()
    daemon = gb.Daemon('--preload', 'none', '--ready', '3', '--drain', '0.5')
    try:
        with daemon.api() as api:
            family, spaces = busy_family(daemon, api)
            others = {(pid, stat[1]) for pid, stat in gb.processes().items()}
            assert daemon.terminate() == 0
            api.made.clear()
        assert not gb.still_there(family), 'when it ends, all has ended'
        assert_nothing_left(family, spaces, others)
        assert open('/proc/self/mountinfo').read() == mounts
        assert 'left' not in daemon.log().split('draining')[1]
    finally:
        daemon.kill()
        daemon.remove()


def test_drain_refuses_new_work_and_finishes_what_runs(own):
    with own.api() as api, own.api() as other:
        session = api.session()
        other.get('/health')  # a connection that is open already
        running = session.in_background('import time; time.sleep(4); "finished"')
        session.wait_busy()
        own.process.send_signal(signal.SIGTERM)
        gb.wait_until(lambda: 'draining' in own.log(), 'it drains')
        try:
            answer = other.post('/v1/sessions', json={})
            gb.assert_problem(answer, 503, 'draining')
            assert 'Retry-After' in answer.headers
        except gb.requests.ConnectionError:
            pass  # an idle connection may be closed at once
        assert running.result().ok().text == "'finished'"
        assert own.process.wait(gb.PATIENCE) == 0
        own.ended = True
        api.made.clear()


def test_drain_ends_streams_and_sockets_properly():
    with gb.running_daemon(
        '--preload', 'none', '--ready', '1', '--drain', '0.5', '--grace', '0.5'
    ) as daemon, daemon.api() as api:
        one, two = api.session(), api.session()
        events = one.events('print("go", flush=True)\nimport time; time.sleep(1e6)')
        assert next(events)[0] == 'started'
        with two.socket() as ws:
            cell = ws.send('execute', code='print("go", flush=True)\nimport time; time.sleep(1e6)')
            two.wait_busy()
            daemon.process.send_signal(signal.SIGTERM)
            rest = list(events)
            assert rest[-1][0] == 'done' and rest[-1][1]['status'] in ('killed', 'interrupted', 'timeout')
            assert ws.until_done(cell)[-1]['observation']['status'] in ('killed', 'interrupted', 'timeout')
        assert daemon.process.wait(gb.PATIENCE) == 0
        daemon.ended = True
        api.made.clear()


def test_state_directory_is_left_tidy(own):
    with own.api() as api:
        session = api.session()
        session.execute('print("x" * 5_000_000)').ok()
        session.put_file('f', b'x' * 100_000)
        session.delete()
    left = [p for p in (own.dir / 'state').rglob('*') if p.is_file() and p.parent.name not in ('matplotlib', 'layout')]
    assert left == []


def test_two_daemons_side_by_side(own):
    with gb.running_daemon('--preload', 'none', '--ready', '1') as second, own.api() as a, second.api() as b:
        mine = a.session()
        mine.execute('x = 1').ok()
        assert b.get(mine.path).status_code == 404
        assert b.run('2').ok().text == '2'
    with own.api() as a:
        assert a.run('3').ok().text == '3'


def test_sigpipe_sighup_and_closed_stdio(tmp_path):
    """Started as a service manager starts it, with its output closed."""
    with open('/dev/null') as null:
        process = subprocess.Popen(
            ['/bin/sh', '-c', f'exec "{gb.PROGRAM}" serve --listen 127.0.0.1:0 --preload none --ready 1 --state-dir "$0" >&- 2>&- <&-', str(tmp_path)],
            stdin=null, env=gb.clean_env(),
        )  # fmt: skip
    try:
        port = gb.wait_until(lambda: listening_port(process.pid), 'it listens')
        with gb.Api(f'http://127.0.0.1:{port}') as api:
            assert api.run('print(6 * 7)').ok().stdout == '42\n'
    finally:
        process.terminate()
        assert process.wait(gb.PATIENCE) == 0


def listening_port(pid):
    inodes = set()
    try:
        for fd in os.listdir(f'/proc/{pid}/fd'):
            inodes.add(os.readlink(f'/proc/{pid}/fd/{fd}'))
    except OSError:
        return None
    for line in open('/proc/net/tcp').read().splitlines()[1:]:
        fields = line.split()
        if fields[3] == '0A' and f'socket:[{fields[9]}]' in inodes:
            return int(fields[1].split(':')[1], 16)
    return None


# ---- load --------------------------------------------------------------------------------


def load(daemon, rounds):
    """Much of everything, several clients at once; every answer is looked at."""

    def client(number):
        with daemon.api() as api:
            for i in range(rounds):
                session = api.session(name=f'c{number}')
                assert session.execute(f'x = {i}\nprint(x)').ok().stdout == f'{i}\n'
                assert session.execute('1/0').status == 'error'
                session.put_file('f', b'x' * 10_000)
                assert len(session.get_file('f').content) == 10_000
                assert [n for n, _ in session.events('print("s")')][-1] == 'done'
                if i % 5 == 0:
                    assert session.execute('import os; os._exit(1)').status == 'killed'
                    assert session.execute('while True: pass', timeout_s=0.1).status == 'timeout'
                    with session.socket() as ws:
                        ws.execute('print("w")')
                session.execute('import subprocess; subprocess.Popen(["sleep", "10000"])').ok()
                if i % 2:
                    session.delete()
                assert api.get('/nowhere').status_code == 404

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(client, n) for n in range(4)]:
            future.result()


def test_descriptors_memory_and_processes_return_to_their_level(own):
    load(own, 4)  # what is allocated once
    with own.api() as api:
        gb.wait_until(lambda: api.metric('glovebox_sessions') == 0, 'no sessions')
        fds, memory = own.settled_fds(), own.rss()
        family = len(gb.descendants(own.pid))
        for _ in range(2):
            load(own, 10)
        gb.wait_until(lambda: api.metric('glovebox_sessions') == 0, 'no sessions')
        gb.wait_until(lambda: own.settled_fds() <= fds, 'the descriptors are back at their level')
        gb.wait_until(lambda: len(gb.descendants(own.pid)) <= family, 'so are the processes')
        assert 'Z' not in gb.descendants(own.pid).values() or gb.wait_until(
            lambda: 'Z' not in gb.descendants(own.pid).values(), 'no zombies'
        )
        assert own.rss() - memory < 8 << 20
        metrics = api.metrics()
        assert metrics['glovebox_cells_running'] == metrics['glovebox_cells_queued'] == 0
        assert metrics['glovebox_sessions_created_total'] == metrics['glovebox_sessions_ended_total']
        assert metrics['glovebox_process_open_fds'] == pytest.approx(own.fds(), abs=2)


def test_hundred_idle_sessions(own):
    with own.api() as api:
        memory = own.rss()
        sessions = [api.session() for _ in range(100)]
        assert [s.value(str(i)) for i, s in enumerate(sessions)] == [str(i) for i in range(100)]
        assert own.rss() - memory < 32 << 20
        listed = api.get('/v1/sessions?limit=1000').json()['sessions']
        assert len(listed) == 100 and {s['state'] for s in listed} == {'idle'}


def test_daemon_answers_while_guests_burn_everything(own):
    with own.api() as api:
        sessions = [api.session() for _ in range(6)]
        running = [s.in_background('while True: [i for i in range(10**6)]', timeout_s=60) for s in sessions]
        for s in sessions:
            s.wait_busy()
        for _ in range(50):
            assert api.get('/health').status_code == 200
        assert all(s.interrupt() for s in sessions), 'all fifty while they burn'
        assert {r.result().status for r in running} == {'interrupted'}


# ---- from inside -------------------------------------------------------------------------


def test_jail_from_inside(session):
    """What a session sees of its surroundings."""
    assert session.value('import os; os.getuid() != 0 or open("/proc/self/uid_map").read().split()[1] != "0"') == 'True'
    assert session.execute('os.listdir("/root")').status == 'error'
    assert session.execute('open("/usr/glovebox-was-here", "w")').error['type'] in ('OSError', 'PermissionError')
    assert session.value('sorted(int(f) for f in os.listdir("/proc/self/fd"))[:4]') == '[0, 1, 2, 3]'
    assert session.value('len(os.listdir("/proc/self/fd")) <= 8') == 'True'
    assert session.execute('import socket; socket.create_connection(("127.0.0.1", 22), 2)').status == 'error'
    assert session.value('os.uname().nodename') == "'sandbox'"
    assert session.execute('open("/etc/shadow").read()').status == 'error'


def test_control_socket_of_the_guest_cannot_be_used_for_harm(daemon, session):
    """Code that writes nonsense, or half a frame, to every descriptor it finds."""
    for nonsense in ('b"\\xff" * 100', 'b"\\0" * 100', 'b"A" * 3', 'os.urandom(5000)'):
        seen = session.execute(
            f'import os\nfor fd in os.listdir("/proc/self/fd"):\n  fd = int(fd)\n  if fd > 2:\n    try: os.write(fd, {nonsense})\n    except OSError: pass',
            timeout_s=5,
        )
        assert seen.status in ('ok', 'killed', 'error', 'timeout'), nonsense
        assert session.execute('1 + 1', timeout_s=10).ok().text == '2', nonsense


FORGER = """
import array, os, socket, struct
control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(1023))
def frame(kind, fields, serial=0):
    return struct.pack('<IB3xI', len(fields), kind, serial) + fields
def field(tag, data):
    return struct.pack('<BI', tag, len(data)) + data
pair = socket.socketpair()
def as_copy(data, process):
    control.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [process, pair[0].fileno()]))])
"""
PARKED, TICKET, DISPLAY, MIME, TEXT = 43, 32, 34, 10, 8


@pytest.mark.parametrize('ticket', [1, 2, 3])
def test_a_copy_is_what_lives_in_the_session(ticket):
    """A guest says that a copy of it was parked and hands over the daemon as that copy, which is killed when it is no longer needed."""
    code = f"""
handle = control.getsockopt(socket.SOL_SOCKET, 77)  # SO_PEERPIDFD
as_copy(frame({PARKED}, field({TICKET}, struct.pack('<Q', {ticket}))), handle)
"""
    with gb.running_daemon('--preload', 'json', '--ready', '0') as daemon, daemon.api() as api:
        session = api.session()
        session.execute(FORGER).ok()
        seen = session.execute(code)
        assert seen.status == 'error' and seen.error['type'] == 'PermissionError', seen
        # A handle of a process that is the session's own, but no copy: what is done to it is done to the session.
        session.execute(
            'import ctypes, time\nlibc = ctypes.CDLL(None)\nhandle = ctypes.c_int(-1)\n'
            'if libc.syscall(56, 0x1000 | 17, None, ctypes.byref(handle), None, None) == 0: time.sleep(60)\n'
            f'as_copy(frame({PARKED}, field({TICKET}, struct.pack("<Q", {ticket}))), handle.value)'
        )
        session.delete()
        assert api.run('6 * 7').ok().text == '42'


def test_descriptors_nobody_asked_for_are_closed_by_the_launcher(own):
    """Files that take long to let go of, sockets inside sockets, more descriptors than a message has room for."""
    code = """
big = os.memfd_create('big')
for _ in range(16): os.write(big, bytes(16 << 20))
def send(fds): control.sendmsg([b'\\0'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))])
send([big, pair[1].fileno()]); os.close(big)
send([0])
send([pair[0].fileno(), 0])
send([0] * 253)
"""
    with own.api() as api:
        api.get('/health')  # its connection counts from now on
        launchers, before = own.children('glovebox-launch'), own.settled_fds()
        for _ in range(3):
            session = api.session()
            session.execute(FORGER).ok()
            assert session.execute(code).status == 'killed', 'too many at once is a forgery'
            session.delete()
        gb.wait_until(lambda: all(len(os.listdir(f'/proc/{pid}/fd')) == 4 for pid in launchers), 'all are closed')
        gb.wait_until(lambda: own.settled_fds() <= before, 'by the daemon too')
        assert own.children('glovebox-launch') == launchers and 'launcher' not in own.log()
        os.kill(zygote_of(own), signal.SIGKILL)
        assert [api.run(str(i)).ok().text for i in range(5)] == list('01234'), 'and they start what is to be started'


def test_frames_that_never_end_do_not_fill_the_daemon(own):
    """Guests that begin the longest frame there is and never finish it, in many sessions at once."""
    with own.api() as api:
        before = own.rss()
        sessions = [api.session() for _ in range(32)]
        running = [
            s.in_background(
                f'{FORGER}control.sendall(struct.pack("<IB3xI", 33 << 20, {DISPLAY}, 1))\nfor _ in range(32): control.sendall(bytes(1 << 20))\n'
                'import time; time.sleep(60)',
                timeout_s=6,
            )
            for s in sessions
        ]
        sessions[0].wait_busy()
        highest = before
        while any(s.get()['state'] == 'busy' for s in sessions):
            highest = max(highest, own.rss())
            assert api.run('1 + 1').ok().text == '2', 'small answers pass'
        assert highest - before < 640 << 20, 'of the GB they sent'
        assert {r.result().status for r in running} <= {'timeout', 'killed'}
        gb.wait_until(lambda: own.rss() - before < 32 << 20, 'and nothing of it is kept')


def test_a_display_while_an_error_is_described(session):
    """Code that runs while the error is put into words may show things; neither message spoils the other."""
    o = session.execute(
        'class E(Exception):\n    def __str__(self):\n        display("shown")\n        return "told"\nraise E()'
    )
    assert o.status == 'error' and o.error['message'] == 'told', o
    assert {d['text/plain'] for d in o.displays} == {"'shown'"}
    assert session.value('1 + 1') == '2'


def test_reading_the_control_socket_costs_only_the_own_session(session):
    seen = session.execute(
        'import os, stat, threading\ndef eat(fd):\n  while True:\n    try: os.read(fd, 1)\n    except OSError: return\n'
        'for fd in range(3, 2000):\n  try: is_socket = stat.S_ISSOCK(os.fstat(fd).st_mode)\n  except OSError: continue\n'
        '  if is_socket: threading.Thread(target=eat, args=(fd,), daemon=True).start()'
    )
    assert seen.status in ('ok', 'killed')
    assert session.execute('1', timeout_s=2).status in ('ok', 'timeout', 'killed')
    session.reset()
    assert session.value('2') == '2'


# ---- idle CPUs -------------------------------------------------------------------------


def wish():
    """The shortest time, in microseconds, in which anybody wants an idle CPU back; None where the kernel takes no wishes from us."""
    with contextlib.suppress(OSError), open('/dev/cpu_dma_latency', 'rb', buffering=0) as device:
        return struct.unpack('i', device.read(4))[0]


def takes_wishes():
    driver = Path('/sys/devices/system/cpu/cpuidle/current_driver')
    return driver.exists() and driver.read_text() == 'haltpoll\n' and wish() is not None


@pytest.mark.parametrize(('flags', 'wanted'), [((), True), (('--no-low-idle-latency',), False)])
def test_cpus_are_kept_while_cells_follow_each_other(flags, wanted):
    before = wish()
    wanted = wanted and takes_wishes()
    with gb.running_daemon('--preload', 'none', '--ready', '1', *flags) as daemon, daemon.api() as api, gb.Wire(daemon) as wire:
        body = '{"code": "x = 1"}'
        cell = (
            f'POST {api.session().path}/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
            f'Content-Length: {len(body)}\r\n\r\n{body}'
        )
        seen = set()
        for _ in range(200 if wanted else 20):
            wire.send(cell * 8)
            for _ in range(8):
                assert wire.answer()[0] == 200
                seen.add(wish())
            if wanted and 0 in seen:
                break
        assert (0 in seen) == wanted
        gb.wait_until(lambda: wish() == before, 'the wish is taken back')
