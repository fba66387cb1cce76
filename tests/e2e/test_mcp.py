"""MCP: both eras over HTTP and stdio, the tools, progress, cancellation, leases, and wrong input."""

import base64
import contextlib
import io
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


def test_a_version_header_needs_the_meta_of_its_revision(server):
    modern_header = {'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list'}
    for params in ({}, {'params': {}}, {'params': {'_meta': {META + 'clientCapabilities': {}}}}):
        answer = post(server, {'jsonrpc': '2.0', 'id': 4, 'method': 'tools/list', **params}, modern_header)
        assert (answer.status_code, answer.json()['error']['code'], answer.json()['id']) == (400, -32602, 4), answer.text
    odd = modern('tools/list', **{META + 'protocolVersion': 'DRAFT "2027"'})
    refused = post(server, odd, {'MCP-Protocol-Version': 'DRAFT "2027"', 'Mcp-Method': 'tools/list'})
    assert (refused.status_code, refused.json()['error']['data']['requested']) == (400, 'DRAFT "2027"')
    for meta, code in (({META + 'protocolVersion': 7}, -32602), ({'progressToken': {}}, -32600)):
        assert (post(server, modern('tools/list', **meta), modern_header).json()['error']['code']) == code


def test_the_modern_era_has_no_batches(server):
    message = modern('tools/list')
    answer = post(server, [message], modern_headers(message))
    assert (answer.status_code, answer.json()['error']['code']) == (400, -32600)


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
        assert len(tool['description']) <= 600
        assert tool['outputSchema']['required'] == ['error']
    hints = {t['name']: t['annotations'] for t in tools}
    assert hints['read_file']['readOnlyHint'] and hints['list_files']['readOnlyHint'] and not hints['run_python']['readOnlyHint']
    assert hints['close_session']['destructiveHint'] and not hints['run_python']['openWorldHint']


def test_descriptions_say_the_limits_of_the_token():
    with gb.running_daemon('--mcp-timeout', '5', '--mcp-max-timeout', '600', '--mcp-memory', '512M', '--mcp-idle-timeout', '2h', '--no-mcp-display', '--packages', 'off', '--mcp-profile', 'smolagents', '--ready', '1') as d:
        tools = {t['name']: t for t in post(d, {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}).json()['result']['tools']}
        for name in ('run_python', 'run_shell'):
            assert 'Limits: 5 s a call unless timeout_s says otherwise (at most 10 minutes), 512 MB of memory, no network; a session ends after 2 h' in tools[name]['description']
            assert 'Packages cannot be installed' in tools[name]['description'] and 'profile smolagents' in tools[name]['description']
        assert 'screen' not in tools['run_python']['description']
        refused = call(d, 'run_python', code='1', packages=['rich'])
        assert refused['isError'] is True and 'packages' in text_of(refused), refused


@pytest.mark.parametrize(
    'tool,arguments,words',
    [
        ('run_python', {'code': 'import no_such_module_at_all'}, 'packages: ["no_such_module_at_all"]'),
        ('run_python', {'code': 'import urllib.request\nurllib.request.urlopen("http://example.com")'}, 'Sessions have no network here'),
        ('run_python', {'code': 'x = [0] * 10**10'}, 'Use less memory'),
        ('run_python', {'code': 'input()'}, 'put the value into the code'),
        ('read_file', {'path': 'nope.txt'}, 'Call list_files'),
        ('read_file', {'path': '/etc/passwd'}, 'not below /workspace'),
        ('write_file', {'path': '/etc/passwd', 'content': ''}, 'not below /workspace'),
        ('list_files', {'path': '/etc'}, 'not below /workspace'),
        ('rollback', {'to': 'nowhere'}, 'Leave `to` out'),
    ],
)
def test_remedies_name_only_what_the_tools_can_do(server, tool, arguments, words):
    s = call(server, 'run_python', code='1')['structuredContent']['session_id']
    result = call(server, tool, session_id=s, **arguments)
    assert result['isError'] is True and words in text_of(result), text_of(result)
    last = text_of(result).split('session_id:')[0].strip().split('\n')[-1]
    assert not any(word in last for word in ('GET ', '/v1', '--', 'limits.', 'glovebox run')), last


