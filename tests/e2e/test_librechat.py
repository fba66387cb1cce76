"""LibreChat's code interpreter, by the requests that @librechat/agents makes."""

import gb
import requests


def run(api, code, lang='py', **fields):
    answer = api.post('/v1/exec', json={'lang': lang, 'code': code, 'user_id': 'u', **fields}, headers={'X-API-Key': 'any'})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_exec(api):
    said = run(api, 'import sys\nprint(sys.argv[1:])\nprint("e", file=sys.stderr)', args=['a', 'b'])
    assert said['stdout'] == "['a', 'b']\n" and said['stderr'] == 'e\n' and said['files'] == [] and said['session_id']
    assert 'ZeroDivisionError' in run(api, '1/0')['stderr']
    assert run(api, 'echo hi', lang='bash')['stdout'] == 'hi\n'
    for lang in ('js', 'ts', None):
        assert api.post('/v1/exec', json={'lang': lang, 'code': '1'}).status_code == 400
    assert api.post('/v1/exec', json={'lang': 'py'}).status_code == 400


def test_files_are_kept_between_programs(api):
    made = run(api, 'import os\nos.makedirs("/mnt/data/d")\nopen("/mnt/data/d/out.csv", "w").write("1,2")\nprint(os.listdir("/mnt/data"))')
    assert made['stdout'] == "['d']\n"
    (file,) = made['files']
    assert file['name'] == 'd/out.csv'
    sid = made['session_id']
    assert [f['id'] for f in api.get(f'/v1/files/{sid}').json()] == [file['id']]
    assert api.get(f'/v1/download/{sid}/{file["id"]}?kind=x&id=y').content == b'1,2'
    ref = {**file, 'session_id': sid}
    said = run(api, 'print(open("/mnt/data/d/out.csv").read())', files=[ref, {'id': 'gone', 'name': 'x', 'session_id': 'gone'}])
    assert said['stdout'] == '1,2\n' and said['files'] == []
    changed = run(api, 'open("/mnt/data/d/out.csv", "a").write("!")', files=[ref])
    assert api.get(f'/v1/download/{changed["session_id"]}/{changed["files"][0]["id"]}').content == b'1,2!'
    assert api.get(f'/v1/download/{sid}/{file["id"]}').content == b'1,2', 'the one before is as it was'


def test_uploads(api):
    content = b'a,b\r\n--1,2\r\n\0'
    said = api.post('/v1/upload', files={'file': ('in put.csv', content)}, data={'kind': 'user', 'id': 'u'}).json()
    assert said['message'] == 'success' and said['files'][0]['filename'] == 'in put.csv'
    ref = {'id': said['files'][0]['fileId'], 'name': 'in put.csv', 'storage_session_id': said['storage_session_id']}
    assert run(api, 'print(open("/mnt/data/in put.csv", "rb").read())', files=[ref])['stdout'] == f'{content!r}\n'
    both = [('files', ('a.txt', b'1')), ('files', ('../b.txt', b'2'))]
    said = api.post('/v1/upload/batch', files=both).json()
    assert (said['succeeded'], said['failed']) == (1, 1) and [f['status'] for f in said['files']] == ['success', 'error']
    assert api.post('/v1/upload', data=b'x', headers={'Content-Type': 'multipart/form-data; boundary=q'}).status_code == 400
    assert api.post('/v1/upload', data=b'--q', headers={'Content-Type': 'multipart/form-data; boundary=q'}).status_code == 400
    assert api.get('/v1/files/none').json() == [] and api.get('/v1/download/none/x').status_code == 404


def test_files_belong_to_a_token():
    first, second = 'first-token-of-the-two', 'second-token-of-the-two'
    with gb.running_daemon('--token', first, '--token', second) as daemon:
        def ask(method, path, token, **kwargs):
            return requests.request(method, daemon.url + path, headers={'X-API-Key': token}, **kwargs)

        said = ask('POST', '/v1/upload', first, files={'file': ('a', b'1')}).json()
        path = f'/v1/download/{said["session_id"]}/{said["files"][0]["fileId"]}'
        assert ask('GET', path, first).content == b'1' and ask('GET', path, second).status_code == 404
        assert ask('GET', path, 'wrong').status_code == 401


