"""Interpreters that die while no cell runs: the next observation says so, and those who listen hear it at once."""

import os
import signal
import sys

import gb
import pytest
import test_jupyter as test_jupyter_dialect
import test_openenv as test_openenv_dialect

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))
import glovebox  # noqa: E402

# Both wait for a sign that their cell has ended, and end the interpreter then.
THREAD = '''
import os, threading, time
def end():
    while not os.path.exists("/workspace/.end"): time.sleep(0.01)
    os.unlink("/workspace/.end")
    os._exit(3)
threading.Thread(target=end).start()
'''
CHILD = '''
import os, time
me = os.getpid()
if os.fork() == 0:
    if os.fork() == 0:
        while not os.path.exists("/workspace/.end"): time.sleep(0.01)
        os.kill(me, 9)
    os._exit(0)
os.wait()
'''


def parked(session, code):
    """Runs a cell, and waits until a snapshot was taken after it."""
    before = session.api.metric('glovebox_copies_parked_total')
    session.execute(code, transaction=True).ok()
    gb.wait_until(lambda: session.api.metric('glovebox_copies_parked_total') > before, 'a snapshot is taken')


def replaced(session, how):
    """Does something that ends the interpreter, and waits until another one is there."""
    pid = session.get()['pid']
    how()
    gb.wait_until(lambda: session.get()['state'] == 'idle' and session.get()['pid'] not in (0, pid), 'a new interpreter is there')


def ended_by(session, code, **fields):
    """Runs THREAD or CHILD, and waits until another interpreter is there."""
    session.execute(code, **fields).ok()
    replaced(session, lambda: session.put_file('.end', b''))


def init_of(session):
    """Number of the first process of its jail."""
    gb.wait_until(lambda: session.get()['pid'], 'it has an interpreter')
    jail = os.readlink(f'/proc/{session.get()["pid"]}/ns/pid')

    def is_init(pid):
        try:
            if os.readlink(f'/proc/{pid}/ns/pid') != jail:
                return False
            with open(f'/proc/{pid}/status') as f:
                return next(line.split()[-1] == '1' for line in f if line.startswith('NSpid:'))
        except OSError:
            return False

    return next(pid for pid in gb.processes() if is_init(pid))


def test_restored(session):
    parked(session, 'x = 1; open("f", "w").write("one")')
    replaced(session, lambda: os.kill(session.get()['pid'], signal.SIGKILL))
    seen = session.execute('x, open("f").read()').ok()
    assert seen.text == "(1, 'one')"
    assert seen.rolled_back and seen.files_rolled_back and not seen.state_lost and not seen.files_lost
    died = seen.interpreter_died
    assert 'signal 9' in died['why'] and died['rolled_back_to'] == 1 and not died['state_lost'] and 'after cell 1' in died['remediation']
    assert died['at'].endswith('Z')
    seen = session.execute('x').ok()  # told once
    assert not seen.rolled_back and seen.interpreter_died is None


def test_child_that_kills(session):
    parked(session, 'x = 1')
    parked(session, CHILD)
    replaced(session, lambda: session.put_file('.end', b''))
    seen = session.execute('x').ok()
    assert seen.text == '1' and seen.rolled_back and seen.interpreter_died['rolled_back_to'] == 2


def test_thread_that_exits(session):
    """No snapshot can be taken beside a thread: the session goes back to the one before, and says to which."""
    parked(session, 'x = 1')
    ended_by(session, 'y = 2\n' + THREAD)
    seen = session.execute('x, "y" in globals()').ok()
    assert seen.text == '(1, False)'
    assert seen.rolled_back and not seen.state_lost
    assert seen.interpreter_died['rolled_back_to'] == 1 and 'exit code 3' in seen.interpreter_died['why']


