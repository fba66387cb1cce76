"""The same events as they happen: SSE and WebSocket."""

import json
import threading

import pytest
import websockets

import gb


def split(events):
    """{event: [data, …]} and the order of the names, repetitions folded."""
    by_name, order = {}, []
    for name, data in events:
        by_name.setdefault(name, []).append(data)
        if not order or order[-1] != name:
            order.append(name)
    return by_name, order


# ---- SSE ---------------------------------------------------------------------------------


def test_sse_tells_everything_in_order(session):
    code = 'import sys\nprint("one", flush=True)\ndisplay({"a": 1})\nprint("two", file=sys.stderr, flush=True)\n40 + 2'
    by_name, order = split(session.events(code))
    assert order[0] == 'started' and order[-1] == 'done'
    assert by_name['started'] == [{'type': 'started', 'cell': 1, 'session': session.id}]
    assert ''.join(d['text'] for d in by_name['stdout']) == 'one\n'
    assert ''.join(d['text'] for d in by_name['stderr']) == 'two\n'
    assert order.index('stdout') < order.index('display')
    assert by_name['display'][0]['data']['text/plain'] == "{'a': 1}"
    done = by_name['done'][0]
    assert done['status'] == 'ok' and done['result']['text/plain'] == '42' and done['stdout'] == 'one\n'
    assert done['displays'] == [d['data'] for d in by_name['display']]


def test_sse_comes_as_it_happens(session):
    """Each line is there before the next one can be printed, without a flush in the code."""
    heard = ''
    with gb.Api(session.api.url) as other:
        for name, data in session.events(''.join(f'print({i})\n{gb.HOLD}' for i in range(4))):
            heard += data['text'] if name == 'stdout' else ''
            if name == 'stdout' and heard.endswith('\n'):
                gb.Session(other, session.info).release()
    assert heard == '0\n1\n2\n3\n'


def test_output_ends_no_wait_for_a_signal(session):
    """signal.pause() ends with any signal; the one with which the guest sends output that it has held back must not be one."""
    code = """
import os, signal, threading, time
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append('signal'))

def talk():
    for i in range(3):
        print(i)
        while not os.path.exists(f'go{i}'):
            time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGUSR1)

threading.Thread(target=talk).start()
print('waits')
signal.pause()
heard.append('end')
heard
"""
    text, done = '', None
    with gb.Api(session.api.url) as other:
        for name, data in session.events(code, timeout_s=100):
            text += data['text'] if name == 'stdout' else ''
            done = data if name == 'done' else done
            for i in range(3):
                if name == 'stdout' and f'{i}\n' in text:
                    assert other.put(f'{session.path}/files/go{i}', data=b'').status_code < 300
    assert done['status'] == 'ok' and done['result']['text/plain'] == "['signal', 'end']", done
    assert sorted(text.split()) == ['0', '1', '2', 'waits']


def test_sse_of_an_error_and_of_a_timeout(session):
    by_name, _ = split(session.events('print("x")\n1/0'))
    assert by_name['done'][0]['error']['type'] == 'ZeroDivisionError'
    by_name, _ = split(session.events('while True: pass', timeout_s=0.3))
    assert by_name['done'][0]['status'] == 'timeout'
    by_name, _ = split(session.events('import os; os._exit(3)'))
    assert by_name['done'][0]['status'] == 'killed'


def test_sse_of_one_shot(api):
    answer = api.post('/v1/run', json={'code': 'print("hi"); 7'}, headers={'Accept': 'text/event-stream'}, stream=True)
    by_name, order = split(gb.sse_events(answer))
    assert order == ['started', 'stdout', 'done']
    assert by_name['done'][0]['result']['text/plain'] == '7'


def test_sse_text_with_every_kind_of_line_end(session):
    text = 'a\rb\r\nc\n\n\u2028d\u0085: data: x\n\nevent: fake\n'
    by_name, order = split(session.events(f'print({text!r}, end="")'))
    assert ''.join(d['text'] for d in by_name['stdout']) == text
    assert 'fake' not in order


def test_sse_of_bad_input_is_an_ordinary_problem(session):
    answer = session.post_code(5, headers={'Accept': 'text/event-stream'})
    gb.assert_problem(answer, 400, 'invalid_field', '$.code')


def test_sse_is_capped_like_the_observation(api):
    session = api.session(limits={'output_bytes': 20_000})
    by_name, _ = split(session.events('for i in range(100_000): print(i)'))
    assert sum(len(d['text']) for d in by_name['stdout']) <= 20_000
    assert by_name['done'][0]['truncated']['stdout'] > 500_000
    assert by_name['done'][0]['stdout'].endswith('99999\n')


