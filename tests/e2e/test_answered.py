"""Every request is answered: the processes that checkpoints, rollbacks, forks and cells wait for are killed or stopped meanwhile."""

import concurrent.futures
import contextlib
import os
import random
import signal
import threading
import time

import gb
import pytest
import requests
from test_jupyter import Channels
from test_silent_deaths import init_of

LIMIT = 100  # seconds: longer than all deadlines that follow each other in one request, on a busy machine
CLIENTS = 3


class Client(threading.Thread):
    """Sends one request after another and counts those that were not answered."""

    def __init__(self, daemon, until):
        super().__init__(daemon=True)
        self.url, self.until = daemon.url, until
        self.answers, self.unanswered, self.session = [], [], None
        self.random = random.Random(len(threading.enumerate()))

    def ask(self, method, path, **json):
        try:
            answer = self.api.request(method, path, timeout=LIMIT, **({'json': json} if method == 'POST' else {}))
            self.answers.append((path.rpartition('/')[2], answer.status_code))
            return answer
        except requests.RequestException as e:
            self.unanswered.append((path, repr(e)))

    def run(self):
        with gb.Api(self.url) as self.api:
            while time.monotonic() < self.until and not self.unanswered:
                made = self.ask('POST', '/v1/sessions')
                if made is None or made.status_code != 201:
                    continue
                self.session = gb.Session(self.api, made.json())
                self.use(self.session.path)
                self.ask('DELETE', self.session.path)

    def use(self, path):
        self.ask('POST', f'{path}/execute', code='x = 1')
        for _ in range(8):
            kind = self.random.choice(['checkpoints', 'fork', 'rollback', 'execute'])
            fields = {'fork': {'count': 2}, 'rollback': {'undo': True}, 'execute': {'code': 'x', 'timeout_s': 5}}.get(kind, {})
            answer = self.ask('POST', f'{path}/{kind}', **fields)
            if answer is not None and answer.status_code == 201 and kind == 'fork':
                for fork in answer.json()['sessions']:
                    self.ask('DELETE', f'/v1/sessions/{fork["id"]}')


def harm(clients, sig, every, until):
    """Signals inits and interpreters of the clients' sessions at random moments."""
    n = 0
    chosen = random.Random(1)
    while time.monotonic() < until:
        time.sleep(chosen.uniform(0, every))
        session = chosen.choice(clients).session
        if session is None:
            continue
        with contextlib.suppress(Exception), gb.Api(session.api.url) as api:
            seen = gb.Session(api, session.info)
            pid = init_of(seen) if chosen.random() < 0.6 else seen.get()['pid']
            if pid > 1:  # there is none while it starts
                os.kill(pid, sig)
                n += 1
    return n