def test_a_thread_that_kills_each_interpreter_that_runs_its_cell_again(session):
    """Running that cell again starts the thread again. The session comes out of it, and says how far back it went."""
    parked(session, 'x = 1')
    session.execute('y = 2\nimport os, threading\nthreading.Timer(1.5, os._exit, (3,)).start()').ok()
    deaths = []
    while not deaths or deaths[-1].interpreter_died is None:
        deaths.append(session.execute('z = 3\nimport time\ntime.sleep(60)'))
        assert deaths[-1].status == 'killed' and deaths[-1].rolled_back and len(deaths) <= 3
    assert all(seen.may_differ == [2] for seen in deaths[:-1])
    died = deaths[-1].interpreter_died
    assert died['rolled_back_to'] == 1 and 'after cell 1' in died['remediation'] and not deaths[-1].replayed
    seen = session.execute('import time\ntime.sleep(2.5)\nx, "y" in globals(), "z" in globals()').ok()
    assert seen.text == '(1, False, False)' and not seen.rolled_back


def test_without_a_snapshot(api):
    session = api.session(transactions=False)
    session.execute('x = 1; open("f", "w").write("one")').ok()
    ended_by(session, THREAD)
    seen = session.execute('import os; "x" in globals(), os.listdir()').ok()
    assert seen.text == "(False, ['f'])"
    assert seen.state_lost and not seen.rolled_back and not seen.files_lost
    assert seen.interpreter_died['state_lost'] and seen.interpreter_died['rolled_back_to'] is None
    assert 'no transaction' in seen.interpreter_died['remediation']


def test_jail_that_ends(session):
    parked(session, 'x = 1; open("f", "w").write("one")')
    replaced(session, lambda: os.kill(init_of(session), signal.SIGKILL))
    seen = session.execute('import os; "x" in globals(), os.listdir()').ok()
    assert seen.text == '(False, [])'
    assert seen.state_lost and seen.files_lost and seen.interpreter_died['files_lost']
    assert 'files are gone' in seen.interpreter_died['remediation']


def test_jail_that_ends_under_a_cell(session):
    parked(session, 'x = 1; open("f", "w").write("one")')
    running = session.in_background('import time\nopen("started", "w").close()\ntime.sleep(60)')
    gb.wait_until(lambda: session.api.get(f'{session.path}/files/started').ok, 'the cell runs')
    os.kill(init_of(session), signal.SIGKILL)
    seen = running.result()
    assert seen['state_lost'] and seen['files_lost'] and 'files are gone' in seen['error']['remediation']
    seen = session.execute('import os; os.listdir()').ok()
    assert seen.text == '[]' and not seen.state_lost and seen.interpreter_died is None


def test_nothing_to_lose(session):
    """A session that has run nothing is none the worse."""
    replaced(session, lambda: os.kill(session.get()['pid'], signal.SIGKILL))
    seen = session.execute('1').ok()
    assert not seen.state_lost and not seen.files_lost


def test_checkpoint_after_an_untold_death(session):
    """Going back to it does not hide that variables were lost before it was taken."""
    session.execute('x = 1', transaction=False).ok()
    ended_by(session, THREAD, transaction=False)
    assert session.api.post(f'{session.path}/checkpoints', json={'name': 'late'}).status_code == 201
    assert session.api.post(f'{session.path}/rollback', json={'checkpoint': 'late'}).status_code == 200
    assert session.execute('1').ok().state_lost


def test_fork_after_an_untold_death(session):
    session.execute('x = 1', transaction=False).ok()
    ended_by(session, THREAD, transaction=False)
    answer = session.api.post(f'{session.path}/fork', json={'count': 1})
    assert answer.status_code == 201
    assert session.api.adopt(answer.json()['sessions'][0]).execute('1').ok().state_lost
    assert session.execute('1').ok().state_lost


def test_listeners(session):
    parked(session, 'x = 1')
    with session.socket() as socket:
        socket.send(id=1, type='ping')
        assert socket.receive()['type'] == 'pong'
        os.kill(session.get()['pid'], signal.SIGKILL)
        event = socket.receive()
    assert event['type'] == 'session' and event['event'] == 'interpreter_died' and event['id'] is None
    assert event['session'] == session.id and event['rolled_back_to'] == 1 and 'signal 9' in event['why']
    events = list(session.events('x'))
    assert [name for name, _ in events] == ['session', 'started', 'done']
    assert events[0][1]['event'] == 'interpreter_died' and events[-1][1]['interpreter_died']['rolled_back_to'] == 1


