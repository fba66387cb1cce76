"""Pausing a session: POST /v1/sessions/{id}/pause and /resume, `pause_on_expiry`, `--max-paused`."""

import subprocess
import sys
import threading

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '2', '--preload', 'none') as d:
        yield d


@pytest.fixture
def api(daemon):
    with daemon.api() as a:
        yield a


def make(api, **fields):
    answer = api.post('/v1/sessions', json=fields)
    assert answer.status_code == 201, answer.text
    return f'/v1/sessions/{answer.json()["id"]}'


def run(api, path, code, **more):
    return api.post(f'{path}/execute', json={'code': code, **more})


def wait_state(api, path, state):
    gb.wait_until(lambda: api.get(path).json()['state'] == state, f'the session is {state}', timeout=30)


def test_a_paused_session_takes_no_work_and_keeps_its_state(api):
    path = make(api, ttl_s=100)
    assert run(api, path, 'x = 1').json()['status'] == 'ok'
    paused = api.post(f'{path}/pause')
    assert (paused.status_code, paused.json()['state']) == (200, 'paused')
    assert paused.json()['expires_in_s'] > 80_000
    for verb, body in (('execute', {'code': '1'}), ('processes', {'cmd': 'true'}), ('contexts', {}), ('pause', {})):
        refused = api.post(f'{path}/{verb}', json=body)
        assert (refused.status_code, refused.json()['code']) == (409, 'session_paused'), verb
        assert 'resume' in refused.json()['remediation']
    assert [s['state'] for s in api.get('/v1/sessions?state=paused').json()['sessions']] == ['paused']
    resumed = api.post(f'{path}/resume', json={'ttl_s': 50})
    assert resumed.status_code == 200 and resumed.json()['state'] == 'idle'
    assert 45 < resumed.json()['expires_in_s'] <= 50
    assert run(api, path, 'x').json()['result']['text/plain'] == '1'
    again = api.post(f'{path}/resume', json={})
    assert (again.status_code, again.json()['code']) == (409, 'not_paused')
    api.delete(path)


def test_processes_stop_and_continue(api):
    path = make(api)
    job = api.post(f'{path}/processes', json={'cmd': 'while :; do echo x >> n; sleep 0.05; done', 'background': True}).json()['id']

    def size():
        answer = api.get(f'{path}/files/n')
        return len(answer.content) if answer.status_code == 200 else 0

    gb.wait_until(lambda: size() > 4, 'it writes', timeout=30)
    assert api.post(f'{path}/pause').status_code == 200
    states = lambda: {p['state'] for p in api.get(f'{path}/processes').json()['processes']}
    before = gb.wait_until(lambda: (n := size()) == size() and n, 'it is stopped', timeout=30)
    assert states() == {'running'}
    assert api.post(f'{path}/resume', json={}).status_code == 200
    gb.wait_until(lambda: size() > before, 'it goes on', timeout=30)
    api.delete(f'{path}/processes/{job}')
    api.delete(path)


@pytest.mark.parametrize('where', ['session', 'context'])
def test_a_busy_session_is_not_paused(daemon, api, where):
    path = make(api)
    more = {'context': api.post(f'{path}/contexts', json={}).json()['id']} if where == 'context' else {}
    with daemon.api() as other:
        cell = threading.Thread(target=run, args=(other, path, 'open("begun", "w").close()\nwhile True: pass'), kwargs={**more, 'timeout_s': 60})
        cell.start()
        gb.wait_until(lambda: api.get(f'{path}/files/begun').status_code == 200, 'the cell runs', timeout=30)
        refused = api.post(f'{path}/pause')
        assert (refused.status_code, refused.json()['code']) == (409, 'session_busy')
        api.delete(path)
        cell.join(timeout=30)
        assert not cell.is_alive()


def test_a_session_is_paused_when_its_time_is_over(api):
    for fields in ({'ttl_s': 1}, {'idle_timeout_s': 1}):
        path = make(api, pause_on_expiry=True, **fields)
        run(api, path, 'x = 3')
        wait_state(api, path, 'paused')
        assert api.post(f'{path}/resume', json={}).json()['expires_in_s'] > 0
        assert run(api, path, 'x').json()['result']['text/plain'] == '3'
        api.delete(path)


def test_a_paused_session_is_forked_and_ended(api):
    path = make(api)
    run(api, path, 'x = 4')
    api.post(f'{path}/pause')
    fork = api.post(f'{path}/fork', json={}).json()['sessions'][0]
    assert fork['state'] == 'idle'
    assert run(api, f'/v1/sessions/{fork["id"]}', 'x').json()['result']['text/plain'] == '4'
    assert api.get(path).json()['state'] == 'paused'
    for each in (path, f'/v1/sessions/{fork["id"]}'):
        assert api.delete(each).status_code in (200, 204)


def test_the_server_bounds_how_long():
    with gb.running_daemon('--ready', '0', '--preload', 'none', '--max-paused', '1') as d, d.api() as api:
        path = make(api)
        run(api, path, '1')
        assert api.post(f'{path}/pause').status_code == 200
        gb.wait_until(lambda: api.get(path).status_code == 410, 'it has ended', timeout=30)
        assert 'it was paused for longer' in api.get(path).text


def test_the_command_line_pauses(daemon, api):
    path = make(api, name='nap')
    run(api, path, '1')
    for verb, state in (('pause', 'paused'), ('resume', 'idle')):
        done = subprocess.run([gb.PROGRAM, verb, '--url', daemon.url, 'nap'], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout.strip()) == (0, path.rsplit('/', 1)[1]), done.stderr
        assert api.get(path).json()['state'] == state
    done = subprocess.run([gb.PROGRAM, 'resume', '--url', daemon.url, 'nap'], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and 'not paused' in done.stderr
    api.delete(path)


def test_the_client_pauses(daemon):
    from glovebox import Glovebox

    with Glovebox(daemon.url) as box, box.session() as s:
        s.run('x = 5')
        assert s.pause()['state'] == 'paused'
        assert s.resume(ttl_s=60)['state'] == 'idle'
        assert s.run('x').value == 5
