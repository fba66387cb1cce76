"""Draining a server: no new sessions, the ones that are there go on, and the drain can be cancelled."""

import os
import signal

import pytest
import requests

import gb


@pytest.fixture(scope='module')
def server():
    with gb.running_daemon('--preload', 'none') as daemon, daemon.api() as api:
        yield daemon, api


def drain(daemon, *args):
    return gb.cli('drain', '--url', daemon.url, *args)


def test_drain_and_cancel(server):
    daemon, api = server
    session = api.session()
    session.value('1')
    node = api.get('/v1/node').json()
    assert node.pop('max_sessions') > 1
    assert node == {'node': None, 'incarnation': None, 'state': 'serving', 'sessions': 1, 'running_cells': 0, 'deadline_s': None}
    assert api.post('/v1/node/drain', json={}).json()['state'] == 'draining'
    for path, body in (('/v1/sessions', {}), ('/v1/run', {'code': '1'}), (f'/v1/sessions/{session.id}/fork', {})):
        refused = api.post(path, json=body)
        assert refused.status_code == 503 and refused.json()['code'] == 'draining' and refused.headers['Retry-After'], path
    assert api.get('/readyz').status_code == 503 and api.get('/health').status_code == 200
    assert session.value('6 * 7') == '42', 'sessions that are there go on'
    assert api.delete('/v1/node/drain').json()['state'] == 'serving'
    gb.wait_until(lambda: api.get('/readyz').status_code == 200, 'the server is ready again')
    assert api.post('/v1/run', json={'code': 'print(1)'}).json()['stdout'] == '1\n'
    session.delete()


def test_deadline_and_waiting(server):
    daemon, api = server
    session = api.session()
    session.value('1')
    done = drain(daemon, '--deadline', '1', '--wait')
    assert done.returncode == 0 and done.stdout.startswith('draining, '), done
    gone = api.post(f'/v1/sessions/{session.id}/execute', json={'code': '1'})
    assert gone.status_code == 410 and 'drained' in gone.json()['detail']
    assert drain(daemon, '--cancel').stdout == 'serving, 0 sessions\n'
    for wrong in ({'deadline_s': -1}, {'deadline_s': 'x'}, {'deadline': 1}):
        assert api.post('/v1/node/drain', json=wrong).status_code == 400


def test_signal(server):
    daemon, api = server
    os.kill(daemon.pid, signal.SIGUSR1)
    gb.wait_until(lambda: api.get('/v1/node').json()['state'] == 'draining', 'it drains')
    os.kill(daemon.pid, signal.SIGUSR1)
    gb.wait_until(lambda: api.get('/v1/node').json()['state'] == 'serving', 'it serves')


def test_one_of_several_tokens_may_not():
    tokens = ('first-token-000001', 'other-token-000002')
    with gb.running_daemon('--preload', 'none', '--token', tokens[0], '--token', tokens[1]) as daemon:
        head = {'Authorization': f'Bearer {tokens[0]}'}
        for method, path in (('GET', '/v1/node'), ('POST', '/v1/node/drain'), ('DELETE', '/v1/node/drain')):
            answer = requests.request(method, daemon.url + path, headers=head, json={} if method == 'POST' else None)
            assert answer.status_code == 403 and answer.json()['code'] == 'operator_only', path
        assert requests.post(daemon.url + '/v1/sessions', json={}, headers=head).status_code == 201
