"""The server as an HTTP/1.1 server: keep-alive, pipelining, chunks, 100-continue, limits, smuggling."""

import json
import socket
import time

import pytest

import gb

RUN = b'{"code": "6 * 7"}'


def request(method='POST', path='/v1/run', body=RUN, *headers, version='1.1', length=True, host='localhost'):
    lines = [f'{method} {path} HTTP/{version}']
    if host is not None:
        lines.append(f'Host: {host}')
    if body:
        lines.append('Content-Type: application/json')
        if length:
            lines.append(f'Content-Length: {len(body)}')
    lines += headers
    return ('\r\n'.join(lines) + '\r\n\r\n').encode() + (body or b'')


@pytest.fixture
def wire(daemon):
    with gb.Wire(daemon) as wire:
        yield wire


def test_keep_alive(wire):
    for _ in range(50):
        status, headers, body = wire.send(request('GET', '/health', None)).answer()
        assert status == 200 and json.loads(body) == {'status': 'healthy'}


def test_pipelining_answers_in_order(wire):
    wire.send(b''.join(request(body=json.dumps({'code': str(i)}).encode()) for i in range(20)))
    for i in range(20):
        status, _, body = wire.answer()
        assert status == 200 and json.loads(body)['result']['text/plain'] == str(i)


def test_pipelining_behind_a_slow_request(wire):
    wire.send(request(body=b'{"code": "import time; time.sleep(0.5); 1"}') + request('GET', '/health', None))
    status, _, body = wire.answer()
    assert json.loads(body)['result']['text/plain'] == '1'
    assert wire.answer()[0] == 200


def test_chunked_body(wire):
    head = b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    pieces = b''.join(b'%x;ext=1\r\n%s\r\n' % (1, RUN[i : i + 1]) for i in range(len(RUN)))
    status, _, body = wire.send(head + pieces + b'0\r\nTrailer: x\r\n\r\n').answer()
    assert status == 200 and json.loads(body)['result']['text/plain'] == '42'
    assert wire.send(request('GET', '/health', None)).answer()[0] == 200


def test_expect_100_continue(wire):
    wire.send(
        b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n'
        b'Expect: 100-continue\r\n\r\n' % len(RUN)
    )
    assert wire.answer()[0] == 100
    status, _, body = wire.send(RUN).answer()
    assert status == 200 and json.loads(body)['status'] == 'ok'


def test_expect_is_refused_before_the_body_is_sent(wire):
    wire.send(
        b'POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n'
        b'Expect: 100-continue\r\n\r\n'
    )
    assert wire.answer()[0] == 404


def test_unknown_expectation(wire):
    assert wire.send(request('GET', '/health', None, 'Expect: magic')).answer()[0] in (200, 417)


def test_one_byte_at_a_time(wire):
    for byte in request():
        wire.send(bytes([byte]))
    assert wire.answer()[0] == 200


def test_head_requests(wire, session):
    session.put_file('f', b'12345')
    wire.send(
        request('HEAD', '/health', None)
        + request('HEAD', f'{session.path}/files/f', None)
        + request('GET', '/version', None)
    )
    for expected in (200, 200, 200):
        while b'\r\n\r\n' not in wire.buffer:
            wire._more()
        head, _, wire.buffer = wire.buffer.partition(b'\r\n\r\n')
        assert head.startswith(b'HTTP/1.1 200')
        if b'octet-stream' in head:
            assert b'Content-Length: 5' in head
    assert (
        json.loads(wire._exactly(int(head.lower().split(b'content-length: ')[1].split(b'\r\n')[0])))['name']
        == 'glovebox'
    )


def test_http_1_0(daemon):
    with gb.Wire(daemon) as wire:
        status, headers, body = wire.send(request('GET', '/health', None, version='1.0')).answer()
        assert status == 200 and wire.is_closed()


def test_connection_close(wire):
    status, headers, _ = wire.send(request('GET', '/health', None, 'Connection: close')).answer()
    assert status == 200 and headers['connection'] == 'close' and wire.is_closed()


