"""Processes and contexts write to the files of a session while its cells use them: rollbacks stay exact, and every answer says what was lost."""

import contextlib
import os
import signal
import threading

import gb
import pytest
from test_silent_deaths import init_of

CRASH = 'import os; os._exit(1)'
APPENDS = 'seen.append(open("/workspace/f").read())\nseen[-1]'
WRITER = 'while read -r line; do echo "$line" > /workspace/f.new; mv /workspace/f.new /workspace/f; done'


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '2', '--preload', 'none') as d:
        yield d


@pytest.fixture
def session(daemon):
    with daemon.api() as api:
        session = api.session()
        session.execute('seen = []').ok()
        yield session


class Process:
    """Writes what it is told into a file, at any time."""

    def __init__(self, session):
        self.session = session
        started = session.api.post(f'{session.path}/processes', json={'cmd': WRITER, 'background': True, 'stdin_open': True})
        assert started.status_code == 201, started.text
        self.path = f'{session.path}/processes/{started.json()["id"]}'

    def write(self, text):
        api = self.session.api
        assert api.post(f'{self.path}/stdin', json={'text': f'{text}\n'}).ok
        gb.wait_until(lambda: api.get(f'{self.session.path}/files/f').text == f'{text}\n', 'it is written')


class Context:
    """Another interpreter, which does the same."""

    def __init__(self, session):
        self.session = session
        self.id = session.api.post(f'{session.path}/contexts', json={}).json()['id']

    def write(self, text):
        self.session.execute(f'open("/workspace/f", "w").write("{text}\\n")', context=self.id).ok()


@pytest.mark.parametrize('kind', [Process, Context])
def test_cells_that_read_what_others_write(session, kind):
    """They were run again, found other files, and were called the same."""
    other = kind(session)
    for text in ('first', 'second', 'third'):
        other.write(text)
        session.execute(APPENDS).ok()
    other.write('fourth')
    died = session.execute(CRASH)
    assert died.rolled_back and died.files_rolled_back and died.may_differ == [], died
    assert session.value('[s.strip() for s in seen]') == "['first', 'second', 'third']"
    assert session.value('open("/workspace/f").read()') == r"'fourth\n'"


@pytest.mark.parametrize('kind', [Process, Context])
def test_checkpoints_have_what_others_wrote(session, kind):
    """One that is asked for is not the snapshot that was taken by itself a moment before."""
    other = kind(session)
    cell = session.execute('x = 1', transaction=True).ok().cell
    snapshots = lambda: [c['cell'] for c in session.api.get(f'{session.path}/checkpoints').json()['checkpoints']]
    gb.wait_until(lambda: cell in snapshots(), 'a snapshot is taken after the cell')
    other.write('there')
    assert session.api.post(f'{session.path}/checkpoints', json={'name': 'kept'}).status_code == 201
    other.write('later')
    assert session.api.post(f'{session.path}/rollback', json={'checkpoint': 'kept'}).status_code == 200
    assert session.value('open("/workspace/f").read()') == r"'there\n'"


def test_cells_are_replayed_again_when_the_others_have_gone(session):
    """A snapshot before each cell is for sessions that share their files."""
    process, context = Process(session), Context(session)
    session.execute('x = 1').ok()
    assert session.api.delete(process.path).status_code == 204
    assert session.api.delete(f'{session.path}/contexts/{context.id}').status_code == 204

    def replays():
        for _ in range(3):
            session.execute('seen.append(1)').ok()
        return session.execute(CRASH).replayed

    gb.wait_until(replays, 'cells are run again after a crash')


def test_a_context_says_that_its_jail_has_ended(session):
    other = Context(session)
    session.execute('m = 1', context=other.id).ok()
    os.kill(init_of(session), signal.SIGKILL)

    def refused():
        answer = session.post_code('m', context=other.id)
        if answer.status_code == 200:
            # the kernel may take its time to end the jail: until then the interpreter answers, with all its variables
            seen = gb.Observation(answer.json())
            assert seen.state_lost or (seen.status, seen.text) == ('ok', '1'), seen
        return answer.status_code == 404 and answer.json()

    problem = gb.wait_until(refused, 'the context has ended')
    assert problem['code'] == 'context_not_found' and 'jail of its session was ended' in problem['detail']
    # the death of the main interpreter may be noticed only after it was sent the cell: then the cell says the same
    seen = session.execute('1')
    assert seen.status == 'ok' or (seen.status, seen['error']['code']) == ('killed', 'interpreter_died'), seen
    assert seen.state_lost and seen.files_lost


def test_a_process_that_starts_while_the_session_is_paused_is_stopped(daemon, session):
    """It was asked for before the pause, and whoever forks it was slow."""
    init, (zygote,) = init_of(session), daemon.children('glovebox-zygote')
    os.kill(zygote, signal.SIGSTOP)
    try:
        body = {'cmd': 'while :; do echo x >> n; sleep 0.02; done', 'background': True}
        asking = threading.Thread(target=lambda: session.api.post(f'{session.path}/processes', json=body))
        asking.start()
        with gb.Api(session.api.url) as second:
            starts = lambda: [p['state'] for p in second.get(f'{session.path}/processes').json()['processes']] == ['starting']
            gb.wait_until(starts, 'it starts')
            assert second.post(f'{session.path}/pause').status_code == 200
    finally:
        os.kill(zygote, signal.SIGCONT)
    asking.join()
    jail = os.readlink(f'/proc/{init}/ns/pid')

    def is_stopped(pid, state):
        with contextlib.suppress(OSError):
            return state == 'T' and gb.command_of(pid) in ('bash', 'sh') and os.readlink(f'/proc/{pid}/ns/pid') == jail

    gb.wait_until(lambda: any(is_stopped(pid, state) for pid, (_, _, state) in gb.processes().items()), 'it is stopped')
    assert session.api.post(f'{session.path}/resume', json={}).status_code == 200
    gb.wait_until(lambda: session.api.get(f'{session.path}/files/n').ok, 'it goes on')