@pytest.mark.parametrize('sig, every, seconds', [(signal.SIGKILL, 0.1, 10), (signal.SIGSTOP, 2, 12)])
def test_all_are_answered(sig, every, seconds):
    with gb.running_daemon('--preload', 'json', '--ready', '4') as daemon:
        until = time.monotonic() + seconds
        clients = [Client(daemon, until) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        harmed = harm(clients, sig, every, until)
        for client in clients:
            client.join(2 * LIMIT)
            assert not client.is_alive() and not client.unanswered, (client.answers[-3:], client.unanswered)
        assert daemon.process.poll() is None and harmed
        assert sum(len(c.answers) for c in clients) > 2 * CLIENTS
        with daemon.api() as api:  # and it works as before
            session = api.session()
            session.execute('x = 1').ok()
            assert api.post(f'{session.path}/fork', json={'count': 2}).status_code == 201


@pytest.mark.parametrize('kind', ['checkpoints', 'fork'])
def test_stopped_interpreter(api, kind):
    """The deadline of the step ends it, with an error: without transactions there is no snapshot that could answer at once."""
    session = api.session(transactions=False)
    session.execute('x = 1').ok()
    pid = session.get()['pid']
    os.kill(pid, signal.SIGSTOP)
    answer = api.post(f'{session.path}/{kind}', json={}, timeout=LIMIT)
    os.kill(pid, signal.SIGCONT)
    slug = {'checkpoints': 'cannot_checkpoint', 'fork': 'cannot_fork'}[kind]
    assert (answer.status_code, answer.json()['code']) == (409, slug) and answer.json()['remediation'], answer.text
    session.execute('1').ok()


def test_stopped_init(api):
    """A session whose jail cannot be swept gets another one, and says that files are gone."""
    session = api.session(transactions=False)
    session.execute('x = 1').ok()
    init = init_of(session)
    os.kill(init, signal.SIGSTOP)
    os.kill(session.get()['pid'], signal.SIGKILL)
    gb.wait_until(lambda: session.get()['state'] == 'starting', 'the death is noticed')
    seen = session.execute('import os; os.listdir()', timeout=LIMIT).ok()
    assert seen.state_lost and seen.files_lost and seen.text == '[]'


def test_question_of_an_interpreter_that_dies(daemon, api):
    """Whether a source is complete is asked of the interpreter; cells wait for the answer, which comes whatever becomes of it."""
    kernel = api.post('/api/kernels', json={}).json()['id']
    (info,) = api.get('/v1/sessions').json()['sessions']
    with Channels(daemon.url, kernel) as channels:
        channels.execute('x = 1')
        pid = gb.Session(api, info).get()['pid']
        os.kill(pid, signal.SIGSTOP)
        question = channels.request('is_complete_request', {'code': 'x = ('})
        cell = channels.request('execute_request', {'code': '1', 'silent': False})
        os.kill(pid, signal.SIGKILL)
        replies = [m for m in channels.about(question) if m['header']['msg_type'] == 'is_complete_reply']
        assert replies[0]['content']['status'] == 'unknown'
        assert any(m['header']['msg_type'] == 'execute_reply' for m in channels.about(cell))
    api.delete(f'/api/kernels/{kernel}')


def snapshots_of(session):
    """Numbers of the interpreters in its jail that wait as snapshots."""
    guest = session.get()['pid']
    jail = os.readlink(f'/proc/{guest}/ns/pid')

    def there(pid):
        try:
            return pid != guest and gb.command_of(pid) == 'python3' and os.readlink(f'/proc/{pid}/ns/pid') == jail
        except OSError:
            return False

    return [pid for pid in gb.processes() if there(pid)]


def test_answer_of_a_tool_while_the_session_recovers(daemon, api):
    """Its cell has died with the interpreter: nobody waits for the answer. The server crashed."""
    session = api.session()
    session.execute('x = 1').ok()
    assert api.put(f'{session.path}/tools', json={'tools': [{'name': 'ask', 'parameters': {'type': 'object', 'properties': {}}}]}).ok
    cell = session.in_background('ask()', transaction=True)
    with gb.Api(daemon.url) as second:
        calls = lambda: second.get(f'{session.path}/tools/calls?wait_s=1').json().get('calls')
        call = gb.wait_until(calls, 'the tool is called')[0]['call']
        guest, snapshots = session.get()['pid'], snapshots_of(session)
        assert snapshots
        for pid in snapshots:
            os.kill(pid, signal.SIGSTOP)
        os.kill(guest, signal.SIGKILL)
        gb.wait_until(lambda: second.get(session.path).json()['pid'] != guest, 'the death is noticed')
        late = second.post(f'{session.path}/tools/calls/{call}', json={'value': 1})
        for pid in snapshots:
            os.kill(pid, signal.SIGCONT)
    assert late.status_code in (204, 404), late.text
    died = cell.result()
    assert died.status == 'killed' and (died.rolled_back or died.state_lost)
    assert session.execute('x').status == ('ok' if died.rolled_back else 'error')


def test_reset_of_a_fork_that_is_not_ready(daemon, api):
    """It has no state to drop yet: its reset is refused, and it becomes what was asked for."""
    session = api.session()
    session.execute('x = 1').ok()
    (jailer,) = daemon.children('glovebox-jailer')
    os.kill(jailer, signal.SIGSTOP)
    try:
        asking = concurrent.futures.ThreadPoolExecutor().submit(lambda: gb.Api(daemon.url).post(f'{session.path}/fork', json={}))
        others = lambda: [s for s in api.get('/v1/sessions').json()['sessions'] if s['id'] != session.id]
        fork = gb.wait_until(others, 'the fork is being made')[0]
        refused = api.post(f'/v1/sessions/{fork["id"]}/reset')
    finally:
        os.kill(jailer, signal.SIGCONT)
    assert (refused.status_code, refused.json()['code']) == (409, 'session_busy'), refused.text
    answer = asking.result()
    assert answer.status_code == 201, answer.text
    assert api.adopt(answer.json()['sessions'][0]).value('x') == '1'
