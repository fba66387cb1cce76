"""Sessions: creation and its fields, listing, expiry, queues, parallel work, random numbers."""

import concurrent.futures
import re
import time

import pytest

import gb


def test_create_answers_the_whole_session(api):
    answer = api.post('/v1/sessions', json={'name': 'demo', 'metadata': {'task': 7, 'tags': ['a']}})
    assert answer.status_code == 201
    info = answer.json()
    assert answer.headers['Location'] == f'/v1/sessions/{info["id"]}'
    assert info['name'] == 'demo' and info['metadata'] == {'task': 7, 'tags': ['a']}
    assert info['state'] in ('starting', 'idle') and info['cells'] == 0 and info['queued'] == 0
    assert info['limits']['timeout_s'] == 30 and info['limits']['output_bytes'] == 1 << 20
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', info['created'])
    assert 0 < info['expires_in_s'] <= info['idle_timeout_s'] <= info['ttl_s']
    api.delete(f'/v1/sessions/{info["id"]}')


@pytest.mark.parametrize('body', [b'', b'{}', b' {} ', b'{"name":null,"env":null,"limits":null}'])
def test_all_fields_are_optional(api, body):
    answer = api.post('/v1/sessions', data=body, headers={'Content-Type': 'application/json'})
    assert answer.status_code == 201
    assert api.delete(f'/v1/sessions/{answer.json()["id"]}').status_code == 204


def test_ids_are_unguessable(api):
    ids = [api.session().id for _ in range(20)]
    assert len(set(ids)) == 20
    for id in ids:
        assert re.fullmatch(r's_[a-z2-7]{26}|s_[A-Za-z0-9]{26}', id)
    for column in range(2, 28):  # no character stands still
        assert len({id[column] for id in ids}) > 3


def test_env_reaches_the_session_and_its_subprocesses(api):
    session = api.session(env={'MODE': 'test', 'GREETING': 'grüße = 1', 'EMPTY': ''})
    assert (
        session.value('import os; os.environ["MODE"], os.environ["GREETING"], os.environ["EMPTY"]')
        == "('test', 'grüße = 1', '')"
    )
    assert session.execute('import subprocess; subprocess.run("echo $GREETING", shell=True)').stdout == 'grüße = 1\n'
    session.reset()
    assert session.value('import os; os.environ["MODE"]') == "'test'", 'a fresh interpreter has it too'


def test_preload(api):
    session = api.session(preload=['fractions', 'wave', 'no_such_module'])
    seen = session.execute('import sys; [m in sys.modules for m in ("fractions", "wave")]')
    assert seen.ok().text == '[True, True]'
    assert 'no_such_module' in seen.stderr
    assert 'fractions' not in session.value('sorted(k for k in globals() if not k.startswith("_"))')


def test_modules_of_the_working_directory_can_be_imported(session):
    session.put_file('helper.py', b'def f(): return 42')
    session.put_file('pkg/__init__.py', b'')
    session.put_file('pkg/inner.py', b'x = 7')
    assert session.value('import helper; helper.f()') == '42'
    assert session.value('from pkg.inner import x; x') == '7'
    assert (
        session.value(
            'import subprocess, sys; subprocess.check_output([sys.executable, "-c", "import helper; print(helper.f())"])'
        )
        == r"b'42\n'"
    )


def test_list_get_delete(api):
    one, two = api.session(name='one', metadata={'k': 'a'}), api.session(name='two', metadata={'k': 'b', 'n': 5})
    listed = {s['id']: s for s in api.get('/v1/sessions?limit=1000').json()['sessions']}
    assert listed[one.id]['name'] == 'one' and listed[two.id]['metadata'] == {'k': 'b', 'n': 5}
    assert one.get()['name'] == 'one'
    assert one.delete().status_code == 204
    gb.assert_problem(api.get(one.path), 410, 'session_gone', 'deleted')
    assert one.id not in str(api.get('/v1/sessions?limit=1000').json())
    assert two.get()['id'] == two.id


def test_list_filters(api):
    key = f'k{time.monotonic_ns()}'
    made = [api.session(name=f'n{i % 2}-{key}', metadata={key: i}) for i in range(4)]
    ids = [s.id for s in made]

    def found(query):
        return [s['id'] for s in api.get(f'/v1/sessions?{query}').json()['sessions']]

    assert found(f'name=n1-{key}') == [ids[1], ids[3]]
    assert found(f'metadata.{key}=2') == [ids[2]]
    assert found(f'metadata.{key}=9') == []
    running = made[0].in_background('import time; time.sleep(1e6)')
    made[0].wait_busy()
    assert ids[0] in found('state=busy&limit=1000') and ids[1] not in found('state=busy&limit=1000')
    made[0].interrupt()
    running.result()
    first = api.get(f'/v1/sessions?name=n0-{key}&limit=1').json()
    assert [s['id'] for s in first['sessions']] == [ids[0]] and first['next']
    second = api.get(f'/v1/sessions?name=n0-{key}&limit=1&cursor={first["next"]}').json()
    assert [s['id'] for s in second['sessions']] == [ids[2]] and second['next'] is None


