"""A session takes four descriptors of the daemon, whatever it has done; more are open only while something is being done."""

import os
import time

import pytest

import gb

SESSIONS = 20
EFFECTFUL = 'import uuid; x = str(uuid.uuid4()); open("/workspace/a", "w").write(x); open("/tmp/b", "a").write(x)'


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--preload', 'json', '--ready', '1') as d:
        yield d


@pytest.fixture
def api(daemon):
    with daemon.api() as api:
        yield api


def held(daemon):
    return len(os.listdir(f'/proc/{daemon.pid}/fd'))


def settled(daemon, most, what):
    """Waits until so few are open. The stock is refilled and connections close meanwhile."""
    gb.wait_until(lambda: held(daemon) <= most, f'{what}: {held(daemon)} descriptors, {most} expected at most', 20)


def test_four_per_session(daemon, api):
    api.post('/v1/run', json={'code': '1'})
    time.sleep(1)
    before = held(daemon)
    sessions = [api.session() for _ in range(SESSIONS)]
    settled(daemon, before + 4 * SESSIONS, 'fresh sessions')
    for session in sessions:
        session.execute(EFFECTFUL).ok()
        session.execute('y = x').ok()
    settled(daemon, before + 4 * SESSIONS, 'sessions with snapshots')
    for session in sessions:
        assert api.get(f'{session.path}/files/a').text in session.value('x')
    settled(daemon, before + 4 * SESSIONS, 'sessions whose files were read')
    for session in sessions:
        assert session.execute('import os; os._exit(3)').rolled_back
        assert session.value('y == x') == 'True'
    settled(daemon, before + 4 * SESSIONS, 'sessions that were rolled back')
    for session in sessions:
        session.delete()
    settled(daemon, before, 'all ended')


def test_a_refused_session_closes_nothing_else(daemon, api):
    """The first descriptor of the server is the one that an uninitialised field names."""
    assert api.post('/v1/volumes', json={'name': 'taken'}).status_code == 201
    session = api.session(volumes={'taken': '/mnt/taken'})
    for _ in range(3):
        assert api.post('/v1/sessions', json={'volumes': {'taken': '/mnt/taken'}}).status_code == 409
    assert os.readlink(f'/proc/{daemon.pid}/fd/0') == '/dev/null'
    session.delete()


def test_forks_take_four(daemon, api):
    session = api.session()
    session.execute(EFFECTFUL).ok()
    for fork in api.post(f'{session.path}/fork', json={}).json().get('sessions', []):  # the first starts a helper
        api.adopt(fork).delete()
    time.sleep(1)
    before = held(daemon)
    answer = api.post(f'{session.path}/fork', json={'count': 5})
    if answer.status_code == 501:
        pytest.skip('no control groups on this machine')
    forks = [api.adopt(f) for f in answer.json()['sessions']]
    for fork in forks:
        fork.execute('x').ok()
    settled(daemon, before + 4 * len(forks), 'forks')
    for fork in forks:
        fork.delete()
    settled(daemon, before, 'the forks ended')
    session.delete()