def test_sse_reader_that_leaves_interrupts(session):
    session.execute('kept = 1').ok()
    events = session.events('import time\ntry:\n  print("go", flush=True)\n  time.sleep(1e6)\nfinally: ended = True')
    for name, _ in events:
        if name == 'stdout':
            break
    events.close()
    session.api.http.close()
    session.wait_idle()
    assert session.value('kept, ended') == '(1, True)'


def test_sse_reader_that_does_not_read(daemon, api):
    """The cell goes on at its own pace, and the daemon keeps a bounded amount."""
    session = api.session(limits={'output_bytes': 4 << 20})
    body = json.dumps({'code': 'for i in range(8): print("x" * (1 << 20), flush=True)\n"end"'})
    before = daemon.rss()
    with gb.Wire(daemon) as wire:
        wire.send(
            f'POST {session.path}/execute HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n'
            f'Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}'
        )
        gb.wait_until(lambda: session.get()['cells'] == 1 and session.get()['state'] == 'idle', 'the cell ends')
        assert daemon.rss() - before < 200 << 20
        status, headers, text = wire.answer()
    assert status == 200 and text.count(b'x') >= 4 << 20 and b'event: done' in text
    gb.wait_until(lambda: daemon.rss() - before < 64 << 20, 'the memory is given back')


def test_sse_for_http_1_0(daemon, session):
    body = json.dumps({'code': 'print("x"); 7'})
    with gb.Wire(daemon) as wire:
        wire.send(
            f'POST {session.path}/execute HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n'
            f'Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}'
        )
        while wire._more():
            pass
    head, _, text = wire.buffer.partition(b'\r\n\r\n')
    assert b'chunked' not in head and text.startswith(b'event: started\n') and text.endswith(b'\n\n')


def test_sse_waits_in_the_queue(session):
    first = session.hold()
    events = session.events('print("after")')
    with gb.Api(session.api.url) as other:
        own = gb.Session(other, session.info)
        released = threading.Thread(target=lambda: (gb.wait_until(lambda: own.get()['queued'] == 1, 'it waits'), own.release()))
        released.start()
        by_name, order = split(events)
        released.join()
    first.result().ok()
    assert order == ['started', 'stdout', 'done'] and by_name['started'][0]['cell'] == 2


# ---- WebSocket ---------------------------------------------------------------------------


def test_socket_execute(session):
    with session.socket() as ws:
        messages = ws.execute('import sys\nprint("out")\nprint("err", file=sys.stderr)\ndisplay(5)\n1 + 1')
        by_type = {m['type']: m for m in messages}
        said = lambda stream: ''.join(m['text'] for m in messages if m['type'] == stream)
        assert messages[0]['type'] == 'started' and messages[0]['cell'] == 1
        assert said('stdout') == 'out\n' and said('stderr') == 'err\n'
        assert by_type['display']['data']['text/plain'] == '5'
        observation = by_type['done']['observation']
        assert observation['status'] == 'ok' and observation['result']['text/plain'] == '2'
        assert observation['id'] == messages[0]['id'] and observation['session'] == session.id


def test_socket_keeps_state_with_http(session):
    with session.socket() as ws:
        ws.execute('x = 5')
        assert session.value('x') == '5'
        session.execute('x = 6').ok()
        assert ws.execute('x')[-1]['observation']['result']['text/plain'] == '6'


@pytest.mark.parametrize('id', ['text', 'ä"\\', 0, 7, -3, 2**53])
def test_socket_ids_come_back_as_they_were(session, id):
    with session.socket() as ws:
        ws.send('ping', id=id)
        assert ws.receive() == {'id': id, 'type': 'pong'}
        assert ws.execute('1', id=id)[-1]['id'] == id


def test_socket_interrupt_and_ping_while_a_cell_runs(session):
    with session.socket() as ws:
        cell = ws.send('execute', code='import time\nprint("go", flush=True)\ntime.sleep(1e6)')
        while not ws.receive().get('text', '').endswith('\n'):
            pass
        ping = ws.send('ping')
        assert ws.receive() == {'id': ping, 'type': 'pong'}
        stop = ws.send('interrupt')
        messages = [ws.receive(), ws.receive()]
        by_id = {m['id']: m for m in messages}
        assert by_id[stop] == {'id': stop, 'type': 'interrupted', 'interrupted': True}
        assert by_id[cell]['observation']['status'] == 'interrupted'
        stop = ws.send('interrupt')
        assert ws.receive() == {'id': stop, 'type': 'interrupted', 'interrupted': False}


def test_socket_several_cells_at_once_run_in_order(session):
    with session.socket() as ws:
        ids = [ws.send('execute', code=f'print({i})') for i in range(10)]
        done = []
        while len(done) < 10:
            message = ws.receive()
            if message['type'] == 'done':
                done.append((message['id'], message['observation']['stdout']))
        assert done == [(id, f'{i}\n') for i, id in enumerate(ids)]