@pytest.mark.parametrize('query', ['state=asleep', 'limit=0', 'limit=1001', 'limit=x', 'nosuch=1', 'cursor=-1'])
def test_list_refuses_bad_queries(api, query):
    answer = api.get(f'/v1/sessions?{query}')
    assert answer.status_code == 400 and query.split('=')[0] in answer.json()['detail']


@pytest.mark.parametrize('call', ['', '/execute', '/interrupt', '/reset', '/logs', '/files', '/files/x', '/ws'])
def test_unknown_session_is_404_everywhere(api, call):
    method = 'POST' if call in ('/execute', '/interrupt', '/reset') else 'GET'
    body = {'code': '1'} if call == '/execute' else {} if method == 'POST' else None
    for id in ('s_' + 'a' * 26, 'x', 's_', 'a' * 300, '%00', '..%2f..'):
        answer = api.request(method, f'/v1/sessions/{id}{call}', json=body)
        assert answer.status_code in (400, 404), (id, answer.text)
        assert answer.headers['Content-Type'] == 'application/problem+json'


def test_a_name_where_the_id_belongs_is_told_the_id(api):
    name = f'n{time.monotonic_ns()}'
    session = api.session(name=name)
    gb.assert_problem(api.get(f'/v1/sessions/{name}'), 404, 'session_not_found', session.id)
    session.delete()
    answer = api.get(f'/v1/sessions/{name}')
    gb.assert_problem(answer, 404, 'session_not_found', 'POST /v1/sessions')
    assert session.id not in answer.text


def test_deleted_session_says_so_everywhere(api):
    session = api.session()
    session.delete()
    gb.assert_problem(session.post_code('1'), 410, 'session_gone', 'deleted', session.id)
    gb.assert_problem(api.post(f'{session.path}/reset'), 410, 'session_gone')
    gb.assert_problem(api.post(f'{session.path}/interrupt'), 410, 'session_gone')
    gb.assert_problem(session.put_file('x', b'1'), 410, 'session_gone')
    gb.assert_problem(session.get_file('x'), 410, 'session_gone')
    gb.assert_problem(session.delete(), 410, 'session_gone')


def test_delete_while_a_cell_runs_and_another_waits(api):
    session = api.session()
    running = session.in_background('print("x", flush=True)\nimport time; time.sleep(1e6)')
    session.wait_busy()
    waiting = session.in_background('1')
    gb.wait_until(lambda: session.get()['queued'] == 1 and session.logs()['entries'], 'one runs, one waits')
    assert session.delete().status_code == 204
    seen = running.result()
    assert seen.status == 'killed' and seen.error['code'] == 'session_gone' and seen.stdout == 'x\n'
    assert waiting.result().status == 'killed'


def test_expiry_by_idle_time(api):
    def used_beyond_its_idle_time():
        """None when the machine kept us from using it in time."""
        session = api.session(idle_timeout_s=1)
        start = last = time.monotonic()
        while time.monotonic() < start + 2.5:
            answer = session.post_code('1')
            if time.monotonic() > last + 0.9:
                return None
            assert answer.status_code == 200, answer.text
            last = time.monotonic()
            time.sleep(0.1)
        return session

    session = gb.wait_until(used_beyond_its_idle_time, 'use keeps it alive')
    problem = gb.wait_until(lambda: (a := api.get(session.path)).status_code == 410 and [a], 'it expires')[0]
    gb.assert_problem(problem, 410, 'session_gone', 'idle for more than 1 s')


def test_a_running_cell_is_not_idle(api):
    session = api.session(idle_timeout_s=2)
    assert session.execute('import time; time.sleep(3.2); "done"').ok().text == "'done'"


def test_expiry_by_age(api):
    session = api.session(ttl_s=4)
    running = session.in_background('print("begun", flush=True)\nimport time; time.sleep(1e6)')
    seen = running.result()
    assert (
        seen.status == 'killed'
        and seen.error['code'] == 'session_gone'
        and 'time to live of 4 s' in seen.error['message']
    )
    gb.assert_problem(api.get(session.path), 410, 'session_gone', 'time to live of 4 s')


