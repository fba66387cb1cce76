"""The Jupyter dialect: the Kernel Gateway's calls and messages, and the clients that use them."""

import asyncio
import contextlib
import json
import struct
import subprocess
import time
import uuid

import pytest
import requests

import gb

TOKEN = 'a-token-of-sixteen-letters'
V1 = 'v1.kernel.websocket.jupyter.org'


class Channels(gb.Socket):
    """A connection to a kernel's channels."""

    def __init__(self, url, kernel, query='', **kwargs):
        super().__init__(f'{url}/api/kernels/{kernel}/channels{query}'.replace('http:', 'ws:'), **kwargs)

    def request(self, type, content, channel='shell', header=None):
        id = uuid.uuid4().hex
        header = {'msg_id': id, 'username': 'anonymous', 'session': 's', 'msg_type': type, 'version': '5.0', **(header or {})}
        self.send_text(self.pack(header, content, channel))
        return id

    def pack(self, header, content, channel):
        return json.dumps({'header': header, 'parent_header': {}, 'metadata': {}, 'content': content, 'channel': channel})

    def unpack(self, message):
        return json.loads(message)

    def receive(self):
        return self.unpack(self._wait(self.ws.recv()))

    def about(self, id):
        """Messages whose parent is the request, up to the one that says idle."""
        messages = []
        while True:
            message = self.receive()
            assert message['header']['version'] and message['header']['date'] and message['header']['msg_id']
            if message['parent_header'].get('msg_id') != id:
                continue
            messages.append(message)
            if message['header']['msg_type'] == 'status' and message['content']['execution_state'] == 'idle':
                return messages

    def ask(self, type, content=None, channel='shell'):
        """The reply to a request."""
        messages = self.about(self.request(type, content or {}, channel))
        (reply,) = [m for m in messages if m['header']['msg_type'].endswith('_reply')]
        assert reply['channel'] == channel
        return reply['content']

    def execute(self, code, **fields):
        return self.about(self.request('execute_request', {'code': code, 'silent': False, 'store_history': True,
                                                           'user_expressions': {}, 'allow_stdin': False, **fields}))  # fmt: skip


class BinaryChannels(Channels):
    def __init__(self, url, kernel):
        super().__init__(url, kernel, subprotocols=[V1])
        assert self.ws.subprotocol == V1

    def pack(self, header, content, channel):
        parts = [channel.encode(), *(json.dumps(p).encode() for p in (header, {}, {}, content))]
        offsets = [8 * (len(parts) + 2)]
        for part in parts:
            offsets.append(offsets[-1] + len(part))
        return struct.pack(f'<{len(offsets) + 1}Q', len(offsets), *offsets) + b''.join(parts)

    def unpack(self, message):
        assert isinstance(message, bytes)
        (n,) = struct.unpack_from('<Q', message)
        offsets = struct.unpack_from(f'<{n}Q', message, 8)
        parts = [message[a:b] for a, b in zip(offsets, offsets[1:])]
        assert offsets[-1] == len(message)
        names = ('header', 'parent_header', 'metadata', 'content')
        return {'channel': parts[0].decode(), **{name: json.loads(part) for name, part in zip(names, parts[1:])}}


def kinds(messages):
    return [m['header']['msg_type'] for m in messages]


def contents(messages, kind):
    return [m['content'] for m in messages if m['header']['msg_type'] == kind]


@pytest.fixture
def kernel(api):
    answer = api.post('/api/kernels')
    assert answer.status_code == 201, answer.text
    yield answer.json()['id']
    api.delete(f'/api/kernels/{answer.json()["id"]}')


@pytest.fixture
def channels(daemon, kernel):
    with Channels(daemon.url, kernel) as channels:
        yield channels


# ---- calls ---------------------------------------------------------------------------------


def test_kernelspecs(api):
    specs = api.get('/api/kernelspecs').json()
    assert specs['default'] == 'python3' and set(specs['kernelspecs']) == {'python3'}
    assert api.get('/api/kernelspecs/python3').json() == specs['kernelspecs']['python3']
    assert specs['kernelspecs']['python3']['spec']['language'] == 'python'
    missing = api.get('/api/kernelspecs/julia')
    assert missing.status_code == 404 and missing.json()['reason'] == 'Not Found'
    assert api.get('/api').json()['version']