BAD_HEADS = {
    'no host': request('GET', '/health', None, host=None),
    'two hosts': request('GET', '/health', None, 'Host: other'),
    'not http': b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'garbage': b'hello there\r\n\r\n',
    'bad version': b'GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n',
    'bad method': b'EXPLODE /health HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'space in header name': request('GET', '/health', None, 'X Y: 1'),
    'space before colon': request('GET', '/health', None, 'Content-Length : 5'),
    'nul in header': request('GET', '/health', None, 'X: a\0b'),
    'bare newline': b'GET /health HTTP/1.1\nHost: localhost\n\n',
    'folded header': b'GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n',
    'two lengths': (
        b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 17\r\nContent-Length: 18\r\n\r\n' + RUN
    ),
    'length and chunked': (
        b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 17\r\n'
        b'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
    ),
    'negative length': b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n',
    'plus length': b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: +17\r\n\r\n' + RUN,
    'hex length': b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x11\r\n\r\n' + RUN,
    'huge length': b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999999999999\r\n\r\n',
    'chunked twice': b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n',
    'unknown encoding': b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n',
    'chunked not last': b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n',
    'chunked in 1.0': b'POST /v1/run HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'bad chunk size': b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
    'huge chunk size': b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n',
    'absolute foreign target': b'GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'asterisk': b'GET * HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'connect': b'CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n',
    'target with control': b'GET /he\x01alth HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'target with high bytes': b'GET /h\xff HTTP/1.1\r\nHost: localhost\r\n\r\n',
}  # fmt: skip


@pytest.mark.parametrize('kind', BAD_HEADS)
def test_bad_heads_are_refused(daemon, kind):
    with gb.Wire(daemon) as wire:
        wire.send(BAD_HEADS[kind])
        status, headers, body = wire.answer()
        assert 400 <= status < 600 and status not in (500, 502), body
        if body:
            assert headers['content-type'] == 'application/problem+json'
            assert json.loads(body)['code']


SMUGGLED = b'GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n'


@pytest.mark.parametrize(
    'kind',
    [
        'two lengths',
        'length and chunked',
        'unknown encoding',
        'chunked not last',
        'space before colon',
        'chunked in 1.0',
    ],
)
def test_nothing_is_smuggled_behind_a_bad_head(daemon, kind):
    """After a request whose end is in doubt, nothing more of the connection is taken for a request."""
    with gb.Wire(daemon) as wire:
        wire.send(BAD_HEADS[kind] + SMUGGLED)
        status, _, _ = wire.answer()
        assert 400 <= status < 600
        assert wire.is_closed()


LARGE_HEADS = {
    'many headers': (request('GET', '/health', None, *[f'X-{i}: 1' for i in range(200)]), 431),
    'long value': (request('GET', '/health', None, 'X: ' + 'y' * 40_000), 431),
    'long name': (request('GET', '/health', None, 'y' * 40_000 + ': x'), 431),
    'long path': (request('GET', '/' + 'x' * 10_000, None), 414),
    'long query': (request('GET', '/health?' + 'x' * 10_000, None), 414),
    'endless method': (b'G' * 100_000, 501),
    'endless target': (b'GET /' + b'x' * 100_000, 414),
    'endless header': (b'GET /health HTTP/1.1\r\nX: ' + b'y' * 100_000, 431),
}


@pytest.mark.parametrize('kind', LARGE_HEADS)
def test_heads_that_are_too_large(daemon, kind):
    head, status = LARGE_HEADS[kind]
    with gb.Wire(daemon) as wire:
        try:
            wire.send(head)
        except (BrokenPipeError, ConnectionResetError):
            pass
        got, headers, body = wire.answer()
        assert got == status, body
        assert json.loads(body)['code']


def test_body_longer_than_announced_is_the_next_request(wire):
    wire.send(request(body=RUN) + b'XX')
    assert wire.answer()[0] == 200
    wire.send(b'\r\n\r\n')
    assert wire.answer()[0] in (400, 501)


