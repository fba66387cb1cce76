"""Each limit: where it is reached the code stops or fails, and the answer says which one it was, its value and how to raise it."""

import base64
import gb
import pytest

MB = 1 << 20

# limits, code, status, code of the error, words of the remedy
REACHED = {
    'disk': ({'disk_bytes': MB}, 'open("/workspace/x", "wb").write(b"x" * 3_000_000)', 'error', 'disk_full', ['1048576', 'limits.disk_bytes']),
    'inodes': ({'inodes': 100}, 'for i in range(200): open(f"/tmp/{i}", "w").close()', 'error', 'disk_full', ['100 files', 'limits.inodes']),
    'file size': ({'file_bytes': MB}, 'open("/tmp/x", "wb").write(b"x" * 3_000_000)', 'error', 'file_too_large', ['1048576', 'limits.file_bytes']),
    'sparse file': ({'file_bytes': MB}, 'open("/tmp/x", "wb").truncate(1 << 40)', 'error', 'file_too_large', ['limits.file_bytes']),
    'open files': ({'open_files': 40}, 'kept = [open("/dev/null") for _ in range(60)]', 'error', 'too_many_files', ['40 files', 'limits.open_files']),
    'threads': (
        {'processes': 12},
        'import threading, time\nfor _ in range(30): threading.Thread(target=time.sleep, args=(10,), daemon=True).start()',
        'error',
        'too_many_processes',
        ['12 processes', 'limits.processes'],
    ),
    'processes': (
        {'processes': 12},
        'import os, time\nfor _ in range(30):\n    if os.fork() == 0: time.sleep(10); os._exit(0)',
        'error',
        'too_many_processes',
        ['12 processes', 'limits.processes'],
    ),
    'cpu time': ({'cpu_s': 0.3}, 'while True: pass', 'timeout', 'cpu_limit', ['limits.cpu_s']),
    'output': ({'total_output_bytes': 100_000}, 'while True: print("x" * 99)', 'error', 'output_limit', ['limits.total_output_bytes']),
    'errors': ({'total_output_bytes': 100_000}, 'import sys\nwhile True: sys.stderr.write("x" * 99)', 'error', 'output_limit', ['limits.total_output_bytes']),
    'memory': ({'memory_bytes': 64 * MB}, 'x = bytearray(200_000_000)', 'out_of_memory', 'out_of_memory', ['may use 67108864 bytes', 'limits.memory_bytes']),
    'time': ({'timeout_s': 0.5}, 'while True: pass', 'timeout', 'cell_timeout', ['timeout_s']),
}


@pytest.mark.parametrize('name', REACHED)
def test_reached(api, name):
    limits, code, status, error, words = REACHED[name]
    session = api.session(limits=limits)
    session.execute('kept_variable = 1', timeout_s=60).ok()
    o = session.execute(code, timeout_s=60) if name != 'time' else session.execute(code)
    assert (o.status, o.error['code']) == (status, error), o.error
    for word in words:
        assert word in o.error['remediation'], o.error
    assert session.execute('kept_variable', timeout_s=60).ok().text == '1', 'the session survives'


def test_cpu_time_counts_what_the_cell_started(api):
    o = api.session(limits={'cpu_s': 0.3, 'timeout_s': 60}).execute('import subprocess; subprocess.run(["/bin/sh", "-c", "while :; do :; done"])')
    assert (o.status, o.error['code']) == ('timeout', 'cpu_limit')
    assert '0.3 s of CPU time' in o.error['message']


def test_cpu_time_of_a_session_ends_it(api):
    session = api.session(limits={'session_cpu_s': 0.3, 'timeout_s': 60})
    o = session.execute('while True: pass')
    assert o.status == 'killed' and 'limits.session_cpu_s' in o.error['message']
    gone = api.post(f'/v1/sessions/{session.id}/execute', json={'code': '1'})
    assert gone.status_code == 410 and 'limits.session_cpu_s' in gone.json()['detail']


def test_output_that_does_not_stop_is_killed(api):
    code = 'import signal, os\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: os.write(1, b"x" * 4096)'
    o = api.session(limits={'total_output_bytes': 1_000_000, 'timeout_s': 60}).execute(code)
    assert (o.status, o.error['code']) == ('killed', 'output_limit')
    assert '1000000 bytes' in o.error['message']


def test_a_read_only_system_is_explained(api):
    o = api.session().execute('open("/usr/mine", "w")')
    assert o.error['code'] == 'read_only' and '/workspace' in o.error['remediation']


def test_an_error_that_only_looks_like_a_limit(api):
    o = api.session().execute('raise OSError("no number")')
    assert o.status == 'error' and not o.error['code'] and not o.error['remediation']
    o = api.session().execute('class E(OSError):\n    errno = 28\nraise E("mine")')
    assert not o.error['code']