def test_texts_for_a_model(server):
    result = call(server, 'run_python', code='x = 1')
    s = result['structuredContent']['session_id']
    assert text_of(result) == f'(no output)\nsession_id: {s}'
    long = call(server, 'run_python', code='"y" * 40000', session_id=s)
    assert 'bytes left out' in text_of(long) and 'shortened' in text_of(long)
    wrong = call(server, 'run_python', code='def f(:', session_id=s)
    assert text_of(wrong).count('SyntaxError') == 1
    late = call(server, 'run_shell', command='sleep 9', timeout_s=0.3, session_id=s)
    assert 'TimeoutError' in text_of(late) and 'Traceback' not in text_of(late) and late['structuredContent']['error']['traceback'] == ''


def test_a_main_loop_goes_on_for_the_tool_computer(server):
    code = 'import tkinter as tk\nroot = tk.Tk()\nroot.geometry("200x100+0+0")\nhits = 0\ndef hit():\n    global hits\n    hits += 1\ntk.Button(root, command=hit).pack(fill="both", expand=True)\nroot.mainloop()'
    result = call(server, 'run_python', code=code)
    assert result['isError'] is False and result['structuredContent']['status'] == 'running' and 'main loop' in text_of(result)
    s = result['structuredContent']['session_id']
    call(server, 'computer', session_id=s, action='left_click', coordinate=[50, 50])
    gb.wait_until(lambda: call(server, 'run_python', code='hits', session_id=s)['structuredContent']['result'] == '1', 'the click')


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


def size_of(picture):
    from PIL import Image

    return Image.open(io.BytesIO(base64.b64decode(picture['data']))).size


HUGE = {
    'a figure': 'import matplotlib.pyplot as plt\nplt.figure(figsize=(40, 20), dpi=100)\nplt.plot([1, 4, 9])',
    'noise': 'import numpy as np\nfrom PIL import Image\nImage.fromarray(np.random.default_rng(1).integers(0, 255, (1500, 1500, 3), dtype="uint8"))',
    'a narrow picture': 'from PIL import Image\nImage.new("RGBA", (10, 9000), (255, 0, 0, 128))',
    'an indexed picture': 'from PIL import Image\nImage.new("P", (3000, 100))',
}


@pytest.mark.parametrize('name', HUGE)
def test_a_large_picture_is_made_small(server, name):
    answer = call(server, 'run_python', code=HUGE[name])
    picture = answer['content'][1]
    assert picture['type'] == 'image', picture
    assert max(size_of(picture)) <= 1568 and len(picture['data']) <= 1 << 20
    assert name == 'noise' or max(size_of(picture)) == 1568


def test_many_pictures_stay_below_a_megabyte(server):
    code = 'import numpy as np\nfrom PIL import Image\n'
    code += 'for i in range(10):\n    display(Image.fromarray(np.random.default_rng(i).integers(0, 255, (700, 700, 3), dtype="uint8")))'
    answer = call(server, 'run_python', code=code)
    pictures = [c for c in answer['content'] if c['type'] == 'image']
    assert len(pictures) == 8 and len(json.dumps(answer)) < 1_000_000
    assert '2 more pictures were left out' in answer['content'][-1]['text']


@pytest.mark.parametrize('form', ['png', 'jpg'])
def test_a_large_picture_file_is_read(server, form):
    code = f'from PIL import Image\nImage.effect_noise((2400, 1800), 30).save("big.{form}")'
    s = call(server, 'run_python', code=code)['structuredContent']['session_id']
    answer = call(server, 'read_file', session_id=s, path=f'big.{form}')
    assert size_of(answer['content'][0]) == (1568, 1176) and answer['structuredContent']['truncated'] is False


