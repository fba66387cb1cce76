"""What clients and guests make the daemon hold: however many of them conspire, its memory stays within one bound."""

import base64
import contextlib
import json
import os
import socket
import threading
import time

import pytest

import gb

HELD = 512 << 20  # LIMIT_HELD_BYTES: for all together
OWN = 160 << 20  # the daemon itself, and what one request takes while it is decoded
BOUND = HELD + OWN


@pytest.fixture(scope='module')
def daemon():
    """One that allows much to each, so that only the sum is in the way."""
    with gb.running_daemon('--max-output', '16M', '--max-connections', '3000') as daemon:
        yield daemon


@contextlib.contextmanager
def connections(daemon, requests, read=0):
    """Sends each request on a connection of its own and reads nothing, or the first bytes."""
    open_ones = []
    try:
        for request in requests:
            s = socket.create_connection(('127.0.0.1', daemon.port), timeout=gb.PATIENCE)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(request)
            open_ones.append(s)
        yield open_ones
    finally:
        for s in open_ones:
            s.close()


def post(path, body, *headers):
    data = json.dumps(body).encode()
    lines = [f'POST {path} HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', f'Content-Length: {len(data)}', *headers]
    return '\r\n'.join([*lines, '', '']).encode() + data


def watch(daemon, until, what):
    """The daemon's memory at its highest while something goes on; it answers others meanwhile."""
    highest = [0]

    def look():
        highest[0] = max(highest[0], daemon.rss())
        assert highest[0] < BOUND, f'{what}: {highest[0] >> 20} MB'
        return until()

    gb.wait_until(look, what)
    return highest[0]


def settled(api):
    """No cell runs and none waits."""
    return lambda: api.metric('glovebox_cells_running') == 0


def still_serves(daemon):
    with daemon.api() as api:
        assert api.run('print(6 * 7)').stdout == '42\n'


def comes_back(daemon):
    """When the clients have left, nothing of theirs is held."""
    with daemon.api() as api:
        gb.wait_until(lambda: api.metric('glovebox_held_bytes') < 8 << 20, 'what was held is given back')
        api.end_sessions()


FLOOD = r"""
import sys
for stream in (sys.stdout, sys.stderr):
    for _ in range(26):
        stream.write('%s' * 500_000)
"""


@pytest.mark.parametrize('character', ['a\\n', '\\x01"'], ids=['plain', 'escaped'])
@pytest.mark.parametrize('accept', ['application/json', 'text/event-stream'])
def test_answers_that_nobody_reads(daemon, character, accept):
    body = {'code': FLOOD % character, 'limits': {'output_bytes': 16 << 20}}
    with daemon.api() as api, connections(daemon, [post('/v1/run', body, f'Accept: {accept}')] * 60):
        gb.wait_until(lambda: api.metric('glovebox_cells_running') > 0, 'cells run')
        watch(daemon, settled(api), 'answers that nobody reads')
        still_serves(daemon)
        assert daemon.rss() < BOUND
    comes_back(daemon)


def test_an_answer_that_is_read_is_whole(daemon):
    code = "import sys\nsys.stdout.write('a\\x01€\"' * 1_000_000)\nsys.stderr.write('tail\\n' * 500_000)\nprint('end', file=sys.stderr)"
    for headers in ({}, {'Accept': 'text/event-stream'}):
        with daemon.api() as api:
            answer = api.post('/v1/run', json={'code': code, 'limits': {'output_bytes': 16 << 20}}, headers=headers, stream=True)
            if headers:
                seen = dict(gb.sse_events(answer))['done']
            else:
                seen = answer.json()
        assert seen['stdout'] == 'a\x01€"' * 1_000_000
        assert seen['stderr'] == 'tail\n' * 500_000 + 'end\n'
        assert seen['truncated'] == {'stdout': 0, 'stderr': 0, 'displays': 0, 'files': False, 'server_memory': False}


def test_output_beyond_the_bound_is_left_out_and_told(daemon):
    body = {'code': FLOOD % 'a\\n', 'limits': {'output_bytes': 16 << 20}}
    with daemon.api() as api, connections(daemon, [post('/v1/run', body)] * 60):
        gb.wait_until(lambda: api.metric('glovebox_held_bytes') > HELD * 0.6, 'much is held')
        seen = api.run(FLOOD % 'b\\n', limits={'output_bytes': 16 << 20})
        assert seen.status == 'ok' and seen.truncated['server_memory'] is True
        assert seen.truncated['stdout'] > 0 and 'the server held too much output' in seen.stdout
    comes_back(daemon)


def test_displays_that_nobody_reads(daemon):
    code = "class Big:\n    def _repr_html_(self): return '\\x01' * 900_000\nfor _ in range(30): display(Big())"
    with daemon.api() as api, connections(daemon, [post('/v1/run', {'code': code})] * 40):
        gb.wait_until(lambda: api.metric('glovebox_cells_running') > 0, 'cells run')
        watch(daemon, settled(api), 'displays that nobody reads')
        still_serves(daemon)
    comes_back(daemon)


def test_bodies_that_never_end(daemon):
    """31 MB of each body come, and the last byte never does."""
    head = b'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 32000000\r\n\r\n'
    refused = []

    def send(s):
        with contextlib.suppress(OSError):
            for _ in range(31):
                s.sendall(b' ' * 1_000_000)
        with contextlib.suppress(OSError):
            s.settimeout(1)
            refused.append(s.recv(4096))

    with connections(daemon, [head] * 60) as sockets:
        threads = [threading.Thread(target=send, args=(s,)) for s in sockets]
        for t in threads:
            t.start()
        watch(daemon, lambda: not any(t.is_alive() for t in threads), 'bodies that never end')
        still_serves(daemon)
    assert any(b' 503 ' in answer and b'server_memory' in answer for answer in refused)
    comes_back(daemon)


