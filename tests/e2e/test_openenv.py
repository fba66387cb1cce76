"""The OpenEnv dialect: every shape its clients read, and what goes beyond it."""

import base64
import json
import re
import subprocess

import pytest

import gb
import package_index

FIRST = {'observation': {'stdout': '', 'stderr': '', 'exit_code': 0}, 'reward': 0.0, 'done': False}
UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}')


class Env(gb.Socket):
    """A connection to /ws that speaks as OpenEnv's own client does."""

    def __init__(self, daemon, query='', **kwargs):
        super().__init__(f'{daemon.url}/ws{query}'.replace('http:', 'ws:'), **kwargs)

    def ask(self, message):
        self.send_text(message if isinstance(message, str) else json.dumps(message))
        return self.receive()

    def reset(self, **data):
        return self.ask({'type': 'reset', 'data': data})

    def step(self, code, **more):
        answer = self.ask({'type': 'step', 'data': {'code': code}, **more})
        assert answer['type'] == 'observation', answer
        return answer['data']

    def state(self):
        answer = self.ask({'type': 'state'})
        assert answer['type'] == 'state'
        return answer['data']

    def cut(self):
        """Ends the connection as a crash does: without a word."""
        self.ws.transport.abort()
        self._wait(self.ws.wait_closed())
        self._wait(self.ws.close())
        self.loop.close()

    def closed(self):
        """Waits for the server's close; its code."""
        self._wait(self.ws.wait_closed())
        return self.ws.close_code


@pytest.fixture(scope='module')
def daemon():
    """Environments without rules about the language: those have tests of their own."""
    with gb.running_daemon(
        '--openenv-profile', 'python', '--preload', 'json,random,re', '--ready', '4', '--grace', '1'
    ) as d:
        yield d


@pytest.fixture
def env(daemon):
    with Env(daemon) as env:
        yield env


