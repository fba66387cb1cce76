"""Time limits, interrupts, clients that leave, interpreters that die: always a definite end, and the next request works."""

import json
import os
import signal
import threading
import time

import pytest

import gb

ENDLESS = {
    'loop': 'while True: pass',
    'sleep': 'import time; time.sleep(1e6)',
    'sum in C': 'sum(range(10**11))',
    'regex': 'import re; re.match(r"(a+)+$", "a" * 64 + "b")',
    'big power': 'len(str(7 ** (10 ** 8)))',
    'lock': 'import threading; l = threading.Lock(); l.acquire(); l.acquire()',
    'join': 'import threading, time; t = threading.Thread(target=time.sleep, args=(1e6,), daemon=True); t.start(); t.join()',
    'subprocess': 'import subprocess; subprocess.run(["sleep", "1000000"])',
    'pipe': 'import os; r, w = os.pipe(); os.read(r, 1)',
    'await': 'import asyncio; await asyncio.sleep(1e6)',
    'catches it': 'while True:\n  try:\n    while True: pass\n  except KeyboardInterrupt: pass',
    'catches all': 'import time\nwhile True:\n  try: time.sleep(1000)\n  except BaseException: pass',
    'ignores SIGINT': 'import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(1e6)',
    'finally loops': 'try:\n  while True: pass\nfinally:\n  while True: pass',
    'handles SIGINT': 'import signal\nsignal.signal(signal.SIGINT, lambda *a: None)\nwhile True: pass',
    'stops itself': 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)',
    'in a repr': 'class R:\n  def __repr__(self):\n    while True: pass\nR()',
    'in an import': 'import time\nopen("slow.py", "w").write("import time; time.sleep(1e6)")\nimport slow',
    'list sort': 'class X:\n  def __lt__(s, o):\n    while True: pass\nsorted([X(), X()])',
    'input pipe': 'import sys, os; r, w = os.pipe(); os.dup2(r, 0); sys.stdin.read()',
    'blocks signals': 'import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); time.sleep(1e6)',
}


@pytest.mark.parametrize('kind', ENDLESS)
def test_time_limit_ends_everything(session, kind):
    session.execute('kept = "state"').ok()
    start = time.monotonic()
    seen = session.execute('print("begun", flush=True)\n' + ENDLESS[kind], timeout_s=1)
    took = time.monotonic() - start
    assert seen.status == 'timeout' and seen.exit_code == 124
    assert seen.error['type'] == 'TimeoutError' and seen.error['code'] == 'cell_timeout'
    assert 'limit of 1 s' in seen.error['message'] and seen.error['remediation']
    assert seen.stdout == 'begun\n'
    assert took < 1 + 2 + 20, 'limit and grace, and a slow machine'
    after = session.execute('kept')
    if seen.state_lost:
        assert after.error['type'] == 'NameError'
    else:
        assert after.ok().text == "'state'"


@pytest.mark.parametrize('kind', ['loop', 'sleep', 'regex', 'lock', 'subprocess', 'await', 'pipe'])
def test_state_survives_what_can_be_interrupted(session, kind):
    session.execute('kept = 5').ok()
    seen = session.execute(ENDLESS[kind], timeout_s=0.3)
    assert seen.status == 'timeout' and seen.state_lost is False
    assert session.value('kept') == '5'


@pytest.mark.parametrize('kind', ['handles SIGINT', 'ignores SIGINT', 'stops itself', 'blocks signals'])
def test_state_lost_says_when_it_had_to_be_killed(session, kind):
    seen = session.execute(ENDLESS[kind], timeout_s=0.3, transaction=False)
    assert seen.status == 'timeout' and seen.state_lost is True
    assert 'killed' in seen.error['message']
    assert session.value('1 + 1') == '2'