def test_two_sockets_on_one_session(session):
    with session.socket() as a, session.socket() as b:
        mine = a.send('execute', code=gb.HOLD + 'who = "a"')
        session.wait_busy()
        theirs = b.send('execute', code='who')
        session.release()
        assert b.until_done(theirs)[-1]['observation']['result']['text/plain'] == "'a'"
        assert a.until_done(mine)[-1]['observation']['status'] == 'ok'


BAD_MESSAGES = {
    'not json': ('{bad', 'malformed_json'),
    'not an object': ('[1]', 'invalid_field'),
    'no type': ('{"id":"1"}', 'missing_field'),
    'no id': ('{"type":"ping"}', 'missing_field'),
    'unknown type': ('{"id":"1","type":"explode"}', 'invalid_field'),
    'unknown field': ('{"id":"1","type":"ping","x":1}', 'unknown_field'),
    'no code': ('{"id":"1","type":"execute"}', 'missing_field'),
    'wrong code': ('{"id":"1","type":"execute","code":5}', 'invalid_field'),
    'wrong id': ('{"id":{},"type":"ping"}', 'invalid_field'),
    'empty': ('', 'malformed_json'),
    'deep': ('[' * 100_000, 'json_too_deep'),
}


def test_socket_survives_bad_messages(session):
    with session.socket() as ws:
        for name, (text, code) in BAD_MESSAGES.items():
            ws.send_text(text)
            message = ws.receive()
            assert message['type'] == 'error' and message['code'] == code, (name, message)
            assert message['detail'] and message['status'] == 400, name
            assert message['id'] == ('1' if '"id":"1"' in text else None), name
        assert ws.execute('6 * 7')[-1]['observation']['result']['text/plain'] == '42'


def test_socket_refuses_binary_messages_or_answers(session):
    with session.socket() as ws:
        ws._wait(ws.ws.send(b'{"id":"1","type":"ping"}'))
        with pytest.raises(websockets.ConnectionClosed) as closed:
            ws.receive()
        assert closed.value.rcvd.code in (1003, 1007, 1002)
    assert session.value('1') == '1'


def test_socket_close_interrupts_and_detach_does_not(session):
    session.execute('done = []').ok()
    with session.socket() as ws:
        ws.send(
            'execute',
            code='import time\ntry:\n  print("in", flush=True)\n  time.sleep(1e6)\nfinally: done.append("interrupted")',
        )
        gb.wait_until(lambda: session.logs()['entries'], 'it is inside its try')
    session.wait_idle()
    with session.socket() as ws:
        ws.send('execute', code=gb.HOLD + 'done.append("finished")', detach=True)
        session.wait_busy()
    session.release()
    session.wait_idle()
    assert session.value('done') == "['interrupted', 'finished']"


def test_socket_when_its_session_ends(api):
    session = api.session()
    with session.socket() as ws:
        cell = ws.send('execute', code='import time; time.sleep(1e6)')
        session.wait_busy()
        session.delete()
        assert ws.until_done(cell)[-1]['observation']['status'] == 'killed'
        after = ws.send('execute', code='1')
        message = ws.receive()
        assert message['id'] == after and message['type'] == 'error' and message['code'] == 'session_gone'


def test_socket_queue_is_bounded(session):
    with session.socket() as ws:
        first = ws.send('execute', code=gb.HOLD)
        ids = [ws.send('execute', code='1') for _ in range(30)]
        gb.wait_until(lambda: session.get()['queued'] == 16, 'as many wait as may')
        session.release()
        refused, done = set(), set()
        while len(refused) + len(done) < 31:
            message = ws.receive()
            if message['type'] == 'error':
                assert message['code'] == 'queue_full' and message['status'] == 429
                refused.add(message['id'])
            elif message['type'] == 'done':
                done.add(message['id'])
        assert first in done and len(done) == 17 and refused == set(ids[16:])


def test_socket_large_messages_both_ways(session):
    with session.socket() as ws:
        code = f'text = {"y" * 3_000_000!r}\nprint(len(text))'
        assert ws.execute(code)[-1]['observation']['stdout'] == '3000000\n'
        assert len(ws.execute('print("z" * 900_000)')[-1]['observation']['stdout']) == 900_001


def test_socket_needs_an_upgrade(api, session):
    answer = api.get(f'{session.path}/ws')
    gb.assert_problem(answer, 426, 'upgrade_required')
    assert answer.headers['Upgrade'] == 'websocket'


def test_socket_of_unknown_and_ended_sessions(api, daemon):
    session = api.session()
    session.delete()
    for id in (session.id, 's_' + 'a' * 26):
        with pytest.raises(gb.SOCKET_REFUSED) as refused:
            gb.Socket(f'ws://127.0.0.1:{daemon.port}/v1/sessions/{id}/ws')
        assert gb.refused_with(refused.value) in (404, 410)


