"""Requests with an Idempotency-Key: one effect, however often the same request is sent."""

import sys
import threading

import requests

import gb

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

from glovebox import Glovebox  # noqa: E402

KEY = 'Idempotency-Key'


def test_a_session_is_created_once(api):
    body = {'name': 'once'}
    first = api.post('/v1/sessions', json=body, headers={KEY: 'create'})
    again = api.post('/v1/sessions', json=body, headers={KEY: 'create'})
    assert first.status_code == again.status_code == 201 and first.json() == again.json()
    assert 'Idempotent-Replayed' not in first.headers and again.headers['Idempotent-Replayed'] == 'true'
    assert len(api.get('/v1/sessions?name=once').json()['sessions']) == 1
    api.adopt(first.json())

    other = api.post('/v1/sessions', json={'name': 'another'}, headers={KEY: 'create'})
    assert other.status_code == 409 and other.json()['code'] == 'idempotency_conflict'
    elsewhere = api.post('/v1/run', json=body, headers={KEY: 'create'})
    assert elsewhere.status_code == 409, 'the key belongs to the address too'


def test_keys_belong_to_tokens():
    with gb.running_daemon('--preload', 'none', '--token', 'alice-token-0001', '--token', 'mallory-token-02') as daemon:
        made = []
        for token in ('alice-token-0001', 'mallory-token-02'):
            answer = requests.post(daemon.url + '/v1/sessions', json={}, headers={KEY: 'same', 'Authorization': f'Bearer {token}'})
            assert answer.status_code == 201 and 'Idempotent-Replayed' not in answer.headers
            made.append(answer.json()['id'])
        assert made[0] != made[1]


def test_runs_and_forks(api):
    code = {'code': 'import uuid\nprint(uuid.uuid4())'}
    first, again = (api.post('/v1/run', json=code, headers={KEY: 'run'}).json() for _ in range(2))
    assert first == again and first['stdout'] != api.post('/v1/run', json=code).json()['stdout']

    s = api.session()
    s.value('x = 1')
    forks = [api.post(f'/v1/sessions/{s.id}/fork', json={'count': 2}, headers={KEY: 'fork'}).json() for _ in range(2)]
    assert forks[0] == forks[1] and len(forks[0]['sessions']) == 2
    for info in forks[0]['sessions']:
        api.adopt(info)


def test_failures_are_not_kept(api):
    wrong = {'name': 'x' * 500}
    for _ in range(2):
        assert api.post('/v1/sessions', json=wrong, headers={KEY: 'failed'}).status_code == 400
    made = api.post('/v1/sessions', json={}, headers={KEY: 'failed'})
    assert made.status_code == 201
    api.adopt(made.json())
    for key in ('', 'k' * 129):
        assert api.post('/v1/sessions', json={}, headers={KEY: key}).status_code == 400


def test_streamed_answers_are_not_sent_again(api):
    headers = {KEY: 'streamed', 'Accept': 'text/event-stream'}
    assert 'event: done' in api.post('/v1/run', json={'code': '1'}, headers=headers).text
    again = api.post('/v1/run', json={'code': '1'}, headers=headers)
    assert again.status_code == 409 and again.json()['code'] == 'idempotency_not_kept' and again.json()['remediation']


def test_busy_and_gone(daemon, api):
    code = {'code': 'import time\nprint("begun", flush=True)\ntime.sleep(60)'}
    left = requests.Session()
    stream = left.post(daemon.url + '/v1/run', json=code, headers={KEY: 'left', 'Accept': 'text/event-stream'}, stream=True)
    lines = stream.iter_lines(chunk_size=1)  # when this is gone, the connection is
    while b'begun' not in next(lines):
        pass
    busy = api.post('/v1/run', json=code, headers={KEY: 'left'})
    assert busy.status_code == 409 and busy.json()['code'] == 'idempotency_busy' and busy.headers['Retry-After']
    stream.close()
    left.close()
    # The run of a client that left is ended, and the key is free for another request.
    gb.wait_until(lambda: api.post('/v1/run', json={'code': '6 * 7'}, headers={KEY: 'left'}).status_code == 200, 'the key is free')


def test_racing_requests_make_one_session(daemon, api):
    answers = []

    def ask():
        answers.append(requests.post(daemon.url + '/v1/sessions', json={'name': 'raced'}, headers={KEY: 'raced'}))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = {answer.json()['id'] for answer in answers if answer.status_code == 201}
    assert len(made) == 1 and all(answer.status_code in (201, 409) for answer in answers)
    assert len(api.get('/v1/sessions?name=raced').json()['sessions']) == 1
    api.adopt({'id': made.pop()})


def test_python_client(daemon):
    with Glovebox(daemon.url) as box:
        first, again = (box.session(idempotency_key='client') for _ in range(2))
        assert first.id == again.id
        assert len({box.run('import uuid; print(uuid.uuid4())', idempotency_key='client-run').stdout for _ in range(2)}) == 1
        copies = [first.fork(idempotency_key='client-fork')[0].id for _ in range(2)]
        assert copies[0] == copies[1]
        first.close()
