"""Forks: sessions that go on from another one's state, in jails of their own."""

import os
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gb
import pytest


def fork(session, **body):
    answer = session.api.post(f'{session.path}/fork', json=body)
    assert answer.status_code == 201, answer.text
    return [session.api.adopt(s) for s in answer.json()['sessions']]


def refused(session, **body):
    answer = session.api.post(f'{session.path}/fork', json=body)
    assert answer.status_code == 409, answer.text
    return answer.json()


def test_each_goes_its_own_way(session):
    session.execute('x = [1]; f = open("data", "w"); f.write("one"); f.flush(); import os; os.makedirs("d"); os.chdir("d")').ok()
    children = fork(session, count=3)
    for i, child in enumerate(children):
        child.execute(f'x.append({i}); f.write("{i}"); f.flush()').ok()
    for i, child in enumerate(children):
        assert child.value('x, open("../data").read(), os.getcwd()') == f"([1, {i}], 'one{i}', '/workspace/d')"
    assert session.value('x, open("../data").read()') == "([1], 'one')"


def test_jails_of_their_own(session):
    session.execute('import os, socket').ok()
    child, other = fork(session, count=2)
    spaces = [
        {kind: os.readlink(f'/proc/{s.get()["pid"]}/ns/{kind}') for kind in ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup')}
        for s in (session, child, other)
    ]
    for kind in spaces[0]:
        assert len({s[kind] for s in spaces}) == 3, kind
    groups = {Path(f'/proc/{s.get()["pid"]}/cgroup').read_text() for s in (session, child, other)}
    assert len(groups) == 3
    for s in (child, other):
        status = Path(f'/proc/{s.get()["pid"]}/status').read_text()
        for line in ('CapEff:\t0000000000000000', 'CapPrm:\t0000000000000000', 'CapBnd:\t0000000000000000', 'NoNewPrivs:\t1', 'Seccomp:\t2'):
            assert line in status
        assert s.value('[p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]') == '[]'
        assert s.value('os.getuid(), open("/proc/self/cgroup").read().strip().splitlines()[-1][-2:]').startswith('(1000')
        assert s.execute('open("/usr/x", "w")').error['type'] == 'OSError'
    child.execute('s = socket.socket(socket.AF_UNIX); s.bind("\\0fork"); s.listen()').ok()
    assert other.execute('socket.socket(socket.AF_UNIX).connect("\\0fork")').error['type'] == 'ConnectionRefusedError'


def test_libc_knows_who_it_is(session):
    """It keeps the thread's id in memory, which copies go on with."""
    session.execute('import os, subprocess, threading, time').ok()
    session.execute('subprocess.run(["true"])').ok()
    assert session.api.post(f'{session.path}/checkpoints', json={'name': 'here'}).status_code == 201
    first = session.value('os.getpid()')
    assert session.api.post(f'{session.path}/rollback', json={'checkpoint': 'here'}).status_code == 200
    assert session.value('os.getpid()') != first
    (child,) = fork(session, count=1)
    (grandchild,) = fork(child, count=1)
    for s in (session, child, grandchild):
        assert s.value('(~time.pthread_getcpuclockid(threading.get_ident()) >> 3) == os.getpid()') == 'True'
        s.execute('t = threading.Thread(target=lambda: None); t.start(); t.join()').ok()
        assert s.value('subprocess.run(["echo", "here"], capture_output=True).stdout') == "b'here\\n'"


def test_random_numbers(session):
    session.execute('import random, numpy as np; random.seed(1); np.random.seed(1); g = np.random.default_rng(1); r = random.Random(1)').ok()
    draw = 'random.random(), np.random.rand(), g.random(), r.random()'
    seen = [child.value(draw) for child in fork(session, count=2)]
    same = [child.value(draw) for child in fork(session, count=2, reseed=False)]
    assert same[0] == same[1] == session.value(draw)
    for values in zip(*(eval(v) for v in [*seen, same[0]])):
        assert len(set(values)) == 3


def test_of_a_fork_of_a_fork(session):
    session.execute('x = 0').ok()
    line = [session]
    for i in range(4):
        line.append(fork(line[-1])[0])
        line[-1].execute('x += 1').ok()
    for i, s in enumerate(line):
        assert s.value('x') == str(i)
    for s in line[:-1]:
        s.delete()
    assert line[-1].value('x') == '4', 'it lives on without its ancestors'
    assert line[-1].execute('x = -1; import os; os._exit(1)').rolled_back
    assert line[-1].value('x') == '4'


def test_deaths_stay_at_home(session):
    """Whatever is swept in one jail does not reach those nested in it."""
    session.execute('x = 1').ok()
    children = fork(session, count=2)
    bomb = 'import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass'  # the limit on processes ends no loop
    assert session.execute(bomb, timeout_s=0.5).status == 'timeout'
    session.execute('import os; os._exit(1)')
    session.reset()
    assert session.execute('x').error['type'] == 'NameError'
    for child in children:
        assert child.value('x') == '1'
    children[0].reset()
    assert children[0].execute('x').error['type'] == 'NameError'
    assert children[0].execute('2 + 2').ok().text == '4'


def test_from_a_checkpoint(session):
    session.execute('x = 1; open("f", "w").write("1")').ok()
    session.api.post(f'{session.path}/checkpoints', json={'name': 'one'})
    session.execute('x = 2; open("f", "w").write("2")').ok()
    assert fork(session, at='one')[0].value('x, open("f").read()') == "(1, '1')"
    assert session.value('x') == '2'
    assert session.api.post(f'{session.path}/fork', json={'at': 'none'}).status_code == 404


def left_over(daemon):
    """What a daemon has of what sessions need: processes, control groups, mounts, descriptors, files."""
    groups = sum(len(names) for root, names, _ in os.walk('/sys/fs/cgroup') if root.endswith(f'glovebox-{daemon.pid}'))
    mounts = len(Path(f'/proc/{daemon.pid}/mountinfo').read_text().splitlines())
    files = sum(len(found) for _, _, found in os.walk(daemon.dir / 'state'))
    return len(gb.descendants(daemon.pid)), groups, mounts, daemon.fds(), files


def test_a_hundred_in_one_request():
    """Of a daemon of its own, so that what is left can be counted."""
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--max-sessions', '200') as daemon, daemon.api() as api:
        for s in [*fork(session := api.session()), session]:
            s.delete()
        daemon.settled_fds()
        before = left_over(daemon)
        session = api.session()
        session.execute('a = list(range(1 << 16)); open("f", "w").write("x" * 1000)').ok()
        children = fork(session, count=100)
        assert len({c.id for c in children}) == 100 == api.metrics()['glovebox_sessions_forked_total'] - 1
        assert [c.value(f'a.append({i}); len(a), a[-1], len(open("f").read())') for i, c in enumerate(children)] == [f'(65537, {i}, 1000)' for i in range(100)]
        session.delete()
        assert [c.value('a[-1]') for c in children] == [str(i) for i in range(100)], 'without their parent'
        answer = api.post(f'{children[0].path}/fork', json={'count': 150})
        assert answer.status_code == 503 and '--max-sessions' in answer.json()['remediation']
        for c in children:
            c.delete()
        gb.wait_until(lambda: all(now <= was for now, was in zip(left_over(daemon), before)), 'nothing is left')


@pytest.mark.parametrize(
    'held, words',
    [
        ('import mmap; m = mmap.mmap(-1, 4096)', 'memory is shared'),
        ('open("f", "wb").write(bytes(4096)); import numpy; m = numpy.memmap("f", mode="r+")', 'memory is shared'),
        ('import asyncio\nt = asyncio.ensure_future(asyncio.sleep(1e6))\nawait asyncio.sleep(0)', 'tasks'),
        ('open("big", "wb").write(bytes(80 << 20))', 'files'),
    ],
)
def test_refused_by_name(session, held, words):
    session.execute(held).ok()
    problem = refused(session)
    assert problem['code'] == 'cannot_fork' and words in problem['detail'], problem
    assert session.execute('1').ok().text == '1', 'the session goes on'


def test_wrong_requests(session):
    for body in ({'count': 0}, {'count': 100000}, {'count': 'x'}, {'reseed': 1}, {'more': 1}):
        assert session.api.post(f'{session.path}/fork', json=body).status_code == 400, body


def test_between_cells_only(session):
    """While one runs or waits, all of it is refused and says what to do; nothing of it comes later by surprise."""
    running = session.in_background('import time; time.sleep(1e6)')
    session.wait_busy()
    waiting = session.in_background('x = 1')
    gb.wait_until(lambda: session.get()['queued'] == 1, 'one cell waits')
    for path, body in (('fork', {}), ('fork', {'count': 5}), ('rollback', {'undo': True}), ('checkpoints', {})):
        answer = session.api.post(f'{session.path}/{path}', json=body)
        assert answer.status_code == 409 and answer.json()['code'] == 'session_busy' and 'interrupt' in answer.json()['remediation']
    session.interrupt()
    running.result()
    waiting.result().ok()
    assert session.value('x') == '1' and fork(session)[0].value('x') == '1'


def alive(api):
    return {s['id'] for s in api.get('/v1/sessions').json()['sessions']}


def test_the_parent_ends_meanwhile(daemon, api):
    """All of them are there, or none; at whatever moment it ends."""
    before = alive(api)
    for delay in (0, 0.002, 0.01, 0.03, 0.1):
        session = api.session()
        session.execute('x = 1; y = bytearray(20 << 20)').ok()
        with ThreadPoolExecutor(1) as pool, daemon.api() as other:
            asked = pool.submit(other.post, f'{session.path}/fork', json={'count': 20})
            time.sleep(delay)
            session.delete()
            answer = asked.result()
        if answer.status_code == 201:
            for child in answer.json()['sessions']:
                assert gb.Session(api, child).value('x') == '1'
                api.delete(f'/v1/sessions/{child["id"]}')
        else:
            assert answer.status_code in (404, 410) and answer.json()['code'] in ('session_gone', 'session_not_found'), answer.text
        gb.wait_until(lambda: alive(api) <= before, 'none is left over')


def leave_during_a_fork(daemon, api, session):
    """True when the client left before its forks were made, and they ended; else they are ended here."""

    def made():
        return api.metrics()['glovebox_sessions_forked_total'] > forked

    ids = {s['id'] for s in api.get('/v1/sessions?limit=1000').json()['sessions']}
    before, forked = alive(api), api.metrics()['glovebox_sessions_forked_total']
    body = b'{"count": 8}'
    host = daemon.url.partition('//')[2]
    with socket.create_connection(host.split(':')) as s:
        s.sendall(
            f'POST {session.path}/fork HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body
        )
        gb.wait_until(lambda: alive(api) > before or made(), 'they are being made')
    gb.wait_until(lambda: alive(api) <= before or made(), 'nobody knows their ids: they end')
    left = [s['id'] for s in api.get('/v1/sessions?limit=1000').json()['sessions'] if s['id'] not in ids]
    assert not left or made(), 'only forks that were answered stay'
    for child in left:
        api.delete(f'/v1/sessions/{child}')
    gb.wait_until(lambda: alive(api) <= before, 'none is left over')
    return not left


def test_a_client_that_leaves_leaves_none(daemon, api, session):
    session.execute('x = 1').ok()
    # The forks of a fast machine may have been made when the client leaves.
    any(leave_during_a_fork(daemon, api, session) for _ in range(10))
    assert session.value('x') == '1' and fork(session)[0].value('x') == '1'


def test_event_loops_are_their_own(session):
    session.execute('import asyncio\nawait asyncio.sleep(0)').ok()
    a, b = fork(session, count=2)
    for s in (a, session, b):
        assert s.value('await asyncio.sleep(0.01, 5)') == '5'


def test_nothing_is_left(daemon, api):
    session = api.session()
    session.execute('x = 1').ok()
    gb.wait_until(lambda: session.get()['state'] == 'idle', 'idle')
    for _ in range(3):
        children = fork(session, count=5)
        for c in children:
            c.execute('x += 1').ok()
            c.delete()
    session.delete()
    gb.wait_until(lambda: not [p for p, s in gb.processes().items() if s[0] == daemon.pid and s[2] == 'Z'], 'nobody is left unburied')


# ---- a session from another one ----------------------------------------------------------


def from_(api, source, **fields):
    answer = api.post('/v1/sessions', json={'from': source, **fields})
    assert answer.status_code == 201, answer.text
    assert answer.headers['Location'] == '/v1/sessions/' + answer.json()['id']
    return api.adopt(answer.json())


def test_made_from_a_session(api, session):
    session.execute('x = [1]; open("f", "w").write("one"); import random; random.seed(1)').ok()
    child = from_(api, session.id, name='branch', metadata={'k': 1}, ttl_s=500, idle_timeout_s=50)
    info = child.get()
    assert (info['name'], info['metadata'], info['ttl_s'], info['idle_timeout_s']) == ('branch', {'k': 1}, 500, 50)
    assert info['from'] == session.id and info['same_numbers'] == '' and session.get()['from'] is None
    child.execute('x.append(2); open("f", "a").write("two")').ok()
    assert child.value('x, open("f").read()') == "([1, 2], 'onetwo')"
    assert session.value('x, open("f").read()') == "([1], 'one')"
    same = from_(api, session.id, reseed=False)
    assert same.value('random.random()') == session.value('random.random()') != child.value('random.random()')


def test_made_from_a_checkpoint(api, session):
    session.execute('x = 1').ok()
    point = session.api.post(f'{session.path}/checkpoints', json={'name': 'one'}).json()['checkpoint']['id']
    session.execute('x = 2').ok()
    assert from_(api, point).value('x') == '1'
    assert from_(api, session.id).value('x') == '2'


def test_made_from_what_is_not_there(api, session):
    ask = lambda **body: api.post('/v1/sessions', json=body)
    for source, code in (
        ('k_aaaaaaaaaaaaaaaaaaaa', 'checkpoint_not_found'), ('s_' + 'a' * 26, 'session_not_found'), ('rubbish', 'session_not_found'), ('../../etc', 'session_not_found'),
    ):  # fmt: skip
        answer = ask(**{'from': source})
        assert answer.status_code == 404 and answer.json()['code'] == code and answer.json()['remediation'], answer.text
    for wrong in ({'limits': {'memory_bytes': 1 << 30}}, {'env': {'A': '1'}}, {'display': True}, {'packages': ['rich']}, {'seed': 1}, {'profile': 'smolagents'}):
        answer = ask(**{'from': session.id, **wrong})
        assert answer.status_code == 400 and next(iter(wrong)) in answer.json()['detail'] and 'Omit the field' in answer.json()['remediation']
    assert ask(reseed=True).json()['detail'].startswith('$.reseed')
    assert ask(**{'from': ''}).status_code == 400 and ask(**{'from': 5}).status_code == 400
    gone = api.session()
    gone.delete()
    assert ask(**{'from': gone.id}).status_code == 410
    busy = session.in_background('import time; time.sleep(1e6)')
    session.wait_busy()
    answer = ask(**{'from': session.id})
    assert answer.status_code == 409 and answer.json()['code'] == 'session_busy'
    session.interrupt()
    busy.result()


def test_others_cannot_be_the_source():
    tokens = ['--token', 'a' * 32, '--token', 'b' * 32, '--max-sessions-per-token', '4']
    with gb.running_daemon('--preload', 'json', '--ready', '1', *tokens) as daemon, gb.Api(daemon.url, 'a' * 32) as mine, gb.Api(daemon.url, 'b' * 32) as other:
        session = mine.session()
        session.execute('x = 1').ok()
        point = session.api.post(f'{session.path}/checkpoints', json={}).json()['checkpoint']['id']
        for source in (session.id, point):
            assert other.post('/v1/sessions', json={'from': source}).status_code == 404
            assert mine.post('/v1/sessions', json={'from': source}).status_code == 201
        answer = mine.post(f'{session.path}/fork', json={'count': 2})
        assert answer.status_code == 429 and '2 more' in answer.json()['detail'], 'forks count for the token'


def test_looking_for_generators_copies_no_heap(session):
    """Whoever looks at an object writes to it; a fork must not do so with all that the session holds."""
    session.execute('import random; r = {"deep": [random.Random(1)]}; a = {i: [str(j) for j in range(100)] for i in range(10_000)}').ok()
    children = fork(session, count=2)
    for child in children:
        own = re.search(r'^Private_Dirty: +(\d+) kB', Path(f'/proc/{child.get()["pid"]}/smaps_rollup').read_text(), re.M)
        assert int(own[1]) < 16 << 10
    first, second = (child.value('r["deep"][0].random()') for child in children)
    assert first != second


# ---- the command line ----------------------------------------------------------------


def test_verbs(daemon, api):
    session = api.session(name='travel')
    session.execute('x = 1').ok()
    verb = lambda *args: gb.cli(args[0], '--url', daemon.url, *args[1:])
    assert verb('checkpoint', 'travel', 'one').stdout.startswith('k_')
    session.execute('x = 2').ok()
    made = verb('fork', 'travel', '--count', 2, '--at', 'one')
    assert made.returncode == 0 and len(made.stdout.split()) == 2, made.stderr
    assert verb('rollback', 'travel', 'one').stdout == 'rolled back to the state after cell 1\n'
    assert session.value('x') == '1'
    shown = verb('tree', 'travel').stdout
    assert ' one ' in shown and 'after cell 1' in shown
    assert verb('rollback', 'travel', '--undo').returncode == 0
    failed = verb('rollback', 'travel', 'none')
    assert failed.returncode == 1 and 'no checkpoint none' in failed.stderr
    assert verb('rollback', 'travel').returncode == 2
    assert '"checkpoints"' in verb('tree', 'travel', '--json').stdout


def test_shell():
    lines = ['x = 1', 'x = 2', '%undo', 'print("x", x)', '%checkpoint one', 'x = 5', '%fork one', 'print("fork", x)', '%tree', '%undo nothing']
    seen = gb.cli('shell', input='\n'.join(lines) + '\n')
    assert 'x 1\n' in seen.stdout and 'fork 1\n' in seen.stdout, seen
    assert 'no checkpoint nothing' in seen.stderr and '%tree lists' in seen.stderr


def test_forks_work_after_the_jailer_was_started_again():
    """The rules of a session hold on to the files of the tree that its jail has; the jail of a fork must have the same tree."""
    def jailer(daemon):
        return next(pid for (pid, _), state in gb.descendants(daemon.pid).items() if state != 'Z' and gb.command_of(pid) == 'glovebox-jailer')

    with gb.running_daemon('--preload', 'json') as daemon, daemon.api() as api:
        session = api.session()
        session.execute('x = 1; open("/tmp/t", "w").write("one")').ok()
        for _ in range(2):
            os.kill(jailer(daemon), signal.SIGKILL)
            gb.wait_until(lambda: 'the jailer ended' in daemon.log(), 'the death is noticed')
            for source in (session, api.session()):
                source.execute('x = 1; open("/tmp/t", "a").write("+")').ok()
                (child,) = fork(source, count=1)
                (grandchild,) = fork(child, count=1)
                for one in (child, grandchild):
                    assert one.value("open('/tmp/t', 'a').write('*'), open('/proc/self/comm').read(), x") == "(1, 'python3\\n', 1)"


def test_forks_that_are_deleted_while_others_are_made(daemon, api):
    """Whoever lists sessions sees forks before all of them are ready, and may end one: all or none of them are there then."""
    parent = api.session()
    parent.execute('x = 1').ok()
    answers = []

    def fork():
        with daemon.api() as other:
            answers.append(other.post(f'/v1/sessions/{parent.id}/fork', json={'count': 8}).status_code)

    for _ in range(8):
        before = {s['id'] for s in api.get('/v1/sessions').json()['sessions']}
        thread = threading.Thread(target=fork)
        thread.start()
        while thread.is_alive():
            for s in api.get('/v1/sessions').json()['sessions']:
                if s['id'] not in before and s['state'] == 'idle':
                    api.delete(f'/v1/sessions/{s["id"]}')
                    break
        thread.join(gb.PATIENCE)
    assert len(answers) == 8 and set(answers) <= {201, 409}, answers
    assert parent.execute('x')['result']['text/plain'] == '1'
