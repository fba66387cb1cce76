"""Bad input of every kind: its own error, with the place of the mistake, and nothing lost."""

import json

import pytest

import gb


def post(api, path, body):
    return api.post(path, data=body, headers={'Content-Type': 'application/json'})


MALFORMED = {
    'text': (b'hello', 1, 1),
    'unclosed object': (b'{"code": "1"', 1, 13),
    'unclosed string': (b'{"code": "1', 1, None),
    'trailing comma': (b'{"code": "1",}', 1, 14),
    'second line': (b'{"code": "1",\n  "timeout_s" 5}', 2, 15),
    'third line': (b'{\n"code"\n: }', 3, 3),
    'two values': (b'{"code":"1"} {}', 1, 14),
    'single quotes': (b"{'code': '1'}", 1, 2),
    'python words': (b'{"code": None}', 1, 10),
    'not a number': (b'{"code": NaN}', 1, 10),
    'infinity': (b'{"timeout_s": Infinity}', 1, 15),
    'leading zero': (b'{"timeout_s": 01}', 1, None),
    'bad escape': (b'{"code": "\\x"}', 1, None),
    'bad unicode escape': (b'{"code": "\\u12"}', 1, None),
    'lone surrogate': (b'{"code": "\\ud800"}', 1, None),
    'control character': (b'{"code": "a\nb"}', 1, None),
    'invalid utf-8': (b'{"code": "\xff\xfe"}', 1, 11),
    'overlong utf-8': (b'{"code": "\xc0\x80"}', 1, 11),
    'surrogate in utf-8': (b'{"code": "\xed\xa0\x80"}', 1, 11),
    'nul byte': (b'{"code": "1"}\0', 1, None),
    'nul in string': (b'{"code": "a\0b"}', 1, None),
    'comment': (b'{"code": "1" /* x */}', 1, 14),
    'utf-16': '{"code":"1"}'.encode('utf-16'),
    'column counts characters': ('{"code": "äöü", x}'.encode(), 1, 17),
}


@pytest.mark.parametrize('kind', MALFORMED)
@pytest.mark.parametrize('where', ['execute', 'sessions', 'run'])
def test_malformed_json_says_where(api, session, kind, where):
    case = MALFORMED[kind]
    body, line, column = case if isinstance(case, tuple) else (case, None, None)
    path = {'execute': f'{session.path}/execute', 'sessions': '/v1/sessions', 'run': '/v1/run'}[where]
    code = 'invalid_utf8' if 'utf' in kind else 'malformed_json'
    problem = gb.assert_problem(post(api, path, body), 400, code, 'line ', 'column ')
    if line:
        assert f'line {line},' in problem['detail']
    if column:
        assert f'line {line}, column {column}:' in problem['detail'], problem['detail']


@pytest.mark.parametrize(
    'body, code, path',
    [
        ('{"a":' * 100 + '1' + '}' * 100, 'json_too_deep', 'nested'),
        ('[' * 1_000_000, 'json_too_deep', 'nested'),
        ('{"code": "1", "code": "2"}', 'duplicate_field', 'appears twice'),
        ('[]', 'invalid_field', '$: must be an object, not a list'),
        ('"x"', 'invalid_field', '$: must be an object, not a string'),
        ('null', 'invalid_field', '$: must be an object, not null'),
        ('5', 'invalid_field', '$: must be an object'),
        ('{}', 'missing_field', '$.code: is required'),
        ('', 'missing_field', '$.code: is required'),
        ('{"code": null}', 'missing_field', '$.code'),
        ('{"code": 5}', 'invalid_field', '$.code: must be a string, not 5'),
        ('{"code": ["1"]}', 'invalid_field', '$.code: must be a string, not a list'),
        ('{"code": true}', 'invalid_field', '$.code: must be a string, not a boolean'),
        ('{"code": "1", "timeout_s": "5"}', 'invalid_field', '$.timeout_s: must be a number between 0.1 and 3600, not a string'),
        ('{"code": "1", "timeout_s": 0}', 'invalid_field', '$.timeout_s: must be a number between 0.1 and 3600, not 0'),
        ('{"code": "1", "timeout_s": -1}', 'invalid_field', '$.timeout_s: must be a number between 0.1 and 3600'),
        ('{"code": "1", "timeout_s": 1e9}', 'invalid_field', '$.timeout_s: must be a number between 0.1 and 3600'),
        ('{"code": "1", "timeout_s": true}', 'invalid_field', '$.timeout_s'),
        ('{"code": "1", "detach": 1}', 'invalid_field', '$.detach: must be true or false'),
        ('{"code": "1", "stdin": 5}', 'invalid_field', '$.stdin'),
        ('{"code": "1", "cod": "2"}', 'unknown_field', '"code"'),
        ('{"code": "1", "timeout": 2}', 'unknown_field', '"timeout_s"'),
        ('{"code": "1", "zzz": 2}', 'unknown_field', 'Known fields: code'),
        ('{"code": "1", "timeout_s": 1e999}', None, None),
        ('{"code": "1", "\\u0000": 1}', None, None),
    ],
)  # fmt: skip
def test_wrong_execute_requests(api, session, body, code, path):
    answer = post(api, f'{session.path}/execute', body.encode())
    assert answer.status_code == 400 and answer.headers['Content-Type'] == 'application/problem+json'
    if code:
        gb.assert_problem(answer, 400, code, path)
    assert session.get()['cells'] == 0, 'nothing ran'
    assert session.value('1') == '1'