MAXIMA = {
    'cpus': (2, 4), 'cpu_s': (5, 10), 'session_cpu_s': (50, 100), 'inodes': (1000, 2000), 'file_bytes': (MB, 2 * MB),
    'open_files': (100, 200), 'total_output_bytes': (MB, 2 * MB), 'processes': (10, 20), 'disk_bytes': (MB, 2 * MB),
    'memory_bytes': (64 * MB, 128 * MB),
}  # fmt: skip
FLAGS = {
    'cpu_s': 'cpu-time', 'session_cpu_s': 'session-cpu-time', 'file_bytes': 'file-size', 'open_files': 'open-files', 'total_output_bytes': 'total-output',
    'disk_bytes': 'disk', 'memory_bytes': 'memory',
}  # fmt: skip


@pytest.fixture(scope='module')
def bounded():
    flags = []
    for name, (default, most) in MAXIMA.items():
        flag = FLAGS.get(name, name)
        flags += [f'--{flag}', str(default), f'--max-{flag}', str(most)]
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--exec', 'none', '--max-exec', 'system', *flags) as daemon, daemon.api() as api:
        yield api


@pytest.mark.parametrize('name', MAXIMA)
def test_default_maximum_and_request(bounded, name):
    default, most = MAXIMA[name]
    assert bounded.session().get()['limits'][name] == default
    assert bounded.session(limits={name: most}).get()['limits'][name] == most
    refused = bounded.post('/v1/sessions', json={'limits': {name: most + 1}})
    assert refused.status_code == 422 or refused.status_code == 400, refused.text
    assert refused.json()['code'] == 'limit_too_large' and f'limits.{name}' in refused.json()['detail']
    assert f'--max-{FLAGS.get(name, name)} ' in refused.json()['remediation']


def test_exec_has_a_default_and_a_maximum(bounded):
    session = bounded.session()
    assert session.get()['exec'] == 'none'
    assert session.execute('import subprocess; subprocess.run(["ls"])').error['type'] == 'PermissionError'
    session = bounded.session(exec='system')
    session.execute('import subprocess; subprocess.run(["ls"], check=True)').ok()
    refused = bounded.post('/v1/sessions', json={'exec': 'any'})
    assert refused.json()['code'] == 'limit_too_large' and '--max-exec' in refused.json()['remediation']


def test_tokens_share_what_there_is():
    first, second = 'the-first-of-two-tokens', 'the-second-of-two-tokens'
    with gb.running_daemon('--preload', 'json', '--ready', '0', '--max-sessions', '4', '--token', f'{first},{second}', token=first) as daemon:
        with daemon.api() as one, gb.Api(daemon.url, token=second) as two:
            answers = [one.post('/v1/sessions', json={}).status_code for _ in range(3)]
            assert answers == [201, 201, 429]
            assert two.post('/v1/sessions', json={}).status_code == 201


# ---- uploads -----------------------------------------------------------------------------


def test_uploads_are_the_sessions_memory(api):
    """What the API writes counts with what code has: neither gets more than the limit, and what is deleted is given back."""
    session = api.session(limits={'memory_bytes': 128 << 20, 'disk_bytes': 1 << 30})
    part = bytes(32 << 20)
    answers = [api.put(f'{session.path}/files/{i}', data=part) for i in range(20)]
    codes = [a.status_code for a in answers]
    assert codes[0] == 201 and 507 in codes and codes.count(201) <= 4, codes
    assert answers[-1].json()['code'] == 'no_space' and 'memory' in answers[-1].json()['detail']
    kept = codes.count(201)
    assert session.value('sum(e.stat().st_size for e in __import__("os").scandir("/workspace"))') == str(kept * len(part))
    seen = session.execute('b = bytearray(120 << 20); b[::4096] = b"x" * len(b[::4096])')
    assert seen.status in ('out_of_memory', 'killed'), 'files and variables together are more than the limit'
    for i in (i for i, code in enumerate(codes) if code == 201):
        assert api.delete(f'{session.path}/files/{i}').status_code == 204
    session.execute('b = bytearray(80 << 20); b[::4096] = b"x" * len(b[::4096])').ok()


def test_files_of_a_run_are_its_memory(api):
    big = base64.b64encode(bytes(17 << 20)).decode()
    answer = api.post('/v1/run', json={'code': '1', 'limits': {'memory_bytes': 16 << 20}, 'files': {'a': {'base64': big}}})
    assert answer.status_code == 507 and answer.json()['code'] == 'no_space', answer.text[:300]