def test_queue_of_sixteen_then_429(session):
    session.execute('seen = []').ok()
    first = session.hold()
    waiting = []
    for i in range(16):
        waiting.append(session.in_background(f'seen.append({i})'))
        gb.wait_until(lambda: session.get()['queued'] == i + 1, 'it waits')
    answer = session.post_code('seen.append("too many")')
    gb.assert_problem(answer, 429, 'queue_full', '16')
    assert int(answer.headers['Retry-After']) >= 1
    session.release()
    first.result().ok()
    for one in waiting:
        one.result().ok()
    assert session.value('seen') == str(list(range(16))), 'in the order they came'


def test_sessions_run_in_parallel(api):
    sessions = [api.session() for _ in range(8)]
    held = [session.hold('"held"') for session in sessions]
    assert [session.get()['state'] for session in sessions] == ['busy'] * 8, 'all at the same time'
    for session, one in reversed(list(zip(sessions, held))):
        session.release()
        assert one.result().ok().text == "'held'"


def test_burst_of_creations(api):
    """Many more at once than guests are ready."""
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(lambda i: api.post('/v1/run', json={'code': f'{i} * 2'}).json(), range(60)))
    assert [int(o['result']['text/plain']) for o in seen] == [i * 2 for i in range(60)]


def test_sessions_do_not_see_each_other(api):
    a, b = api.session(), api.session()
    a.execute('import os\nsecret = 1\nopen("/tmp/mine", "w").write("x")\nopen("mine", "w").write("x")').ok()
    assert b.execute('secret').error['type'] == 'NameError'
    assert b.value('import os; os.path.exists("/tmp/mine"), os.path.exists("mine")') == '(False, False)'
    a.execute('import socket\ns = socket.socket(socket.AF_UNIX); s.bind("\\0glovebox-e2e"); s.listen()').ok()
    assert (
        b.execute('import socket; socket.socket(socket.AF_UNIX).connect("\\0glovebox-e2e")').error['type']
        == 'ConnectionRefusedError'
    )
    assert a.value('os.getpid() > 0') == 'True'
    pid = a.value('os.getpid()')
    assert b.execute(f'import os; os.kill({pid}, 0) if os.getpid() != {pid} else None').status in ('ok', 'error')
    assert b.value('[p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]') == '[]'


# ---- random numbers ----------------------------------------------------------------------

DRAW = 'import random, numpy, uuid, secrets\n(random.random(), numpy.random.rand(), random.randrange(10**9), numpy.random.randint(10**9))'


def test_no_two_sessions_draw_the_same_numbers(science_daemon):
    with science_daemon.api() as api:
        drawn = [api.session().value(DRAW) for _ in range(12)]
        assert len(set(drawn)) == 12
        columns = zip(*(d.strip('()').split(', ') for d in drawn))
        assert all(len(set(column)) == 12 for column in columns)


def test_a_seed_makes_them_equal(science_daemon):
    with science_daemon.api() as api:
        a, b, c = (api.session(seed=s).value(DRAW) for s in (7, 7, 8))
        assert a == b != c
        import subprocess

        same = subprocess.run(
            [gb.PYTHON, '-c', 'import random, numpy; random.seed(7); numpy.random.seed(7)\nprint(repr(eval(open(0).read())))'],
            input=DRAW.split('\n')[1], capture_output=True, text=True, timeout=gb.PATIENCE,
        ).stdout.strip()  # fmt: skip
        assert a == same


def test_reset_draws_anew_without_a_seed_and_the_same_with_one(science_daemon):
    with science_daemon.api() as api:
        free, seeded = api.session(), api.session(seed=5)
        first = free.value(DRAW), seeded.value(DRAW)
        free.reset()
        seeded.reset()
        second = free.value(DRAW), seeded.value(DRAW)
        assert first[0] != second[0] and first[1] == second[1]


def test_numbers_differ_also_when_numpy_is_not_preloaded(api):
    drawn = {api.session().value('import random, numpy; random.random(), numpy.random.rand()') for _ in range(4)}
    assert len(drawn) == 4
    seeded = {api.session(seed=3).value('import random, numpy; random.random(), numpy.random.rand()') for _ in range(2)}
    assert len(seeded) == 1


def test_hash_of_strings_is_stable_within_a_session(session):
    assert session.value('hash("a") == hash("a")') == 'True'


def test_session_limit_of_the_server():
    with gb.running_daemon('--preload', 'none', '--max-sessions', '3', '--ready', '1') as daemon, daemon.api() as api:
        made = [api.session() for _ in range(3)]
        answer = api.post('/v1/sessions', json={})
        gb.assert_problem(answer, 503, 'server_full', '3')
        assert 'Retry-After' in answer.headers
        gb.assert_problem(api.post('/v1/run', json={'code': '1'}), 503, 'server_full')
        gb.assert_problem(api.get('/readyz'), 503, 'server_full')
        made.pop().delete()
        assert api.session().value('1') == '1'