def test_a_hostile_picture_is_left_out(server):
    code = 'class Bad:\n    def _repr_png_(self):\n        return b"\\x89PNG\\r\\n\\x1a\\n" + b"\\0\\0\\0\\rIHDR" + b"\\0\\0\\xff\\0" * 2 + b"\\x08\\x06\\0\\0\\0" + b"A" * 5000\nBad()'
    answer = call(server, 'run_python', code=code)
    assert answer['isError'] is False and 'was left out' in answer['content'][1]['text']
    assert call(server, 'run_python', code='1')['isError'] is False


def test_a_window_is_pictured(server):
    result = call(server, 'run_python', code='import tkinter as tk\nroot = tk.Tk()\ntk.Label(root, text="Hi").pack()\nroot.mainloop()', screenshot=True)
    assert result['isError'] is False
    assert result['content'][1]['type'] == 'image'


def test_long_output_is_cut_and_says_so(server):
    result = call(server, 'run_python', code='print("a" * 60000)')
    assert len(text_of(result)) < 32000 and 'bytes left out' in text_of(result) and 'read_file' in text_of(result)
    assert len(result['structuredContent']['stdout']) == 60001


@pytest.mark.parametrize(
    'code',
    [
        'import sys\nprint("\\x1b" * 100000)\nsys.stderr.write("\\x1b" * 100000)\n"\\x01" * 90000',
        'raise ValueError("\\x02" * 200000)',
        'for i in range(1000):\n    open("\\x03" * 200 + str(i), "w").close()',
    ],
)
def test_a_result_stays_below_a_megabyte_as_json(server, code):
    pictures = 'import numpy as np\nfrom PIL import Image\nfor i in range(8):\n    display(Image.fromarray(np.random.default_rng(i).integers(0, 255, (700, 700, 3), dtype="uint8")))\n'
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': pictures + code}}}
    answer = post(server, message)
    assert len(answer.content) < 1_000_000
    result = messages(answer)[-1]['result']
    assert sum(c['type'] == 'image' for c in result['content']) == 8
    s = result['structuredContent']['session_id']
    listed = post(server, {**message, 'params': {'name': 'list_files', 'arguments': {'session_id': s}}})
    assert len(listed.content) < 1_000_000
    call(server, 'close_session', session_id=s)  # other tests list the files of all sessions


def test_a_page_of_a_file_stays_below_a_megabyte(server):
    s = call(server, 'run_python', code='open("t", "w").write("\\x01ä" * 500000)\nopen("b", "wb").write(bytes(range(256)) * 8000)')['structuredContent']['session_id']
    for path, size in (('t', 1_500_000), ('b', 2_048_000)):
        data, offset = b'', 0
        while offset < size:
            page = call(server, 'read_file', session_id=s, path=path, offset=offset, limit=1 << 20)
            assert len(json.dumps(page, ensure_ascii=False).encode()) < 1_000_000
            first = page['content'][0]
            part = first['text'].encode() if first['type'] == 'text' else base64.b64decode(first['resource']['blob'])
            data, offset = data + part, offset + len(part)
            assert page['structuredContent']['truncated'] is (offset < size)
        assert data == ('\x01ä' * 500000).encode() if path == 't' else data == bytes(range(256)) * 8000
    assert 'beyond the end' in call(server, 'read_file', session_id=s, path='t', offset=9_000_000)['content'][1]['text']


def test_cuts_keep_characters_whole(server):
    result = call(server, 'run_python', code='print("aä" * 200000)\n"€" * 60001')
    told = result['structuredContent']
    assert '\ufffd' not in text_of(result) + told['stdout'] + told['result'] and told['truncated'] is True
    failed = call(server, 'run_python', code='raise ValueError("ö" * 90001)')
    assert len(text_of(failed)) < 70000 and '\ufffd' not in text_of(failed) and 'shortened' in text_of(failed)


def test_a_final_answer_is_told():
    with gb.running_daemon('--mcp-profile', 'smolagents', '--ready', '1') as d:
        result = call(d, 'run_python', code='final_answer("forty-two")')
        assert 'final answer: ' in text_of(result) and 'forty-two' in result['structuredContent']['final_answer'], result


