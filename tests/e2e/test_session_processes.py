"""Processes beside the interpreter: POST /v1/sessions/{id}/processes and what belongs to it."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '2', '--preload', 'none') as d:
        yield d


@pytest.fixture
def api(daemon):
    with daemon.api() as a:
        yield a


class Processes:
    def __init__(self, session):
        self.session, self.api = session, session.api
        self.path = f'{session.path}/processes'

    def post(self, **fields):
        return self.api.post(self.path, json=fields)

    def run(self, cmd=None, **fields):
        answer = self.post(**({'cmd': cmd} if cmd else {}), **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def start(self, cmd, **fields):
        answer = self.post(cmd=cmd, background=True, **fields)
        assert answer.status_code == 201, answer.text
        return answer.json()['id']

    def get(self, pid):
        return self.api.get(f'{self.path}/{pid}').json()

    def list(self):
        return self.api.get(self.path).json()['processes']

    def ask(self, pid, verb, **fields):
        return self.api.post(f'{self.path}/{pid}/{verb}', json=fields)

    def wait(self, pid, state='exited'):
        return gb.wait_until(lambda: (p := self.get(pid))['state'] == state and p, f'process {pid} is {state}')

    def stream(self, pid, **query):
        answer = self.api.get(f'{self.path}/{pid}/stream', params=query, stream=True)
        assert answer.status_code == 200, answer.text
        with answer:
            yield from gb.sse_events(answer)


@pytest.fixture
def processes(api):
    return Processes(api.session())


def count(daemon, seconds):
    """How many `sleep seconds` there are below the daemon: processes of a session do not see one another."""
    found = 0
    for pid, _ in gb.descendants(daemon.pid):
        try:
            found += Path(f'/proc/{pid}/cmdline').read_bytes() == f'sleep\0{seconds}\0'.encode()
        except OSError:
            pass
    return found


def test_foreground_answers_at_the_end(processes):
    p = processes.run('echo out; echo err >&2; exit 3')
    assert (p['stdout'], p['stderr'], p['exit_code'], p['state']) == ('out\n', 'err\n', 3, 'exited')
    assert p['id'] > 1 and p['signal'] is None and not p['timed_out']


def test_argv_environment_and_directory(processes):
    processes.session.execute('import os; os.mkdir("sub")').ok()
    p = processes.run(argv=['sh', '-c', 'echo "$A|$B|$HOME"; pwd'], env={'A': 'x y', 'B': '=z'}, cwd='sub')
    assert p['stdout'] == 'x y|=z|/workspace\n/workspace/sub\n'
    assert processes.run('echo $X', env={'X': 'ü'})['stdout'] == 'ü\n'


def test_session_environment_is_theirs(api):
    processes = Processes(api.session(env={'TOKEN': 'abc'}))
    assert processes.run('echo $TOKEN')['stdout'] == 'abc\n'
    assert processes.run('echo $TOKEN', env={'TOKEN': 'own'})['stdout'] == 'own\n'


def test_files_are_shared_with_the_interpreter(processes):
    processes.run('echo 42 > answer')
    observation = processes.session.execute('open("answer").read()').ok()
    assert observation.text == "'42\\n'"
    assert observation['files'] == []


def test_standard_input(processes):
    assert processes.run('cat', stdin='hello')['stdout'] == 'hello'
    assert processes.run('cat')['stdout'] == ''
    pid = processes.start('read x; echo "got $x"; cat', stdin_open=True)
    assert processes.ask(pid, 'stdin', text='one\n').status_code == 204
    assert processes.ask(pid, 'stdin', base64=base64.b64encode(b'two').decode(), close=True).status_code == 204
    assert processes.wait(pid)['stdout'] == 'got one\ntwo'
    assert processes.ask(pid, 'stdin', text='late').json()['code'] == 'no_stdin'


def test_large_input_and_output_pass(processes):
    text = 'x' * (3 << 20)
    p = processes.run('wc -c', stdin=text)
    assert p['stdout'].strip() == str(len(text))
    p = processes.run('head -c 3000000 /dev/zero | tr "\\0" y')
    assert p['output_bytes'] == 3000000 and len(p['stdout']) < 1200000


def test_signals_reach_the_group(daemon, processes):
    pid = processes.start('trap "echo bye; exit 7" TERM; sleep 1000 & wait')
    gb.wait_until(lambda: processes.get(pid)['state'] == 'running', 'it runs')
    time.sleep(0.3)
    assert processes.ask(pid, 'signal').status_code == 204
    assert processes.wait(pid)['exit_code'] in (7, 143)
    pid = processes.start('sleep 1001 & sleep 1001')
    gb.wait_until(lambda: count(daemon, 1001) == 2, 'both run')
    assert processes.ask(pid, 'signal', signal='SIGKILL').status_code == 204
    assert processes.wait(pid)['signal'] == signal.SIGKILL
    gb.wait_until(lambda: count(daemon, 1001) == 0, 'both are gone')
    assert processes.ask(pid, 'signal', signal='BAD').json()['code'] == 'invalid_field'


def test_time_limit(processes):
    p = processes.run('sleep 1000', timeout_s=0.3)
    assert p['timed_out'] and p['signal'] == signal.SIGKILL


def test_terminal(processes):
    pid = processes.start('tty; stty size; read x; stty size; echo "[$x]"', pty={'rows': 30, 'cols': 100})
    gb.wait_until(lambda: '30 100' in processes.get(pid)['stdout'], 'it has its size')
    assert processes.ask(pid, 'resize', rows=50, cols=120).status_code == 204
    assert processes.ask(pid, 'stdin', text='typed\n').status_code == 204
    end = processes.wait(pid)
    assert '/dev/pts/' in end['stdout'] and '50 120' in end['stdout'] and '[typed]' in end['stdout']
    plain = processes.start('sleep 1000')
    assert processes.ask(plain, 'resize', rows=1, cols=1).json()['code'] == 'no_terminal'


def test_events_of_a_foreground_process(processes):
    answer = processes.api.post(
        processes.path,
        json={'cmd': 'echo a; sleep 0.2; echo b >&2; exit 5'},
        headers={'Accept': 'text/event-stream'},
        stream=True,
    )
    with answer:
        events = list(gb.sse_events(answer))
    assert [name for name, _ in events] == ['started', 'stdout', 'stderr', 'exit']
    assert events[1][1]['text'] == 'a\n' and events[3][1]['exit_code'] == 5


def test_reconnecting_to_a_running_process(processes):
    pid = processes.start('for i in 1 2 3; do echo $i; sleep 0.2; done')
    first = next(e for e in processes.stream(pid) if e[0] == 'stdout')
    assert first[1]['text'].startswith('1')
    rest = list(processes.stream(pid, after=2))
    assert ''.join(data['text'] for name, data in rest if name == 'stdout') == '2\n3\n'
    assert rest[-1][0] == 'exit'
    again = list(processes.stream(pid, encoding='base64'))
    assert b''.join(base64.b64decode(d['base64']) for n, d in again if n == 'stdout') == b'1\n2\n3\n'


def test_slow_reader_holds_the_process_back_and_loses_nothing(processes):
    size = 6 << 20
    answer = processes.api.post(
        processes.path,
        json={'cmd': f'head -c {size} /dev/zero | tr "\\0" z'},
        headers={'Accept': 'text/event-stream'},
        stream=True,
    )
    time.sleep(1)
    with answer:
        got = sum(len(data['text']) for name, data in gb.sse_events(answer) if name == 'stdout')
    assert got == size


def test_output_nobody_reads_is_bounded(processes):
    pid = processes.start('head -c 20000000 /dev/zero | tr "\\0" q; echo end')
    end = processes.wait(pid)
    assert end['output_bytes'] == 20000004 and end['stdout'].endswith('end\n')
    events = list(processes.stream(pid))
    missed = sum(d['bytes'] for n, d in events if n == 'missed')
    kept = sum(len(d['text']) for n, d in events if n == 'stdout')
    assert missed + kept == 20000004 and kept < 2 << 20


def test_client_that_leaves_ends_a_foreground_process_only(daemon, processes):
    import socket

    pid = processes.start('sleep 1000')
    stream = processes.api.get(f'{processes.path}/{pid}/stream', stream=True)
    stream.close()
    body = json.dumps({'cmd': 'sleep 1002', 'tag': 'mine'})
    host, port = processes.api.url.removeprefix('http://').split(':')
    with socket.create_connection((host, int(port))) as wire:
        wire.sendall(
            f'POST {processes.path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n'
            f'Content-Length: {len(body)}\r\n\r\n{body}'.encode()
        )
        gb.wait_until(lambda: any(p['tag'] == 'mine' and p['state'] == 'running' for p in processes.list()), 'it runs')
    gb.wait_until(lambda: not any(p['tag'] == 'mine' for p in processes.list()), 'it is gone')
    gb.wait_until(lambda: count(daemon, 1002) == 0, 'its process is gone')
    assert processes.get(pid)['state'] == 'running'


def test_background_child_does_not_hold_the_end(daemon, processes):
    p = processes.run('(sleep 0.5; echo late; sleep 1003) & echo now')
    assert p['stdout'] == 'now\n'
    gb.wait_until(lambda: count(daemon, 1003) == 1, 'writing to its output did not end it')


def test_delete_ends_and_forgets(daemon, processes):
    pid = processes.start('sleep 1004')
    assert processes.api.delete(f'{processes.path}/{pid}').status_code == 204
    assert processes.api.get(f'{processes.path}/{pid}').json()['code'] == 'process_not_found'
    gb.wait_until(lambda: count(daemon, 1004) == 0, 'it is gone')


def test_what_cannot_be_started(processes):
    assert processes.post(argv=['nosuch-program']).json()['code'] == 'cannot_start'
    bad = processes.post(cmd='ls', cwd='nowhere')
    assert bad.status_code == 422 and 'working directory' in bad.json()['detail']
    assert processes.post().json()['code'] == 'missing_field'
    assert processes.post(cmd='a', argv=['b']).json()['code'] == 'invalid_field'
    assert processes.post(cmd='a', what=1).json()['code'] == 'unknown_field'
    assert processes.post(argv=['x' * 200000]).status_code in (400, 413)


def test_exec_and_profile_rules_hold(api):
    none = Processes(api.session(exec='none')).post(cmd='ls')
    assert (none.status_code, none.json()['code']) == (403, 'exec_not_allowed')
    strict = Processes(api.session(profile='smolagents')).post(cmd='ls')
    assert (strict.status_code, strict.json()['code']) == (403, 'policy_process')
    system = Processes(api.session())
    refused = system.run('cp /bin/true mine && chmod +x mine && ./mine; echo $?')
    assert refused['stdout'].strip() == '126'


def test_number_of_processes_is_bounded(processes):
    for _ in range(64):
        assert processes.post(cmd='sleep 1000', background=True).status_code == 201
    refused = processes.post(cmd='sleep 1000', background=True)
    assert (refused.status_code, refused.json()['code']) == (429, 'too_many_processes')


def test_survive_the_interpreter_rollback_and_reset(daemon, processes):
    session = processes.session
    pid = processes.start('sleep 1000')
    session.execute('x = 1').ok()
    assert session.execute('import os, subprocess; subprocess.Popen(["sleep", "1005"]); os._exit(1)')['status'] == 'killed'
    assert session.value('x') == '1'
    assert processes.get(pid)['state'] == 'running'
    gb.wait_until(lambda: count(daemon, 1005) == 0, 'what the cell left is gone')
    session.execute('x = 2').ok()
    assert session.api.post(f'{session.path}/rollback', json={'undo': True}).status_code == 200
    assert session.value('x') == '1' and processes.get(pid)['state'] == 'running'
    session.reset()
    assert session.execute('"x" in globals()').ok().text == 'False'
    assert processes.get(pid)['state'] == 'running'


def test_forks_have_none(processes):
    session = processes.session
    session.execute('x = 1').ok()
    pid = processes.start('sleep 1000')
    answer = session.api.post(f'{session.path}/fork', json={})
    assert answer.status_code == 201, answer.text
    fork = Processes(session.api.adopt(answer.json()['sessions'][0]))
    assert fork.list() == [] and fork.session.value('x') == '1'
    assert fork.run('echo fork')['stdout'] == 'fork\n'
    assert processes.get(pid)['state'] == 'running'


def test_end_with_the_session(daemon, api):
    processes = Processes(api.session())
    processes.start('setsid sleep 1007 & sleep 1007')
    gb.wait_until(lambda: count(daemon, 1007) == 2, 'both run')
    processes.session.delete()
    gb.wait_until(lambda: count(daemon, 1007) == 0, 'all of it is gone')


def test_kill_everything_inside(daemon, processes):
    """From outside, since a process of the session sees only its own."""
    pids = [processes.start('sleep 1006') for _ in range(3)]
    gb.wait_until(lambda: count(daemon, 1006) == 3, 'all run')
    leader = next(p for p, _ in gb.descendants(daemon.pid) if gb.command_of(p) == 'sleep' and b'1006' in Path(f'/proc/{p}/cmdline').read_bytes())
    space = os.readlink(f'/proc/{leader}/ns/pid')
    for pid, _ in gb.descendants(daemon.pid):
        with contextlib.suppress(OSError):
            if os.readlink(f'/proc/{pid}/ns/pid') == space and 'NSpid:\t%d\t1\n' % pid not in Path(f'/proc/{pid}/status').read_text():
                os.kill(pid, signal.SIGKILL)
    for pid in pids:
        assert processes.wait(pid)['signal'] == signal.SIGKILL
    assert processes.run('echo ok')['stdout'] == 'ok\n'
    assert processes.session.execute('1 + 1')['status'] in ('ok', 'killed')
    assert processes.session.value('1 + 1') == '2'


def test_many_at_once(processes):
    answers = [None] * 16

    def one(i):
        with gb.Api(processes.api.url) as api:
            answers[i] = api.post(processes.path, json={'cmd': f'echo {i}; sleep 0.1; echo {i}'}).json()['stdout']

    threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert answers == [f'{i}\n{i}\n' for i in range(16)]


def test_other_tokens_see_nothing():
    with gb.running_daemon('--preload', 'none', '--ready', '1', '--token', 'a' * 20, '--token', 'b' * 20, token='a' * 20) as d:
        with d.api() as mine, gb.Api(d.url, token='b' * 20) as other:
            session = mine.session()
            assert other.post(f'{session.path}/processes', json={'cmd': 'ls'}).status_code == 404
            assert other.get(f'{session.path}/processes').status_code == 404


def test_python_client(daemon):
    import glovebox

    with glovebox.Glovebox(daemon.url) as box, box.session() as s:
        done = s.commands.run('echo out; echo err >&2; exit 3')
        assert (done.stdout, done.stderr, done.exit_code) == ('out\n', 'err\n', 3)
        seen = []
        assert s.commands.run(['sh', '-c', 'echo a; sleep 0.2; echo b'], on_stdout=seen.append, check=True).stdout == 'a\nb\n'
        assert ''.join(seen) == 'a\nb\n'
        with pytest.raises(glovebox.CommandFailed):
            s.commands.run('false', check=True)
        with pytest.raises(glovebox.ApiError, match='could not be started'):
            s.commands.run(['nosuch'])
        assert s.commands.run('sleep 100', timeout=0.3).timed_out
        p = s.commands.start('read x; echo "got $x"; cat', stdin_open=True)
        p.write('one\n')
        p.write(b'two', close=True)
        assert p.wait().stdout == 'got one\ntwo'
        q = s.commands.start('sleep 1000')
        assert [x['id'] for x in s.commands.list() if x['state'] == 'running'] == [q.id]
        q.signal('INT')
        assert q.wait().signal == signal.SIGINT
        s.commands.kill(q.id)
        assert s.commands.get(p.id).info()['exit_code'] == 0


def test_python_client_async(daemon):
    import asyncio

    import glovebox

    async def use():
        async with glovebox.AsyncGlovebox(daemon.url) as box, box.session() as s:
            seen = []
            done = await s.commands.run('echo out; exit 3', on_stdout=seen.append)
            assert (done.stdout, done.exit_code, seen) == ('out\n', 3, ['out\n'])
            both = await asyncio.gather(s.commands.run('sleep 0.2; echo 1'), s.commands.run('echo 2'))
            assert [b.stdout for b in both] == ['1\n', '2\n']
            p = await s.commands.start('cat', stdin_open=True)
            await p.write('x', close=True)
            assert (await p.wait()).stdout == 'x'
            q = await s.commands.start('sleep 1000')
            await q.kill()
            assert all(x['id'] != q.id for x in await s.commands.list())

    asyncio.run(use())


def test_a_process_that_never_starts_fails():
    with gb.running_daemon('--ready', '1', '--preload', 'none') as own, own.api() as api:
        session = api.session()
        session.execute('1').ok()
        gb.wait_until(lambda: len(own.children('glovebox-zygote')) == 1, 'there is one zygote')
        zygote = own.children('glovebox-zygote')[0]
        os.kill(zygote, signal.SIGSTOP)
        try:
            answer = Processes(session).post(cmd='echo started')
        finally:
            with contextlib.suppress(ProcessLookupError):  # the watchdog has replaced a zygote that does not answer
                os.kill(zygote, signal.SIGCONT)
        assert answer.status_code >= 400 and 'did not start in time' in answer.text, answer.text
        assert Processes(session).run('echo again')['stdout'] == 'again\n'


def test_a_process_ends_before_the_zygote_runs_again():
    """The zygote stands still after it has told of a process, for longer than the process runs."""
    with gb.running_daemon('--ready', '1', '--preload', 'none') as own, own.api() as api:
        processes = Processes(api.session())
        (zygote,) = own.children('glovebox-zygote')
        slow = ['-e', 'trace=sendmsg', '-e', 'inject=sendmsg:delay_exit=500000']
        tracer = subprocess.Popen(['strace', '-qq', '-o', '/dev/null', *slow, '-p', str(zygote)])
        try:
            traced = lambda: f'TracerPid:\t{tracer.pid}\n' in Path(f'/proc/{zygote}/status').read_text()
            gb.wait_until(traced, 'the zygote is traced')
            assert [processes.run('exit 3')['exit_code'] for _ in range(2)] == [3, 3]
        finally:
            tracer.terminate()
            tracer.wait(gb.PATIENCE)