def test_client_that_leaves_in_the_middle(daemon, api):
    for head in (
        b'GET /hea',
        request()[:-3],
        b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc',
    ):
        with gb.Wire(daemon) as wire:
            wire.send(head)
    with gb.Wire(daemon) as wire:
        wire.send(b'GET /health')
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
    assert api.get('/health').status_code == 200


def test_body_that_is_refused_early_keeps_the_server_sound(daemon, api):
    """A large upload to nowhere: the answer arrives, and the server does not read it all."""
    with gb.Wire(daemon) as wire:
        wire.send(b'POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000000\r\n\r\n')
        sent = 0
        wire.socket.settimeout(5)
        try:
            for _ in range(1000):
                sent += wire.socket.send(b'x' * 65536)
        except (BrokenPipeError, ConnectionResetError, socket.timeout):
            pass
        assert sent < 64 << 20
    assert api.get('/health').status_code == 200


def test_options(api, session):
    answer = api.request('OPTIONS', '/v1/sessions')
    assert answer.status_code == 204
    assert set(answer.headers['Allow'].split(', ')) >= {'GET', 'POST', 'OPTIONS'}
    assert 'Access-Control-Allow-Origin' not in answer.headers


def test_security_headers(api):
    for path in ('/health', '/docs', '/openapi.json', '/nowhere'):
        headers = api.get(path).headers
        assert headers['X-Content-Type-Options'] == 'nosniff', path
        assert headers.get('Server', 'glovebox').lower().startswith('glovebox')
    assert 'Content-Security-Policy' in api.get('/docs').headers


def test_connection_limit():
    with gb.running_daemon('--preload', 'none', '--max-connections', '8', '--ready', '0') as daemon:
        open_now = []

        def one_that_stays():
            wire = gb.Wire(daemon)
            try:
                if wire.send(request('GET', '/health', None)).answer()[0] == 200:
                    open_now.append(wire)
                    return True
            except (EOFError, ConnectionResetError, BrokenPipeError):
                pass
            wire.socket.close()
            return False

        for _ in range(8):  # the connection that asked whether it is ready may still be there
            gb.wait_until(one_that_stays, 'there is room')
        with gb.Wire(daemon) as wire:
            try:
                status, headers, body = wire.send(request('GET', '/health', None)).answer()
                assert status == 503 and json.loads(body)['code']
            except (EOFError, ConnectionResetError, BrokenPipeError):
                pass  # refused without a word, which is a refusal too
        open_now.pop().socket.close()
        gb.wait_until(one_that_stays, 'there is room again')
        for wire in open_now:
            wire.socket.close()


def test_slow_head_is_cut_off(daemon, api):
    """A client that sends its head a byte at a time for ever does not hold its connection for ever."""
    with gb.Wire(daemon) as wire:
        start = time.monotonic()
        wire.send(b'GET /health HTTP/1.1\r\nHost: localhost\r\nX: ')
        wire.socket.settimeout(1)
        data = b''
        while time.monotonic() - start < 40:
            try:
                wire.send(b'y')
                piece = wire.socket.recv(4096)
                if not piece:
                    break
                data += piece
            except socket.timeout:
                continue
            except (BrokenPipeError, ConnectionResetError):
                break
        assert time.monotonic() - start < 40
        assert not data or data.startswith(b'HTTP/1.1 408')


def test_many_requests_at_once(daemon):
    wires = [gb.Wire(daemon) for _ in range(200)]
    for wire in wires:
        wire.send(request('GET', '/version', None))
    assert all(wire.answer()[0] == 200 for wire in wires)
    for wire in wires:
        wire.socket.close()


def test_unix_socket(tmp_path):
    path = tmp_path / 'gb.sock'
    with gb.running_daemon('--preload', 'none', '--ready', '0', listen=f'unix:{path}', wait=False):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(str(path))
            s.sendall(request('GET', '/health', None, 'Connection: close', host='anything.example'))
            data = b''
            while piece := s.recv(4096):
                data += piece
        assert data.startswith(b'HTTP/1.1 200') and b'healthy' in data
    assert not path.exists()