def test_run_shell(server):
    s = call(server, 'run_python', code='open("a.txt", "w").write("one")\ny = 3')['structuredContent']['session_id']
    result = call(server, 'run_shell', command='cat a.txt; echo "übel" >&2; exit 4', session_id=s)
    told = result['structuredContent']
    assert (told['stdout'], told['stderr'], told['exit_code'], told['error'], result['isError']) == ('one', 'übel\n', 4, None, True)
    assert call(server, 'run_shell', command='kill -9 $$', session_id=s)['structuredContent']['exit_code'] == 137
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


def test_resources_have_pages_and_encoded_addresses(server):
    sessions = [call(server, 'write_file', path='d/ü 1%.txt', content='u')['structuredContent']['session_id'] for _ in range(3)]
    seen, cursor = {}, None
    while True:
        page = post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'resources/list', 'params': {'cursor': cursor} if cursor else {}}).json()['result']
        seen.update((r['uri'], r['name']) for r in page['resources'])
        cursor = page.get('nextCursor')
        if not cursor:
            break
    for s in sessions:
        assert seen[f'glovebox://{s}/d/%C3%BC%201%25.txt'] == 'd/ü 1%.txt'
    for wrong in ('x', '', 7, '-1'):
        assert post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'resources/list', 'params': {'cursor': wrong}}).json()['error']['code'] == -32602


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
    where = call(server, 'computer', session_id=s, action='cursor_position')
    assert where['structuredContent']['coordinate'] == [20, 20] and 'The pointer is at [20, 20].' in where['content'][-1]['text']
    assert size_of(call(server, 'computer', session_id=s, action='zoom', region=[0, 0, 60, 40])['content'][0]) == (60, 40)
    for wrong in ({'action': 'fly'}, {'action': 'left_click', 'actions': []}, {'action': 'wait', 'screenshot': True}):
        refused = call(server, 'computer', session_id=s, **wrong)
        assert refused['isError'] is True and 'GET ' not in text_of(refused), refused


# ---- progress and cancellation ------------------------------------------------------------------------


def test_output_comes_as_progress(server):
    code = 'import time\nfor i in range(5):\n    print(i)\n    time.sleep(0.2)'
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': code}, '_meta': {'progressToken': 7}}}
    *notes, last = messages(post(server, message))
    assert ''.join(n['params']['message'] for n in notes).startswith('0\n1\n')
    counts = [n['params']['progress'] for n in notes]
    assert counts == sorted(set(counts)) and all(n['params']['progressToken'] == 7 for n in notes)
    assert last['result']['structuredContent']['stdout'] == '0\n1\n2\n3\n4\n'


def test_silence_has_signs_of_life(server):
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': 'import time\ntime.sleep(6)\n"over"'}, '_meta': {'progressToken': 'p'}}}
    answer = post(server, message)
    *notes, last = messages(answer)
    assert any('still running' in n['params']['message'] for n in notes) and last['result']['structuredContent']['result'] == "'over'"
    assert answer.headers['X-Accel-Buffering'] == 'no' and 'id:' not in answer.text.split('data:')[0]


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


def tools_of(d, headers=None):
    return [t['name'] for t in post(d, {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}, headers).json()['result']['tools']]