def step(api, code, headers=None, **more):
    answer = api.post('/step', json={'action': {'code': code}, **more}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


# ---- about itself ------------------------------------------------------------------------


def test_fixed_answers(api):
    assert api.get('/health').json() == {'status': 'healthy'}
    assert api.get('/metadata').json() == api.get('/web/metadata').json() == {
        'name': 'PythonCodeActEnv', 'description': 'PythonCodeActEnv environment', 'readme_content': None,
        'version': '1.0.0', 'author': None, 'documentation_url': None,
    }  # fmt: skip
    assert api.get('/state').json() == {'episode_id': None, 'step_count': 0}
    assert api.get('/list_environments').json() == ['PythonCodeActEnv']
    schema = api.get('/schema').json()
    assert schema['action']['required'] == ['code'] and schema['action']['additionalProperties'] is False
    assert {'stdout', 'stderr', 'exit_code', 'done', 'reward', 'metadata'} <= set(schema['observation']['properties'])
    assert set(schema['state']['properties']) == {'episode_id', 'step_count'}


def test_what_the_validator_looks_at(api):
    """`openenv validate --url` makes these six checks."""
    document = api.get('/openapi.json').json()
    assert document['info']['version'].startswith('1.')
    assert {'/reset', '/step', '/state'} <= set(document['paths'])
    assert api.get('/health').json()['status'] == 'healthy'
    assert all(isinstance(api.get('/metadata').json()[k], str) for k in ('name', 'description'))
    assert all(isinstance(api.get('/schema').json()[k], dict) for k in ('action', 'observation', 'state'))
    answer = api.post('/mcp', json={})
    assert answer.status_code == 200 and answer.json()['jsonrpc'] == '2.0'


def test_mcp_over_http(api):
    def rpc(**request):
        return api.post('/mcp', json=request).json()

    no_tools = {'code': -32603, 'message': 'Environment does not support MCP', 'data': None}
    assert rpc(jsonrpc='2.0', id=1, method='tools/list') == {'jsonrpc': '2.0', 'id': 1, 'error': no_tools}
    assert rpc(jsonrpc='2.0', id='a', method='tools/call', params={'name': 'x'})['error'] == no_tools
    assert rpc(jsonrpc='2.0', id=2, method='tools/call')['error']['code'] == -32602
    assert rpc(jsonrpc='2.0', id=3, method='tools/list', params=[])['error']['message'] == 'Params must be an object'
    assert rpc(jsonrpc='2.0', id=4, method='other')['error'] == {
        'code': -32601, 'message': 'Method not found: other', 'data': None,
    }  # fmt: skip
    assert rpc()['error']['code'] == -32600 and rpc(jsonrpc='1.0', method='x')['error']['code'] == -32600
    assert api.post('/mcp', data='{').json()['error']['code'] == -32700


def test_sessions_over_mcp(daemon, api):
    def rpc(method, **params):
        return api.post('/mcp', json={'jsonrpc': '2.0', 'id': 7, 'method': method, 'params': params}).json()

    made = rpc('openenv/session/create')
    name = made['result']['session_id']
    assert made == {'jsonrpc': '2.0', 'id': 7, 'result': {'session_id': name}} and UUID.fullmatch(name)
    assert rpc('tools/list', session_id=name)['error']['message'] == 'Environment does not support MCP'
    with Env(daemon, f'?session_id={name}') as env:
        env.reset(episode_id='ep-mcp')
        env.step('x = 5')
        assert api.get('/state', headers={'X-OpenEnv-Session-Id': name}).json()['episode_id'] == 'ep-mcp'
        own = env.ask({'type': 'mcp', 'data': {'jsonrpc': '2.0', 'id': 1, 'method': 'openenv/session/create'}})
        assert own['data']['result'] == {'session_id': name}
        message = {'jsonrpc': '2.0', 'id': 2, 'method': 'openenv/session/close', 'params': {'session_id': name}}
        refused = env.ask({'type': 'mcp', 'data': message})['data']['error']
        assert refused['code'] == -32600 and 'Cannot close active WebSocket-managed session' in refused['message']
        assert rpc('openenv/session/close', session_id=name)['result'] == {'session_id': name, 'closed': True}
        assert env.closed() == 1000
    unknown = {'code': -32602, 'message': f'Unknown session_id: {name}', 'data': None}
    assert rpc('openenv/session/close', session_id=name)['error'] == rpc('tools/list', session_id=name)['error'] == unknown
    assert rpc('openenv/session/close')['error']['message'] == "Invalid params - 'session_id' is required"


# ---- HTTP --------------------------------------------------------------------------------


def test_reset_over_http(api):
    assert api.post('/reset').json() == FIRST
    assert api.post('/reset', json={}).json() == FIRST
    assert api.post('/reset', json={'seed': 42, 'episode_id': 'ep-1'}).json() == FIRST


def test_step_over_http_keeps_nothing(api):
    before = api.metric('glovebox_sessions')
    assert step(api, "print('hi')\n1+1", timeout_s=15, request_id='r') == {
        'observation': {'stdout': 'hi\n\n2', 'stderr': '', 'exit_code': 0}, 'reward': 0.1, 'done': False,
    }  # fmt: skip
    step(api, 'x = 7')
    assert step(api, 'print(x)')['observation']['exit_code'] == 1
    gb.wait_until(lambda: api.metric('glovebox_sessions') == before, 'the sessions of single steps end')


def detail(answer):
    assert answer.status_code == 422, answer.text
    return answer.json()['detail']


def test_validation_errors_over_http(api):
    missing = {'type': 'missing', 'msg': 'Field required'}
    assert detail(api.post('/step')) == [{**missing, 'loc': ['body'], 'input': None}]
    assert detail(api.post('/step', json={})) == [{**missing, 'loc': ['body', 'action'], 'input': {}}]
    assert detail(api.post('/step', json={'action': 5, 'timeout_s': 0})) == [
        {'type': 'dict_type', 'loc': ['body', 'action'], 'msg': 'Input should be a valid dictionary', 'input': 5},
        {'type': 'greater_than', 'loc': ['body', 'timeout_s'], 'msg': 'Input should be greater than 0', 'input': 0,
         'ctx': {'gt': 0.0}},
    ]  # fmt: skip
    (error,) = detail(api.post('/step', json={'action': {}}))
    assert error.pop('url').endswith('/v/missing') and error == {**missing, 'loc': ['code'], 'input': {}}
    kinds = [(e['type'], e['loc']) for e in detail(api.post('/step', json={'action': {'code': 1, 'no': 2}}))]
    assert kinds == [('string_type', ['code']), ('extra_forbidden', ['no'])]
    assert detail(api.post('/reset', json=[1])) == [
        {'type': 'model_attributes_type', 'loc': ['body'], 'input': [1],
         'msg': 'Input should be a valid dictionary or object to extract fields from'},
    ]  # fmt: skip
    kinds = [(e['type'], e['loc']) for e in detail(api.post('/reset', json={'seed': -1, 'episode_id': 'x' * 256}))]
    assert kinds == [('greater_than_equal', ['body', 'seed']), ('string_too_long', ['body', 'episode_id'])]


@pytest.mark.parametrize('text', ['nonsense', '{', '{"action": }', '[1 2]', '{"é": "\n"}', '{}x', '"\\q"', '"\\u12', '-'])
def test_bad_json_in_the_words_of_python(api, env, text):
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads(text)
    answer = api.post('/step', data=text.encode(), headers={'Content-Type': 'application/json'})
    assert detail(answer) == [
        {'type': 'json_invalid', 'loc': ['body', caught.value.pos], 'msg': 'JSON decode error', 'input': {},
         'ctx': {'error': caught.value.msg}},
    ]  # fmt: skip
    assert env.ask(text) == {'type': 'error', 'data': {'message': f'Invalid JSON: {caught.value}', 'code': 'INVALID_JSON'}}


def test_a_header_makes_http_stateful(api):
    mine, other = {'X-Session-Id': 'mine.1'}, {'X-Session-Id': 'other'}
    answer = api.post('/reset', json={'episode_id': 'ep-7'}, headers=mine)
    assert answer.json() == FIRST and answer.headers['X-Session-Id'] == 'mine.1'
    step(api, 'x = 7', mine)
    assert step(api, 'print(x)', mine)['observation']['stdout'] == '7\n'
    assert step(api, 'print(x)', other)['observation']['exit_code'] == 1
    assert api.get('/state', headers=mine).json() == {'episode_id': 'ep-7', 'step_count': 2, 'last_exit_code': 0}
    assert api.get('/state', headers=other).json()['step_count'] == 1
    api.post('/reset', headers=mine)
    assert 'NameError' in step(api, 'x', mine)['observation']['stderr']
    for headers in (mine, other):
        assert api.post('/close', headers=headers).json() == {'closed': True}
    assert api.post('/close', headers=mine).json() == {'closed': False}
    gb.assert_problem(api.post('/reset', headers={'X-Session-Id': 'a b'}), 400, 'invalid_session_name')


def test_a_cookie_makes_http_stateful(api):
    answer = api.post('/reset?session=new')
    assert answer.json() == FIRST and 'HttpOnly' in answer.headers['Set-Cookie']
    step(api, 'x = 8')  # the connection keeps its cookies, as a browser does
    assert step(api, 'print(x)')['observation']['stdout'] == '8\n'
    assert api.post('/close').json() == {'closed': True}


def test_the_web_interface_has_one_environment(api):
    assert api.post('/web/reset').json() == FIRST
    assert api.post('/web/step', json={'action': {'code': 'w = 1'}}).status_code == 200
    assert api.post('/web/step', json={'action': {'code': 'print(w)'}}).json()['observation']['stdout'] == '1\n'
    assert api.get('/web/state').json()['step_count'] == 2
    api.post('/close?session=web')


def test_the_page_of_the_web_interface(api):
    answer = api.get('/web', allow_redirects=False)
    assert answer.status_code == 307 and answer.headers['Location'] == '/web/'
    assert 'Glovebox' in api.get('/').text  # the console
    page = api.get('/web/')
    assert page.headers['Content-Type'].startswith('text/html') and "default-src 'none'" in page.headers['Content-Security-Policy']
    for address in ('/web/step', '/web/reset', '/ws/ui'):
        assert address in page.text


def test_watching_the_web_interface(daemon, api):
    api.post('/close?session=web')
    with gb.Socket(f'{daemon.url}/ws/ui'.replace('http:', 'ws:')) as ui:
        nothing = {'episode_id': None, 'step_count': 0, 'current_observation': None, 'action_logs': [], 'is_reset': True}
        assert ui.receive() == {'type': 'state_update', 'episode_state': nothing}
        api.post('/web/reset', json={'episode_id': 'seen'})
        seen = ui.receive()['episode_state']
        assert seen == {**nothing, 'episode_id': 'seen', 'current_observation': FIRST['observation']}
        ui.send_text('whatever a page says is not for us')
        answer = api.post('/web/step', json={'action': {'code': 'print(6 * 7)'}}).json()
        seen = ui.receive()['episode_state']
        (log,) = seen['action_logs']
        assert seen['current_observation'] == answer['observation'] == log['observation'] and not seen['is_reset']
        assert log.keys() == {'timestamp', 'action', 'observation', 'reward', 'done', 'step_count'}
        assert log['action'] == {'code': 'print(6 * 7)'} and log['reward'] == 0.1 and log['step_count'] == seen['step_count'] == 1
        api.post('/web/step', json={'action': {'code': '1 / 0'}})
        second = ui.receive()['episode_state']
        assert second['action_logs'][0] == log and 'ZeroDivisionError' in second['action_logs'][1]['observation']['stderr']
        api.post('/web/reset')
        assert ui.receive()['episode_state']['action_logs'] == []
    answer = api.get('/ws/ui')
    gb.assert_problem(answer, 426, 'upgrade_required')
    api.post('/close?session=web')


def test_the_log_of_the_web_interface_is_bounded(daemon, api):
    api.post('/web/reset')
    for i in range(4):
        api.post('/web/step', json={'action': {'code': f'print({i} * 10 ** 6, "x" * 700_000)'}})
    with gb.Socket(f'{daemon.url}/ws/ui'.replace('http:', 'ws:')) as ui:
        seen = ui.receive()['episode_state']
    assert seen['step_count'] == 4 and [log['step_count'] for log in seen['action_logs']] == [3, 4]
    api.post('/close?session=web')


def test_a_client_that_leaves_ends_its_single_step(daemon, api):
    before = api.metric('glovebox_sessions')
    curl = subprocess.Popen(
        ['curl', '-s', '-m', '60', daemon.url + '/step', '-H', 'Content-Type: application/json', '-d',
         '{"action": {"code": "while True: pass"}}'],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    gb.wait_until(lambda: api.metric('glovebox_cells_running') >= 1, 'the step runs')
    curl.kill()
    curl.wait()
    gb.wait_until(lambda: api.metric('glovebox_sessions') == before, 'its session ends')


# ---- WebSocket -----------------------------------------------------------------------------


def test_an_episode(env):
    assert env.reset() == {'type': 'observation', 'data': FIRST}
    assert env.step("x = 5 + 3\nprint(f'Result: {x}')") == {
        'observation': {'stdout': 'Result: 8\n', 'stderr': '', 'exit_code': 0}, 'reward': 0.1, 'done': False,
    }  # fmt: skip
    failed = env.step('print("kept")\n1 / 0')
    assert failed['observation']['stdout'] == 'kept\n' and failed['observation']['exit_code'] == 1
    assert failed['observation']['stderr'].endswith('ZeroDivisionError: division by zero\n')
    state = env.state()
    assert state.pop('episode_id') and state == {'step_count': 2, 'last_exit_code': 1}
    env.reset()
    assert env.state()['step_count'] == 0
    assert env.step('print(x)')['observation']['exit_code'] == 1, 'a reset forgets variables'


def test_reset_forgets_files_too(env):
    env.reset()
    env.step('with open("f", "w") as f: _ = f.write("x")')
    env.reset()
    assert env.step('import os\nprint(os.listdir())')['observation']['stdout'] == '[]\n'


def test_seed_and_episode_are_honoured(env):
    draws = []
    for _ in range(2):
        env.reset(seed=7, episode_id='mine')
        draws.append(env.step('import random\nprint(random.random())')['observation']['stdout'])
    assert draws[0] == draws[1] and env.state()['episode_id'] == 'mine'
    env.reset(seed=8)
    assert env.step('import random\nprint(random.random())')['observation']['stdout'] != draws[0]
    assert UUID.fullmatch(env.state()['episode_id'])


def test_state_before_the_first_reset(env):
    assert env.state() == {'episode_id': None, 'step_count': 0, 'last_exit_code': 0}
    assert env.step('print(1)')['observation']['stdout'] == '1\n'


def test_values_are_spelled_as_json_dumps_does(env):
    for code, want in (('[1, {"a": "é"}]', '[1, {"a": "\\u00e9"}]'), ('"x"', '"x"'), ('None', ''), ('{1, 2}', '{1, 2}'),
                       ('1.5', '1.5'), ('True', 'true'), ('(1, 2)', '[1, 2]')):  # fmt: skip
        assert env.step(code)['observation']['stdout'] == want, code


def test_rewards(env):
    for code, reward in (('x = 1', 0.1), ('x =', -0.1), ('import os', -0.9), ('# ' + 'x' * 120, 0.0), ('eval("1")', -0.9),
                         ('eval("x =")', -0.9), ('import os' + '#' * 120, -1.0)):  # fmt: skip
        assert env.step(code)['reward'] == reward, code
    env.reset(rewards=False)
    assert env.step('x = 1')['reward'] is None


def test_rewards_can_be_switched_off():
    with gb.running_daemon('--no-openenv-rewards', '--preload', 'none', '--ready', '1') as daemon:
        with Env(daemon) as env, daemon.api() as api:
            assert env.reset()['data'] == {**FIRST, 'reward': None}
            assert env.step('import os')['reward'] is None
            assert api.post('/reset').json()['reward'] is None


def test_error_messages(env):
    def error(message):
        answer = env.ask(message)
        assert answer['type'] == 'error' and set(answer) == {'type', 'data'}
        return answer['data']

    assert error({'type': 'bogus'}) == {'message': 'Unknown message type: bogus', 'code': 'UNKNOWN_TYPE'}
    assert error({})['message'] == 'Unknown message type: '
    for message, kind, loc in (
        ({'type': 'step', 'data': {}}, 'missing', ['code']),
        ({'type': 'step'}, 'missing', ['data']),
        ({'type': 'step', 'data': 5}, 'dict_type', ['data']),
        ({'type': 'step', 'data': {'code': None}}, 'string_type', ['code']),
        ({'type': 'step', 'data': {'code': '1', 'metadata': []}}, 'dict_type', ['metadata']),
        ({'type': 'step', 'data': {'code': '1', 'more': 1}}, 'extra_forbidden', ['more']),
        ({'type': 'state', 'data': {}}, 'extra_forbidden', ['data']),
        ({'type': 'reset', 'data': {'seed': 'x'}}, 'int_parsing', ['seed']),
        ({'type': 'reset', 'data': {'limits': {'timeout_s': -1}}}, 'value_error', ['limits']),
        ({'type': 'reset', 'data': {'packages': 5}}, 'value_error', ['packages']),
    ):
        found = error(message)
        assert (found['message'], found['code']) == ('Invalid message', 'VALIDATION_ERROR')
        assert [(e['type'], e['loc']) for e in found['errors']] == [(kind, loc)], message
        assert {'msg', 'input', 'url'} <= set(found['errors'][0])
    assert env.step('print("still there")')['observation']['exit_code'] == 0
    too_long = error({'type': 'step', 'data': {'code': '1'}, 'timeout_s': 1e6})
    assert too_long['code'] == 'EXECUTION_ERROR' and 'timeout_s' in too_long['message']


def test_mcp_over_the_socket(env):
    answer = env.ask({'type': 'mcp', 'data': {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}})
    assert answer['type'] == 'mcp' and answer['data']['error']['message'] == 'Environment does not support MCP'


def test_a_socket_for_mcp_alone(daemon, api):
    with gb.Socket(daemon.url.replace('http:', 'ws:') + '/mcp') as mcp:
        for text, code in (('{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', -32603), ('{', -32700), ('{}', -32600)):
            mcp.send_text(text)
            assert mcp.receive()['error']['code'] == code
    gb.assert_problem(api.get('/mcp'), 405, 'method_not_allowed')  # as MCP's clients expect it
    assert api.get('/redoc').text == api.get('/docs').text


def test_what_is_no_object_ends_the_connection(daemon):
    with Env(daemon) as env:
        data = env.ask('[1]')['data']
        assert data == {'message': "'list' object has no attribute 'get'", 'code': 'SESSION_ERROR'}
        assert env.closed() == 1000


def test_close_ends_the_session(daemon, api):
    before = api.metric('glovebox_sessions')
    with Env(daemon) as env:
        assert api.metric('glovebox_sessions') == before + 1
        env.send_text('{"type": "close"}')
        assert env.closed() == 1000
    assert api.metric('glovebox_sessions') == before


def test_a_lost_connection_ends_the_session(daemon, api):
    before = api.metric('glovebox_sessions')
    env = Env(daemon)
    env.send_text(json.dumps({'type': 'step', 'data': {'code': 'while True: pass'}}))
    env.cut()
    gb.wait_until(lambda: api.metric('glovebox_sessions') == before, 'the session ends with its connection')


def test_capacity():
    with gb.running_daemon('--max-sessions', '1', '--preload', 'none', '--ready', '1') as daemon:
        with Env(daemon), Env(daemon) as second:
            assert second.receive() == {'type': 'error', 'data': {
                'message': 'Server at capacity: 1/1 sessions active. Cannot accept new connections.',
                'code': 'CAPACITY_REACHED', 'active_sessions': 1, 'max_sessions': 1}}  # fmt: skip
            assert second.closed() == 1000
            with daemon.api() as api:
                error = api.post('/mcp', json={'jsonrpc': '2.0', 'id': 1, 'method': 'openenv/session/create'}).json()['error']
            assert error['code'] == -32000 and error['data'] == {'active_sessions': 1, 'max_sessions': 1}
            assert error['message'].startswith('Server at capacity: 1/1')


# ---- beyond OpenEnv ---------------------------------------------------------------------------


def test_many_environments_at_once(daemon):
    envs = [Env(daemon) for _ in range(8)]
    for i, env in enumerate(envs):
        env.send_text(json.dumps({'type': 'step', 'data': {'code': f'me = {i}'}}))
        env.send_text(json.dumps({'type': 'step', 'data': {'code': 'print(me)'}}))
    for i, env in enumerate(envs):
        env.receive()
        assert env.receive()['data']['observation']['stdout'] == f'{i}\n'
        env.close()


def test_messages_wait_for_the_step_before_them(env):
    for message in ({'type': 'reset', 'data': {}}, {'type': 'step', 'data': {'code': 'import time; time.sleep(0.3)'}},
                    {'type': 'state'}, {'type': 'reset', 'data': {}}, {'type': 'state'}):  # fmt: skip
        env.send_text(json.dumps(message))
    answers = [env.receive() for _ in range(5)]
    assert [a['type'] for a in answers] == ['observation', 'observation', 'state', 'observation', 'state']
    assert [answers[2]['data']['step_count'], answers[4]['data']['step_count']] == [1, 0]


@pytest.mark.parametrize('where', ['message', 'action'])
def test_time_limits(env, where):
    message = {'type': 'step', 'data': {'code': 'print("before")\nwhile True: pass'}}
    (message if where == 'message' else message['data'])['timeout_s'] = 1
    observation = env.ask(message)['data']['observation']
    assert observation['stdout'] == 'before\n' and observation['exit_code'] == 124
    assert 'longer than its limit of 1 s' in observation['stderr']
    assert env.step('print("alive")')['observation']['stdout'] == 'alive\n'


def test_time_limits_over_http(api):
    assert step(api, 'while True: pass', timeout_s=0.3)['observation']['exit_code'] == 124


def test_ids_streams_and_extras_on_request(env):
    answer = env.ask({'type': 'step', 'data': {'code': 'print(1)'}, 'id': 'a', 'stream': True, 'extras': True})
    assert answer == {'type': 'output', 'data': {'stream': 'stdout', 'text': '1\n'}, 'id': 'a'}
    answer = env.receive()
    assert answer['id'] == 'a' and answer['data']['info']['status'] == 'ok'
    assert env.ask({'type': 'state', 'id': 5})['id'] == 5
    assert env.ask({'type': 'bogus', 'id': 6})['id'] == 6


def test_streams_and_extras_of_a_whole_connection(daemon):
    with Env(daemon, '?stream=1&extras=1') as env:
        assert env.ask({'type': 'step', 'data': {'code': 'print(1)'}})['type'] == 'output'
        assert 'info' in env.receive()['data']


def test_session_fields_at_a_reset(env):
    assert env.reset(env={'COLOUR': 'red'}, limits={'timeout_s': 0.5})['type'] == 'observation'
    assert env.step('import os\nprint(os.environ["COLOUR"])')['observation']['stdout'] == 'red\n'
    assert env.step('while True: pass')['observation']['exit_code'] == 124


# ---- back and sideways --------------------------------------------------------------------


def travel(env, type, **data):
    answer = env.ask({'type': type, 'data': data, 'id': type})
    assert answer.pop('id') == type
    return answer


def test_checkpoints_and_back(env):
    env.reset()
    env.step('x = 1; open("f", "w").write("1")')
    point = travel(env, 'checkpoint', name='one')
    assert point['type'] == 'checkpoint' and point['data']['checkpoint']['name'] == 'one' and point['data']['evicted'] == []
    env.step('x = 2; open("f", "w").write("2")')
    back = travel(env, 'rollback', checkpoint='one')
    assert back['type'] == 'rollback' and back['data']['checkpoint']['id'] == point['data']['checkpoint']['id']
    assert env.step('print(x, open("f").read())')['observation']['stdout'] == '1 1\n'
    env.step('x = 3')
    assert travel(env, 'undo')['type'] == 'rollback'
    assert env.step('print(x)')['observation']['stdout'] == '1\n'
    assert [c['name'] for c in travel(env, 'checkpoints')['data']['checkpoints'] if c['name']] == ['one']
    assert env.state()['step_count'] == 5, 'steps that were taken back were taken'


def test_forks_are_environments(daemon, api, env):
    env.reset(episode_id='tree', seed=1)
    env.step('x = [1]; import random')
    made = travel(env, 'fork', count=2)['data']
    assert made['same_numbers'] == '' and len(made['environments']) == 2
    first, second = made['environments']
    with Env(daemon, f'?session={first["session"]}') as one:
        assert one.state() == env.state()
        one.step('x.append(2)')
        (deeper,) = travel(one, 'fork', reseed=False)['data']['environments']
        assert step(api, 'print(x)', {'X-Session-Id': deeper['session']})['observation']['stdout'] == '[1, 2]\n'
        assert step(api, 'print(x)', {'X-Session-Id': second['session']})['observation']['stdout'] == '[1]\n'
        assert env.step('print(x)')['observation']['stdout'] == '[1]\n'
        one.reset()
        assert one.step('x')['observation']['exit_code'] == 1, 'a reset is a new episode for a fork too'
    for name in (second['session'], deeper['session']):
        assert api.post('/close', headers={'X-Session-Id': name}).status_code == 200
    gb.wait_until(lambda: not [s for s in api.get('/v1/sessions').json()['sessions'] if s['from']], 'the forks end with their environments')


def test_wrong_ways_back(env):
    env.reset()
    env.step('x = 1')
    for type, data, code in (
        ('checkpoint', {'name': ''}, 'VALIDATION_ERROR'),
        ('checkpoint', {'more': 1}, 'VALIDATION_ERROR'),
        ('rollback', {}, 'VALIDATION_ERROR'),
        ('rollback', {'checkpoint': 'none'}, 'EXECUTION_ERROR'),
        ('fork', {'count': 0}, 'VALIDATION_ERROR'),
        ('fork', {'count': 'many'}, 'VALIDATION_ERROR'),
        ('fork', {'at': 'none'}, 'EXECUTION_ERROR'),
        ('undo', {'twice': True}, 'VALIDATION_ERROR'),
        ('checkpoints', {'all': True}, 'VALIDATION_ERROR'),
    ):
        answer = travel(env, type, **data)
        assert answer['type'] == 'error' and answer['data']['code'] == code, (type, data, answer)
    env.step('import threading; e = threading.Event(); t = threading.Thread(target=e.wait); t.start()')
    assert 'thread' in travel(env, 'fork')['data']['message']
    env.step('e.set(); t.join()')
    assert travel(env, 'checkpoint')['type'] == 'checkpoint'


def test_messages_wait_for_a_fork_and_a_lost_one_leaves_nothing(daemon, api):
    with Env(daemon) as env:
        env.reset()
        env.step('x = 1')
        for message in ({'type': 'fork', 'data': {'count': 3}}, {'type': 'step', 'data': {'code': 'print(x)'}}, {'type': 'checkpoint'}, {'type': 'state'}):
            env.send_text(json.dumps(message))
        assert [env.receive()['type'] for _ in range(4)] == ['fork', 'observation', 'checkpoint', 'state']
    before = len(api.get('/v1/sessions').json()['sessions'])
    lost = Env(daemon)
    lost.reset()
    lost.step('x = 1')
    lost.send_text(json.dumps({'type': 'fork', 'data': {'count': 8}}))
    lost.cut()
    gb.wait_until(lambda: len(api.get('/v1/sessions').json()['sessions']) <= before, 'neither the environment nor its forks are left')


def test_coming_back_after_a_broken_connection(daemon, api):
    env = Env(daemon, '?session=back')
    env.reset(episode_id='long')
    env.step('x = 5')
    env.send_text(json.dumps({'type': 'step', 'id': 3, 'data': {'code': 'import time; time.sleep(0.3); x += 1; print(x)'}}))
    env.cut()
    with Env(daemon, '?session=back') as again:
        # The step that was under way is answered once, not run twice.
        answer = again.ask({'type': 'step', 'id': 3, 'data': {'code': 'import time; time.sleep(0.3); x += 1; print(x)'}})
        assert answer['id'] == 3 and answer['data']['observation']['stdout'] == '6\n'
        assert again.ask({'type': 'step', 'id': 3, 'data': {'code': 'x += 1'}}) == answer
        assert again.state() == {'episode_id': 'long', 'step_count': 2, 'last_exit_code': 0}
        assert api.get('/state?session=back').json()['episode_id'] == 'long', 'HTTP finds it by the same name'
    gb.wait_until(lambda: api.get('/state?session=back').json()['episode_id'] is None, 'a close ends it')


def test_a_second_connection_takes_over(daemon):
    with Env(daemon, '?session=shared') as first:
        first.step('x = 1')
        with Env(daemon, '?session=shared') as second:
            assert second.step('print(x)')['observation']['stdout'] == '1\n'
            assert first.closed() == 1008


def test_a_lease_ends():
    with gb.running_daemon('--openenv-lease', '0.5', '--preload', 'none', '--ready', '1') as daemon, daemon.api() as api:
        env = Env(daemon, '?session=lost')
        env.step('x = 1')
        env.cut()
        gb.wait_until(lambda: api.metric('glovebox_sessions') == 0, 'nobody came back')


def test_a_session_that_was_reaped_is_said_so(daemon):
    with Env(daemon) as env, daemon.api() as api:
        env.reset(idle_timeout_s=1)
        gb.wait_until(lambda: not any(s['idle_timeout_s'] == 1 for s in api.get('/v1/sessions').json()['sessions']),
                      'it was idle for too long')  # fmt: skip
        error = env.ask({'type': 'step', 'data': {'code': '1'}})['data']
        assert error['code'] == 'SESSION_ERROR' and 'idle' in error['message']
        env.reset()
        assert env.step('print(1)')['observation']['stdout'] == '1\n'


def test_tokens_divide_environments():
    tokens = ('a-token-of-sixteen-letters', 'b-token-of-sixteen-letters')
    with gb.running_daemon('--token', ','.join(tokens), '--preload', 'none', '--ready', '1', token=tokens[0]) as daemon:
        assert gb.Api(daemon.url).post('/reset').status_code == 401
        name = {'X-Session-Id': 'same'}
        with gb.Api(daemon.url, tokens[0]) as one, gb.Api(daemon.url, tokens[1]) as two:
            step(one, 'x = 1', name)
            assert step(two, 'print(x)', name)['observation']['exit_code'] == 1
        with Env(daemon, headers={'Authorization': f'Bearer {tokens[0]}'}) as env:
            assert env.reset()['data'] == FIRST


def test_the_drain_waits_for_a_step():
    with gb.running_daemon('--preload', 'none', '--ready', '1') as daemon:
        with Env(daemon) as env, daemon.api() as api:
            env.send_text(json.dumps({'type': 'step', 'data': {'code': 'import time; time.sleep(4); print("done")'}}))
            gb.wait_until(lambda: api.metric('glovebox_cells_running') == 1, 'the step runs')
            assert daemon.terminate() == 0
            assert env.receive()['data']['observation']['stdout'] == 'done\n'


# ---- screenshots ------------------------------------------------------------------------------

WINDOW = 'import tkinter\nroot = tkinter.Tk()\nroot.geometry("200x100")\nroot.mainloop()\nprint("closed")'


def is_png(text):
    return base64.b64decode(text).startswith(b'\x89PNG')


def test_a_screenshot_of_an_action(daemon):
    with Env(daemon) as env:
        env.reset()
        answer = env.ask({'type': 'step', 'data': {'code': WINDOW, 'capture_screenshot': True}})['data']
        assert answer['observation']['stdout'] == 'closed\n', answer
        assert is_png(answer['observation']['screenshot']) and 'metadata' not in answer
        assert set(env.step('x = 1')['observation']) == {'stdout', 'stderr', 'exit_code'}, 'only for those who ask'
        state = env.state()
        assert state['step_count'] == 2 and state['episode_id']


def test_a_screenshot_over_http(api):
    answer = api.post('/step', json={'action': {'code': WINDOW, 'screenshot': {'scale': 0.5}}}).json()
    assert is_png(answer['observation']['screenshot'])


def test_every_environment_has_a_screen(env):
    env.step('x = 1')
    answer = env.ask({'type': 'step', 'data': {'code': 'print(x)', 'capture_screenshot': True}})['data']
    assert is_png(answer['observation']['screenshot']) and answer['observation']['stdout'] == '1\n'
    assert 'No window' in answer['metadata']['screenshot_note']
    env.step('import tkinter\nroot = tkinter.Tk()')
    answer = env.ask({'type': 'step', 'data': {'code': 'root["bg"] = "red"', 'capture_screenshot': True, 'render_timeout': 5}})['data']
    assert is_png(answer['observation']['screenshot']) and 'metadata' not in answer


def test_why_there_is_no_screenshot(env):
    env.ask({'type': 'reset', 'data': {'display': False}})
    answer = env.ask({'type': 'step', 'data': {'code': 'print(1)', 'capture_screenshot': True}})['data']
    assert answer['observation']['screenshot'] is None and answer['observation']['stdout'] == '1\n'
    assert 'display' in answer['metadata']['screenshot_error']
    wrong = env.ask({'type': 'step', 'data': {'code': '1', 'screenshot': {'format': 'gif'}}})['data']
    assert wrong['code'] == 'VALIDATION_ERROR' and wrong['errors'][0]['loc'] == ['screenshot']


# ---- profiles ------------------------------------------------------------------------------------


def test_the_rules_of_coding_env_are_the_default():
    with gb.running_daemon('--preload', 'json,random', '--ready', '2') as daemon, Env(daemon) as env:
        env.reset()
        refused = env.step('import os')
        assert refused['observation']['exit_code'] == 1 and refused['reward'] == -0.9
        assert refused['observation']['stderr'].count('Import of os is not allowed') == 1
        answer = env.step('print("so")\nfinal_answer({"total": 7})')
        assert answer['done'] is True and answer['metadata'] == {'final_answer': {'total': 7}}
        assert answer['observation']['stdout'].startswith('so\n')
        assert env.step('x = 7') == {
            'observation': {'stdout': '7', 'stderr': '', 'exit_code': 0}, 'reward': 0.1, 'done': False,
        }  # fmt: skip
        env.reset(additional_imports=['os'])
        assert env.step('import os\nprint(os.sep)')['observation']['stdout'] == '/\n'
        env.reset(profile='python')
        assert env.step('import os\nprint(os.sep)')['observation']['stdout'] == '/\n'


def test_the_variables_of_coding_env_choose_the_profile():
    with gb.running_daemon(
        '--preload', 'none', '--ready', '1', env={'EXECUTOR_BACKEND': 'smolagents', 'ADDITIONAL_IMPORTS': 'os'}
    ) as daemon, Env(daemon) as env:
        assert env.step('import os\nprint(os.sep)')['observation']['stdout'] == '/\n'
        assert env.step('import subprocess')['observation']['exit_code'] == 1


# ---- packages ------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def stocked(tmp_path_factory):
    """A daemon that can install one package from a folder of wheels."""
    wheels = tmp_path_factory.mktemp('wheels')
    name, data = package_index.wheel('openenv-demo', '1.0', {'openenv_demo.py': 'answer = 42\n'})
    (wheels / name).write_bytes(data)
    wheels.chmod(0o755)  # the installer is another user
    with gb.running_daemon(
        '--packages-offline', '--packages-find-links', wheels, '--openenv-profile', 'python', '--preload', 'json', '--ready', '2'
    ) as daemon:
        yield daemon


USE = 'import openenv_demo\nprint(openenv_demo.answer)'


def test_a_reset_with_packages(stocked):
    with Env(stocked) as env:
        # What is sent meanwhile waits: the step finds the package there.
        env.send_text(json.dumps({'type': 'reset', 'id': 1, 'data': {'packages': ['openenv-demo'], 'episode_id': 'p'}}))
        env.send_text(json.dumps({'type': 'step', 'data': {'code': USE}}))
        assert env.receive() == {'type': 'observation', 'data': FIRST, 'id': 1}
        assert env.receive()['data']['observation']['stdout'] == '42\n'
        assert env.state()['episode_id'] == 'p'
        missing = env.reset(packages=['no-such-package-at-all'])
        assert missing['type'] == 'error' and missing['data']['code'] == 'EXECUTION_ERROR', missing
        assert env.step('print(1)')['observation']['stdout'] == '1\n', 'the episode before goes on'
        pictured = env.reset(packages=['openenv-demo'])
        assert pictured['type'] == 'observation'
        answer = env.ask({'type': 'step', 'data': {'code': USE, 'capture_screenshot': True}})['data']
        assert answer['observation']['stdout'] == '42\n' and is_png(answer['observation']['screenshot'])


def test_a_reset_with_packages_over_http(stocked):
    with stocked.api() as api:
        named = {'X-Session-Id': 'packaged'}
        assert api.post('/reset', json={'packages': ['openenv-demo']}, headers=named).json() == FIRST
        assert step(api, USE, named)['observation']['stdout'] == '42\n'
        missing = api.post('/reset', json={'packages': ['no-such-package-at-all']}, headers=named)
        assert missing.status_code >= 400 and 'no-such-package-at-all' in missing.text
        api.post('/close', headers=named)


def test_a_connection_that_breaks_while_packages_are_awaited(stocked):
    with stocked.api() as api:
        before = api.metric('glovebox_sessions')
        env = Env(stocked)
        env.send_text(json.dumps({'type': 'reset', 'data': {'packages': ['another-missing-package']}}))
        env.cut()
        gb.wait_until(lambda: api.metric('glovebox_sessions') == before, 'its session ends')
        with Env(stocked) as again:
            assert again.reset()['type'] == 'observation'


def test_a_kernel_with_packages(stocked):
    with stocked.api() as api:
        kernel = api.post('/api/kernels', json={'packages': ['openenv-demo']})
        assert kernel.status_code == 201, kernel.text
        (session,) = [s for s in api.get('/v1/sessions').json()['sessions'] if s['name'] == 'jupyter']
        answer = api.post(f'/v1/sessions/{session["id"]}/execute', json={'code': USE}).json()
        assert answer['stdout'] == '42\n'
        api.delete(f'/api/kernels/{kernel.json()["id"]}')