def test_files_named_many_times_are_refused(api):
    said = api.post('/v1/upload', files={'file': ('big', b'x' * (2 << 20))}).json()
    ref = {'id': said['files'][0]['fileId'], 'session_id': said['session_id']}
    refs = [{**ref, 'name': f'f{i}'} for i in range(13)]
    assert 'f11' in run(api, 'import os\nprint(os.listdir())', files=refs[:12])['stdout']
    assert api.post('/v1/exec', json={'lang': 'py', 'code': '1', 'files': refs}).status_code == 413


# ---- programmatic tool calls ---------------------------------------------------------------

TOOLS = [
    {'name': 'get-weather', 'description': 'The weather.', 'parameters': {'type': 'object', 'properties': {'city': {'type': 'string', 'pattern': 'x'}}, 'required': ['city'], '$defs': {}}},
    {'name': 'add', 'parameters': {'type': 'object', 'properties': {'a': {'type': 'number'}, 'b': {'type': 'number'}}}},
    {'name': 'import'},
]


def start(api, code, **fields):
    answer = api.post('/v1/exec/programmatic', json={'code': code, 'tools': TOOLS, 'timeout': 15000, **fields}, headers={'X-API-Key': 'any'})
    assert answer.status_code == 200, answer.text
    return answer.json()


def go_on(api, said, *results):
    body = {'continuation_token': said['continuation_token'], 'tool_results': list(results)}
    answer = api.post('/v1/exec/programmatic', json=body, headers={'X-API-Key': 'any'})
    assert answer.status_code == 200, answer.text
    return answer.json()


def good(call, result):
    return {'call_id': call['id'], 'result': result, 'is_error': False}


def test_programs_call_tools(api):
    code = 'a = await get_weather(city="SF")\nprint(a["sky"])\nb = await add(a=1, b=2)\nprint(b)\nopen("/mnt/data/out.txt", "w").write("x")'
    said = start(api, code)
    assert said['status'] == 'tool_call_required' and said['session_id']
    (call,) = said['tool_calls']
    assert (call['name'], call['input']) == ('get-weather', {'city': 'SF'})
    said = go_on(api, said, good(call, {'sky': 'clear'}))
    (call,) = said['tool_calls']
    assert (call['name'], call['input']) == ('add', {'a': 1, 'b': 2})
    said = go_on(api, said, good(call, 3))
    assert (said['status'], said['stdout'], said['stderr']) == ('completed', 'clear\n3\n', '')
    (file,) = said['files']
    assert file['name'] == 'out.txt' and api.get(f'/v1/download/{file["storage_session_id"]}/{file["id"]}').content == b'x'


def test_calls_made_together_are_told_together(api):
    said = start(api, 'print(await asyncio.gather(*(get_weather(city=c) for c in "abc")))')
    assert sorted(c['input']['city'] for c in said['tool_calls']) == ['a', 'b', 'c'] and len({c['id'] for c in said['tool_calls']}) == 3
    said = go_on(api, said, *(good(c, c['input']['city'].upper()) for c in reversed(said['tool_calls'])))
    assert said['stdout'] == "['A', 'B', 'C']\n"


def test_tools_that_fail(api):
    code = 'try:\n    await add(a=1)\nexcept RuntimeError as e:\n    print(e)\ntry:\n    await import_tool()\nexcept RuntimeError as e:\n    print(e)\n1 / 0'
    said = start(api, code)
    said = go_on(api, said, {'call_id': said['tool_calls'][0]['id'], 'result': None, 'is_error': True, 'error_message': 'no b'})
    assert said['tool_calls'][0]['name'] == 'import'
    said = go_on(api, said)
    assert said['status'] == 'error' and said['error'] == 'ZeroDivisionError: division by zero'
    assert said['stdout'] == 'no b\nthe client gave no result for this call\n' and 'Traceback' in said['stderr']