def test_socket_origin_is_checked(session, daemon):
    url = f'ws://127.0.0.1:{daemon.port}{session.path}/ws'
    for origin in ('http://evil.example', 'null', 'https://127.0.0.1', f'http://127.0.0.1:{daemon.port}.evil.example'):
        with pytest.raises(gb.SOCKET_REFUSED) as refused:
            gb.Socket(url, origin=origin)
        assert gb.refused_with(refused.value) == 403
    with gb.Socket(url, origin=f'http://127.0.0.1:{daemon.port}') as ws:
        ws.send('ping')
        assert ws.receive()['type'] == 'pong'


def frame(opcode, payload=b'', fin=True, mask=b'\1\2\3\4', rsv=0):
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    size = len(payload)
    length = (
        bytes([size])
        if size < 126
        else bytes([126]) + size.to_bytes(2, 'big')
        if size < 65536
        else bytes([127]) + size.to_bytes(8, 'big')
    )
    if not mask:
        return head + length + payload
    return head + bytes([length[0] | 0x80]) + length[1:] + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))


def handshake(daemon, session):
    wire = gb.Wire(daemon)
    wire.send(
        f'GET {session.path}/ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
    )
    status, headers, _ = wire.answer()
    assert status == 101 and headers['sec-websocket-accept'] == 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='
    return wire


PING = b'{"id":"1","type":"ping"}'
HOSTILE_FRAMES = {
    'not masked': frame(1, PING, mask=None),
    'reserved bit': frame(1, PING, rsv=4),
    'reserved opcode': frame(3, PING),
    'long ping': frame(9, b'x' * 126),
    'fragmented ping': frame(9, b'x', fin=False),
    'continuation of nothing': frame(0, PING),
    'invalid utf-8': frame(1, b'\xff\xfe'),
    'huge length': bytes([0x81, 0xFF]) + (1 << 62).to_bytes(8, 'big') + b'\1\2\3\4' + b'x',
    'top bit of length': bytes([0x81, 0xFF]) + b'\xff' * 8 + b'\1\2\3\4',
    'close with one byte': frame(8, b'x'),
    'close with bad code': frame(8, (1005).to_bytes(2, 'big')),
    'close with bad text': frame(8, (1000).to_bytes(2, 'big') + b'\xff'),
}


@pytest.mark.parametrize('kind', HOSTILE_FRAMES)
def test_hostile_frames_close_only_their_connection(daemon, session, kind):
    with handshake(daemon, session) as wire:
        wire.send(HOSTILE_FRAMES[kind])
        wire.socket.settimeout(30)
        data = b''
        try:
            while piece := wire.socket.recv(4096):
                data += piece
        except ConnectionResetError:
            pass
        assert data[:1] in (b'', b'\x88'), 'a close frame or nothing'
    assert session.value('1') == '1'


def test_fragmented_message_with_a_ping_in_between(daemon, session):
    with handshake(daemon, session) as wire:
        wire.send(
            frame(1, PING[:5], fin=False) + frame(9, b'hey') + frame(0, PING[5:12], fin=False) + frame(0, PING[12:])
        )
        text = b''
        while b'pong"' not in text:
            text += wire.socket.recv(4096)
        assert b'\x8a\x03hey' in text


def test_socket_bytes_one_at_a_time(daemon, session):
    with handshake(daemon, session) as wire:
        for byte in frame(1, PING):
            wire.send(bytes([byte]))
        text = b''
        while b'pong"' not in text:
            text += wire.socket.recv(4096)


def test_many_sockets_come_and_go(daemon, session):
    session.execute('1').ok()
    before = daemon.settled_fds()
    for _ in range(3):
        sockets = [session.socket() for _ in range(20)]
        for ws in sockets:
            ws.send('ping')
        for ws in sockets:
            assert ws.receive()['type'] == 'pong'
        for ws in sockets:
            ws.close()
    gb.wait_until(lambda: daemon.settled_fds() <= before, 'the descriptors are closed')


def test_sse_and_socket_say_the_same(session):
    code = 'for i in range(3): print(i)\ndisplay("d")\n"value"'
    by_sse = [d for _, d in session.events(code)][-1]
    with session.socket() as ws:
        by_socket = ws.execute(code)[-1]['observation']
    for seen in (by_sse, by_socket):
        for name in ('id', 'cell', 'usage'):
            seen.pop(name)
    assert by_sse == by_socket


def test_server_sends_signs_of_life_is_answered(session):
    """A client that pings at the protocol's level gets its pong."""
    with session.socket() as ws:

        async def ping():
            return await (await ws.ws.ping(b'hello'))

        ws._wait(ping())