def test_half_requests_on_thousands_of_connections(daemon):
    """Each has sent most of the longest head there may be."""
    head = b'GET /health?' + b'x' * 8000 + b' HTTP/1.1\r\nHost: localhost\r\n' + b''.join(b'X-%d: %s\r\n' % (i, b'y' * 300) for i in range(90))
    with connections(daemon, [head] * 2500):
        assert daemon.rss() < BOUND
        still_serves(daemon)
    comes_back(daemon)


def handshake(path):
    key = base64.b64encode(os.urandom(16)).decode()
    return f'GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n'.encode()


def frame(payload, opcode=1, fin=True):
    n = len(payload)
    size = bytes([0x80 | n]) if n < 126 else bytes([0x80 | 126]) + n.to_bytes(2, 'big') if n < 65536 else bytes([0x80 | 127]) + n.to_bytes(8, 'big')
    return bytes([(0x80 if fin else 0) | opcode]) + size + b'\0\0\0\0' + payload


def upgraded(s):
    s.settimeout(gb.PATIENCE)
    seen = b''
    while b'\r\n\r\n' not in seen:
        seen += s.recv(1)
    assert b' 101 ' in seen, seen
    return s


def test_messages_that_never_end(daemon):
    with daemon.api() as api:
        path = api.session().path + '/ws'
        with connections(daemon, [handshake(path)] * 60) as sockets:

            def send(s):
                with contextlib.suppress(OSError):
                    for i in range(31):
                        s.sendall(frame(b' ' * 1_000_000, opcode=0 if i else 1, fin=False))

            threads = [threading.Thread(target=send, args=(upgraded(s),)) for s in sockets]
            for t in threads:
                t.start()
            watch(daemon, lambda: not any(t.is_alive() for t in threads), 'messages that never end')
            still_serves(daemon)
    comes_back(daemon)


def test_sockets_that_never_read(daemon):
    with daemon.api() as api:
        sessions = [api.session(limits={'output_bytes': 16 << 20}) for _ in range(30)]
        with connections(daemon, [handshake(s.path + '/ws') for s in sessions]) as sockets:
            for s in sockets:
                code = FLOOD % '\\x01"'
                upgraded(s).sendall(frame(json.dumps({'id': 1, 'type': 'execute', 'code': code}).encode()))
            gb.wait_until(lambda: api.metric('glovebox_cells_running') > 0, 'cells run')
            watch(daemon, settled(api), 'sockets that never read')
            still_serves(daemon)
    comes_back(daemon)


def test_cells_that_wait(daemon):
    """Large cells in the queues of sessions that are busy."""
    with daemon.api() as api:
        sessions = [api.session() for _ in range(20)]
        busy = [post(s.path + '/execute', {'code': 'import time; time.sleep(600)', 'timeout_s': 900}) for s in sessions]
        with connections(daemon, busy):
            gb.wait_until(lambda: api.metric('glovebox_cells_running') == 20, 'all are busy')
            waiting = [post(s.path + '/execute', {'code': '#' * 7_000_000}) for s in sessions for _ in range(4)]
            with connections(daemon, waiting):
                watch(daemon, lambda: True, 'cells that wait')
                time.sleep(1)
                watch(daemon, lambda: True, 'cells that wait')
    comes_back(daemon)


def jupyter_message(code):
    header = {'msg_id': 'm', 'session': 's', 'msg_type': 'execute_request', 'version': '5.3', 'username': '', 'date': ''}
    return {'channel': 'shell', 'header': header, 'parent_header': {}, 'metadata': {}, 'content': {'code': code}}


def test_jupyter_listeners_that_never_read(daemon):
    with daemon.api() as api:
        kernels = [api.post('/api/kernels', json={}).json()['id'] for _ in range(10)]
        paths = [f'/api/kernels/{k}/channels' for k in kernels for _ in range(4)]
        with connections(daemon, [handshake(p) for p in paths]) as sockets:
            for s in sockets:
                upgraded(s).sendall(frame(json.dumps(jupyter_message(FLOOD % '\\x01"')).encode()))
            gb.wait_until(lambda: api.metric('glovebox_cells_running') > 0, 'cells run')
            watch(daemon, settled(api), 'listeners that never read')
            still_serves(daemon)
    comes_back(daemon)


def test_openenv_steps_that_nobody_reads(daemon):
    body = {'action': {'code': "print('\\x01' * 3_000_000)"}}
    with daemon.api() as api, connections(daemon, [post('/step', body)] * 60):
        watch(daemon, settled(api), 'steps that nobody reads')
        time.sleep(1)
        watch(daemon, settled(api), 'steps that nobody reads')
        still_serves(daemon)
    comes_back(daemon)


def test_downloads_that_nobody_reads(daemon):
    with daemon.api() as api:
        s = api.session()
        s.execute("open('big', 'wb').write(bytes(100_000_000))").ok()
        get = f'GET {s.path}/files/big HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode()
        with connections(daemon, [get] * 200):
            assert daemon.rss() < BOUND
            still_serves(daemon)
    comes_back(daemon)


def test_tools_of_many_sessions(daemon):
    tools = [{'name': f't{i}', 'description': 'x' * 200_000, 'parameters': {'type': 'object'}} for i in range(120)]
    answers = set()
    with daemon.api() as api:
        for _ in range(18):
            answers.add(api.put(api.session().path + '/tools', json={'tools': tools}).status_code)
            assert daemon.rss() < BOUND
        assert answers == {200, 503}
    comes_back(daemon)