def test_life_of_a_kernel(api):
    before = api.metric('glovebox_sessions')
    started = api.post('/api/kernels', json={'name': 'python3', 'env': {'KERNEL_USERNAME': 'me'}})
    assert started.status_code == 201
    kernel = started.json()
    assert started.headers['Location'] == f'/api/kernels/{kernel["id"]}' and str(uuid.UUID(kernel['id'])) == kernel['id']
    assert set(kernel) == {'id', 'name', 'last_activity', 'execution_state', 'connections'} and kernel['name'] == 'python3'
    time.strptime(kernel['last_activity'].partition('.')[0], '%Y-%m-%dT%H:%M:%S')
    path = f'/api/kernels/{kernel["id"]}'
    assert kernel['id'] in [k['id'] for k in api.get('/api/kernels').json()]
    assert api.get(path).json()['id'] == kernel['id'] and api.metric('glovebox_sessions') == before + 1
    assert api.post(f'{path}/interrupt').status_code == 204
    assert api.post(f'{path}/restart', json={}).json()['id'] == kernel['id']
    assert api.delete(path).status_code == 204 and api.metric('glovebox_sessions') == before
    for answer in (api.get(path), api.delete(path), api.post(f'{path}/interrupt')):
        assert answer.status_code == 404 and kernel['id'] in answer.json()['message']


def test_a_kernel_whose_session_ended_is_gone(api):
    kernel = api.post('/api/kernels', json={'metadata': {'of': 'jupyter'}}).json()['id']
    (session,) = api.get('/v1/sessions?metadata.of=jupyter').json()['sessions']
    api.delete(f'/v1/sessions/{session["id"]}')
    assert api.get(f'/api/kernels/{kernel}').status_code == 404
    assert kernel not in [k['id'] for k in api.get('/api/kernels').json()]


def test_wrong_bodies(api):
    for body, status in (('{', 400), ('[]', 400), ('{"name": "julia"}', 400), ('{"env": 5}', 400)):
        assert api.post('/api/kernels', data=body).status_code == status, body


def test_tokens():
    with gb.running_daemon('--token', TOKEN, '--preload', 'none', '--ready', '1', token=TOKEN) as daemon:
        with gb.Api(daemon.url) as api:
            assert api.get('/api/kernelspecs').status_code == 401
            assert api.get('/api/kernelspecs?token=wrong-token-of-letters').status_code == 401
            assert api.get(f'/api/kernelspecs?token={TOKEN}').status_code == 200
            assert api.get('/api/kernelspecs', headers={'Authorization': f'token {TOKEN}'}).status_code == 200
            assert api.get(f'/v1/sessions?token={TOKEN}').status_code == 401, 'only where clients cannot do better'
            kernel = api.post(f'/api/kernels?token={TOKEN}').json()['id']
            with Channels(daemon.url, kernel, f'?token={TOKEN}') as channels:
                assert channels.ask('kernel_info_request')['status'] == 'ok'
            with pytest.raises(Exception, match='401'):
                Channels(daemon.url, kernel)
        gb.wait_until(lambda: '/channels?token=' in daemon.log(), 'the request is logged')
        assert TOKEN not in daemon.log().partition('ready after')[2]