def test_bash_programs_call_tools(api):
    code = 'raw=$(get_weather \'{"city": "SF"}\'); echo "got $raw"\nadd || echo "failed $?"\n{ a=$(add \'{"a": 1}\'); echo "$a" > /mnt/data/a; } &\nwait\ncat /mnt/data/a\necho err >&2'
    said, results = start(api, code, lang='bash'), {'SF': {'sky': 'ü'}, 1: [1, 2]}
    while said['status'] == 'tool_call_required':
        (call,) = said['tool_calls']
        given = call['input'].get('city') or call['input'].get('a')
        answer = good(call, results[given]) if given else {'call_id': call['id'], 'is_error': True, 'error_message': 'nothing to add'}
        said = go_on(api, said, answer)
    assert (said['status'], said['stdout']) == ('completed', 'got {"sky":"ü"}\nfailed 1\n[1,2]\n')
    assert said['stderr'] == 'nothing to add\nerr\n' and [f['name'] for f in said['files']] == ['a']
    assert start(api, 'exit 3', lang='bash')['status'] == 'error'


def test_continuations_that_are_refused(api):
    assert start(api, 'print(1)')['stdout'] == '1\n'
    assert start(api, 'print(await add(', )['error'].startswith('SyntaxError')
    said = start(api, 'print(await add())')
    for body, status in (({'continuation_token': 'none'}, 404), ({}, 400), ({'code': '1', 'lang': 'js'}, 400), ({'code': '1', 'tools': [{}]}, 400)):
        assert api.post('/v1/exec/programmatic', json=body).status_code == status, body
    assert go_on(api, said, good(said['tool_calls'][0], 'x'))['stdout'] == 'x\n'
    body = {'continuation_token': said['continuation_token'], 'tool_results': []}
    assert api.post('/v1/exec/programmatic', json=body).status_code == 404, 'a program ends once'


def test_programs_that_end_while_their_client_runs_tools(api):
    """Their outcome waits for the next request."""
    said = start(api, 'import asyncio\ntask = asyncio.ensure_future(add())\nawait asyncio.sleep(1)\nprint("done")')
    assert said['status'] == 'tool_call_required'
    gb.wait_until(lambda: api.metric('glovebox_cells_running') == 0, 'the program ends')
    assert go_on(api, said, good(said['tool_calls'][0], 1))['stdout'] == 'done\n'


def test_few_outcomes_wait_for_clients_that_do_not_come(api):
    most = 32
    code = 'import asyncio\ntask = asyncio.ensure_future(add())\nawait asyncio.sleep(0.2)\nprint("done")'
    all_said = [start(api, code) for _ in range(most + 2)]
    gb.wait_until(lambda: api.metric('glovebox_cells_running') == 0, 'the programs end')
    bodies = [{'continuation_token': said['continuation_token'], 'tool_results': []} for said in all_said]
    seen = [api.post('/v1/exec/programmatic', json=body).status_code for body in bodies]
    assert sorted(seen) == [200] * most + [404] * 2, seen


def test_programs_belong_to_a_token():
    first, second = 'first-token-of-the-two', 'second-token-of-the-two'
    with gb.running_daemon('--token', first, '--token', second) as daemon:
        def ask(token, **body):
            return requests.post(daemon.url + '/v1/exec/programmatic', headers={'X-API-Key': token}, json=body)

        said = ask(first, code='print(await add())', tools=TOOLS).json()
        body = {'continuation_token': said['continuation_token'], 'tool_results': []}
        assert ask(second, **body).status_code == 404
        assert ask(first, **body).json()['status'] == 'error'
        ask(first, code='await add()', tools=TOOLS)  # the server ends in time although nobody goes on with it
        assert daemon.terminate() == 0
