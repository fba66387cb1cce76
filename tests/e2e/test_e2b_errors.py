"""Errors of E2B's addresses: whoever refuses a request, the answer has the shape that E2B's SDKs read, and says why."""

import os
import signal
import threading

import gb
import pytest

STAT = '/filesystem.Filesystem/Stat'


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '1', '--preload', 'none') as d:
        yield d


@pytest.fixture
def api(daemon):
    with daemon.api() as api:
        yield api


@pytest.fixture
def box(api):
    made = api.post('/v2/sandboxes', json={'templateID': 'base'})
    assert made.status_code == 201, made.text
    yield made.json()
    api.delete(f'/sandboxes/{made.json()["sandboxID"]}')


def headers_of(box):
    return {'E2b-Sandbox-Id': box['sandboxID'], 'X-Access-Token': box['envdAccessToken']}


def assert_shape(answer, status, code, *words):
    assert answer.status_code == status, answer.text
    assert answer.headers['Content-Type'] == 'application/json'
    told = answer.json()
    assert set(told) == {'code', 'message'} and told['code'] == code, told
    for word in words:
        assert word in told['message'], told


def test_calls_of_envd_that_the_api_refuses(api, box):
    """Content-Encoding is looked at before the dialect is asked."""
    packed = {**headers_of(box), 'Content-Encoding': 'gzip'}
    assert_shape(api.post(STAT, data=b'{}', headers=packed), 415, 'invalid_argument', 'uncompressed')
    assert_shape(api.post('/execute', data=b'{}', headers={**packed, 'E2b-Sandbox-Port': '49999'}), 415, 415, 'uncompressed')


def test_a_body_that_the_server_refuses(daemon, box):
    lines = [f'{name}: {value}' for name, value in headers_of(box).items()]
    with gb.Wire(daemon) as wire:
        wire.send('\r\n'.join([f'POST {STAT} HTTP/1.1', 'Host: localhost', *lines, f'Content-Length: {1 << 40}', '', '']))
        status, headers, body = wire.answer()
    assert (status, headers['content-type']) == (413, 'application/json')
    assert b'"code":"invalid_argument"' in body and b'"message":"the body is larger' in body, body


def test_the_control_plane(api):
    origin = {'Origin': 'http://elsewhere.example'}
    assert_shape(api.get('/v2/sandboxes', headers=origin), 403, 403, 'other origins')


def test_a_native_request_keeps_its_shape_on_the_same_connection(api, box):
    packed = {**headers_of(box), 'Content-Encoding': 'gzip'}
    assert_shape(api.post(STAT, data=b'{}', headers=packed), 415, 'invalid_argument')
    gb.assert_problem(api.get('/v1/sessions/s_nosuch'), 404, 'session_not_found')


def test_a_call_of_envd_that_could_not_be_started(daemon, api, box):
    """The message was empty."""
    (zygote,) = daemon.children('glovebox-zygote')
    answers = []

    def ask():
        with daemon.api() as own:
            answers.append(own.post(STAT, json={'path': '/tmp'}, headers=headers_of(box)))

    asking = threading.Thread(target=ask)
    api.post(f'/v1/sessions/s_{box["sandboxID"]}/execute', json={'code': '1'})
    os.kill(zygote, signal.SIGSTOP)
    try:
        asking.start()
        states = lambda: [p['state'] for p in api.get(f'/v1/sessions/s_{box["sandboxID"]}/processes').json()['processes']]
        gb.wait_until(lambda: states() == ['starting'], 'it starts')
    finally:
        os.kill(zygote, signal.SIGKILL)
    asking.join(gb.PATIENCE)
    assert_shape(answers[0], 500, 'internal', 'zygote')
    assert api.post(STAT, json={'path': '/tmp'}, headers=headers_of(box)).json()['entry']['name'] == 'tmp'


def test_metadata_and_variables_have_the_native_limits(api, box):
    """Each sandbox keeps them: without a limit, some clients fill the server's memory, and lists are too long to be answered."""
    long = 'x' * 200_000
    for field in ({'metadata': {'a': long}}, {'envVars': {'A': long}}, {'envVars': {f'A{i}': '' for i in range(200)}}):
        answer = api.post('/sandboxes', json={'templateID': 'base', **field})
        assert_shape(answer, 400, 400, 'at most')
    answer = api.post(f'/sandboxes/{box["sandboxID"]}/snapshots', json={'name': long})
    assert answer.status_code == 400 and 'at most' in answer.text, answer.text
    made = api.post('/sandboxes', json={'templateID': 'base', 'metadata': {'a': 'x' * 10_000}})
    assert made.status_code == 201, made.text
    assert api.delete(f'/sandboxes/{made.json()["sandboxID"]}').status_code == 204
    assert api.get('/v1/sessions?limit=1000').status_code == 200