def run_as_open_webui(url, code, token='', password=''):
    """The requests of Open WebUI's JupyterCodeExecuter, and what it makes of the answers: (stdout, stderr, result)."""
    with requests.Session() as session:
        params = {'token': token} if token else {}
        if password and not token:
            page = session.get(f'{url}/login', timeout=gb.PATIENCE)
            page.raise_for_status()
            secret = page.cookies['_xsrf']
            session.headers['X-XSRFToken'] = secret
            session.post(f'{url}/login', data={'_xsrf': secret, 'password': password}, timeout=gb.PATIENCE).raise_for_status()
        made = session.post(f'{url}/api/kernels', params=params, timeout=gb.PATIENCE)
        made.raise_for_status()
        kernel = made.json()['id']
        headers = {'Cookie': '; '.join(f'{c.name}={c.value}' for c in session.cookies), **session.headers} if password and not token else {}
        with Channels(url, kernel, f'?token={token}' if token else '', headers=headers) as channels:
            id = channels.request('execute_request', {'code': code, 'silent': False, 'store_history': True, 'user_expressions': {}, 'allow_stdin': False, 'stop_on_error': True}, header={'date': '', 'version': '5.3', 'username': 'user'})
            streams, result = {'stdout': '', 'stderr': ''}, []
            while True:
                message = channels.receive()
                if message['parent_header'].get('msg_id') != id:
                    continue
                kind, content = message.get('msg_type'), message['content']
                if kind == 'stream':
                    streams[content['name']] += content['text']
                elif kind in ('execute_result', 'display_data'):
                    result.append('picture' if 'image/png' in content['data'] else content['data']['text/plain'])
                elif kind == 'error':
                    streams['stderr'] += '\n'.join(content['traceback'])
                elif kind == 'status' and content['execution_state'] == 'idle':
                    break
        session.delete(f'{url}/api/kernels/{kernel}', params=params, timeout=gb.PATIENCE).raise_for_status()
        return streams['stdout'].strip(), streams['stderr'].strip(), '\n'.join(result)


def test_open_webui():
    with gb.running_daemon('--token', TOKEN, '--ready', '1', token=TOKEN) as daemon:
        code = 'import matplotlib.pyplot as plt\nprint("said")\nplt.plot([1, 2])\nplt.show()\n6 * 7'
        for how in ({'token': TOKEN}, {'password': TOKEN}):
            assert run_as_open_webui(daemon.url, code, **how) == ('said', '', 'picture\n42')
            assert 'ZeroDivisionError' in run_as_open_webui(daemon.url, '1 / 0', **how)[1]
        for how in ({}, {'token': 'wrong-token-of-letters'}, {'password': 'wrong-token-of-letters'}, {'password': 'x' * 9000}):
            with pytest.raises(requests.HTTPError):
                run_as_open_webui(daemon.url, '1', **how)


def test_the_cookies_of_a_login_count_together_with_their_header():
    with gb.running_daemon('--token', TOKEN, '--preload', 'none', '--ready', '1', token=TOKEN) as daemon, requests.Session() as session:
        secret = session.get(f'{daemon.url}/login', timeout=gb.PATIENCE).cookies['_xsrf']
        assert session.post(f'{daemon.url}/login', data={'password': TOKEN}, timeout=gb.PATIENCE).status_code == 204
        assert all(c.has_nonstandard_attr('HttpOnly') for c in session.cookies)

        def status(path, **headers):
            return session.get(daemon.url + path, headers=headers, timeout=gb.PATIENCE).status_code

        assert status('/api/kernels', **{'X-XSRFToken': secret}) == 200
        assert status('/api/kernels') == status('/api/kernels', **{'X-XSRFToken': secret[::-1]}) == 401
        assert status('/v1/sessions', **{'X-XSRFToken': secret}) == 401, 'only in calls of Jupyter'
        for wrong in ('zz', '6', '00', 'ff' * 5000):
            headers = {'X-XSRFToken': secret, 'Cookie': f'_xsrf={secret}; glovebox_login={wrong}'}
            assert requests.get(f'{daemon.url}/api/kernels', headers=headers, timeout=gb.PATIENCE).status_code == 401
        for body in ('', 'password=', 'password=%ff', 'password', b'\0', 'password=a%00b', 'x' * 100000):
            assert requests.post(f'{daemon.url}/login', data=body, timeout=gb.PATIENCE).status_code in (400, 401), body


# ---- messages ----------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', [Channels, BinaryChannels])
def test_order_of_messages(daemon, kernel, kind):
    with kind(daemon.url, kernel) as channels:
        messages = channels.execute('import sys\nprint("out")\nprint("err", file=sys.stderr)\n6 * 7')
        assert kinds(messages)[:2] == ['status', 'execute_input'] and kinds(messages)[-2:] == ['execute_reply', 'status']
        assert contents(messages, 'status') == [{'execution_state': 'busy'}, {'execution_state': 'idle'}]
        assert contents(messages, 'execute_input')[0]['execution_count'] == 1
        assert sorted((c['name'], c['text']) for c in contents(messages, 'stream')) == [('stderr', 'err\n'), ('stdout', 'out\n')]
        (result,) = contents(messages, 'execute_result')
        assert result['data']['text/plain'] == '42' and result['execution_count'] == 1 and result['metadata'] == {}
        (reply,) = contents(messages, 'execute_reply')
        assert reply['status'] == 'ok' and reply['execution_count'] == 1 and reply['user_expressions'] == {}
        assert {m['channel'] for m in messages} == {'shell', 'iopub'}
        assert contents(channels.execute('1'), 'execute_reply')[0]['execution_count'] == 2