@pytest.mark.parametrize(
    'fields, code, path',
    [
        ({'name': ''}, 'invalid_field', '$.name'),
        ({'name': 'x' * 129}, 'invalid_field', '$.name'),
        ({'name': 5}, 'invalid_field', '$.name'),
        ({'name': 'a\0b'}, 'invalid_field', '$.name'),
        ({'env': ['A=1']}, 'invalid_field', '$.env'),
        ({'env': {'A': 1}}, 'invalid_field', '$.env.A'),
        ({'env': {'A B': '1'}}, 'invalid_field', 'variable name'),
        ({'env': {'': '1'}}, 'invalid_field', '$.env'),
        ({'env': {'1A': '1'}}, 'invalid_field', '$.env'),
        ({'env': {'A=B': '1'}}, 'invalid_field', '$.env'),
        ({'env': {'A': 'x\0y'}}, 'invalid_field', '$.env.A'),
        ({'env': {f'V{i}': '' for i in range(129)}}, 'invalid_field', '$.env'),
        ({'env': {'A': 'x' * 200_000}}, 'invalid_field', '$.env'),
        ({'preload': 'json'}, 'invalid_field', '$.preload'),
        ({'preload': [5]}, 'invalid_field', '$.preload[0]'),
        ({'preload': ['a'] * 65}, 'invalid_field', '$.preload'),
        ({'metadata': 'x'}, 'invalid_field', '$.metadata'),
        ({'metadata': {'a': 'x' * 20_000}}, 'invalid_field', '$.metadata'),
        ({'limits': 5}, 'invalid_field', '$.limits'),
        ({'limits': {'memory': 5}}, 'unknown_field', 'memory_bytes'),
        ({'limits': {'memory_bytes': 5}}, 'invalid_field', '$.limits.memory_bytes'),
        ({'limits': {'memory_bytes': 1.5e9 + 0.5}}, 'invalid_field', 'whole number'),
        ({'limits': {'timeout_s': 3601}}, 'invalid_field', '$.limits.timeout_s: must be a number between 0.1 and 3600'),
        ({'limits': {'disk_bytes': 1 << 45}}, 'limit_too_large', 'disk_bytes'),
        ({'limits': {'output_bytes': 1 << 40}}, 'limit_too_large', 'output_bytes'),
        ({'limits': {'output_bytes': 1}}, 'invalid_field', '$.limits.output_bytes'),
        ({'ttl_s': 0}, 'invalid_field', '$.ttl_s'),
        ({'ttl_s': 1e300}, 'invalid_field', '$.ttl_s'),
        ({'idle_timeout_s': -5}, 'invalid_field', '$.idle_timeout_s'),
        ({'seed': -1}, 'invalid_field', '$.seed'),
        ({'seed': 1 << 32}, 'invalid_field', '$.seed'),
        ({'seed': 1.5}, 'invalid_field', '$.seed'),
        ({'profile': 'x', 'nmae': 'y'}, 'unknown_field', '$.'),
    ],
)
def test_wrong_session_requests(api, fields, code, path):
    gb.assert_problem(api.post('/v1/sessions', json=fields), 400, code, path)


def test_ten_megabytes_of_code(api, session):
    """More than the maximum is refused by name; just below it, it runs."""
    answer = session.post_code('#' * 10_000_000)
    problem = gb.assert_problem(answer, 400, 'invalid_field', '$.code: must have at most 8388608 bytes')
    assert '10000000' in problem['detail']
    assert session.execute('#' * 8_000_000 + '\n"ran"').ok().text == "'ran'"
    assert session.value('1') == '1'


def test_body_larger_than_any_request(api, daemon, session):
    answer = session.post_code('x' * (40 << 20))
    gb.assert_problem(answer, 413, 'body_too_large')
    assert session.value('1') == '1'


def test_a_million_small_values(api):
    answer = post(api, '/v1/sessions', b'{"metadata": {"a": [' + b'1,' * 1_000_000 + b'1]}}')
    assert answer.status_code == 400
    assert 'values' in answer.json()['detail'] or 'bytes' in answer.json()['detail']


