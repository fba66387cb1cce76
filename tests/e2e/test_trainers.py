"""The doors of trainers and evaluators, by the requests that their clients make."""

import base64
import concurrent.futures
import json
import time

import pytest
import requests

import gb


def run_code(api, **body):
    answer = api.post('/run_code', json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


# ---- SandboxFusion ----------------------------------------------------------------------


def test_fetched_files_are_bounded_together(api):
    code = 'for name in "abc":\n    open(name, "wb").write(bytes(10 << 20))\nopen("d", "w").write("d")'
    said = run_code(api, code=code, fetch_files=['a', 'b', 'c', 'd'])
    assert sorted(said['files']) == ['a', 'b', 'd']


def test_numbers_beyond_all_bounds(api):
    assert run_code(api, code='print(1)', memory_limit_MB=1e300)['status'] == 'SandboxError'
    said = api.post('/run_jupyter', json={'cells': ['1'], 'total_timeout': 1e300, 'cell_timeout': 1e300}).json()
    assert said['status'] == 'Success', said


def test_run_code_answers_as_the_original(api):
    said = run_code(api, code='print("Hello, world!")', language='python')
    assert said.pop('run_result').pop('execution_time') > 0
    assert said == {'status': 'Success', 'message': '', 'compile_result': None, 'executor_pod_name': None, 'files': {}}
    result = run_code(api, code='print("Hello, world!")')['run_result']
    assert {**result, 'execution_time': 0} == {
        'status': 'Finished',
        'execution_time': 0,
        'return_code': 0,
        'stdout': 'Hello, world!\n',
        'stderr': '',
    }


@pytest.mark.parametrize(
    'fields, status, return_code, stdout, stderr',
    [
        (dict(code='import sys; print(sys.stdin.read()); sys.exit(3)', stdin='a\nb'), 'Failed', 3, 'a\nb\n', ''),
        (dict(code='print(input()); input()', stdin='a'), 'Failed', 1, 'a\n', 'EOFError: EOF when reading a line\n'),
        (dict(code='input()', stdin=None), 'Failed', 1, '', 'EOFError: EOF when reading a line\n'),
        (dict(code='print(1'), 'Failed', 1, '', "SyntaxError: '(' was never closed\n"),
        (dict(code='import os; os.kill(os.getpid(), 9)'), 'Failed', -9, '', ''),
        (dict(code='if __name__ == "__main__": print("main")\n7'), 'Success', 0, 'main\n', ''),
        (dict(code='import subprocess, sys; subprocess.run([sys.executable, "-c", "print(5)"])'), 'Success', 0, '5\n', ''),
        (dict(code='echo out; echo err >&2; exit 2', language='bash'), 'Failed', 2, 'out\n', 'err\n'),
        (dict(code='echo out; kill -9 $$', language='bash'), 'Failed', -9, 'out\n', ''),
        (dict(code='kill -TERM $$', language='bash'), 'Failed', -15, '', ''),
        (dict(code='def test_it():\n    assert 1', language='pytest'), 'Success', 0, '1 passed', ''),
        (dict(code='x = "a" * (3 << 30)', memory_limit_MB=256), 'Failed', 1, '', 'MemoryError\n'),
        (dict(code='print(2)', memory_limit_MB=-1, unknown_field=1), 'Success', 0, '2\n', ''),
    ],
)
def test_run_code_runs_scripts(api, fields, status, return_code, stdout, stderr):
    said = run_code(api, **{'language': 'python', **fields})
    assert (said['status'], said['run_result']['status'], said['run_result']['return_code']) == (status, 'Finished', return_code)
    assert stdout in said['run_result']['stdout'] and said['run_result']['stderr'].endswith(stderr)


def test_run_code_too_long(api):
    said = run_code(api, code='print("so far", flush=True)\nwhile True: pass', language='python', run_timeout=0.5)
    result = said['run_result']
    assert said['status'] == 'Failed' and (result['status'], result['return_code']) == ('TimeLimitExceeded', None)
    assert result['stdout'] == 'so far\n' and result['stderr'] == ''


def test_run_code_files(api):
    given = {'a/b.txt': base64.b64encode(b'hi\0').decode(), 'm.py': base64.b64encode(b'x = 1').decode(), 'none': None}
    code = 'import m\nopen("out", "wb").write(open("a/b.txt", "rb").read() * 2)\nprint(m.x)'
    said = run_code(api, code=code, files=given, fetch_files=['out', 'a/b.txt', 'nothing'])
    assert said['run_result']['stdout'] == '1\n'
    assert {k: base64.b64decode(v) for k, v in said['files'].items()} == {'out': b'hi\0hi\0', 'a/b.txt': b'hi\0'}
    assert run_code(api, code='1', files={'../x': 'AA=='})['status'] == 'SandboxError'


def test_run_code_refuses_as_the_original(api):
    said = run_code(api, code='int main(){}', language='cpp')
    assert said['status'] == 'SandboxError' and 'cpp' in said['message'] and said['run_result'] is None
    assert api.post('/run_code', json={'code': '', 'language': 'klingon'}).status_code == 422
    assert api.post('/run_code', json={'language': 'python'}).json()['detail'][0]['loc'] == ['body', 'code']
    assert api.post('/run_code', data='{', headers={'Content-Type': 'text/plain'}).status_code == 422
    assert api.get('/v1/ping').text == '"pong"'


def verl_reward(url, code, stdin):
    """What verl's sandbox_fusion reward reads of an answer, with its own request."""
    payload = {
        'compile_timeout': 10,
        'run_timeout': 10,
        'code': code,
        'stdin': stdin,
        'memory_limit_MB': 1024,
        'language': 'python',
        'files': {},
        'fetch_files': [],
    }
    headers = {'Content-Type': 'application/json', 'Accept': 'application/json'}
    answer = requests.post(url, headers=headers, data=json.dumps(payload), timeout=30)
    answer.raise_for_status()
    said = answer.json()
    if said['status'] == 'Success' and said['run_result']['status'] == 'Finished':
        return said['run_result']['stdout'].rstrip('\n')
    return said['run_result']['stdout'] + said['run_result']['stderr']


def test_hundreds_in_flight_none_lost(daemon):
    """All of them wait for their turn; none is refused."""
    n = 300
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        answers = list(pool.map(lambda i: verl_reward(daemon.url + '/run_code', 'print(int(input()) + 1)', str(i)), range(n)))
    assert answers == [str(i + 1) for i in range(n)]


def test_overload_is_504_in_time():
    with gb.running_daemon('--max-runs', '1') as daemon, concurrent.futures.ThreadPoolExecutor(3) as pool:
        body = {'code': 'import time; time.sleep(12)', 'run_timeout': 20, 'compile_timeout': 0.1}
        first = pool.submit(requests.post, daemon.url + '/run_code', json=body)
        time.sleep(0.5)
        began = time.monotonic()
        late = requests.post(daemon.url + '/run_code', json={'code': 'print(1)', 'compile_timeout': 0.1, 'run_timeout': 1})
        assert late.status_code == 504 and 'detail' in late.json()
        assert time.monotonic() - began < 10.1 and not first.done()
        began = time.monotonic()
        waits = requests.post(daemon.url + '/run_code', json={'code': 'print(1)'}).json()  # ten seconds of compile_timeout more
        assert waits['status'] == 'Success' and waits['run_result']['execution_time'] < time.monotonic() - began
        assert first.result().json()['status'] == 'Success'


def test_run_jupyter(api):
    cells = ['x = 1\nprint("hi")', 'x + 1', '1/0', 'display({"image/png": "aGk="}, raw=True)\nx', 'import sys; print("e", file=sys.stderr)']
    said = api.post('/run_jupyter', json={'cells': cells, 'kernel': 'python3', 'files': {'f': 'YQ=='}, 'fetch_files': ['f']}).json()
    assert said['status'] == 'Success' and said['driver']['status'] == 'Finished' and said['files'] == {'f': 'YQ=='}
    assert [c['stdout'] for c in said['cells']] == ['hi\n', '', '', '', '']
    assert said['cells'][1]['display'][0]['text/plain'] == '2' and said['cells'][4]['stderr'] == 'e\n'
    error = said['cells'][2]['error'][0]
    assert (error['ename'], error['evalue']) == ('ZeroDivisionError', 'division by zero') and error['traceback'][-1].startswith('ZeroDivision')
    assert [list(d) [0] for d in said['cells'][3]['display']] == ['image/png', 'text/plain']


def test_run_jupyter_too_long(api):
    said = api.post('/run_jupyter', json={'cells': ['1', 'while True: pass'], 'total_timeout': 1}).json()
    assert said['status'] == 'Failed' and said['cells'] == [] and said['driver']['status'] == 'TimeLimitExceeded'
    assert api.post('/run_jupyter', json={'cells': ['import time; time.sleep(9)'], 'cell_timeout': 0.5}).json()['status'] == 'Failed'
    assert api.post('/run_jupyter', json={'cells': 'x'}).status_code == 422
    assert api.post('/run_jupyter', json={'cells': []}).json()['status'] == 'Success'


# ---- NeMo-Skills ---------------------------------------------------------------------------


def execute(api, code, session=None, **fields):
    headers = {'X-Session-ID': session} if session else {}
    answer = api.post('/execute', json={'generated_code': code, 'timeout': 10, **fields}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_nemo_sessions_keep_their_variables(api):
    assert execute(api, 'x = 6', 'a/b c', language='ipython')['new_session_created'] is True
    said = execute(api, 'print("hi")\nx * 7', 'a/b c', language='ipython')
    assert said == {'process_status': 'completed', 'stdout': 'hi\n42\n', 'stderr': '', 'new_session_created': False}
    said = execute(api, '1/0', 'a/b c', language='ipython')
    assert said['process_status'] == 'error' and 'ZeroDivisionError' in said['stderr']
    assert execute(api, 'x', 'other', language='ipython')['process_status'] == 'error'
    assert execute(api, 'import os; os._exit(1)', 'a/b c', language='ipython')['process_status'] == 'error'
    assert execute(api, 'x', 'a/b c', language='ipython')['stdout'] == '6\n', 'the state outlives the interpreter'
    assert api.delete('/sessions/a%2Fb%20c').status_code == 200 and api.delete('/sessions/a%2Fb%20c').status_code == 404
    assert execute(api, '1', 'a/b c', language='ipython')['new_session_created'] is True
    api.delete('/sessions/a%2Fb%20c')
    api.delete('/sessions/other')


def test_nemo_scripts(api):
    assert execute(api, 'print(input())', std_input='q', language='python')['stdout'] == 'q\n'
    assert execute(api, 'echo hi; exit 1', language='shell')['process_status'] == 'error'
    assert execute(api, '6*7', language='ipython')['stdout'] == '42\n'
    said = execute(api, 'while True: pass', language='python', timeout=0.5)
    assert said['process_status'] == 'timeout' and said['stderr'] == 'Timed out\n'
    assert execute(api, 'print("é" * 50)', language='python', max_output_characters=10)['stdout'] == 'é' * 10 + '<output cut>'
    assert api.post('/execute', json={'generated_code': '', 'language': 'lean4'}).status_code == 422
    assert api.get('/health').status_code == 200


# ---- Dify ------------------------------------------------------------------------------------


def test_dify(api):
    def run(**body):
        return api.post('/v1/sandbox/run', json=body, headers={'X-Api-Key': 'dify-sandbox'}).json()

    code = 'import base64, json\nprint("<<RESULT>>" + json.dumps(main(**json.loads(base64.b64decode("eyJhIjogMX0=")))) + "<<RESULT>>")'
    said = run(language='python3', code=code, preload='def main(a):\n    return {"b": a + 1}', enable_network=True)
    assert said == {'code': 0, 'message': 'success', 'data': {'stdout': '<<RESULT>>{"b": 2}<<RESULT>>\n', 'error': ''}}
    assert 'ZeroDivisionError' in run(language='python3', code='1/0')['data']['error']
    assert run(language='python3', code='import sys; print("w", file=sys.stderr)')['data']['error'] == ''
    assert run(language='python3', code='import sys; sys.exit(2)')['data']['error'] != ''
    assert run(language='nodejs', code='1')['code'] != 0
    found = api.get('/v1/sandbox/dependencies?language=python3').json()
    assert found['code'] == 0 and {'name', 'version'} == set(found['data']['dependencies'][0])


def test_tokens_as_these_clients_give_them():
    with gb.running_daemon('--token', 'sesame-open-the-door') as daemon:
        body = {'code': 'print(1)', 'language': 'python3'}
        assert requests.post(daemon.url + '/v1/sandbox/run', json=body).status_code == 401
        assert requests.post(daemon.url + '/v1/sandbox/run', json=body, headers={'X-Api-Key': 'wrong'}).status_code == 401
        assert requests.post(daemon.url + '/v1/sandbox/run', json=body, headers={'X-Api-Key': 'sesame-open-the-door'}).status_code == 200
        assert requests.post(daemon.url + '/run_code?token=sesame-open-the-door', json={'code': '1'}).status_code == 200
        assert requests.post(daemon.url + '/v1/run', json={'code': '1'}, headers={'X-Api-Key': 'sesame-open-the-door'}).status_code == 401