def test_errors(channels):
    messages = channels.execute('print("kept")\n1 / 0')
    (error,) = contents(messages, 'error')
    assert error['ename'] == 'ZeroDivisionError' and error['evalue'] == 'division by zero'
    assert error['traceback'][0].startswith('Traceback') and error['traceback'][-1] == 'ZeroDivisionError: division by zero'
    (reply,) = contents(messages, 'execute_reply')
    assert reply['status'] == 'error' and reply['ename'] == 'ZeroDivisionError'
    assert contents(messages, 'stream')[0]['text'] == 'kept\n'


def test_displays(science_daemon):
    with science_daemon.api() as api:
        kernel = api.post('/api/kernels').json()['id']
        with Channels(science_daemon.url, kernel) as channels:
            messages = channels.execute('import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])')
            assert any('image/png' in c['data'] and c['transient'] == {} for c in contents(messages, 'display_data'))
        api.delete(f'/api/kernels/{kernel}')


def test_silent_cells(channels):
    messages = channels.execute('x = 1\nx', silent=True)
    assert kinds(messages) == ['status', 'execute_reply', 'status']
    assert contents(channels.execute('x'), 'execute_result')[0]['execution_count'] == 1


def test_input_is_refused_clearly(channels):
    (error,) = contents(channels.execute('input("name? ")'), 'error')
    assert 'stdin' in error['evalue'] or 'input' in error['evalue']


def answer_inputs(channels, code, *lines):
    """Executes code whose input() the lines answer: (the requests' contents, messages about the cell)"""
    id = channels.request('execute_request', {'code': code, 'allow_stdin': True})
    asked, messages = [], []
    while not messages or messages[-1]['content'].get('execution_state') != 'idle':
        message = channels.receive()
        assert message['parent_header']['msg_id'] == id
        if message['header']['msg_type'] == 'input_request':
            assert message['channel'] == 'stdin'
            channels.request('input_reply', {'status': 'ok', 'value': lines[len(asked)]}, 'stdin')
            asked.append(message['content'])
        else:
            messages.append(message)
    return asked, messages


def test_input_is_asked_of_the_client(channels):
    code = 'import getpass\nprint("first")\na = input("name? ")\nb = getpass.getpass("secret: ")\nprint(a, b)\ninput()'
    asked, messages = answer_inputs(channels, code, 'Ann', 'pw', 'ü')
    assert asked == [{'prompt': 'name? ', 'password': False}, {'prompt': 'secret: ', 'password': True}, {'prompt': '', 'password': False}]
    assert ''.join(c['text'] for c in contents(messages, 'stream')) == 'first\nAnn pw\n'
    assert contents(messages, 'execute_result')[0]['data']['text/plain'] == "'ü'"
    (error,) = contents(channels.execute('input("name? ")'), 'error')
    assert error['ename'] == 'EOFError', 'this request does not allow it'


def test_input_of_threads_is_asked_one_after_the_other(channels):
    code = 'from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(3) as pool:\n    found = list(pool.map(input, "abc"))\nsorted(found)'
    asked, messages = answer_inputs(channels, code, '1', '2', '3')
    assert sorted(a['prompt'] for a in asked) == ['a', 'b', 'c'] and contents(messages, 'execute_result')[0]['data']['text/plain'] == "['1', '2', '3']"


def test_input_is_interrupted(api, kernel, channels):
    id = channels.request('execute_request', {'code': 'input("?")', 'allow_stdin': True})
    while channels.receive()['header']['msg_type'] != 'input_request':
        pass
    api.post(f'/api/kernels/{kernel}/interrupt')
    assert contents(channels.about(id), 'error')[0]['ename'] == 'KeyboardInterrupt'
    channels.request('input_reply', {'value': 'late'}, 'stdin')
    assert answer_inputs(channels, 'input("?")', 'new')[0] == [{'prompt': '?', 'password': False}]


