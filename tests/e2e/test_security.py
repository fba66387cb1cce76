"""Who may call: tokens, Host, Origin; and that one token does not see another's sessions."""

import os
import subprocess

import pytest

import gb

TOKENS = 'first-token-0123456789', 'second-token-9876543210'


@pytest.fixture(scope='module')
def guarded(tmp_path_factory):
    path = tmp_path_factory.mktemp('tokens') / 'tokens'
    path.write_text(f'# who may call\n{TOKENS[0]}\n\n{TOKENS[1]}\n')
    path.chmod(0o600)
    with gb.running_daemon(
        '--preload',
        'none',
        '--ready',
        '1',
        '--token-file',
        path,
        '--allow-host',
        'box.example',
        '--allow-origin',
        'https://console.example',
        '--max-sessions-per-token',
        '3',
        token=TOKENS[0],
    ) as daemon:
        yield daemon


@pytest.mark.parametrize('path', ['/v1/sessions', '/metrics'])
def test_calls_need_a_token(guarded, path):
    answer = gb.Api(guarded.url).get(path)
    gb.assert_problem(answer, 401, 'unauthorized', 'Bearer')
    assert answer.headers['WWW-Authenticate'].startswith('Bearer')
    assert guarded.api().get(path).status_code == 200


@pytest.mark.parametrize('path', ['/health', '/readyz', '/version', '/openapi.json', '/docs'])
def test_public_pages_need_none(guarded, path):
    assert gb.Api(guarded.url).get(path).status_code == 200


@pytest.mark.parametrize(
    'value',
    [
        '',
        'Bearer',
        'Bearer ',
        'Bearer wrong',
        'Basic ' + TOKENS[0],
        TOKENS[0],
        f'Bearer {TOKENS[0]}x',
        f'Bearer {TOKENS[0][:-1]}',
        f'Bearer {TOKENS[0].upper()}',
        f'Bearer {TOKENS[0]} {TOKENS[1]}',
        f'Bearer {TOKENS[0]},{TOKENS[1]}',
        'Bearer # who may call',
    ],
)
def test_wrong_tokens(guarded, value):
    answer = gb.Api(guarded.url).get('/v1/sessions', headers={'Authorization': value})
    gb.assert_problem(answer, 401, 'unauthorized')
    assert TOKENS[0] not in answer.text


def test_scheme_is_case_insensitive(guarded):
    assert gb.Api(guarded.url).get('/v1/sessions', headers={'Authorization': f'bearer {TOKENS[1]}'}).status_code == 200


def test_each_token_sees_its_own_sessions(guarded):
    with gb.Api(guarded.url, TOKENS[0]) as first, gb.Api(guarded.url, TOKENS[1]) as second:
        mine = first.session(name='mine')
        mine.execute('open("f", "w").write("x")').ok()
        listed = second.get('/v1/sessions').json()['sessions']
        assert mine.id not in str(listed)
        for method, call, body in (
            ('GET', '', None),
            ('DELETE', '', None),
            ('POST', '/execute', {'code': '1'}),
            ('POST', '/interrupt', {}),
            ('POST', '/reset', {}),
            ('GET', '/logs', None),
            ('GET', '/files', None),
            ('GET', '/files/f', None),
            ('DELETE', '/files/f', None),
            ('GET', '/ws', None),
            ('PUT', '/files/f', None),
        ):
            answer = second.request(method, mine.path + call, json=body)
            gb.assert_problem(answer, 404, 'session_not_found')
            unknown = second.request(method, f'/v1/sessions/s_{"a" * 26}{call}', json=body)
            same = lambda a: {k: v for k, v in a.json().items() if k not in ('detail', 'request_id')}
            assert same(answer) == same(unknown), 'it looks as if it never was'
        answer = second.get('/v1/sessions/mine')
        gb.assert_problem(answer, 404, 'session_not_found')
        assert mine.id not in answer.text
        assert mine.value('1') == '1'
        mine.delete()
        gb.assert_problem(second.get(mine.path), 404, 'session_not_found')


def test_sessions_per_token(guarded):
    with gb.Api(guarded.url, TOKENS[0]) as first, gb.Api(guarded.url, TOKENS[1]) as second:
        for _ in range(3):
            first.session()
        gb.assert_problem(first.post('/v1/sessions', json={}), 429, 'too_many_sessions')
        assert second.session().value('1') == '1'


def test_token_is_not_in_the_log_nor_in_a_session(guarded):
    with guarded.api() as api:
        assert TOKENS[0] not in str(
            api.session().execute('import os; print(dict(os.environ)); print(open("/proc/self/cmdline").read())')
        )
    assert TOKENS[0] not in guarded.log()


def test_websocket_needs_the_token(guarded):
    import websockets

    with guarded.api() as api:
        session = api.session()
        url = f'ws://127.0.0.1:{guarded.port}{session.path}/ws'
        with pytest.raises(websockets.InvalidStatusCode) as refused:
            gb.Socket(url)
        assert refused.value.status_code == 401
        with gb.Socket(url, headers={'Authorization': f'Bearer {TOKENS[0]}'}) as ws:
            ws.send('ping')
            assert ws.receive()['type'] == 'pong'


# ---- Host --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'host',
    [
        'evil.example',
        'evil.example:80',
        '127.0.0.1.evil.example',
        'localhost.evil.example',
        '10.0.0.1',
        '0.0.0.0',
        '[::2]',
        '127.0.0.1@evil.example',
        'localhost, evil.example',
        '',
        '2130706433',
        '0x7f.1',
    ],
)
def test_foreign_hosts_are_refused(daemon, host):
    """DNS rebinding: a page's own name that resolves to us is not our name."""
    with gb.Wire(daemon) as wire:
        status, headers, body = wire.send(f'GET /v1/sessions HTTP/1.1\r\nHost: {host}\r\n\r\n').answer()
    assert status in (421, 400), body
    assert b'sessions' not in body or b'problem' in headers['content-type'].encode()