@pytest.mark.parametrize(
    'kind', [None, 'text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'multipart/form-data']
)
def test_content_type_must_be_json(api, kind):
    headers = {'Content-Type': kind} if kind else {}
    answer = api.post('/v1/run', data=b'{"code": "1"}', headers=headers)
    gb.assert_problem(answer, 415, 'unsupported_media_type', 'application/json')


@pytest.mark.parametrize('kind', ['application/json; charset=utf-8', 'Application/JSON', 'application/json ;x=y'])
def test_spellings_of_the_content_type(api, kind):
    assert api.post('/v1/run', data=b'{"code": "1"}', headers={'Content-Type': kind}).status_code == 200


def test_compressed_bodies_are_refused(api):
    answer = api.post('/v1/run', data=b'x', headers={'Content-Type': 'application/json', 'Content-Encoding': 'gzip'})
    gb.assert_problem(answer, 415, 'unsupported_encoding')


@pytest.mark.parametrize(
    'method, path, status',
    [
        ('GET', '/v1', 404),
        ('GET', '/v1/sesions', 404),
        ('GET', '/v1/sessions/', 404),
        ('GET', '/v2/sessions', 404),
        ('DELETE', '/v1/sessions', 405),
        ('GET', '/v1/run', 405),
        ('PUT', '/v1/sessions', 405),
        ('POST', '/health', 405),
        ('PATCH', '/v1/run', 405),
        ('GET', '/v1/sessions?limit=%zz', 400),
        ('GET', '/health?x=1', 400),
    ],
)
def test_wrong_addresses(api, method, path, status):
    answer = api.request(method, path)
    assert answer.status_code == status, answer.text
    problem = answer.json()
    assert problem['status'] == status and problem['code'] and problem['detail']
    if status == 405:
        assert answer.headers['Allow']
    if path == '/v1/sesions':
        assert '/v1/sessions' in problem['remediation']


def test_every_answer_has_a_request_id(api, session):
    ids = {api.get(p).headers['X-Request-Id'] for p in ('/health', '/nowhere', '/v1/sessions', session.path)}
    assert len(ids) == 4
    problem = api.get('/nowhere')
    assert problem.json()['request_id'] == problem.headers['X-Request-Id']
    seen = session.post_code('1', headers={'X-Request-Id': 'mine-42'})
    assert seen.headers['X-Request-Id'] == 'mine-42' and seen.json()['id'] == 'mine-42'


def test_hostile_request_ids_are_not_taken_over(api, daemon):
    for bad in ('x' * 5000, 'a b', 'a"b', '<script>', 'ä'):
        answer = api.get('/health', headers={'X-Request-Id': bad.encode('latin-1')})
        assert answer.headers['X-Request-Id'] != bad and answer.status_code in (200, 431)


def test_log_lines_cannot_be_forged(api, daemon):
    api.get('/x%0a2026-01-01T00:00:00.000Z info forged')
    api.get('/%1b[31mred')
    assert '\n2026-01-01T00:00:00.000Z info forged' not in daemon.log()
    assert '\x1b' not in daemon.log()


def test_numbers_at_their_edges(api):
    ok = {'limits': {'timeout_s': 0.1, 'memory_bytes': 16 << 20, 'output_bytes': 1024}, 'seed': 0, 'ttl_s': 31536000}
    session = api.session(**ok)
    info = session.get()
    assert info['limits']['timeout_s'] == 0.1 and info['limits']['memory_bytes'] == 16 << 20
    answer = post(api, '/v1/sessions', json.dumps({'limits': {'memory_bytes': 2.68435456e8}}).encode())
    assert answer.status_code == 201 and answer.json()['limits']['memory_bytes'] == 1 << 28
    api.delete(f'/v1/sessions/{answer.json()["id"]}')


def test_more_memory_than_the_machine_has(api):
    answer = post(api, '/v1/sessions', json.dumps({'limits': {'memory_bytes': 1 << 50}}).encode())
    assert answer.status_code == 400 and answer.json()['code'] == 'limit_too_large', answer.text
    assert '--max-memory' in answer.json()['remediation']


def test_unicode_everywhere(api):
    session = api.session(name='名前 🧤', metadata={'ключ': 'значение', 'emoji': '😀'})
    assert session.get()['name'] == '名前 🧤' and session.get()['metadata'] == {'ключ': 'значение', 'emoji': '😀'}
    found = api.get('/v1/sessions', params={'name': '名前 🧤'}).json()['sessions']
    assert [s['id'] for s in found] == [session.id]
    found = api.get('/v1/sessions', params={'metadata.ключ': 'значение'}).json()['sessions']
    assert [s['id'] for s in found] == [session.id]
    assert session.execute('print("𝕌𝕟𝕚\\U0001F600")').stdout == '𝕌𝕟𝕚😀\n'