def test_input_of_a_client_that_left(daemon, kernel, channels):
    with Channels(daemon.url, kernel) as other:
        other.request('execute_request', {'code': 'try:\n    input("?")\nexcept EOFError as e:\n    print(e)', 'allow_stdin': True})
        while other.receive()['header']['msg_type'] != 'input_request':
            pass
    while (message := channels.receive())['header']['msg_type'] != 'stream':
        pass
    assert 'disconnected' in message['content']['text']


def test_small_requests(channels):
    info = channels.ask('kernel_info_request')
    assert info['protocol_version'] == '5.3' and info['language_info']['name'] == 'python'
    python = contents(channels.execute('import platform\nplatform.python_version()'), 'execute_result')[0]['data']['text/plain']
    assert info['language_info']['version'] == python.strip("'")
    assert channels.ask('is_complete_request', {'code': 'x = 1'})['status'] == 'complete'
    assert channels.ask('is_complete_request', {'code': 'def f():'})['status'] == 'incomplete'
    assert channels.ask('is_complete_request', {'code': 'x = )'})['status'] == 'invalid'
    assert channels.ask('is_complete_request', {'code': '!ls'})['status'] == 'complete'
    assert channels.ask('comm_info_request')['comms'] == {}


def test_completion_and_inspection(channels):
    channels.execute('value_of_mine = 1\ndef f(a, b=2):\n    "Doc of f."')
    found = channels.ask('complete_request', {'code': 'x = value_of', 'cursor_pos': 12})
    assert found['matches'] == ['value_of_mine'] and (found['cursor_start'], found['cursor_end']) == (4, 12)
    channels.execute('list_of_mine = []')
    found = channels.ask('complete_request', {'code': 'list_of_mine.app', 'cursor_pos': 16})
    assert found['status'] == 'ok' and found['matches'] == ['append'], found
    found = channels.ask('complete_request', {'code': '[].app', 'cursor_pos': 6})
    assert found['status'] == 'ok' and found['matches'] == [], 'the value of an expression is not computed'
    assert channels.ask('complete_request', {'code': 'zzz', 'cursor_pos': 3})['matches'] == []
    seen = channels.ask('inspect_request', {'code': 'f(', 'cursor_pos': 1, 'detail_level': 0})
    assert seen['found'] and 'Doc of f.' in seen['data']['text/plain'] and '(a, b=2)' in seen['data']['text/plain']
    assert channels.ask('inspect_request', {'code': 'nothing', 'cursor_pos': 1})['found'] is False


def test_history(channels):
    for code in ('a = 1', 'b = 2', 'a + b'):
        channels.execute(code)
    channels.execute('hidden = 1', silent=True)
    channels.execute('not_kept = 1', store_history=False)

    def history(**content):
        return [tuple(entry[1:]) for entry in channels.ask('history_request', {'output': False, 'raw': True, **content})['history']]

    assert history(hist_access_type='tail', n=2) == [(2, 'b = 2'), (3, 'a + b')]
    assert history(hist_access_type='range', session=0, start=1, stop=3) == [(1, 'a = 1'), (2, 'b = 2')]
    assert history(hist_access_type='search', pattern='*b*', n=10) == [(2, 'b = 2'), (3, 'a + b')]
    channels.execute('b = 2')
    assert history(hist_access_type='search', pattern='*=*', n=2) == [(2, 'b = 2'), (5, 'b = 2')], 'the last of them'
    assert history(hist_access_type='search', pattern='b = ?', unique=True) == [(5, 'b = 2')]
    for pattern in ('*a' * 60 + 'x', '*' * 5000, 'b', ''):
        assert history(hist_access_type='search', pattern=pattern) == []
    assert history(hist_access_type='tail', n=1, output=True) == [(5, ['b = 2', None])]


def test_comms_are_answered(channels):
    id = channels.request('comm_open', {'comm_id': 'c1', 'target_name': 'nothing', 'data': {}})
    messages = channels.about(id)
    assert [m['content']['comm_id'] for m in messages if m['header']['msg_type'] == 'comm_close'] == ['c1']
    channels.about(channels.request('comm_msg', {'comm_id': 'c1', 'data': {}}))


