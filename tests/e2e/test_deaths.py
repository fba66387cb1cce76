"""Interpreters that die while a checkpoint, a rollback or a fork is under way: every request has a definite answer, and the server lives."""

import contextlib
import os
import signal
import threading
import time

import gb
import pytest

ROUNDS = 5
SOON = 0.1  # seconds until the interpreter is killed; requests follow each other before, meanwhile and after


class Death(threading.Thread):
    """Kills the interpreter that the session has after a while; requests may replace it at any time."""

    def __init__(self, session):
        super().__init__(daemon=True)
        self.session, self.pid = session, None
        self.start()

    def kill(self, session):
        pid = session.get()['pid']
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid) if pid else -1
            if session.get()['pid'] == pid != 0:  # the number was not given to another process before it was opened
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                self.pid = pid
        return self.pid

    def run(self):
        time.sleep(SOON)
        with gb.Api(self.session.api.url) as api:
            gb.wait_until(lambda: self.kill(gb.Session(api, self.session.info)), 'the interpreter is killed')

    def end(self):
        """Waits until it has happened and the session has another interpreter."""
        self.join(gb.PATIENCE)
        assert self.pid, 'the interpreter was not killed'
        gb.wait_until(lambda: self.session.get()['pid'] not in (0, self.pid), 'a new interpreter is there')


def requests_while_it_dies(session, ask):
    """Answers to one request after another, from before the death until after it."""
    answers = [ask()]
    death = Death(session)
    while death.is_alive():
        answers.append(ask())
    answers.append(ask())
    death.end()
    return answers


def is_definite(answer, slug):
    """Done, or an error that says why; anything else fails the test."""
    if answer.ok:
        return True
    problem = answer.json()
    assert answer.status_code == 409 and problem['code'] == slug, answer.text
    assert 'died' in problem['detail'] and problem['remediation']
    return False


def test_fork(daemon, api):
    session = api.session()
    session.execute('x = 1').ok()
    for _ in range(ROUNDS):

        def fork():
            answer = api.post(f'{session.path}/fork', json={'count': 2})
            if is_definite(answer, 'cannot_fork'):
                for made in answer.json()['sessions']:
                    api.delete(f'/v1/sessions/{made["id"]}')
            return answer

        requests_while_it_dies(session, fork)
        assert daemon.process.poll() is None
        assert session.value('x') == '1'
    assert len(api.get('/v1/sessions').json()['sessions']) == 1  # no half-made fork is left


def test_checkpoint(daemon, api):
    """It is the one that was asked for, or there is none."""
    session = api.session()
    session.execute('x = 1').ok()
    for i in range(ROUNDS):
        names = iter(range(1000 * i, 1000 * (i + 1)))

        def checkpoint():
            name = f'number {next(names)}'
            answer = api.post(f'{session.path}/checkpoints', json={'name': name})
            if is_definite(answer, 'cannot_checkpoint'):
                assert answer.json()['checkpoint']['name'] == name
            return answer

        requests_while_it_dies(session, checkpoint)
        assert daemon.process.poll() is None
        assert session.value('x') == '1'


@pytest.mark.parametrize('where', [{'checkpoint': 'there'}, {'undo': True}])
def test_rollback(daemon, api, where):
    session = api.session(keep_checkpoints=14)
    for _ in range(ROUNDS):
        session.execute('x = 1').ok()
        assert api.post(f'{session.path}/checkpoints', json={'name': 'there'}).status_code == 201
        session.execute('x = 2').ok()

        def rollback():
            answer = api.post(f'{session.path}/rollback', json=where)
            # the process that is killed can be the checkpoint's own, while the rollback copies it: then that is lost too
            definite = ('nothing_to_undo', 'cannot_rollback', 'checkpoint_not_found')
            assert answer.status_code == 200 or answer.json()['code'] in definite, answer.text
            return answer

        answers = requests_while_it_dies(session, rollback)
        assert daemon.process.poll() is None
        if 'checkpoint' in where and answers[-1].ok:
            assert session.value('x') == '1'


def test_ended_meanwhile(daemon, api):
    """DELETE while the interpreter dies and forks are made."""
    for _ in range(ROUNDS):
        session = api.session()
        session.execute('x = 1').ok()
        death = Death(session)
        with gb.Api(daemon.url) as other:
            while death.is_alive():
                answer = other.post(f'{session.path}/fork', json={'count': 3})
                if answer.ok:
                    for made in answer.json()['sessions']:
                        other.delete(f'/v1/sessions/{made["id"]}')
            session.delete()
            answer = other.post(f'{session.path}/fork', json={'count': 3})
            assert answer.status_code in (404, 410), answer.text
        assert daemon.process.poll() is None
    assert not api.get('/v1/sessions').json()['sessions']


def test_reset_during_a_recovery(session):
    """A reset means a fresh interpreter, also when another one is on its way."""
    session.execute('x = 1').ok()
    for _ in range(ROUNDS):
        dying = session.in_background('x = 1; import os; os._exit(1)')
        session.reset()
        dying.result()
    session.reset()
    assert session.value('"x" in globals()') == 'False'


def test_checkpoints_outlive_lost_variables(session):
    """A cell that loses the state does not cost the checkpoints that were taken before."""
    session.execute('x = 1; open("f", "w").write("one")').ok()
    assert session.api.post(f'{session.path}/checkpoints', json={'name': 'there'}).status_code == 201
    session.execute('x = 2; open("f", "w").write("two")', transaction=False).ok()
    seen = session.execute('import os; os._exit(1)', transaction=False)
    assert seen.state_lost and not seen.checkpoints_evicted
    assert session.value('"x" in globals()') == 'False'
    assert session.api.post(f'{session.path}/rollback', json={'checkpoint': 'there'}).status_code == 200
    assert session.value('x, open("f").read()') == "(1, 'one')"


def test_checkpoints_that_a_reset_ends_are_named(session):
    session.execute('x = 1').ok()
    made = session.api.post(f'{session.path}/checkpoints', json={'name': 'there'}).json()['checkpoint']
    session.reset()
    assert session.execute('1').ok().checkpoints_evicted == [made['id']]