def test_timeout_has_a_traceback_of_where_it_was(session):
    seen = session.execute('def busy():\n    while True: pass\nbusy()', timeout_s=0.3)
    assert 'in busy' in seen.error['traceback'] and 'KeyboardInterrupt' in seen.error['traceback']


def test_finally_and_with_run_at_the_limit(session):
    seen = session.execute('import time\ntry:\n  time.sleep(1e6)\nfinally:\n  print("cleaned up")', timeout_s=0.3)
    assert seen.status == 'timeout' and seen.stdout == 'cleaned up\n' and not seen.state_lost


def test_sessions_own_limit(api):
    session = api.session(limits={'timeout_s': 0.4})
    assert session.get()['limits']['timeout_s'] == 0.4
    seen = session.execute('while True: pass')
    assert seen.status == 'timeout' and '0.4 s' in seen.error['message']
    assert session.execute('import time; time.sleep(0.6); "longer"', timeout_s=20).ok().text == "'longer'"


def test_a_late_interrupt_does_not_hit_the_next_cell(session):
    """Cells that end just at their limit, again and again."""
    for _ in range(15):
        seen = session.execute('import time; time.sleep(0.1)', timeout_s=0.1)
        assert seen.status in ('ok', 'timeout')
        assert session.execute('import time; time.sleep(0.03); 1').ok().text == '1'


# Processes of a session besides its init and its interpreter, as it sees them.
OTHERS = 'import os; [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]'


# ---- interrupts --------------------------------------------------------------------------


@pytest.mark.parametrize('kind', ['loop', 'sleep', 'regex', 'await', 'lock', 'subprocess'])
def test_interrupt_from_another_connection(session, kind):
    session.execute('kept = 1').ok()
    running = session.in_background(ENDLESS[kind])
    session.wait_busy()
    assert session.interrupt() is True
    seen = running.result()
    assert seen.status == 'interrupted' and seen.exit_code == 130 and not seen.state_lost
    assert seen.error['type'] == 'KeyboardInterrupt' and seen.error['code'] == 'interrupted'
    assert session.value('kept') == '1'


def test_interrupt_of_code_that_refuses(session):
    running = session.in_background('print("deaf", flush=True)\n' + ENDLESS['handles SIGINT'])
    gb.wait_until(lambda: session.logs()['entries'], 'it runs')
    session.interrupt()
    seen = running.result()
    assert seen.status == 'interrupted' and seen.rolled_back is True
    assert session.value('1') == '1'


def test_a_server_that_was_started_in_the_background():
    """A shell lets what it starts with & ignore SIGINT, and that is handed on to every program; nohup does so with SIGHUP."""
    background = ('/bin/sh', '-c', 'trap "" INT QUIT HUP; exec "$@"', 'sh')
    with gb.running_daemon('--preload', 'json', '--ready', '0', '--grace', '60', before=background) as daemon, daemon.api() as api:
        session = api.session()
        seen = session.execute('kept = 1\nwhile True: pass', timeout_s=0.3)
        assert seen.status == 'timeout' and 'KeyboardInterrupt' in seen.error['traceback']
        assert session.value('kept') == '1'


def test_interrupt_with_nothing_running(session):
    assert session.interrupt() is False
    session.execute('1').ok()
    assert session.interrupt() is False
    assert session.execute('import time; time.sleep(0.2); 5').ok().text == '5'


def test_code_may_handle_its_interrupt(session):
    running = session.in_background(
        'import time\ntry:\n  print("in", flush=True)\n  time.sleep(1e6)\nexcept KeyboardInterrupt: print("handled")\n"done"'
    )
    gb.wait_until(lambda: session.logs()['entries'], 'it is inside its try')
    session.interrupt()
    seen = running.result()
    assert seen.status == 'ok' and seen.stdout == 'in\nhandled\n' and seen.text == "'done'"