def test_media_types_by_ipykernels_rules(channels):
    assert contents(channels.execute('[1, 2]'), 'execute_result')[0]['data'] == {'text/plain': '[1, 2]'}
    assert contents(channels.execute('float("nan")'), 'execute_result')[0]['data'] == {'text/plain': 'nan'}
    code = 'class J:\n    def _repr_json_(self):\n        return {"a": 1}\nJ()'
    assert contents(channels.execute(code), 'execute_result')[0]['data']['application/json'] == {'a': 1}


def test_displays_are_updated_and_cleared(channels):
    messages = channels.execute('h = display("one", display_id="d")\nh.update("two")\nh.display("three")')
    shown = contents(messages, 'display_data')
    assert [s['transient'] for s in shown] == [{'display_id': 'd'}, {'display_id': 'd'}]
    (update,) = contents(messages, 'update_display_data')
    assert update['transient'] == {'display_id': 'd'} and update['data'] == {'text/plain': "'two'"}
    messages = channels.execute('display("gone")\ndisplay("new", clear=True)')
    assert contents(messages, 'clear_output') == [{'wait': True}]


def test_interrupts(api, kernel, channels):
    for interrupt in (lambda: api.post(f'/api/kernels/{kernel}/interrupt'),
                      lambda: channels.request('interrupt_request', {}, 'control')):  # fmt: skip
        id = channels.request('execute_request', {'code': 'while True: pass'})
        gb.wait_until(lambda: api.get(f'/api/kernels/{kernel}').json()['execution_state'] == 'busy', 'the cell runs')
        interrupt()
        (error,) = contents(channels.about(id), 'error')
        assert error['ename'] == 'KeyboardInterrupt'
    assert contents(channels.execute('1 + 1'), 'execute_result')


def test_restart_forgets(api, kernel, channels):
    channels.execute('x = 1')
    assert api.post(f'/api/kernels/{kernel}/restart').status_code == 200
    messages = channels.execute('x')
    assert contents(messages, 'error')[0]['ename'] == 'NameError'
    assert contents(messages, 'execute_input')[0]['execution_count'] == 1


def test_shutdown_request_ends_the_kernel(daemon, api):
    kernel = api.post('/api/kernels').json()['id']
    with Channels(daemon.url, kernel) as channels:
        assert channels.ask('shutdown_request', {'restart': False}, 'control') == {'status': 'ok', 'restart': False}
        channels._wait(channels.ws.wait_closed())
    assert api.get(f'/api/kernels/{kernel}').status_code == 404


def test_an_error_aborts_what_waits(channels):
    first = channels.request('execute_request', {'code': 'import time; time.sleep(2); 1 / 0'})
    second = channels.request('execute_request', {'code': 'ran = True'})
    third = channels.request('execute_request', {'code': 'ran = 3', 'stop_on_error': False})
    assert contents(channels.about(first), 'execute_reply')[0]['status'] == 'error'
    assert contents(channels.about(second), 'execute_reply')[0]['status'] == 'aborted'
    assert contents(channels.about(third), 'execute_reply')[0]['status'] == 'ok'
    assert contents(channels.execute('ran'), 'execute_result')[0]['data']['text/plain'] == '3'


def test_all_connections_hear_the_output_and_the_asker_the_reply(daemon, kernel, channels):
    with Channels(daemon.url, kernel) as other:
        id = channels.request('execute_request', {'code': 'print("hi")'})
        assert kinds(other.about(id)) == ['status', 'execute_input', 'stream', 'status']
        assert 'execute_reply' in kinds(channels.about(id))


def test_a_cell_outlives_its_connection(daemon, api, kernel):
    with Channels(daemon.url, kernel) as channels:
        channels.request('execute_request', {'code': 'import time; time.sleep(0.3); x = 5'})
    with Channels(daemon.url, kernel) as again:
        assert contents(again.execute('x'), 'execute_result')[0]['data']['text/plain'] == '5'
        assert api.get(f'/api/kernels/{kernel}').json()['connections'] == 1


