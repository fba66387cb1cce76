"""One shot: POST /v1/run creates, runs, returns, destroys."""

import base64
import json

import gb


def test_run(api):
    seen = api.run('print("hi")\n6 * 7').ok()
    assert seen.stdout == 'hi\n' and seen.text == '42' and seen.cell == 1
    gb.wait_until(lambda: api.get(f'/v1/sessions/{seen.session}').status_code == 410, 'its session is gone')


def test_run_takes_files_env_limits_stdin_and_seed(api):
    seen = api.run(
        'import os, random\n(open("a/b.txt").read(), open("raw", "rb").read(), os.environ["X"], input(), random.random())',
        files={'a/b.txt': 'grün\n', 'raw': {'base64': base64.b64encode(b'\0\xff').decode()}},
        env={'X': 'y'},
        stdin='line\n',
        seed=1,
        limits={'output_bytes': 2048},
    ).ok()
    assert seen.text == r"('grün\n', b'\x00\xff', 'y', 'line', 0.13436424411240122)"
    assert seen.files == []
    seen = api.run('open("new", "w").write("x"); open("given", "a").write("y")', files={'given': 'x'}).ok()
    assert sorted((f['path'], f['change']) for f in seen.files) == [('given', 'modified'), ('new', 'created')]


def test_run_fails_and_times_out_like_a_cell(api):
    assert api.run('1/0').error['type'] == 'ZeroDivisionError'
    assert api.run('while True: pass', timeout_s=0.3).status == 'timeout'
    assert api.run('import os; os._exit(3)').exit_code == 3
    assert api.run('import sys; sys.exit(4)').exit_code == 4


def test_run_is_a_whole_program(api):
    """Threads that are no daemons are waited for, and exit functions called, as when python3 ends."""
    seen = api.run(
        'import threading, time, atexit\natexit.register(lambda: print("exit"))\ndef work():\n  time.sleep(0.3); print("thread")\n'
        'threading.Thread(target=work).start()\nthreading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n"value"'
    ).ok()
    assert seen.stdout == 'thread\nexit\n' and seen.text == "'value'"
    seen = api.run(
        'import threading, time\nthreading.Thread(target=time.sleep, args=(1e6,)).start()\nprint("main")', timeout_s=0.5
    )
    assert seen.status == 'timeout' and seen.stdout == 'main\n'
    seen = api.run('import atexit\natexit.register(lambda: 1/0)\n5')
    assert 'ZeroDivisionError' in seen.stderr and seen.text == '5'


def test_run_refuses_bad_files(api):
    for files, words in (
        ({'../x': '1'}, '$.files'),
        ({'/etc/x': '1'}, '$.files'),
        ({'': '1'}, '$.files'),
        ({'a': 5}, '$.files.a'),
        ({'a': {'base64': '!!'}}, 'base64'),
        ({'a': {'base64': 'AA==', 'x': 1}}, '$.files.a'),
        (['a'], '$.files'),
        ({f'f{i}': '' for i in range(257)}, '$.files'),
    ):
        gb.assert_problem(api.post('/v1/run', json={'code': '1', 'files': files}), 400, 'invalid_field', words)
    answer = api.post('/v1/run', json={'code': '1', 'files': {'a': 'x', 'a/b': 'y'}})
    assert answer.status_code == 409, 'a file cannot be a directory too'


def test_run_leaves_nothing_behind(api, daemon):
    for i in range(5):
        api.run('import subprocess; subprocess.Popen(["sleep", "100000"])').ok()
    before = daemon.settled_fds()
    live = api.metric('glovebox_sessions')
    for i in range(30):
        api.run(f'import subprocess; subprocess.Popen(["sleep", "100000"]); {i}').ok()
    gb.wait_until(lambda: api.metric('glovebox_sessions') == live, 'the sessions are gone')
    gb.wait_until(lambda: daemon.settled_fds() <= before, 'the descriptors are closed')
    gb.wait_until(
        lambda: not [p for p, _ in gb.descendants(daemon.pid) if gb.command_of(p) == 'sleep'], 'the processes are gone'
    )


def test_run_whose_client_leaves(daemon, api):
    live = api.metric('glovebox_sessions')
    body = json.dumps({'code': 'import time; time.sleep(1e6)', 'files': {'x': 'y'}})
    with gb.Wire(daemon) as wire:
        wire.send(
            f'POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}'
        )
        gb.wait_until(lambda: api.metric('glovebox_sessions') == live + 1, 'it runs')
    gb.wait_until(lambda: api.metric('glovebox_sessions') == live, 'it is gone')