def test_queued_cells_run_after_an_interrupt(session):
    first = session.in_background('import time; time.sleep(1e6)')
    session.wait_busy()
    second = session.in_background('"second"')
    gb.wait_until(lambda: session.get()['queued'] == 1, 'the second waits')
    session.interrupt()
    assert first.result().status == 'interrupted'
    assert second.result().ok().text == "'second'"


def test_reset_while_a_cell_runs(session):
    session.execute('x = 1; open("file", "w").write("kept")').ok()
    running = session.in_background('import time; time.sleep(1e6)')
    session.wait_busy()
    waiting = session.in_background('"x" in globals(), open("file").read()')
    gb.wait_until(lambda: session.get()['queued'] == 1, 'one waits')
    session.reset()
    seen = running.result()
    assert seen.status == 'killed' and seen.state_lost and seen.error['code'] == 'session_reset'
    assert waiting.result().ok().text == "(False, 'kept')"


def test_reset_gives_a_fresh_interpreter_and_keeps_files(session):
    session.execute('import subprocess\nx = 1\nopen("f", "w").write("1")\np = subprocess.Popen(["sleep", "1000"])').ok()
    session.reset()
    assert session.execute('x').error['type'] == 'NameError'
    assert session.value('open("f").read()') == "'1'"
    gb.wait_until(lambda: session.value(OTHERS) == '[]', 'its subprocess is gone')


