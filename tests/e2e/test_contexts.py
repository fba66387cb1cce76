"""Contexts: more than one interpreter in a session."""

import resource

import gb
import pytest


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '2', '--preload', 'none') as d:
        yield d


@pytest.fixture
def session(daemon):
    with daemon.api() as api:
        yield api.session(env={'A': 'b'})


def make(session, **fields):
    answer = session.api.post(f'{session.path}/contexts', json=fields)
    assert answer.status_code == 201, answer.text
    return answer.json()['id']


def test_variables_are_their_own_and_files_are_shared(session):
    other = make(session)
    session.execute('x = 1; open("f", "w").write("shared")').ok()
    assert session.execute('"x" in globals()', context=other).ok().text == 'False'
    assert session.execute('open("f").read()', context=other).ok().text == "'shared'"
    session.execute('x = 2', context=other).ok()
    assert session.value('x') == '1' and session.execute('x', context='default').text == '1'
    assert session.execute('import os; os.environ["A"]', context=other).text == "'b'"


def test_listed_and_deleted(session):
    path = f'{session.path}/contexts'
    other = make(session, cwd='/tmp')
    listed = session.api.get(path).json()['contexts']
    assert [c['id'] for c in listed] == ['default', other] and listed[1]['cwd'] == '/tmp'
    assert session.execute('import os; os.getcwd()', context=other).text == "'/tmp'"
    assert all(s['id'] != other for s in session.api.get('/v1/sessions?limit=1000').json()['sessions'])
    assert session.api.delete(f'{path}/{other}').status_code == 204
    assert session.post_code('1', context=other).json()['code'] == 'context_not_found'
    assert session.api.delete(f'{path}/default').status_code == 400


def test_run_at_the_same_time(session):
    other = make(session)
    session.execute('import time', context=other).ok()
    slow = session.in_background('import time; time.sleep(3)')
    gb.wait_until(lambda: session.get()['state'] == 'busy', 'it runs')
    assert session.execute('1 + 1', context=other).ok().text == '2'
    assert session.get()['state'] == 'busy'
    session.interrupt()
    slow.result()


def test_death_of_one_leaves_the_others(session):
    a, b = make(session), make(session)
    for context in (a, b, 'default'):
        session.execute(f'name = {context!r}', context=context).ok()
    assert session.execute('import os; os._exit(1)', context=a)['state_lost']
    assert session.execute('"name" in globals()', context=a).ok().text == 'False'
    assert session.execute('name', context=b).ok().text == repr(b)
    died = session.execute('import os; os._exit(1)')
    assert died['rolled_back'] and session.value('name') == "'default'"
    assert session.execute('name', context=b).ok().text == repr(b)


def test_restart(session):
    other = make(session)
    session.execute('x = 1', context=other).ok()
    assert session.api.post(f'{session.path}/contexts/{other}/restart').status_code == 200
    assert session.execute('"x" in globals()', context=other).ok().text == 'False'


def test_time_limit_of_a_cell_in_a_context(session):
    other = make(session)
    session.execute('x = 1').ok()
    late = session.execute('while True:\n try:\n  while True: pass\n except BaseException: pass', context=other, timeout_s=0.5)
    assert late['status'] == 'timeout'
    assert session.value('x') == '1'
    assert session.execute('1', context=other).ok().text == '1'


def test_rollback_and_fork_concern_the_default_context(session):
    other = make(session)
    session.execute('y = 1', context=other).ok()
    session.execute('x = 1').ok()
    session.execute('x = 2').ok()
    assert session.api.post(f'{session.path}/rollback', json={'undo': True}).status_code == 200
    assert session.value('x') == '1' and session.execute('y', context=other).text == '1'
    answer = session.api.post(f'{session.path}/fork', json={})
    assert answer.status_code == 201, answer.text
    fork = session.api.adopt(answer.json()['sessions'][0])
    assert fork.value('x') == '1'
    assert [c['id'] for c in fork.api.get(f'{fork.path}/contexts').json()['contexts']] == ['default']


def test_bounded_in_number(session):
    for _ in range(15):
        make(session)
    refused = session.api.post(f'{session.path}/contexts', json={})
    assert (refused.status_code, refused.json()['code']) == (429, 'too_many_contexts')


def test_end_with_the_session(daemon):
    with daemon.api() as api:
        session = api.session()
        other = make(session)
        session.execute('1', context=other).ok()
        before = api.metric('glovebox_sessions')
        session.delete()
        gb.wait_until(lambda: api.metric('glovebox_sessions') == before - 2, 'both are gone', timeout=30)
        assert api.get(f'/v1/sessions/{other}').status_code in (404, 410)


@pytest.mark.parametrize('verb', ['checkpoints', 'rollback', 'fork', 'pause', 'resume', 'processes', 'contexts'])
def test_by_its_own_id_it_has_no_history_or_processes(session, verb):
    """The answers said that a machine without control groups, a cell or a session that starts was the reason."""
    other = make(session)
    answer = session.api.post(f'/v1/sessions/{other}/{verb}', json={'rollback': {'undo': True}, 'processes': {'cmd': 'true'}}.get(verb, {}))
    assert (answer.status_code, answer.json()['code']) == (409, 'is_context'), answer.text
    assert session.id in answer.json()['remediation']


def test_no_descriptors_for_another_one(daemon, session):
    """The server crashed when there was none left for the pipes of the new interpreter."""
    session.execute('x = 1').ok()
    session.api.get(session.path)  # a connection that stays open
    before = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    try:
        for room in range(12):
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (daemon.fds() + room, before[1]))
            assert session.api.post(f'{session.path}/contexts', json={}).status_code in (201, 503)
    finally:
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, before)
    assert session.execute('x').ok().text == '1'