def test_what_is_no_message_ends_the_connection(daemon, kernel):
    for text in ('nonsense', '{}', '{"header": {"msg_type": "x"}, "content": {}}'):
        with Channels(daemon.url, kernel) as channels:
            channels.send_text(text)
            channels._wait(channels.ws.wait_closed())
            assert channels.ws.close_code == 1007
    with Channels(daemon.url, kernel) as channels:
        channels.request('execute_request', {'code': '1'}, header={'much': 'x' * 5000})
        channels._wait(channels.ws.wait_closed())
        assert channels.ws.close_code == 1008


def test_code_that_cannot_be_run(channels):
    for code in (None, 5, 'a\0b'):
        messages = channels.about(channels.request('execute_request', {'code': code}))
        assert contents(messages, 'execute_reply')[0]['status'] == 'error'


def test_the_drain_waits_for_a_cell():
    with gb.running_daemon('--preload', 'none', '--ready', '1') as daemon, daemon.api() as api:
        kernel = api.post('/api/kernels').json()['id']
        with Channels(daemon.url, kernel) as channels:
            id = channels.request('execute_request', {'code': 'import time; time.sleep(4); print("done")'})
            gb.wait_until(lambda: api.metric('glovebox_cells_running') == 1, 'the cell runs')
            assert daemon.terminate() == 0
            assert ''.join(c['text'] for c in contents(channels.about(id), 'stream')) == 'done\n'


# ---- smolagents' remote executors ------------------------------------------------------------------


def run_as_smolagents(url, kernel, token, code):
    """What its Docker, Modal and Blaxel executors do: a connection per call, read up to idle. (output, logs, final)"""
    with Channels(url, kernel, f'?token={token}') as channels:
        outputs, result, final = [], None, False
        for message in channels.execute(code):
            kind, content = message['msg_type'], message['content']
            if kind == 'stream':
                outputs.append(content['text'])
            elif kind == 'execute_result':
                result = content['data'].get('text/plain')
            elif kind == 'error' and content['ename'] == 'FinalAnswerException':
                assert content['evalue'].startswith('safe:')
                result, final = json.loads(content['evalue'][5:]), True
            elif kind == 'error':
                raise RuntimeError('\n'.join(content['traceback']))
        return result, ''.join(outputs), final


FINAL_ANSWER_TOOL = """
from typing import Any
class Tool:
    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
class FinalAnswerTool(Tool):
    name = "final_answer"
    def _forward(self, answer: Any) -> Any:
        return answer
    def forward(self, *args, **kwargs) -> Any:
        import json
        class FinalAnswerException(BaseException):
            def __init__(self, value):
                self.value = value
        raise FinalAnswerException("safe:" + json.dumps(self._forward(*args, **kwargs)))
final_answer = FinalAnswerTool()
"""


def test_smolagents_conventions(daemon, api):
    assert api.get('/api/kernelspecs?token=unused').status_code == 200
    answer = api.post('/api/kernels?token=unused')
    assert answer.status_code == 201
    kernel = answer.json()['id']

    def run(code):
        return run_as_smolagents(daemon.url, kernel, 'unused', code)

    assert run('import collections, datetime, itertools, math, queue, random, re, stat, statistics, time, unicodedata')[0] is None
    assert 'already satisfied' in run('!pip install requests')[1]
    run(FINAL_ANSWER_TOOL)
    run('vars_dict = {"number": 20}\nlocals().update(vars_dict)')
    assert run('print("thinking")\nnumber * 2') == ('40', 'thinking\n', False)
    assert run('print("almost")\nfinal_answer({"total": number + 1})') == ({'total': 21}, 'almost\n', True)
    large = 'x' * 300_000
    assert run('final_answer("x" * 300_000)') == (large, '', True), 'an answer is never cut'
    with pytest.raises(RuntimeError, match='NameError'):
        run('nowhere')
    api.delete(f'/api/kernels/{kernel}')


# ---- Jupyter's own gateway client --------------------------------------------------------------------


@pytest.fixture
def gateway(daemon):
    """jupyter_server's client of a kernel gateway, pointed at the daemon."""
    from jupyter_server.gateway.gateway_client import GatewayClient

    GatewayClient.clear_instance()
    client = GatewayClient.instance()
    client.url = daemon.url
    yield client
    GatewayClient.clear_instance()