def test_interrupts_without_end(session):
    """Many at once, while cells begin and end: each cell ends by itself or as interrupted, and nothing else breaks."""
    session.execute('kept = 1').ok()
    stop = threading.Event()

    def interrupt():
        with gb.Api(session.api.url) as api:
            while not stop.is_set():
                api.post(f'{session.path}/interrupt')

    threads = [threading.Thread(target=interrupt) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for i in range(60):
            seen = session.execute(f'import time; time.sleep(0.002); {i}', timeout_s=20)
            assert seen.status in ('ok', 'interrupted') and not seen.state_lost
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert session.value('kept') == '1'


def test_preload_that_never_ends(api):
    session = api.session(preload=['endless'])
    session.put_file('endless.py', b'while True: pass')
    assert session.execute('1', timeout_s=0.5).status == 'timeout'
    session.put_file('endless.py', b'x = 1')
    assert session.execute('1 + 1', timeout_s=20).ok().text == '2'


# ---- clients that leave ------------------------------------------------------------------


def send_and_leave(daemon, session, code, **fields):
    """Starts a cell on a connection that is dropped once the cell has printed something."""
    body = json.dumps({'code': code, **fields})
    with gb.Wire(daemon) as wire:
        wire.send(
            f'POST {session.path}/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
            f'Content-Length: {len(body)}\r\n\r\n{body}'
        )
        gb.wait_until(lambda: session.logs()['entries'], 'it has printed something')


def test_disconnect_interrupts(daemon, session):
    session.execute('kept = 1').ok()
    send_and_leave(
        daemon, session, 'import time\ntry:\n  print("in", flush=True)\n  time.sleep(1e6)\nfinally: ended = True'
    )
    session.wait_idle()
    assert session.value('kept, ended') == '(1, True)'


def test_detached_cell_goes_on(daemon, session):
    send_and_leave(
        daemon,
        session,
        'import time\nfor i in range(5):\n  time.sleep(0.1)\n  print(i, flush=True)\nfinished = True',
        detach=True,
    )
    session.wait_idle()
    assert session.value('finished') == 'True'
    assert ''.join(e['text'] for e in session.logs(cell=1)['entries']) == '0\n1\n2\n3\n4\n'


def test_disconnect_of_a_queued_cell_takes_it_out(daemon, session):
    running = session.hold()
    body = json.dumps({'code': 'never = True'})
    with gb.Wire(daemon) as wire:
        wire.send(
            f'POST {session.path}/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
            f'Content-Length: {len(body)}\r\n\r\n{body}'
        )
        gb.wait_until(lambda: session.get()['queued'] == 1, 'it waits')
    gb.wait_until(lambda: session.get()['queued'] == 0, 'it is taken out')
    session.release()
    running.result().ok()
    assert session.value('"never" in globals()') == 'False'


# ---- deaths ------------------------------------------------------------------------------

DEATHS = {
    'os._exit': ('import os; os._exit(7)', 7),
    'os._exit(0)': ('import os; os._exit(0)', 0),
    'segfault': ('import ctypes; ctypes.string_at(0)', 128 + signal.SIGSEGV),
    'abort': ('import os; os.abort()', 128 + signal.SIGABRT),
    'SIGKILL': ('import os; os.kill(os.getpid(), 9)', 128 + signal.SIGKILL),
    'SIGTERM': ('import os; os.kill(os.getpid(), 15)', 128 + signal.SIGTERM),
    'killpg': ('import os; os.killpg(0, 9)', 128 + signal.SIGKILL),
    'exec': ('import os; os.execv("/bin/true", ["true"])', 0),
    'stack overflow': (
        'import sys, threading\nsys.setrecursionlimit(10**9)\ndef f(): f()\nclass A:\n  def __getattr__(s, n): return getattr(s, n)\n'
        'import ctypes; ctypes.memset(id(None), 255, 1 << 20)',
        128 + signal.SIGSEGV,
    ),
}


@pytest.mark.parametrize('kind', DEATHS)
def test_death_of_the_interpreter(session, kind):
    code, exit_code = DEATHS[kind]
    session.execute('open("file", "w").write("kept"); x = 1').ok()
    seen = session.execute('print("before", flush=True)\n' + code, timeout_s=20, transaction=False)
    assert seen.status == 'killed' and seen.exit_code == exit_code and seen.state_lost
    assert seen.error['code'] == 'interpreter_died' and seen.error['message'] and seen.error['remediation']
    assert seen.stdout == 'before\n'
    assert session.execute('x').error['type'] == 'NameError'
    assert session.value('open("/workspace/file").read()') == "'kept'"


def test_guest_killed_from_outside_while_idle(session):
    session.execute('x = 1').ok()
    pid = session.get()['pid']
    os.kill(pid, signal.SIGKILL)
    gb.wait_until(lambda: session.get()['pid'] not in (0, pid), 'a new interpreter is there')
    seen = session.execute('"x" in globals()').ok()
    assert seen.text == 'True', 'a copy took over'


def test_guest_killed_from_outside_while_it_runs(session):
    running = session.in_background('import time; time.sleep(1e6)')
    session.wait_busy()
    os.kill(session.get()['pid'], signal.SIGKILL)
    seen = running.result()
    assert seen.status == 'killed' and seen.rolled_back and seen.exit_code == 137
    assert session.value('2') == '2'


def init_of(pid):
    """Pid of the init of the jail that a guest is in."""
    jail = os.readlink(f'/proc/{pid}/ns/pid')
    for other in gb.processes():
        try:
            inside = os.readlink(f'/proc/{other}/ns/pid') == jail
            text = open(f'/proc/{other}/status').read() if inside else ''
        except OSError:
            continue
        if inside and text.split('NSpid:')[1].splitlines()[0].split()[-1] == '1':
            return other
    raise AssertionError('the jail has no init')


@pytest.mark.parametrize('busy', [False, True])
def test_init_of_the_jail_killed_from_outside(daemon, session, busy):
    """Its whole jail goes with it, as when the kernel is out of memory; the daemon and other sessions do not."""
    session.execute('1').ok()
    running = session.in_background('import time; time.sleep(1e6)') if busy else None
    if busy:
        session.wait_busy()
    os.kill(init_of(session.get()['pid']), signal.SIGKILL)
    if busy:
        seen = running.result()
        assert seen.status == 'killed' and seen.state_lost
    gb.wait_until(
        lambda: session.post_code('6 * 7').json().get('result') == {'text/plain': '42', 'application/json': 42},
        'it works again',
    )


def test_dying_again_and_again(session):
    for i in range(12):
        assert session.execute('import os; os._exit(1)').status == 'killed'
    assert session.value('1') == '1'


def test_memory_limit_is_an_error_and_the_state_stays(api):
    session = api.session(limits={'memory_bytes': 300 << 20})
    session.execute('kept = 1').ok()
    seen = session.execute('b = bytearray(1 << 30)')
    assert seen.status == 'out_of_memory' and seen.error['type'] == 'MemoryError'
    assert seen.error['code'] == 'out_of_memory' and 'memory_bytes' in seen.error['remediation']
    seen = session.execute('l = []\nwhile True: l.append(bytearray(1 << 20))', timeout_s=60)
    assert seen.status == 'out_of_memory'
    session.execute('l = None')
    assert session.value('kept') == '1'


def test_memory_in_small_pieces(api):
    session = api.session(limits={'memory_bytes': 200 << 20})
    seen = session.execute('l = []\nwhile True: l.append([1, 2, 3, str(len(l))])', timeout_s=60)
    assert seen.status in ('out_of_memory', 'killed')
    if seen.status == 'out_of_memory':
        session.execute('del l')
    assert session.execute('1 + 1').ok().text == '2'


def test_disk_limit(api):
    session = api.session(limits={'disk_bytes': 8 << 20})
    seen = session.execute('f = open("big", "wb")\nwhile True: f.write(b"x" * 65536); f.flush()')
    assert seen.status == 'error' and 'No space left' in seen.error['message']
    assert session.value('import os; f.close(); os.remove("big"); open("small", "w").write("x")') == '1'


# ---- processes left behind ---------------------------------------------------------------


def test_processes_left_behind_are_gone_with_the_session(daemon, api):
    session = api.session()
    session.execute(
        'import subprocess, os\nps = [subprocess.Popen(["sleep", "100000"]) for _ in range(20)]\n'
        'for _ in range(10):\n  if os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    import time; time.sleep(1e6)'
    ).ok()
    jail = os.readlink(f'/proc/{session.get()["pid"]}/ns/pid')

    def inside():
        found = []
        for pid in gb.processes():
            try:
                if os.readlink(f'/proc/{pid}/ns/pid') == jail:
                    found.append(pid)
            except OSError:
                pass
        return found

    assert len(inside()) >= 30
    session.delete()
    gb.wait_until(lambda: not inside(), 'the jail is empty')


def test_fork_bomb_light(daemon, session):
    """Forks until it is refused, or 300 are there; the daemon answers meanwhile and all are gone afterwards."""
    other = session.api.session()
    running = session.in_background(
        'import os, time\nn = 0\ntry:\n  for _ in range(300):\n    if os.fork() == 0:\n      time.sleep(1e6)\n    n += 1\n'
        'except OSError as e: print(type(e).__name__)\ntime.sleep(1e6)',
        timeout_s=3,
    )
    session.wait_busy()
    assert other.execute('1 + 1', timeout_s=20).ok().text == '2'
    assert running.result().status == 'timeout'
    session.reset()
    gb.wait_until(lambda: session.value(OTHERS) == '[]', 'all are gone')


def test_killed_interpreter_takes_its_subprocesses_along(session):
    session.execute('import subprocess, os\np = subprocess.Popen(["sleep", "100000"])\nos._exit(0)')
    gb.wait_until(lambda: session.value(OTHERS) == '[]', 'it is gone')


def test_orphans_do_not_stay_zombies(session):
    session.execute(
        'import os, time\nfor _ in range(20):\n  if os.fork() == 0:\n    if os.fork() == 0: os._exit(0)\n    os._exit(0)\n'
        'for _ in range(20): os.wait()'
    ).ok()
    states = 'import os\n[open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[0] for p in os.listdir("/proc") if p.isdigit()]'
    gb.wait_until(lambda: 'Z' not in session.value(states), 'no zombies')
