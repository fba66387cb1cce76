"""POST /v1/batch, scripts as scripts, the client's batch() and grade(), and `glovebox batch`."""

import asyncio
import concurrent.futures
import json
import sys

import pytest
import requests

import gb

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))
import glovebox  # noqa: E402


def send(api, items, headers=None, **fields):
    answer = api.post('/v1/batch', json={'items': items, **fields}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers['Content-Type'] == 'application/x-ndjson'
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert lines[-1]['done'] is True and lines[-1]['items'] == len(items) == len(lines) - 1
    return {line['index']: line for line in lines[:-1]}, lines[-1]


# ---- scripts ---------------------------------------------------------------------------


def test_a_program_has_arguments_and_its_own_end_of_stdin(api):
    seen = api.run('import sys\nprint(__name__, sys.argv[1:])\nprint(input())\ninput()', argv=['-v', 'é b'], stdin='one\n')
    assert seen.stdout == "__main__ ['-v', 'é b']\none\n"
    assert seen.error['type'] == 'EOFError' and seen.error['message'] == 'EOF when reading a line'
    assert api.run('import sys; print(sys.argv)').stdout == "['/workspace/main.py']\n"


def test_bash_scripts(api):
    seen = api.run('echo "$1"; read line; echo "$line" >&2; touch made; exit 3', language='bash', argv=['a b'], stdin='in\n')
    assert (seen.stdout, seen.stderr, seen.exit_code) == ('a b\n', 'in\n', 3)
    assert [f['path'] for f in seen.files] == ['made']
    assert api.run('kill -9 $$', language='bash').exit_code == 137
    assert 'not permitted' in api.run('true', language='bash', exec='none').error['message']
    assert api.run('true', language='bash', profile='restricted').status == 'refused'


def test_pytest_files(api):
    files = {'m.py': 'def two():\n    return 2\n'}
    tests = 'from m import two\ndef test_right():\n    assert two() == 2\ndef test_wrong():\n    assert two() == 3\n'
    seen = api.run(tests, language='pytest', files=files)
    assert seen.exit_code == 1 and '1 failed, 1 passed' in seen.stdout
    assert api.run(tests, language='pytest', files=files, argv=['-k', 'right']).exit_code == 0


def test_a_language_that_is_not_there_is_named(api):
    answer = api.post('/v1/run', json={'code': '', 'language': 'cobol'})
    assert answer.status_code == 400 and 'python' in answer.json()['detail']


# ---- batches -----------------------------------------------------------------------------


def test_items_are_answered_as_they_finish(api):
    items = [
        {'id': 'slow', 'code': 'import time; time.sleep(1); print("slow")'},
        {'id': 7, 'code': 'print(input())', 'stdin': 'x\n'},
        {'code': 'import sys; sys.exit(3)'},
        {'code': 'open("o.txt", "w").write("hi"); open("empty", "w")', 'fetch_files': ['o.txt', 'empty', 'none']},
    ]
    answer = api.post('/v1/batch', json={'items': items})
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert lines[-2]['id'] == 'slow', 'the slow one is last'
    by_index = {line['index']: line for line in lines[:-1]}
    assert by_index[1]['id'] == 7 and by_index[1]['observation']['stdout'] == 'x\n' and by_index[1]['verdict'] is None
    assert by_index[2]['observation']['exit_code'] == 3
    assert by_index[3]['fetched'] == {'o.txt': 'aGk=', 'empty': '', 'none': None}
    gb.wait_until(lambda: api.get('/v1/sessions').json()['sessions'] == [], 'no session is left')


@pytest.mark.parametrize(
    'compare, expected, passed',
    [
        ('trimmed', '1 2\n\n3', True),
        ('trimmed', '1  2\n\n3', False),
        ('exact', '1 2 \n\n3\n', True),
        ('exact', '1 2\n\n3\n', False),
        ('tokens', ' 1\n2 3', True),
        ('tokens', '1 2 3 4', False),
        ('tokens', '1 2 3.0', False),
        ('numbers', '1 2.0000001 3.0', True),
        ('numbers', '1 2.1 3', False),
    ],
)
def test_output_is_compared(api, compare, expected, passed):
    code = 'print("1 2 \\n\\n3")'
    lines, summary = send(api, [{'code': code, 'expected_output': expected, 'compare': compare}])
    assert lines[0]['verdict']['passed'] is passed
    assert (summary['passed'], summary['failed']) == (int(passed), int(not passed))


def test_output_of_a_program_that_fails_does_not_pass(api):
    lines, _ = send(api, [{'code': 'print(1); 1/0', 'expected_output': '1'}])
    assert lines[0]['verdict'] == {'passed': False, 'score': 0, 'reason': 'error: ZeroDivisionError'}


def test_checkers(api):
    items = [
        {'code': 'print(input() * 2)', 'stdin': 'ab', 'checker': 'stdout.strip() == stdin * 2'},
        {'code': 'print(3)', 'checker': 'assert stdout == "4\\n", f"got {stdout}"'},
        {'code': 'print(3)', 'checker': 'dict(passed=True, score=0.25, reason="near")', 'expected_output': '4'},
        {'code': '1/0', 'checker': 'exit_code == 1 and status == "error"'},
        {'code': 'import builtins; builtins.print = None', 'checker': 'print("own interpreter")'},
        {'code': 'pass', 'checker': '0.5'},
    ]
    lines, summary = send(api, items)
    assert [lines[i]['verdict']['passed'] for i in range(6)] == [True, False, True, True, True, True]
    assert 'got 3' in lines[1]['verdict']['reason']
    assert lines[2]['verdict'] == {'passed': True, 'score': 0.25, 'reason': 'near'} and lines[5]['verdict']['score'] == 0.5
    assert summary['passed'] == 5


def test_equal_items_run_once_when_asked(api):
    items = [{'id': i, 'code': 'import os; print(os.urandom(8).hex())'} for i in range(4)] + [{'code': 'print(1)'}]
    lines, summary = send(api, items, deduplicate=True)
    assert summary['ran'] == 2 and [lines[i].get('duplicate_of') for i in range(5)] == [None, 0, 0, 0, None]
    assert len({lines[i]['observation']['stdout'] for i in range(4)}) == 1 and lines[3]['id'] == 3
    lines, summary = send(api, items)
    assert summary['ran'] == 5 and len({lines[i]['observation']['stdout'] for i in range(4)}) == 4


def test_a_key_makes_a_repetition_free(api):
    items = [{'code': 'import os; print(os.urandom(8).hex())', 'expected_output': ''} for _ in range(3)]
    first, _ = send(api, items, headers={'Idempotency-Key': 'repeat'})
    again, summary = send(api, items, headers={'Idempotency-Key': 'repeat'})
    assert again == first and summary['ran'] == 0 and summary['failed'] == 3
    other = api.post('/v1/batch', json={'items': items[:1]}, headers={'Idempotency-Key': 'repeat'})
    assert other.status_code == 409 and other.json()['code'] == 'idempotency_conflict'


def test_leaving_cancels_and_the_key_goes_on_from_there(api):
    items = [{'code': 'print(1)'}, {'code': 'import time; time.sleep(60)'}]
    with requests.post(api.url + '/v1/batch', json={'items': items}, headers={'Idempotency-Key': 'gone'}, stream=True) as answer:
        lines = answer.iter_lines(chunk_size=1)  # when this is gone, the connection is
        first = json.loads(next(lines))
        busy = api.post('/v1/batch', json={'items': items}, headers={'Idempotency-Key': 'gone'})
        assert busy.status_code == 409 and busy.json()['code'] == 'idempotency_busy'
        lines.close()
    gb.wait_until(lambda: api.get('/v1/sessions').json()['sessions'] == [], 'the sleeper is gone')
    answer = api.post('/v1/batch', json={'items': items}, headers={'Idempotency-Key': 'gone'}, stream=True)
    lines = answer.iter_lines(chunk_size=1)
    again = json.loads(next(lines))
    answer.close()
    assert again == first


def test_wrong_items_are_refused_before_anything_runs(api):
    answer = api.post('/v1/batch', json={'items': [{'code': '1'}, {'cod': '1'}]})
    assert answer.status_code == 400 and '$.items[1]' in answer.json()['detail']
    assert api.post('/v1/batch', json={'items': ['print(1)']}).status_code == 400
    assert api.post('/v1/batch', json={}).json()['code'] == 'missing_field'
    assert send(api, [])[1]['items'] == 0


def test_concurrency_is_bounded(api):
    """The start and the end of each, on the clock that all share."""
    code = 'import time\na = time.monotonic(); time.sleep(0.2); print(a, time.monotonic())'
    lines, _ = send(api, [{'code': code} for _ in range(6)], concurrency=2)
    times = sorted(tuple(map(float, line['observation']['stdout'].split())) for line in lines.values())
    assert max(sum(a <= start < b for a, b in times) for start, _ in times) <= 2


def test_a_token_without_quota_does_not_keep_the_places():
    full, other = ('a' * 32, 'b' * 32)
    with gb.running_daemon('--token', full, '--token', other, '--max-sessions-per-token', '1', '--max-runs', '2') as daemon:

        def ask(method, path, token, **kwargs):
            return requests.request(method, daemon.url + path, headers={'Authorization': f'Bearer {token}'}, **kwargs)

        items = {'items': [{'code': f'print({i})'} for i in range(4)]}
        session = ask('POST', '/v1/sessions', full, json={}).json()['id']
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(ask, 'POST', '/v1/batch', full, json=items)
            for _ in range(3):
                lines = ask('POST', '/v1/batch', other, json=items).text.splitlines()
                assert len(lines) == 5 and not any(json.loads(line).get('error') for line in lines)
            assert not waiting.done(), 'its quota is used up'
            assert ask('DELETE', f'/v1/sessions/{session}', full).ok
            lines = waiting.result().text.splitlines()
        assert len(lines) == 5 and not any(json.loads(line).get('error') for line in lines), lines


def test_an_item_that_cannot_be_made_is_told_alone(api):
    lines, _ = send(api, [{'code': '1', 'profile': 'nonesuch'}, {'code': 'print(2)'}])
    assert lines[0]['observation'] is None and 'nonesuch' in lines[0]['error']['detail']
    assert lines[1]['observation']['stdout'] == '2\n'


# ---- the client ------------------------------------------------------------------------------


def test_client_batch(api):
    with glovebox.Glovebox(api.url) as box:
        results = {r.index: r for r in box.batch(['print(1)', {'code': 'print(2)', 'expected_output': '2', 'id': 'b'}], concurrency=1)}
        assert results[0].observation.stdout == '1\n' and results[1].passed and results[1].id == 'b'
        with pytest.raises(glovebox.InvalidRequest, match='items'):
            list(box.batch([{'cod': '1'}]))

    async def many():
        async with glovebox.AsyncGlovebox(api.url) as box:
            return [r async for r in box.batch([f'print({i})' for i in range(5)])]

    assert sorted(r.observation.stdout for r in asyncio.run(many())) == [f'{i}\n' for i in range(5)]


def test_client_splits_what_one_request_cannot_take(api, monkeypatch):
    monkeypatch.setattr(glovebox.batch, 'MAX_ITEMS', 2)
    with glovebox.Glovebox(api.url) as box:
        results = {r.index: r.observation.stdout for r in box.batch([f'print({i})' for i in range(5)], key='split')}
    assert results == {i: f'{i}\n' for i in range(5)}


def test_grading_by_output(api):
    with glovebox.Glovebox(api.url) as box:
        grade = glovebox.grade(box, 'print(sum(map(int, input().split())))', [('1 2', '3'), ('2 2', '5'), glovebox.Case('x', '0', id='bad')])
    assert [c.passed for c in grade.cases] == [True, False, False] and not grade.passed and grade.score == pytest.approx(1 / 3)
    assert grade.cases[0].seconds > 0 and grade.cases[0].memory_bytes > 0 and grade.cases[2].id == 'bad'
    assert 'ValueError' in grade.cases[2].reason


def test_grading_by_tests(api):
    code = 'def double(x):\n    return x * 2 if x < 10 else 0'
    with glovebox.Glovebox(api.url) as box:
        grade = glovebox.grade(box, code, ['assert double(2) == 4', 'assert double(20) == 40', 'while True: pass'], timeout=2)
    assert [(c.passed, c.status) for c in grade.cases] == [(True, 'ok'), (False, 'error'), (False, 'timeout')]

    async def awaited():
        async with glovebox.AsyncGlovebox(api.url) as box:
            return await glovebox.grade_async(box, code, ['assert double(2) == 4'])

    assert asyncio.run(awaited()).passed


# ---- the command line --------------------------------------------------------------------------


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_command(api, tmp_path):
    items, results = tmp_path / 'in.jsonl', tmp_path / 'out.jsonl'
    items.write_text(''.join(json.dumps({'code': f'print({i})', 'expected_output': str(i % 3)}) + '\n\n' for i in range(6)))
    ran = gb.cli('batch', '-u', api.url, items, '-o', results)
    assert ran.returncode == 0, ran.stderr
    assert '6 of 6 done, 3 passed, 3 failed' in ran.stderr
    found = {line['index']: line['observation']['stdout'] for line in lines_of(results)}
    assert found == {i: f'{i}\n' for i in range(6)}


def test_command_goes_on_where_it_stopped(api, tmp_path):
    items, results = tmp_path / 'in.jsonl', tmp_path / 'out.jsonl'
    items.write_text(''.join(json.dumps({'code': f'print({i})'}) + '\n' for i in range(4)))
    known = json.dumps({'index': 2, 'observation': {'stdout': 'from before'}}) + '\n'
    lost = json.dumps({'index': 1, 'observation': None}) + '\n'
    results.write_text(known + lost + '{"index": 3, "obser')
    ran = gb.cli('batch', '-u', api.url, items, '-o', results)
    assert ran.returncode == 0, ran.stderr
    assert '4 of 4 done, 1 skipped' in ran.stderr
    assert sorted(line['index'] for line in lines_of(results) if line['observation']) == [0, 1, 2, 3]
    assert known in results.read_text()


def test_command_from_stdin_and_its_errors(api, tmp_path):
    ran = gb.cli('batch', '-u', api.url, '-q', '-j', '1', '-', input='{"code": "print(1)"}\n')
    assert json.loads(ran.stdout)['observation']['stdout'] == '1\n' and ran.stderr == ''
    ran = gb.cli('batch', '-u', api.url, '-', input='{"cod": 1}\n')
    assert ran.returncode == 1 and 'items[0]' in ran.stderr
    ran = gb.cli('batch', '-u', api.url, '-', input='{"code": "print(1)"}\n\nhello\n')
    assert ran.returncode == 1 and 'line 3 of the file: malformed JSON' in ran.stderr
    ran = gb.cli('batch', '-u', api.url, tmp_path / 'none')
    assert ran.returncode == 1 and 'none' in ran.stderr
    assert gb.cli('batch').returncode == 2