@pytest.mark.parametrize(
    'host', ['localhost', 'LOCALHOST', '127.0.0.1', '127.0.0.1:9999', 'localhost:1', '[::1]', '127.3.2.1']
)
def test_own_hosts_are_taken(daemon, host):
    with gb.Wire(daemon) as wire:
        assert wire.send(f'GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n').answer()[0] == 200


def test_configured_host(guarded, daemon):
    for server, status in ((guarded, 200), (daemon, 421)):
        with gb.Wire(server) as wire:
            assert wire.send('GET /health HTTP/1.1\r\nHost: box.example:80\r\n\r\n').answer()[0] == status


# ---- Origin ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'origin',
    [
        'http://evil.example',
        'null',
        'https://localhost',
        'http://localhost:1',
        'http://127.0.0.1',
        'file://',
        'https://console.example',
    ],
)
@pytest.mark.parametrize('method', ['GET', 'POST', 'OPTIONS', 'DELETE'])
def test_pages_of_other_origins_are_refused(daemon, origin, method):
    with daemon.api() as api:
        answer = api.request(
            method, '/v1/sessions', headers={'Origin': origin, 'Access-Control-Request-Method': 'POST'}
        )
        gb.assert_problem(answer, 403, 'origin_not_allowed')
        assert not [h for h in answer.headers if h.lower().startswith('access-control')]


def test_own_origin(daemon):
    with daemon.api() as api:
        assert api.get('/v1/sessions', headers={'Origin': daemon.url}).status_code == 200


@pytest.mark.parametrize(
    'site, status', [('cross-site', 403), ('same-site', 403), ('same-origin', 200), ('none', 200), ('odd', 403)]
)
def test_fetch_metadata(daemon, site, status):
    with daemon.api() as api:
        assert api.get('/v1/sessions', headers={'Sec-Fetch-Site': site}).status_code == status


def test_allowed_origin_gets_cors(guarded):
    with guarded.api() as api:
        answer = api.get('/v1/sessions', headers={'Origin': 'https://console.example', 'Sec-Fetch-Site': 'cross-site'})
        assert answer.status_code == 200 and answer.headers['Access-Control-Allow-Origin'] == 'https://console.example'
        assert 'Origin' in answer.headers['Vary']
        assert answer.headers.get('Access-Control-Allow-Credentials') is None
    preflight = gb.Api(guarded.url).request(
        'OPTIONS',
        '/v1/sessions',
        headers={
            'Origin': 'https://console.example',
            'Access-Control-Request-Method': 'POST',
            'Access-Control-Request-Headers': 'authorization',
        },
    )
    assert preflight.status_code == 204 and 'POST' in preflight.headers['Access-Control-Allow-Methods']
    assert 'Authorization' in preflight.headers['Access-Control-Allow-Headers']
    answer = gb.Api(guarded.url).get('/health', headers={'Origin': 'https://console.example.evil.example'})
    assert answer.status_code == 403


# ---- where it listens --------------------------------------------------------------------


@pytest.mark.parametrize('listen', ['0.0.0.0:0', '[::]:0', '*:0'])
def test_beyond_loopback_only_with_a_token(listen):
    said = subprocess.run(
        [gb.PROGRAM, 'serve', '--listen', listen, '--preload', 'none'],
        capture_output=True,
        text=True,
        timeout=gb.PATIENCE,
        env=gb.clean_env(),
    )
    assert said.returncode == 2 and ('token' in said.stderr or 'address' in said.stderr)


def test_beyond_loopback_with_a_token(tmp_path):
    with gb.running_daemon(
        '--preload', 'none', '--ready', '0', '--token', TOKENS[0], listen='0.0.0.0:0', token=TOKENS[0]
    ) as daemon:
        assert gb.Api(daemon.url).get('/v1/sessions').status_code == 401
        with daemon.api() as api:
            assert api.get('/v1/sessions').status_code == 200


def test_tokens_that_are_none(tmp_path):
    for text in ('short\n', '', '# nothing\n', 'has space in it 123\n'):
        path = tmp_path / 'tokens'
        path.write_text(text)
        said = gb.cli('serve', '--listen', '127.0.0.1:0', '--token-file', path, '--check')
        assert said.returncode == 2 and said.stderr, text
    assert gb.cli('serve', '--token', 'short', '--check').returncode == 2
    assert gb.cli('serve', '--token-file', '/nonexistent', '--check').returncode == 2


HOST_NAMES = """
import os, platform, socket, sys, uuid
import numpy, pandas
said = [platform.node(), platform.uname().node, socket.gethostname(), os.uname().nodename, *platform.uname()[1:2]]
sorted(set(said)), hex(uuid.getnode())
"""


@pytest.mark.parametrize('user', [None, 65534], ids=['root', 'ordinary user'])
def test_the_name_of_the_machine_is_not_told(user):
    """Modules that were imported outside ask for it, and keep what they were told."""
    args = ['--waive', 'cgroup'] if user else []
    with gb.running_daemon('--preload', 'platform,uuid,numpy,pandas', '--ready', '1', *args, user=user) as daemon, daemon.api() as api:
        said = api.run(HOST_NAMES).ok().text
        assert said.startswith("(['sandbox'], "), said
        assert os.uname().nodename not in said
        assert api.run('import platform; platform.system(), platform.machine(), platform.platform()[:5]').ok().text == repr(
            (os.uname().sysname, os.uname().machine, os.uname().sysname[:5])
        )