@pytest.mark.parametrize('how', ['os.kill(-1, 9)', 'os.killpg(0, 9)', 'subprocess.run(["sh", "-c", "kill -9 -1"])'])
def test_forks_of_a_parent_that_kills(session, how):
    """What ends all processes that it can reach ends none of its forks."""
    session.execute('x = 1').ok()
    forks = [session.api.adopt(info) for info in session.api.post(f'{session.path}/fork', json={'count': 2}).json()['sessions']]
    pids = [fork.get()['pid'] for fork in forks]
    session.execute(f'import os, subprocess\n{how}')
    assert [fork.get()['pid'] for fork in forks] == pids
    for fork in forks:
        seen = fork.execute('x').ok()
        assert seen.text == '1' and not seen.rolled_back and not seen.state_lost
    assert session.value('x') == '1'


@pytest.mark.parametrize('limit', ['time', 'interrupt'])
def test_killed_without_a_snapshot(session, limit):
    """Its remedy says why there was none."""
    session.execute('import threading, time\nthreading.Thread(target=time.sleep, args=[1000], daemon=True).start()\ntime.sleep(0.3)').ok()
    deaf = 'import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nopen("deaf", "w").close()\nwhile True: pass'
    if limit == 'time':
        seen = session.execute(deaf, timeout_s=0.3)
    else:
        running = session.in_background(deaf)
        gb.wait_until(lambda: session.api.get(f'{session.path}/files/deaf').ok, 'the cell runs')
        session.interrupt()
        seen = gb.Observation(running.result())
    assert seen.status == ('timeout' if limit == 'time' else 'interrupted') and seen.state_lost
    assert 'thread' in seen.error['remediation'] and 'no snapshot' in seen.error['remediation']


def test_openenv(daemon):
    """The note comes before what the code wrote to stderr, and metadata has the flags."""
    with test_openenv_dialect.Env(daemon) as env:
        env.reset()
        (info,) = gb.Api(daemon.url).get('/v1/sessions').json()['sessions']
        session = gb.Session(gb.Api(daemon.url), info)
        env.step('x = 1\nimport time; time.sleep(0.3)')
        replaced(session, lambda: os.kill(session.get()['pid'], signal.SIGKILL))
        seen = env.step('raise ValueError("own")')
    assert seen['observation']['stderr'].startswith('[glovebox] before this cell') and 'own' in seen['observation']['stderr'].splitlines()[-1]
    assert seen['metadata']['rolled_back'] or seen['metadata']['state_lost']


def test_jupyter(daemon, api):
    kernel = api.post('/api/kernels', json={}).json()['id']
    (info,) = api.get('/v1/sessions').json()['sessions']
    session = gb.Session(api, info)
    with test_jupyter_dialect.Channels(daemon.url, kernel) as channels:
        channels.execute('x = 1\nimport threading, time; threading.Thread(target=time.sleep, args=[1000], daemon=True).start(); time.sleep(0.3)')
        replaced(session, lambda: os.kill(session.get()['pid'], signal.SIGKILL))
        assert channels.receive()['content'] == {'execution_state': 'restarting'}
        messages = channels.execute('"x" in globals()')
        notes = [m['content']['text'] for m in messages if m['header']['msg_type'] == 'stream' and m['content']['name'] == 'stderr']
        assert 'before this cell' in notes[0] and 'Variables are gone' in notes[0]
    api.delete(f'/api/kernels/{kernel}')


def test_python_client(daemon, api):
    with glovebox.Glovebox(daemon.url) as box, box.session() as mine:
        mine.run('x = 1\nimport time; time.sleep(0.3)')
        session = gb.Session(api, {'id': mine.id})
        replaced(session, lambda: os.kill(session.get()['pid'], signal.SIGKILL))
        seen = mine.run('1')
        assert seen.interpreter_died and seen.interpreter_died['why'] and (seen.rolled_back or seen.state_lost) and not seen.files_lost