def test_settings_of_sessions_made_by_mcp():
    with gb.running_daemon('--mcp-profile', 'smolagents', '--no-mcp-display', '--mcp-tools', 'run_python,screenshot', '--mcp-timeout', '7', '--mcp-max-timeout', '9', '--mcp-idle-timeout', '77', '--mcp-memory', '300M', '--mcp-processes', '33') as d:
        assert tools_of(d) == ['run_python']
        assert 'not allowed' in text_of(call(d, 'run_python', code='import os'))
        assert call(d, 'run_python', code='1', screenshot=True)['isError'] is True
        assert post(d, {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_shell', 'arguments': {'command': 'ls'}}}).json()['error']['code'] == -32602
        assert 'at most 9' in text_of(call(d, 'run_python', code='1', timeout_s=10))
        s = call(d, 'run_python', code='1')['structuredContent']['session_id']
        info = requests.get(f'{d.url}/v1/sessions/{s}', timeout=gb.PATIENCE).json()
        limits = info['limits']
        assert (limits['timeout_s'], limits['memory_bytes'], limits['processes'], info['idle_timeout_s']) == (7, 300 << 20, 33, 77)


@pytest.mark.parametrize('flags,words', [(('--mcp-tools', 'fly'), 'unknown tool'), (('--mcp-profile', 'nope'), 'mcp-profile'), (('--mcp-network', 'a b c:d'), 'mcp-network'), (('--mcp-timeout', '20', '--mcp-max-timeout', '10'), 'mcp-max-timeout')])
def test_wrong_settings_of_mcp_are_refused(flags, words):
    refused = gb.cli('serve', '--listen', '127.0.0.1:0', *flags)
    assert refused.returncode != 0 and words in refused.stderr


def test_each_token_has_its_own_settings(tmp_path):
    file = tmp_path / 'tokens'
    file.write_text(f'# tokens\n{TOKENS[0]}  # as the server is\n{TOKENS[1]} mcp-tools=run_python,list_files mcp-profile=smolagents mcp-display=no mcp-max-timeout=5 mcp-network=loopback  # narrow\n')
    file.chmod(0o600)
    with gb.running_daemon('--token-file', file, '--mcp-memory', '400M') as d:
        first, other = ({'Authorization': f'Bearer {t}'} for t in TOKENS)
        assert 'screenshot' in tools_of(d, first) and tools_of(d, other) == ['run_python', 'list_files']
        assert call(d, 'run_python', headers=first, code='import os')['isError'] is False
        narrow = call(d, 'run_python', headers=other, code='import os')
        assert 'not allowed' in text_of(narrow)
        assert 'at most 5' in text_of(call(d, 'run_python', headers=other, code='1', timeout_s=6))
        info = requests.get(f'{d.url}/v1/sessions/{narrow["structuredContent"]["session_id"]}', headers=other, timeout=gb.PATIENCE).json()
        assert info['limits']['memory_bytes'] == 400 << 20 and info['network'] == 'loopback' and info['profile'] == 'smolagents'


@pytest.mark.parametrize('settings,words', [('mcp-tool=run_python', 'mcp-tools=VALUE'), ('alice', 'a comment begins with #'), ('memory=1G', 'not a setting of a token'), ('mcp-tools=fly', 'unknown tool'), ('mcp-memory=much', 'line 1')])
def test_wrong_settings_of_a_token_are_refused(tmp_path, settings, words):
    file = tmp_path / 'tokens'
    file.write_text(f'{TOKENS[0]} {settings}\n')
    file.chmod(0o600)
    refused = gb.cli('serve', '--listen', '127.0.0.1:0', '--token-file', file)
    assert refused.returncode != 0 and words in refused.stderr, refused.stderr


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
    for wrong in ({'jsonrpc': '2.0', 'id': 3}, {'jsonrpc': '1.0', 'id': 3, 'method': 'ping'}, {'jsonrpc': '2.0', 'id': 3, 'method': 7}):
        assert requests.post(address, json=wrong, timeout=gb.PATIENCE).status_code == 202
        told = json.loads(event()['data'])
        assert (told['id'], told['error']['code']) == (3, -32600)
    for body, code in (('{', -32700), ('[]', -32600), ('5', -32600)):
        refused = requests.post(address, data=body, headers={'Content-Type': 'application/json'}, timeout=gb.PATIENCE)
        assert (refused.status_code, refused.json()['error']['code']) == (400, code)
    stream.close()
    gb.wait_until(lambda: requests.get(f'{server.url}/v1/sessions/{s}', timeout=gb.PATIENCE).status_code == 410, "the stream's session to end")
    assert requests.post(address, json={}, timeout=gb.PATIENCE).status_code == 404


# ---- stdio -----------------------------------------------------------------------------------------------------


class Stdio:
    """`glovebox mcp` as a host starts it."""

    def __init__(self, *args, before=()):
        self.process = subprocess.Popen([*before, gb.PROGRAM, 'mcp', *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=gb.clean_env())

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


def test_stdio_takes_cancellations_while_all_threads_are_busy(server, stdio):
    sessions = [stdio.run('c = 3')['session_id'] for _ in range(4)]
    for i in range(150):
        stdio.send('tools/call', {'name': 'run_python', 'arguments': {'code': 'import time\ntime.sleep(60)', 'session_id': sessions[i % 4]}}, id=100 + i)
    gb.wait_until(lambda: all(busy(server, s) for s in sessions), 'the cells')
    for i in range(150):
        stdio.send('notifications/cancelled', {'requestId': 100 + i})
    gb.wait_until(lambda: not any(busy(server, s) for s in sessions), 'the interrupts')
    seen = stdio.ask('tools/call', {'name': 'run_python', 'arguments': {'code': 'c', 'session_id': sessions[0]}}, id='last')
    assert seen['result']['structuredContent']['result'] == '3'


def test_stdio_holds_more_requests_than_it_has_descriptors(server):
    bridge = Stdio('--url', server.url, before=('prlimit', '--nofile=256'))
    try:
        for i in range(5000):
            bridge.send('ping', id=i)
        told = [bridge.receive() for _ in range(5000)]
        assert sorted(t['id'] for t in told if t.get('result') == {}) == list(range(5000)), [t for t in told if t.get('result') != {}][:3]
    finally:
        bridge.process.kill()
        bridge.process.wait()


def test_stdio_names_a_long_resource(server, stdio):
    path = '/'.join(['数据' * 40] * 4)
    s = stdio.ask('tools/call', {'name': 'write_file', 'arguments': {'path': path, 'content': 'deep'}})['result']['structuredContent']['session_id']
    (uri,) = [r['uri'] for r in stdio.ask('resources/list')['result']['resources'] if s in r['uri']]
    assert len(uri) > 2048
    meta = {META + 'protocolVersion': '2026-07-28', META + 'clientCapabilities': {}}
    assert stdio.ask('resources/read', {'uri': uri, '_meta': meta})['result']['contents'][0]['text'] == 'deep'


def test_stdio_finds_its_server_again():
    with gb.running_daemon('--ready', '1', '--drain', '600') as first:  # its end would wait so long for an open stream
        s = Stdio('--url', first.url)
        assert s.run('1')['result'] == '1'
        stream = requests.get(f'{first.url}/sse', stream=True, timeout=gb.PATIENCE)
    try:
        assert b'event: endpoint' in stream.content
        assert 'error' in s.ask('ping')
        with gb.running_daemon('--ready', '1', listen=f'127.0.0.1:{first.port}') as d:
            gb.wait_until(lambda: 'result' in s.ask('ping'), 'the new server')
            id = s.run('2')['session_id']
            s.process.kill()
            gb.wait_until(lambda: ended(d, id), 'the session to end')
    finally:
        s.process.kill()
        s.process.wait()


def test_stdio_answers_what_came_before_its_end(server):
    line = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': '6 * 7'}}})
    done = gb.cli('mcp', '--url', server.url, input=line + '\n')
    assert json.loads(done.stdout)['result']['structuredContent']['result'] == '42'


def test_stdio_refuses_a_line_that_is_too_long(server, stdio):
    stdio.process.stdin.write('x' * (70 << 20) + '\n')
    stdio.process.stdin.flush()
    assert stdio.receive()['error']['code'] == -32600
    assert stdio.run('1 + 1')['result'] == '2'


def test_stdio_passes_megabytes(server, stdio):
    result = stdio.run(f'x = {"y" * (4 << 20)!r}\nlen(x)')
    assert result['result'] == str(4 << 20)


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_bridge_takes_its_private_server_along(number):
    s = Stdio('--private')
    try:
        assert s.run('6 * 7')['result'] == '42'
        children = gb.descendants(s.process.pid)
        os.kill(s.process.pid, number)
        s.process.wait(gb.PATIENCE)
        gb.wait_until(lambda: not gb.still_there(children), 'the private server to end')
    finally:
        s.process.kill()
        s.process.wait()


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


def test_a_quick_start_serves_before_the_modules_are_imported():
    with gb.running_daemon('--quick-start', wait=False, learnt=False) as d:
        s = call(d, 'run_python', code='6 * 7')['structuredContent']
        assert s['result'] == '42'
        made = requests.get(f'{d.url}/v1/sessions/{s["session_id"]}', timeout=gb.PATIENCE).json()
        assert made['template'] == 'plain'
        assert call(d, 'run_python', code='import numpy\nint(numpy.ones(3).sum())', session_id=s['session_id'])['structuredContent']['result'] == '3'


def test_a_server_that_is_not_there_is_an_error():
    answer = gb.cli('mcp', '--url', 'http://127.0.0.1:1', input='')
    assert answer.returncode == 1 and 'cannot connect' in answer.stderr and answer.stdout == ''
    assert gb.cli('mcp', '--url', 'ftp://nowhere', input='').returncode == 1


def test_a_server_that_needs_a_token():
    with gb.running_daemon('--token', TOKENS[0], '--ready', '1') as d:
        refused = gb.cli('mcp', '--url', d.url, input='')
        assert refused.returncode == 1 and 'GLOVEBOX_TOKEN' in refused.stderr and refused.stdout == ''
        line = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}) + '\n'
        env = gb.clean_env(GLOVEBOX_TOKEN=TOKENS[0], GLOVEBOX_URL=d.url)
        assert json.loads(gb.cli('mcp', input=line, env=env).stdout)['result'] == {}


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
    again = gb.cli('mcp', '--install', host, '--write', '--url', 'http://h:1', env=env)
    assert again.returncode == 0 and 'was not changed' in again.stdout
    for wrong in ('{"a": 1', '[]', f'{{"{member}": []}}', '{"a": 1} x'):
        file.write_text(wrong)
        refused = gb.cli('mcp', '--install', host, '--write', env=env)
        assert refused.returncode == 1 and 'nothing was changed' in refused.stderr and file.read_text() == wrong


ZED = """// Zed settings: {"context_servers": 1}
{
  "theme": "One, }", /* } */
  // servers
  "context_servers": {
    // mine
    "mine": { "command": "x", "args": ["a,}", "\\"//"], },
  },
  "last": [1, {"glovebox": 2}],
}
"""


def test_install_keeps_comments_links_and_modes(tmp_path):
    kept, link = tmp_path / 'dotfiles.json', tmp_path / 'xdg/zed/settings.json'
    kept.write_text(ZED)
    kept.chmod(0o600)
    link.parent.mkdir(parents=True)
    link.symlink_to(kept)
    env = gb.clean_env(HOME=tmp_path, XDG_CONFIG_HOME=tmp_path / 'xdg')
    assert gb.cli('mcp', '--install', 'zed', '--write', '--token', 'secret-token-of-a-test', env=env).returncode == 0
    text = kept.read_text()
    start, end = text.index('\n    "glovebox": ') + 1, text.index('    // mine')
    assert text[:start] + text[end:] == ZED  # nothing else changed
    entry = json.loads('{' + text[start:end].rstrip().rstrip(',') + '}')['glovebox']
    assert entry['args'] == ['mcp'] and entry['env'] == {'GLOVEBOX_TOKEN': 'secret-token-of-a-test'}
    assert link.is_symlink() and kept.stat().st_mode & 0o777 == 0o600
    backup = tmp_path / 'dotfiles.json.backup'
    assert backup.read_text() == ZED and backup.stat().st_mode & 0o777 == 0o600


def test_install_of_claude_code_and_of_unknown_hosts():
    assert gb.cli('mcp', '--install', 'claude-code').stdout.startswith('claude mcp add glovebox -- ')
    with_token = gb.cli('mcp', '--install', 'claude-code', '--url', 'http://h:1', '--token', 'abc').stdout
    assert with_token.startswith('claude mcp add glovebox --env GLOVEBOX_TOKEN=abc -- ') and with_token.endswith(' mcp --url http://h:1\n')
    assert gb.cli('mcp', '--install', 'emacs').returncode == 2
