"""MCP: both eras over HTTP and stdio, the tools, progress, cancellation, leases, and wrong input."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

import pytest
import requests

import gb

META = 'io.modelcontextprotocol/'
BOTH = 'application/json, text/event-stream'
TOKENS = ('first-token-of-the-tests', 'other-token-of-the-tests')


@pytest.fixture(scope='module')
def server():
    with gb.running_daemon() as d:
        yield d


def post(server, message, headers=None, **kwargs):
    body = message if isinstance(message, (bytes, str)) else json.dumps(message)
    return requests.post(f'{server.url}/mcp', data=body, headers={'Accept': BOTH, 'Content-Type': 'application/json', **(headers or {})}, timeout=gb.PATIENCE, **kwargs)


def messages(answer):
    """All JSON-RPC messages of an answer, whichever form it has."""
    if answer.headers['Content-Type'].startswith('application/json'):
        return [answer.json()]
    return [json.loads(line[6:]) for line in answer.text.split('\n') if line.startswith('data: ')]


def call(server, tool, meta=None, headers=None, **arguments):
    """The result of a tool in the legacy era."""
    params = {'name': tool, 'arguments': arguments}
    if meta:
        params['_meta'] = meta
    answer = post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': params}, headers)
    assert answer.status_code == 200, answer.text
    return messages(answer)[-1]['result']


def modern(method, params=None, **meta):
    meta = {META + 'protocolVersion': '2026-07-28', META + 'clientCapabilities': {}, **meta}
    return {'jsonrpc': '2.0', 'id': 'a', 'method': method, 'params': {**(params or {}), '_meta': meta}}


def modern_headers(message, **changed):
    params = message['params']
    name = params.get('name') or params.get('uri') or params.get('taskId')
    headers = {'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': message['method']}
    if name:
        headers['Mcp-Name'] = name
    headers.update(changed)
    return {k: v for k, v in headers.items() if v is not None}


def text_of(result):
    return result['content'][0]['text']


# ---- the handshake -----------------------------------------------------------------------


@pytest.mark.parametrize('asked,given', [('2025-11-25', '2025-11-25'), ('2025-06-18', '2025-06-18'), ('2025-03-26', '2025-03-26'), ('1999-01-01', '2025-11-25')])
def test_initialize_negotiates_a_legacy_version(server, asked, given):
    answer = post(server, {'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {'protocolVersion': asked, 'capabilities': {}, 'clientInfo': {'name': 't', 'version': '1'}}})
    result = answer.json()['result']
    assert result['protocolVersion'] == given
    assert result['serverInfo']['name'] == 'glovebox'
    assert 'tools' in result['capabilities']
    assert len(answer.headers['Mcp-Session-Id']) == 32


def test_a_client_is_forgotten_by_delete(server):
    id = post(server, {'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {}}).headers['Mcp-Session-Id']
    headers = {'Mcp-Session-Id': id}
    assert post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}, headers).json()['result'] == {}
    assert requests.delete(f'{server.url}/mcp', headers=headers, timeout=gb.PATIENCE).status_code == 204
    assert post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}, headers).status_code == 404
    assert requests.delete(f'{server.url}/mcp', headers=headers, timeout=gb.PATIENCE).status_code == 404


def test_get_is_not_allowed(server):
    assert requests.get(f'{server.url}/mcp', headers={'Accept': 'text/event-stream'}, timeout=gb.PATIENCE).status_code == 405


def test_notifications_have_no_answer(server):
    answer = post(server, {'jsonrpc': '2.0', 'method': 'notifications/initialized'})
    assert (answer.status_code, answer.content) == (202, b'')


def test_openenv_still_has_its_json_rpc(server):
    answer = requests.post(f'{server.url}/mcp', json={}, timeout=gb.PATIENCE)
    assert answer.status_code == 200 and answer.json()['jsonrpc'] == '2.0'
    made = requests.post(f'{server.url}/mcp', json={'jsonrpc': '2.0', 'id': 1, 'method': 'openenv/session/create'}, timeout=gb.PATIENCE).json()
    assert made['result']['session_id']


def test_a_batch_of_the_oldest_revision(server):
    answer = post(server, [{'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}, {'jsonrpc': '2.0', 'method': 'notifications/initialized'}, {'jsonrpc': '2.0', 'id': 2, 'method': 'nothing'}])
    first, second = answer.json()
    assert first == {'jsonrpc': '2.0', 'id': 1, 'result': {}}
    assert second['id'] == 2 and second['error']['code'] == -32601


def test_a_batch_whose_answer_becomes_a_stream(server):
    code = 'import time\nfor i in range(4):\n    print(i)\n    time.sleep(0.15)'
    run = {'jsonrpc': '2.0', 'id': 2, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': code}, '_meta': {'progressToken': 1}}}
    answer = post(server, [{'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}, run])
    first, *rest = messages(answer)
    assert first == [{'jsonrpc': '2.0', 'id': 1, 'result': {}}]
    assert rest[-1]['id'] == 2 and rest[-1]['result']['structuredContent']['stdout'] == '0\n1\n2\n3\n'
    assert post(server, [{'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}] * 9).json()['error']['code'] == -32600


# ---- the modern era ------------------------------------------------------------------------


def test_discover(server):
    message = modern('server/discover')
    answer = post(server, message, modern_headers(message))
    result = answer.json()['result']
    assert result['resultType'] == 'complete' and result['supportedVersions'] == ['2026-07-28']
    assert {'capabilities', 'ttlMs', 'cacheScope', 'instructions'} <= set(result)
    assert result['_meta'][META + 'serverInfo']['name'] == 'glovebox'
    assert 'Mcp-Session-Id' not in answer.headers


@pytest.mark.parametrize('changed', [{'MCP-Protocol-Version': None}, {'MCP-Protocol-Version': '2025-06-18'}, {'Mcp-Method': None}, {'Mcp-Method': 'ping'}, {'Mcp-Name': 'other'}, {'Mcp-Name': None}])
def test_headers_must_equal_the_body(server, changed):
    message = modern('tools/call', {'name': 'run_python', 'arguments': {'code': '1'}})
    answer = post(server, message, modern_headers(message, **changed))
    assert answer.status_code == 400
    assert answer.json()['error']['code'] == -32020 and answer.json()['id'] == 'a'


def test_a_name_may_come_in_base64(server):
    message = modern('tools/call', {'name': 'run_python', 'arguments': {'code': '1'}})
    coded = '=?base64?' + base64.b64encode(b'run_python').decode() + '?='
    assert post(server, message, modern_headers(message, **{'Mcp-Name': coded})).json()['result']['isError'] is False


def test_errors_of_the_modern_era(server):
    def error(message, status, code):
        answer = post(server, message, modern_headers(message, **{'MCP-Protocol-Version': message['params']['_meta'].get(META + 'protocolVersion')}))
        assert (answer.status_code, answer.json()['error']['code']) == (status, code), answer.text
        return answer.json()['error']

    unknown = modern('tools/list', **{META + 'protocolVersion': '2031-01-01'})
    assert error(unknown, 400, -32022)['data'] == {'supported': ['2026-07-28'], 'requested': '2031-01-01'}
    error(modern('nothing/such'), 404, -32601)
    error(modern('initialize'), 404, -32601)
    error(modern('tools/call', {'name': 'nope', 'arguments': {}}), 200, -32602)
    error(modern('tools/list', {'cursor': 'x'}), 200, -32602)
    error(modern('resources/read', {'uri': 'file:///etc/passwd'}), 200, -32602)
    without = modern('tools/list')
    del without['params']['_meta'][META + 'clientCapabilities']
    error(without, 400, -32602)


def test_a_task(server):
    meta = {META + 'clientCapabilities': {'extensions': {META + 'tasks': {}}}}
    message = modern('tools/call', {'name': 'run_python', 'arguments': {'code': 'import time\ntime.sleep(0.3)\n"done"', 'detach': True}}, **meta)
    task = post(server, message, modern_headers(message)).json()['result']
    assert task['resultType'] == 'task' and task['status'] == 'working'

    def look():
        ask = modern('tasks/get', {'taskId': task['taskId']})
        return post(server, ask, modern_headers(ask)).json()['result']

    gb.wait_until(lambda: look()['status'] == 'completed', 'the task')
    assert look()['result']['structuredContent']['result'] == "'done'"
    s = call(server, 'run_python', code='1')['structuredContent']['session_id']
    message['params']['arguments'] = {'code': 'import time\ntime.sleep(60)', 'detach': True, 'session_id': s}
    task = post(server, message, modern_headers(message)).json()['result']
    stop = modern('tasks/cancel', {'taskId': task['taskId']})
    assert post(server, stop, modern_headers(stop)).json()['result']['resultType'] == 'complete'
    assert look()['status'] == 'cancelled'
    gb.wait_until(lambda: not busy(server, s), 'the interrupt')
    other = modern('tasks/get', {'taskId': 'x' * 32})
    assert post(server, other, modern_headers(other)).json()['error']['code'] == -32602


def test_the_tasks_of_a_token_are_bounded(server):
    meta = {META + 'clientCapabilities': {'extensions': {META + 'tasks': {}}}}
    s = call(server, 'run_python', code='1')['structuredContent']['session_id']
    tasks = []
    for _ in range(40):
        message = modern('tools/call', {'name': 'run_python', 'arguments': {'code': '1', 'detach': True, 'session_id': s}}, **meta)
        answer = post(server, message, modern_headers(message)).json()['result']
        if answer.get('taskId'):
            tasks.append(answer['taskId'])
        gb.wait_until(lambda: not busy(server, s), 'the cell')
    known = 0
    for task in tasks:
        ask = modern('tasks/get', {'taskId': task})
        known += 'result' in post(server, ask, modern_headers(ask)).json()
    assert 0 < known <= 32


# ---- wrong input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'body,status,code',
    [
        (b'{', 400, -32700),
        (b'\xff\xfe', 400, -32700),
        (b'[]', 400, -32600),
        (b'"text"', 400, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}', 200, -32602),
    ],
)
def test_bad_input_is_a_json_rpc_error(server, body, status, code):
    answer = post(server, body)
    assert (answer.status_code, answer.json()['error']['code']) == (status, code), answer.text


def test_an_unknown_version_header_is_refused(server):
    assert post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}, {'MCP-Protocol-Version': '1.0'}).status_code == 400


@pytest.mark.parametrize(
    'tool,arguments,words',
    [
        ('run_python', {}, '$.code'),
        ('run_python', {'code': 1}, '$.code'),
        ('run_python', {'code': '1', 'sesion_id': 'x'}, 'session_id'),
        ('run_python', {'code': '1', 'timeout_s': 1e9}, '$.timeout_s'),
        ('run_python', {'code': '1', 'session_id': 's_' + 'a' * 26}, 'Leave session_id out'),
        ('run_python', {'code': '1', 'packages': ['x"; import os']}, 'packages'),
        ('run_python', {'code': '1', 'detach': True}, 'detach'),
        ('read_file', {'path': 'a'}, '$.session_id'),
        ('write_file', {'path': '../a', 'content': 'x'}, '..'),
        ('write_file', {'path': 'a', 'content': '!', 'encoding': 'base64'}, 'base64'),
        ('computer', {'action': 'left_click'}, '$.session_id'),
    ],
)
def test_wrong_arguments_say_how_to_repair_the_call(server, tool, arguments, words):
    result = call(server, tool, **arguments)
    assert result['isError'] is True
    assert words in text_of(result)
    assert result['structuredContent']['error']['message']


# ---- tools ------------------------------------------------------------------------------------------


def test_the_schemas_are_plain(server):
    tools = post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}).json()['result']['tools']
    assert [t['name'] for t in tools] == ['run_python', 'run_shell', 'write_file', 'read_file', 'list_files', 'rollback', 'fork_session', 'close_session', 'screenshot', 'computer']
    for tool in tools:
        schema = tool['inputSchema']
        assert schema['type'] == 'object' and schema['additionalProperties'] is False
        assert not {'oneOf', 'anyOf', 'allOf'} & set(schema)
        assert len(tool['description']) <= 800
        assert tool['outputSchema']['required'] == ['error']
    hints = {t['name']: t['annotations'] for t in tools}
    assert hints['read_file']['readOnlyHint'] and hints['list_files']['readOnlyHint'] and not hints['run_python']['readOnlyHint']
    assert hints['close_session']['destructiveHint'] and not hints['run_python']['openWorldHint']


def test_state_is_kept_by_session_id(server):
    first = call(server, 'run_python', code='x = 20\nprint("hello")\nx + 1')
    told = first['structuredContent']
    assert (told['status'], told['stdout'], told['result'], told['error']) == ('ok', 'hello\n', '21', None)
    assert text_of(first) == f'hello\nresult: 21\nsession_id: {told["session_id"]}'
    assert call(server, 'run_python', code='x', session_id=told['session_id'])['structuredContent']['result'] == '20'


def test_errors_have_their_traceback(server):
    result = call(server, 'run_python', code='def f():\n    return 1 / 0\nf()')
    assert result['isError'] is True
    assert 'ZeroDivisionError: division by zero' in text_of(result) and 'Traceback' in text_of(result)
    assert result['structuredContent']['error']['type'] == 'ZeroDivisionError'


def test_a_crash_rolls_back(server):
    s = call(server, 'run_python', code='x = 1')['structuredContent']['session_id']
    result = call(server, 'run_python', code='import os\nos._exit(1)', session_id=s)
    assert result['isError'] is True and result['structuredContent']['rolled_back'] is True
    assert 'rolled back' in text_of(result)
    assert call(server, 'run_python', code='x', session_id=s)['structuredContent']['result'] == '1'


@pytest.mark.parametrize('show', ['', '\nplt.show()'])
def test_figures_are_pictures_and_prevent_no_rollback(server, show):
    result = call(server, 'run_python', code='import matplotlib.pyplot as plt\nkept = 3\nplt.plot([1, 4, 9])' + show)
    picture = result['content'][1]
    assert (picture['type'], picture['mimeType']) == ('image', 'image/png')
    assert base64.b64decode(picture['data'])[:4] == b'\x89PNG'
    s = result['structuredContent']['session_id']
    crashed = call(server, 'run_python', code='import os\nos._exit(1)', session_id=s)['structuredContent']
    assert (crashed['rolled_back'], crashed['state_lost']) == (True, False)
    assert call(server, 'run_python', code='kept', session_id=s)['structuredContent']['result'] == '3'


def test_a_window_is_pictured(server):
    result = call(server, 'run_python', code='import tkinter as tk\nroot = tk.Tk()\ntk.Label(root, text="Hi").pack()\nroot.mainloop()', screenshot=True)
    assert result['isError'] is False
    assert result['content'][1]['type'] == 'image'


def test_long_output_is_cut_and_says_so(server):
    result = call(server, 'run_python', code='print("a" * 60000)')
    assert len(text_of(result)) < 32000 and 'bytes left out' in text_of(result) and 'read_file' in text_of(result)
    assert len(result['structuredContent']['stdout']) == 60001


def test_run_shell(server):
    s = call(server, 'run_python', code='open("a.txt", "w").write("one")\ny = 3')['structuredContent']['session_id']
    result = call(server, 'run_shell', command='cat a.txt; echo "übel" >&2; exit 4', session_id=s)
    told = result['structuredContent']
    assert (told['stdout'], told['stderr'], told['exit_code'], told['error'], result['isError']) == ('one', 'übel\n', 4, None, True)
    assert call(server, 'run_shell', command='pwd', cwd='/tmp', session_id=s)['structuredContent']['stdout'] == '/tmp\n'
    assert call(server, 'run_python', code='y, sorted(n for n in dir() if not n.startswith("_"))', session_id=s)['structuredContent']['result'] == "(3, ['y'])"


def test_files(server):
    s = call(server, 'write_file', path='d/ü.txt', content='line\n')['structuredContent']['session_id']
    assert call(server, 'read_file', session_id=s, path='/workspace/d/ü.txt')['content'] == [{'type': 'text', 'text': 'line\n'}]
    call(server, 'write_file', session_id=s, path='b.bin', content=base64.b64encode(b'\0\1').decode(), encoding='base64')
    assert call(server, 'read_file', session_id=s, path='b.bin')['content'][0]['resource']['blob'] == base64.b64encode(b'\0\1').decode()
    listed = call(server, 'list_files', session_id=s)['structuredContent']['files']
    assert {'path': 'd/ü.txt', 'size': 5, 'type': 'file'} in listed
    call(server, 'write_file', session_id=s, path='long.txt', content='ä' * 40000)
    page = call(server, 'read_file', session_id=s, path='long.txt')
    assert page['structuredContent']['truncated'] is True and text_of(page) == 'ä' * 15000 and 'offset 30000' in page['content'][1]['text']
    assert text_of(call(server, 'read_file', session_id=s, path='long.txt', offset=79998, limit=10)) == 'ä'
    picture = base64.b64encode(b'\xff\xfe' * 20 + b'\xff\xd9').decode()  # ends like a cut character
    call(server, 'write_file', session_id=s, path='end.bin', content=picture, encoding='base64')
    end = post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'resources/read', 'params': {'uri': f'glovebox://{s}/end.bin'}}).json()['result']
    assert end['contents'][0]['blob'] == picture
    uri = f'glovebox://{s}/d/%C3%BC.txt'
    read = post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'resources/read', 'params': {'uri': uri}}).json()['result']
    assert read['contents'][0]['text'] == 'line\n'
    resources = post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'resources/list'}).json()['result']['resources']
    assert f'glovebox://{s}/b.bin' in {r['uri'] for r in resources}


def test_rollback_fork_and_close(server):
    s = call(server, 'run_python', code='x = 1')['structuredContent']['session_id']
    call(server, 'run_python', code='x = 2', session_id=s)
    assert call(server, 'rollback', session_id=s)['isError'] is False
    assert call(server, 'run_python', code='x', session_id=s)['structuredContent']['result'] == '1'
    forks = call(server, 'fork_session', session_id=s, count=2)
    assert forks['isError'] is False, forks
    for fork in forks['structuredContent']['session_ids']:
        assert call(server, 'run_python', code='x', session_id=fork)['structuredContent']['result'] == '1'
    assert call(server, 'close_session', session_id=s)['isError'] is False
    assert call(server, 'close_session', session_id=s)['isError'] is True


def test_the_screen_is_used(server):
    code = 'import tkinter as tk\nroot = tk.Tk()\nroot.geometry("200x100+0+0")\nhits = []\nroot.bind("<Key>", lambda e: hits.append(e.char))\nroot.update()'
    s = call(server, 'run_python', code=code)['structuredContent']['session_id']
    assert call(server, 'screenshot', session_id=s)['content'][0]['type'] == 'image'
    for action in ({'action': 'mouse_move', 'coordinate': [20, 20]}, {'action': 'type', 'text': 'ab'}):
        result = call(server, 'computer', session_id=s, **action)
        assert result['isError'] is False and result['content'][0]['type'] == 'image', result
    assert call(server, 'run_python', code='root.update()\n"".join(hits)', session_id=s)['structuredContent']['result'] == "'ab'"
    assert '$.coordinate' in text_of(call(server, 'computer', session_id=s, action='left_click', coordinate=[1, 99999]))


# ---- progress and cancellation ------------------------------------------------------------------------


def test_output_comes_as_progress(server):
    code = 'import time\nfor i in range(5):\n    print(i)\n    time.sleep(0.2)'
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': code}, '_meta': {'progressToken': 7}}}
    *notes, last = messages(post(server, message))
    assert ''.join(n['params']['message'] for n in notes).startswith('0\n1\n')
    counts = [n['params']['progress'] for n in notes]
    assert counts == sorted(set(counts)) and all(n['params']['progressToken'] == 7 for n in notes)
    assert last['result']['structuredContent']['stdout'] == '0\n1\n2\n3\n4\n'


def busy(server, s):
    return requests.get(f'{server.url}/v1/sessions/{s}', timeout=gb.PATIENCE).json()['state'] == 'busy'


def test_hanging_up_interrupts_the_cell(server):
    s = call(server, 'run_python', code='x = 5')['structuredContent']['session_id']
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': 'import time\ntime.sleep(60)', 'session_id': s}}}
    with contextlib.suppress(requests.exceptions.RequestException):
        requests.post(f'{server.url}/mcp', json=message, headers={'Accept': BOTH}, timeout=1)
    gb.wait_until(lambda: not busy(server, s), 'the interrupt')
    assert call(server, 'run_python', code='x', session_id=s)['structuredContent']['result'] == '5'


def test_a_legacy_client_cancels_by_a_message(server):
    id = post(server, {'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {}}).headers['Mcp-Session-Id']
    mine, other = {'Mcp-Session-Id': id}, {'Mcp-Session-Id': post(server, {'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {}}).headers['Mcp-Session-Id']}
    s = call(server, 'run_python', code='x = 6')['structuredContent']['session_id']
    message = {'jsonrpc': '2.0', 'id': 3, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': 'import time\ntime.sleep(60)', 'session_id': s}}}
    answers = []
    thread = threading.Thread(target=lambda: answers.append(post(server, message, mine)))
    thread.start()
    gb.wait_until(lambda: busy(server, s), 'the cell')
    cancel = {'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': 3}}
    assert post(server, cancel, other).status_code == 202
    time.sleep(0.3)
    assert busy(server, s)  # the other client's request 3 is not this one
    assert post(server, cancel, mine).status_code == 202
    thread.join(gb.PATIENCE)
    assert answers[0].content == b''
    assert call(server, 'run_python', code='x', session_id=s)['structuredContent']['result'] == '6'


def test_many_calls_at_once_with_cancellations(server):
    sessions = [call(server, 'run_python', code='n = 0')['structuredContent']['session_id'] for _ in range(8)]
    wrong = []

    def work(s):
        for i in range(1, 21):
            result = call(server, 'run_python', code=f'n += 1\nn', session_id=s)
            if result['structuredContent']['result'] != str(i):
                wrong.append(result)
            if i % 7 == 0:
                message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': 'import time\ntime.sleep(30)', 'session_id': s}}}
                with contextlib.suppress(requests.exceptions.RequestException):
                    requests.post(f'{server.url}/mcp', json=message, headers={'Accept': BOTH}, timeout=0.3)

    threads = [threading.Thread(target=work, args=(s,)) for s in sessions]
    for t in threads:
        t.start()
    for t in threads:
        t.join(gb.PATIENCE)
    assert not wrong


# ---- tokens and settings -----------------------------------------------------------------------------------


def test_each_token_has_its_own_sessions():
    with gb.running_daemon('--token', ','.join(TOKENS)) as d:
        first, other = ({'Authorization': f'Bearer {t}'} for t in TOKENS)
        refused = post(d, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'})
        assert refused.status_code == 401 and refused.headers['WWW-Authenticate'].startswith('Bearer')
        s = call(d, 'run_python', headers=first, code='1')['structuredContent']['session_id']
        assert call(d, 'run_python', headers=other, code='1', session_id=s)['isError'] is True
        uri = f'glovebox://{s}/x'
        assert 'error' in post(d, {'jsonrpc': '2.0', 'id': 1, 'method': 'resources/read', 'params': {'uri': uri}}, other).json()
        evil = post(d, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}, {**first, 'Origin': 'https://evil.example'})
        assert evil.status_code == 403


def test_settings_of_sessions_made_by_mcp():
    with gb.running_daemon('--mcp-profile', 'smolagents', '--no-mcp-display', '--mcp-tools', 'run_python,screenshot') as d:
        tools = post(d, {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}).json()['result']['tools']
        assert [t['name'] for t in tools] == ['run_python']
        assert 'not allowed' in text_of(call(d, 'run_python', code='import os'))
        assert call(d, 'run_python', code='1', screenshot=True)['isError'] is True
        assert post(d, {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_shell', 'arguments': {'command': 'ls'}}}).json()['error']['code'] == -32602
    wrong = gb.cli('serve', '--check', '--mcp-tools', 'fly')
    assert wrong.returncode != 0 or 'unknown tool' in gb.cli('serve', '--listen', '127.0.0.1:0', '--mcp-tools', 'fly').stderr


# ---- GET /sse ------------------------------------------------------------------------------------------------


def test_the_event_stream_of_2024(server):
    stream = requests.get(f'{server.url}/sse', stream=True, timeout=gb.PATIENCE)
    lines = stream.iter_lines(decode_unicode=True)

    def event():
        fields = {}
        for line in lines:
            if not line and fields:
                return fields
            name, _, value = line.partition(': ')
            if name:
                fields[name] = value

    first = event()
    assert first['event'] == 'endpoint'
    address = server.url + first['data']

    def ask(method, params=None):
        sent = requests.post(address, json={'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params or {}}, timeout=gb.PATIENCE)
        assert sent.status_code == 202
        return json.loads(event()['data'])['result']

    assert ask('initialize', {'protocolVersion': '2024-11-05'})['serverInfo']['name'] == 'python'
    assert [t['name'] for t in ask('tools/list')['tools']] == ['python']
    ask('tools/call', {'name': 'python', 'arguments': {'code': 'z = 4'}})
    result = ask('tools/call', {'name': 'python', 'arguments': {'code': 'print(z)'}})
    assert text_of(result) == '4\n'
    s = result['structuredContent']['session_id']
    stream.close()
    gb.wait_until(lambda: requests.get(f'{server.url}/v1/sessions/{s}', timeout=gb.PATIENCE).status_code == 410, "the stream's session to end")
    assert requests.post(address, json={}, timeout=gb.PATIENCE).status_code == 404


# ---- stdio -----------------------------------------------------------------------------------------------------


class Stdio:
    """`glovebox mcp` as a host starts it."""

    def __init__(self, *args):
        self.process = subprocess.Popen([gb.PROGRAM, 'mcp', *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=gb.clean_env())

    def send(self, method, params=None, id=None):
        message = {'jsonrpc': '2.0', 'method': method, 'params': params or {}}
        if id is not None:
            message['id'] = id
        self.process.stdin.write(json.dumps(message) + '\n')
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, params=None, id=1):
        self.send(method, params, id)
        while True:
            message = self.receive()
            if message.get('id') == id:
                return message

    def run(self, code, **arguments):
        return self.ask('tools/call', {'name': 'run_python', 'arguments': {'code': code, **arguments}})['result']['structuredContent']


@pytest.fixture
def stdio(server):
    s = Stdio('--url', server.url)
    yield s
    s.process.kill()
    s.process.wait()


def ended(server, id):
    return requests.get(f'{server.url}/v1/sessions/{id}', timeout=gb.PATIENCE).status_code == 410


def test_stdio_ends_its_sessions_with_stdin(server, stdio):
    assert stdio.ask('initialize', {'protocolVersion': '2025-06-18'})['result']['protocolVersion'] == '2025-06-18'
    stdio.send('notifications/initialized')
    s = stdio.run('a = 1')['session_id']
    assert stdio.run('a', session_id=s)['result'] == '1'
    assert not ended(server, s)
    stdio.process.stdin.close()
    assert stdio.process.wait(gb.PATIENCE) == 0
    gb.wait_until(lambda: ended(server, s), 'the session to end')


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_bridge_leaves_no_session(server, stdio, number):
    s = stdio.run('a = 1')['session_id']
    os.kill(stdio.process.pid, number)
    gb.wait_until(lambda: ended(server, s), 'the session to end')


def test_stdio_survives_rubbish(server, stdio):
    for line in ('{', '[1, 2', '', '\x00'):
        stdio.process.stdin.write(line + '\n')
    stdio.process.stdin.flush()
    codes = [stdio.receive()['error']['code'] for _ in range(3)]
    assert codes == [-32700] * 3
    assert stdio.ask('nothing')['error']['code'] == -32601
    assert stdio.run('1 + 1')['result'] == '2'


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_stdio_cancels_and_sends_no_response(server, stdio, era):
    meta = {'_meta': {META + 'protocolVersion': '2026-07-28', META + 'clientCapabilities': {}}} if era == 'modern' else {}
    s = stdio.run('b = 2')['session_id']
    stdio.send('tools/call', {'name': 'run_python', 'arguments': {'code': 'import time\ntime.sleep(60)', 'session_id': s}, **meta}, id=5)
    gb.wait_until(lambda: busy(server, s), 'the cell')
    stdio.send('notifications/cancelled', {'requestId': 5, **meta})
    gb.wait_until(lambda: not busy(server, s), 'the interrupt')
    stdio.send('tools/call', {'name': 'run_python', 'arguments': {'code': 'b', 'session_id': s}, **meta}, id=6)
    answer = stdio.receive()
    assert answer['id'] == 6 and answer['result']['structuredContent']['result'] == '2'


def test_a_private_server_ends_with_the_bridge(tmp_path):
    s = Stdio('--private')
    try:
        assert s.ask('initialize', {})['result']['serverInfo']['name'] == 'glovebox'
        assert s.run('6 * 7')['result'] == '42'
        children = gb.descendants(s.process.pid)
        assert children
        s.process.stdin.close()
        assert s.process.wait(gb.PATIENCE) == 0
        gb.wait_until(lambda: not gb.still_there(children), 'the private server to end')
    finally:
        s.process.kill()
        s.process.wait()


def test_a_server_that_is_not_there_is_an_error():
    answer = gb.cli('mcp', '--url', 'http://127.0.0.1:1', input='')
    assert answer.returncode == 1 and 'cannot connect' in answer.stderr and answer.stdout == ''
    assert gb.cli('mcp', '--url', 'ftp://nowhere', input='').returncode == 1


# ---- configuration of hosts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize('host,member', [('claude', 'mcpServers'), ('cursor', 'mcpServers'), ('vscode', 'servers'), ('zed', 'context_servers')])
def test_install_prints_and_writes(tmp_path, host, member):
    env = gb.clean_env(HOME=tmp_path)
    printed = json.loads(gb.cli('mcp', '--install', host, env=env).stdout)
    assert printed[member]['glovebox']['args'] == ['mcp'] and not list(tmp_path.rglob('*.json'))
    assert gb.cli('mcp', '--install', host, '--write', env=env).returncode == 0
    (file,) = tmp_path.rglob('*.json')
    assert json.loads(file.read_text()) == printed
    file.write_text(json.dumps({'other': 1, member: {'mine': {'command': 'x'}}}))
    assert gb.cli('mcp', '--install', host, '--write', '--url', 'http://h:1', env=env).returncode == 0
    merged = json.loads(file.read_text())
    assert merged['other'] == 1 and set(merged[member]) == {'mine', 'glovebox'} and merged[member]['glovebox']['args'][1:] == ['--url', 'http://h:1']
    assert json.loads(file.with_name(file.name + '.backup').read_text())['other'] == 1
    file.write_text('// comment\n{}')
    refused = gb.cli('mcp', '--install', host, '--write', env=env)
    assert refused.returncode == 1 and 'nothing was changed' in refused.stderr and file.read_text() == '// comment\n{}'


def test_install_of_claude_code_and_of_unknown_hosts():
    assert gb.cli('mcp', '--install', 'claude-code').stdout.startswith('claude mcp add glovebox -- ')
    assert gb.cli('mcp', '--install', 'emacs').returncode == 2