def test_the_real_gateway_client(gateway, api):
    from jupyter_server.gateway.managers import GatewayKernelManager

    async def run(client, code):
        """(the reply's content, what was published about the request)"""
        id, told = client.execute(code), []
        while not told or told[-1]['content'].get('execution_state') != 'idle':
            message = await client.get_iopub_msg(timeout=gb.PATIENCE)
            if message['parent_header'].get('msg_id') == id:
                told.append(message)
        while True:
            reply = await client.get_shell_msg(timeout=gb.PATIENCE)
            if reply['parent_header'].get('msg_id') == id:
                return reply['content'], told

    async def use():
        manager = GatewayKernelManager()
        await manager.start_kernel(kernel_name='python3')
        assert await manager.is_alive()
        client = manager.client()
        await client.start_channels()
        try:
            await client.wait_for_ready(timeout=gb.PATIENCE)
            reply, told = await run(client, 'print("from a gateway")\n6 * 7')
            assert reply['status'] == 'ok'
            assert contents(told, 'stream')[0]['text'] == 'from a gateway\n'
            assert contents(told, 'execute_result')[0]['data']['text/plain'] == '42'
            await manager.restart_kernel()
            reply, told = await run(client, '1 / 0')
            assert reply['ename'] == 'ZeroDivisionError' and 'error' in kinds(told)
            await manager.interrupt_kernel()
        finally:
            client.stop_channels()
        kernel = manager.kernel_id
        await manager.shutdown_kernel()
        return kernel

    kernel = asyncio.new_event_loop().run_until_complete(asyncio.wait_for(use(), 2 * gb.PATIENCE))
    assert api.get(f'/api/kernels/{kernel}').status_code == 404


def test_the_real_gateway_client_lists_kernel_specs(gateway):
    from jupyter_server.gateway.managers import GatewayKernelSpecManager
    from traitlets.config import Configurable

    class Server(Configurable):
        base_url = '/'

    async def use():
        specs = GatewayKernelSpecManager(parent=Server())
        listed = await specs.list_kernel_specs()
        one = await specs.get_kernel_spec('python3')
        with contextlib.suppress(KeyError):
            await specs.get_kernel_spec('julia')
            raise AssertionError('there is no such kernel')
        return listed, one

    listed, one = asyncio.new_event_loop().run_until_complete(asyncio.wait_for(use(), gb.PATIENCE))
    assert listed['kernelspecs']['python3'] == one


NOTEBOOK = {
    '%matplotlib inline\nimport pandas as pd\nimport matplotlib.pyplot as plt': [],
    'frame = pd.DataFrame({"a": [1, 2]})\nframe': ['text/html'],
    'plt.plot([1, 2]);': ['image/png'],
    'said = !echo hi\nprint(said)': ['stream'],
    'import asyncio\nawait asyncio.sleep(0)\n5': ['text/plain'],
    'from IPython.display import HTML, display\ndisplay(HTML("<b>x</b>"))': ['text/html'],
    '%%time\nsum(range(9))': ['stream', 'text/plain'],
    '1 / 0': ['ZeroDivisionError'],
    '"after"': ['text/plain'],
}


def test_nbconvert_executes_a_notebook(daemon, tmp_path):
    import nbformat

    cells = [nbformat.v4.new_code_cell(source) for source in NOTEBOOK]
    kernel = {'kernelspec': {'name': 'python3', 'display_name': 'Python 3', 'language': 'python'}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), tmp_path / 'in.ipynb')
    manager = '--ExecutePreprocessor.kernel_manager_class=jupyter_server.gateway.managers.GatewayKernelManager'
    argv = [gb.PYTHON, '-m', 'nbconvert', '--to', 'notebook', '--execute', '--allow-errors', manager, '--output', 'out.ipynb', 'in.ipynb']
    done = subprocess.run(argv, cwd=tmp_path, env=gb.clean_env(JUPYTER_GATEWAY_URL=daemon.url, HOME=tmp_path), capture_output=True, text=True, timeout=gb.PATIENCE)
    assert done.returncode == 0, done.stderr
    for cell, expected in zip(nbformat.read(tmp_path / 'out.ipynb', 4).cells, NOTEBOOK.values()):
        shown = [o.get('ename') or ('stream' if o.output_type == 'stream' else o.data) for o in cell.outputs]
        assert len(shown) == len(expected) and all(e == s or e in s for e, s in zip(expected, shown)), (cell.source, cell.outputs)
