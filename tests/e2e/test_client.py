"""The Python client against a real daemon."""

import ast
import asyncio
import json
import os
import socket
import subprocess
import sys
import threading

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

import glovebox  # noqa: E402
from glovebox import AsyncCodingEnv, AsyncGlovebox, CodeAction, CodingEnv, Glovebox, SessionExecutor, SessionNotebook, Tool, tool  # noqa: E402
from glovebox._websocket import Frames, frame  # noqa: E402
from glovebox.tools import describe, schema_of  # noqa: E402


SMALL = '--preload', 'json', '--ready', '1'  # daemons that are up at once


@pytest.fixture
def box(daemon):
    with Glovebox(daemon.url) as box:
        yield box


@pytest.fixture
def s(box):
    with box.session() as session:
        yield session


# ---- sessions and cells ----------------------------------------------------------------


def test_variables_stay(s):
    assert s.run('x = 6 * 7').value is None
    o = s.run('print("hi")\nx')
    assert o.ok and o.value == 42 and o.text == '42' and o.stdout == 'hi\n' and o.cell == 2 and o.session == s.id
    assert s.run('[1, {"a": None}]').value == [1, {'a': None}]
    assert s.run('object()').value.startswith('<object object')
    s.reset()
    assert s.run('x').error.type == 'NameError'


def test_errors_are_outcomes_unless_checked(s):
    o = s.run('print("before")\n1/0')
    assert not o.ok and o.stdout == 'before\n' and o.error.type == 'ZeroDivisionError' and o.error.line == 2
    assert 'Traceback' in str(o.error) and 'division by zero' in repr(o)
    with pytest.raises(glovebox.CellError, match='ZeroDivisionError: division by zero') as raised:
        s.run('1/0', check=True)
    assert raised.value.observation.exit_code == 1
    with pytest.raises(glovebox.CellTimeout):
        s.run('while True: pass', timeout=0.3, check=True)
    with pytest.raises(glovebox.CellKilled):
        s.run('import os; os._exit(3)', check=True)
    assert issubclass(glovebox.CellTimeout, TimeoutError) and issubclass(glovebox.CellError, glovebox.GloveboxError)


def test_output_as_it_comes(s):
    heard = []
    o = s.run(
        'import sys\nprint("one", flush=True)\nprint("two", file=sys.stderr, flush=True)\ndisplay({"a": 1})\n3',
        on_stdout=lambda t: heard.append(('out', t)),
        on_stderr=lambda t: heard.append(('err', t)),
        on_display=lambda d: heard.append(('display', d['text/plain'])),
    )
    assert o.value == 3
    assert sorted(heard) == [('display', "{'a': 1}"), ('err', 'two\n'), ('out', 'one\n')]


def test_stdin_limits_and_fields(box):
    with box.session(name='fields', timeout=5, memory=512 << 20, limits={'output_bytes': 2048}, env={'A': 'b'}, seed=1) as s:
        assert s.run('input()', stdin='typed\n').value == 'typed'
        assert s.run('import os; os.environ["A"]').value == 'b'
        limits = s.info()['limits']
        assert limits['timeout_s'] == 5 and limits['memory_bytes'] == 512 << 20 and limits['output_bytes'] == 2048
        assert [i['id'] for i in box.sessions(name='fields')] == [s.id]
        with box.attach(s.id) as same:
            same.run('y = 1')
        assert s.run('y').value == 1, 'a session that was attached to does not end with the block'


def test_interrupt_from_another_thread(box, s):
    begun = threading.Event()
    thread = threading.Thread(target=lambda: begun.wait(gb.PATIENCE) and s.interrupt())
    thread.start()
    code = 'import time\ntry:\n    print("go", flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print("stopped")\n    raise'
    o = s.run(code, on_stdout=lambda text: begun.set())
    thread.join()
    assert o.status == 'interrupted' and o.stdout == 'go\nstopped\n'
    with pytest.raises(glovebox.CellInterrupted):
        o.raise_for_error()
    assert s.interrupt() is False


def test_one_shot(box):
    o = box.run('print(open("in.txt").read(), open("b.bin", "rb").read())', files={'in.txt': 'text', 'b.bin': b'\0\1'}, timeout=10)
    assert o.stdout == "text b'\\x00\\x01'\n"
    with pytest.raises(glovebox.CellError):
        box.run('x', check=True)


def test_files(s, tmp_path):
    s.write_file('data/é.txt', 'héllo')
    s.write_file('/workspace/raw.bin', bytes(range(256)))
    assert s.read_file('data/é.txt').decode() == 'héllo' and s.read_file('raw.bin') == bytes(range(256))
    assert {f['path'] for f in s.files()} == {'data', 'data/é.txt', 'raw.bin'}
    (tmp_path / 'up.txt').write_text('up')
    s.upload(tmp_path / 'up.txt')
    o = s.run('open("down.txt", "w").write(open("up.txt").read().upper())')
    assert [(f.path, f.change, f.size) for f in o.files] == [('down.txt', 'created', 2)]
    s.download('down.txt', tmp_path / 'down.txt')
    assert (tmp_path / 'down.txt').read_text() == 'UP'
    s.delete_file('down.txt')
    with pytest.raises(FileNotFoundError) as raised:
        s.read_file('down.txt')
    assert isinstance(raised.value, glovebox.NotFound) and raised.value.code == 'file_not_found'


def test_logs_and_rich_results(s):
    s.run('print("one")')
    s.run('print("two")')
    assert s.logs() == 'one\ntwo\n'
    o = s.run('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint("<b>")')
    assert len(o.images) == 1 and o.images[0].startswith(b'\x89PNG')
    page = o._repr_html_()
    assert '&lt;b&gt;' in page and '<img src="data:image/png;base64,' in page
    hostile = s.run('class H:\n    def _repr_html_(self): return "<script>alert(1)</script>"\nH()')
    assert '<script>' not in hostile._repr_html_() and 'iframe sandbox' in hostile._repr_html_()
    from PIL import Image

    assert isinstance(s.run('from PIL import Image\nImage.new("RGB", (2, 3))').value, Image.Image)


def test_api_errors_have_classes(box, s, daemon):
    with pytest.raises(glovebox.SessionNotFound) as raised:
        box.attach('s_' + 'a' * 26)
    assert raised.value.status == 404 and raised.value.remediation
    with pytest.raises(glovebox.InvalidRequest, match='timeout_s'):
        s.run('1', timeout=-1)
    with pytest.raises(glovebox.InvalidRequest, match='nonsense'):
        box.session(nonsense=1)
    s.close()
    with pytest.raises(glovebox.SessionGone, match='it was deleted'):
        s.run('1')
    with pytest.raises(glovebox.SessionGone):
        s.run('1', on_stdout=print)
    s.close()
    with pytest.raises(glovebox.ConnectionFailed, match='cannot be reached'):
        Glovebox('http://127.0.0.1:9').health()
    with pytest.raises(ValueError, match='no address'):
        Glovebox('ftp://x')


def test_tokens_and_unix_sockets(tmp_path):
    where = tmp_path / 'box.sock'
    with gb.running_daemon(*SMALL, listen=f'unix:{where}', wait=False) as daemon:
        gb.wait_until(where.exists, 'the socket is there')
        with Glovebox(f'unix:{where}') as box, box.session() as s:
            assert s.run('1 + 1', on_stdout=print).value == 2
        assert daemon.process.poll() is None
    with gb.running_daemon(*SMALL, '--token', 'sesame-sesame-sesame', token='sesame-sesame-sesame') as daemon:
        with pytest.raises(glovebox.Unauthorized):
            Glovebox(daemon.url).sessions()
        with Glovebox(daemon.url, 'sesame-sesame-sesame') as box, box.session(tools=[len_of]) as s:
            assert s.run('len_of("abc")').value == 3


def test_connections_that_went_away_are_made_again(daemon):
    with gb.running_daemon(*SMALL) as other:
        box = Glovebox(other.url)
        assert box.health() == {'status': 'healthy'}
        for connection in box._http._idle:
            connection.sock.shutdown(2)
        assert box.health() == {'status': 'healthy'}
        s = box.session()
        s.run('x = 1', on_stdout=print)
        s._socket._ws._socket.shutdown(2)
        gb.wait_until(lambda: s._socket.closed, 'the reader noticed')
        assert s.run('x', on_stdout=print).value == 1
        s.close()
        box.close()


# ---- tools -----------------------------------------------------------------------------


def len_of(text: str) -> int:
    return len(text)


def test_tools(box):
    calls = []

    def search(query: str, limit: int = 3, *, tags: 'list[str] | None' = None) -> list:
        """Searches.

        Args:
            query: what for
            limit (int): how many,
                at most
        """
        calls.append((query, limit, tags))
        if limit < 0:
            raise ValueError('no negative limits')
        return [query] * limit

    @tool(timeout=5)
    async def later(x):
        await asyncio.sleep(0)
        return (x, {1, 2})

    with box.session(tools=[search, later, Tool(name='local', source='def local():\n    return "here"')]) as s:
        assert s.run('search("a"), search("b", 1, tags=["t"]), later(5), local()').text == "(['a', 'a', 'a'], ['b'], (5, {1, 2}), 'here')"
        assert calls == [('a', 3, None), ('b', 1, ['t'])]
        assert 'query (str): what for' in s.run('search.__doc__').value and 'at most' in s.run('search.__doc__').value
        o = s.run('try:\n    search("a", -1)\nexcept ValueError as e:\n    print(e)')
        assert o.stdout == 'no negative limits\n'
        assert s.run('search(1)').error.type == 'ToolArgumentError'
        s.set_tools([len_of])
        assert s.run('len_of("four"), "search" in globals()').value == [4, False]
        s.set_tools([])
        assert s.run('"len_of" in globals()').value is False


def test_tools_run_at_once_and_not_in_their_own_session(box):
    meet = threading.Barrier(4)
    with box.session() as s:

        def together(i: int) -> int:
            meet.wait(gb.PATIENCE)
            return i

        def nested(code: str) -> int:
            with box.session() as other:
                return other.run(code).value

        def own() -> str:
            return s.run('1').text

        s.set_tools([together, nested, own])
        code = 'from concurrent.futures import ThreadPoolExecutor as T\nlist(T(4).map(together, range(4)))'
        assert s.run(code).value == [0, 1, 2, 3]
        assert s.run('nested("6 * 7")').value == 42
        o = s.run('own()')
        assert o.error.type == 'ToolError' and 'a tool cannot run a cell in the session that called it' in o.error.message


def test_schemas_of_functions():
    from typing import Any, Dict, List, Literal, Optional, Union

    for annotation, schema in (
        (str, {'type': 'string'}),
        (Any, {}),
        (List[int], {'type': 'array', 'items': {'type': 'integer'}}),
        (Dict[str, float], {'type': 'object', 'additionalProperties': {'type': 'number'}}),
        (Optional[str], {'type': 'string', 'nullable': True}),
        (Union[int, str], {'anyOf': [{'type': 'integer'}, {'type': 'string'}]}),
        (Union[int, str, None], {'anyOf': [{'type': 'integer'}, {'type': 'string'}, {'type': 'null'}]}),
        (Literal['a', 'b'], {'enum': ['a', 'b']}),
        (bytes, {}),
    ):
        assert schema_of(annotation) == schema, annotation
    with pytest.raises(TypeError, match='by name'):
        describe(lambda *args: 0)
    assert describe(lambda a, **kw: 0)['parameters']['additionalProperties'] is True


def test_websocket_frames():
    reader = Frames()
    server = bytes([0x01, 2]) + b'he' + bytes([0x89, 0]) + bytes([0x80, 3]) + b'llo' + bytes([0x81, 126, 1, 0]) + b'x' * 256
    got = []
    for i in range(len(server)):
        got += reader.feed(server[i : i + 1])
    assert got == [(9, b''), (1, b'hello'), (1, b'x' * 256)]
    for n in (0, 1, 125, 126, 65535, 65536):
        data = os.urandom(n)
        sent = frame(1, data)
        at = 2 + (0 if n < 126 else 2 if n < 65536 else 8)
        mask, masked = sent[at : at + 4], sent[at + 4 :]
        assert bytes(b ^ mask[i % 4] for i, b in enumerate(masked)) == data
    with pytest.raises(glovebox.ConnectionFailed):
        list(Frames().feed(bytes([0x81, 0x80, 0, 0, 0, 0])))


# ---- asyncio ---------------------------------------------------------------------------


def test_asyncio(daemon):
    async def main():
        async with AsyncGlovebox(daemon.url) as box:
            assert (await box.health())['status'] == 'healthy'
            async with box.session(seed=3) as s:
                heard = []

                async def hear(text):
                    heard.append(text)

                assert (await s.run('x = 20\nprint("out")\nx + 1', on_stdout=hear)).value == 21 and ''.join(heard) == 'out\n'
                await s.write_file('a.txt', 'abc')
                assert await s.read_file('a.txt') == b'abc' and len(await s.files()) == 1
                with pytest.raises(FileNotFoundError):
                    await s.read_file('b.txt')
                with pytest.raises(glovebox.CellError):
                    await s.run('1/0', check=True)
                assert await s.logs() == 'out\n'
                task = asyncio.ensure_future(s.run('import time\ntime.sleep(60)', on_stdout=hear))
                while (await s.info())['state'] != 'busy':
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert (await s.run('x')).value == 20, 'the cell was interrupted, its state is there'
            with pytest.raises(glovebox.SessionGone):
                await s.run('1')
            sums = await asyncio.gather(*(box.run(f'{i} + 1') for i in range(20)))
            assert [o.value for o in sums] == list(range(1, 21))

    asyncio.run(main())


def test_asyncio_tools(daemon):
    async def main():
        running, most = 0, 0

        async def wait(i: int) -> int:
            nonlocal running, most
            running += 1
            most = max(most, running)
            while most < 8:
                await asyncio.sleep(0.005)
            running -= 1
            return i * 2

        def plain(i: int) -> str:
            return threading.current_thread().name

        async with AsyncGlovebox(daemon.url) as box:
            async with box.session(tools=[Tool(wait, async_in_session=True), plain]) as s:
                o = await s.run('import asyncio\nawait asyncio.gather(*(wait(i) for i in range(8)))')
                assert o.value == [i * 2 for i in range(8)] and most == 8
                assert (await s.run('plain(1)')).value != threading.current_thread().name, 'the loop is not stopped by it'

    asyncio.run(main())


# ---- local servers ---------------------------------------------------------------------


def test_local_starts_one_server_and_ends_it(monkeypatch):
    monkeypatch.setenv('GLOVEBOX_PROGRAM', str(gb.PROGRAM))
    monkeypatch.setenv('GLOVEBOX_PRELOAD', 'json')
    monkeypatch.setattr('glovebox._local.DEFAULT_URL', 'http://127.0.0.1:9')
    monkeypatch.delenv('GLOVEBOX_URL', raising=False)
    one, two = Glovebox.local(), Glovebox.local()
    assert one.url == two.url and one.run('print(1)').stdout == '1\n'
    keeper = one._server.process
    family = gb.descendants(keeper.pid)
    assert family
    one.close()
    assert two.health() == {'status': 'healthy'}
    two.close()
    gb.wait_until(lambda: not gb.still_there(family), 'nothing is left of it')
    with pytest.raises(glovebox.GloveboxError, match='unknown option --nonsense'):
        Glovebox.local(None, '--nonsense')


def test_local_finds_a_server_and_one_dies_with_its_program(daemon, monkeypatch):
    monkeypatch.setenv('GLOVEBOX_URL', daemon.url)
    with Glovebox.local() as box:
        assert box.url == daemon.url
    assert daemon.process.poll() is None
    code = (
        f'import sys; sys.path.insert(0, {str(gb.ROOT / "clients/python/src")!r})\n'
        'import glovebox._local as l, time\nl.DEFAULT_URL = "http://127.0.0.1:9"\n'
        f'server = l.find_or_start({str(gb.PROGRAM)!r}, (), None)\nprint(server.process.pid, server.log, flush=True)\ntime.sleep(600)'
    )
    child = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, env=gb.clean_env())
    pid, log = child.stdout.readline().decode().split()
    family = {**gb.descendants(int(pid))}
    assert family and os.path.exists(log)
    child.kill()
    child.wait()
    child.stdout.close()
    gb.wait_until(lambda: not gb.still_there(family), 'the server ended with the program that was killed')
    assert not os.path.exists(os.path.dirname(log)), 'and so did its log'


def test_it_is_python_3_9():
    for path in (gb.ROOT / 'clients/python/src').rglob('*.py'):
        ast.parse(path.read_text(), str(path), feature_version=(3, 9))


def test_it_installs_from_the_tree(tmp_path):
    """Built by its own backend, without the network; used from outside the tree."""
    sys.path.insert(0, str(gb.ROOT / 'clients/python'))
    import build_wheel

    name = build_wheel.build_wheel(tmp_path)
    assert name == f'glovebox-{glovebox.__version__}-py3-none-any.whl'
    site = tmp_path / 'site'
    pip = [gb.PYTHON, '-m', 'pip', 'install', '--no-index', '--quiet', '--target', str(site), '--no-deps']
    done = subprocess.run([*pip, str(gb.ROOT / 'clients/python')], capture_output=True, text=True, timeout=gb.PATIENCE * 3)
    assert done.returncode == 0, done.stderr
    check = 'import glovebox, glovebox.integrations.smolagents, glovebox.integrations.tinyagent; print(glovebox.__file__)'
    done = subprocess.run([gb.PYTHON, '-I', '-c', f'import sys; sys.path.insert(0, {str(site)!r}); {check}'], capture_output=True, text=True)
    assert str(site) in done.stdout, done.stderr
    assert (site / 'glovebox/py.typed').exists()
    assert 'glovebox = glovebox.integrations.smolagents:GloveboxExecutor' in next(site.glob('*.dist-info/entry_points.txt')).read_text()
    assert build_wheel.build_sdist(tmp_path).endswith('.tar.gz') and build_wheel.build_editable(tmp_path) == name


# ---- environments and executors --------------------------------------------------------


def test_coding_env(daemon):
    with CodingEnv(daemon.url) as env:
        first = env.reset(seed=1, episode_id='ep-1')
        assert first.observation.exit_code == 0 and first.done is False
        result = env.step(CodeAction(code='x = 5 + 3\nprint(f"Result: {x}")'))
        assert result.observation.stdout.startswith('Result: 8\n') and result.reward == 0.1
        assert env.step('print(x)').observation.stdout.startswith('8')
        failed = env.step(CodeAction(code='print("kept")\nraise ValueError("no")'))
        assert failed.observation.exit_code == 1 and 'ValueError: no' in failed.observation.stderr and failed.observation.stdout == 'kept\n'
        assert env.state.step_count == 3 and env.state().episode_id == 'ep-1' and env.state.last_exit_code == 1
        env.reset()
        assert env.step('x').observation.exit_code == 1
        assert env.state.episode_id != 'ep-1'
        slow = env.step(CodeAction('import time\ntime.sleep(60)', timeout_s=0.3))
        assert slow.observation.exit_code != 0 and slow.observation.info.status == 'timeout'
        with pytest.raises(RuntimeError, match=r'Server error: .* \(code: VALIDATION_ERROR\)'):
            env._ask('step', {})


def test_coding_env_as_openenvs_own_is_made(daemon):
    ws = daemon.url.replace('http:', 'ws:')
    with CodingEnv(base_url=ws, connect_timeout_s=5, message_timeout_s=30, max_message_size_mb=10, mode='simulation').sync() as env:
        assert env.connect().reset().observation.exit_code == 0
        assert env.step(CodeAction(code='print(3)')).observation.stdout == '3\n'
        env.disconnect()


def test_coding_env_comes_back(daemon):
    with CodingEnv(daemon.url, session='client-comes-back') as env:
        env.reset(episode_id='ep-9')
        env.step('x = 1')
        env._ws._socket.shutdown(socket.SHUT_RDWR)
        assert env.step('x += 1; print(x)').observation.stdout.startswith('2'), 'over a new connection'
        assert env.state.episode_id == 'ep-9' and env.state.step_count == 2
    with CodingEnv(daemon.url) as env:
        env.step('x = 1')
        env._ws._socket.shutdown(socket.SHUT_RDWR)
        with pytest.raises(glovebox.ConnectionFailed):
            env.step('x')
        assert env.step('x').observation.exit_code == 1, 'another one'


def test_coding_env_that_does_not_wait(daemon):
    with CodingEnv(daemon.url, message_timeout_s=0.2) as env:
        with pytest.raises(TimeoutError):
            env.step('import time\ntime.sleep(30)')
        env.message_timeout_s = None
        assert env.step('print(1)').observation.stdout == '1\n', 'not the answer to the step before'


def test_async_coding_env(daemon):
    async def one(i):
        async with AsyncCodingEnv(daemon.url) as env:
            first = await env.reset(seed=1)
            assert first.observation.exit_code == 0
            await env.step(CodeAction(f'x = {i}'))
            result = await env.step('print(x ** 2)')
            state = await env.state()
            assert state.step_count == 2 and state.episode_id and result.reward == 0.1
            return int(result.observation.stdout)

    async def main():
        assert await asyncio.gather(*(one(i) for i in range(6))) == [i * i for i in range(6)]
        async with CodingEnv(daemon.url, session='async-comes-back') as env:
            await env.step('x = 1')
            env._ws._writer.transport.abort()
            assert (await env.step('print(x)')).observation.stdout == '1\n'
            several = await asyncio.gather(*(env.step(f'print({i})') for i in range(4)))
            assert [r.observation.stdout for r in several] == [f'{i}\n' for i in range(4)], 'one after another'
            with pytest.raises(RuntimeError, match='VALIDATION_ERROR'):
                await env._ask('step', {})
        async with await AsyncCodingEnv.from_local() as env:
            assert (await env.step('print(7)')).observation.stdout == '7\n'
        with AsyncCodingEnv(daemon.url).sync() as env:
            assert env.step('print(8)').observation.stdout == '8\n'

    os.environ['GLOVEBOX_URL'] = daemon.url
    try:
        asyncio.run(main())
    finally:
        del os.environ['GLOVEBOX_URL']


def test_coding_env_local(daemon, monkeypatch):
    monkeypatch.setenv('GLOVEBOX_URL', daemon.url)
    with CodingEnv.from_local(timeout_s=5) as env:
        env.reset()
        assert env.step(CodeAction('print(1)')).observation.stdout == '1\n'


def test_coding_env_from_docker(tmp_path, daemon, monkeypatch):
    """Against a docker that only notes what it was asked."""
    fake = tmp_path / 'docker'
    fake.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n[ "$1" = run ] && echo c0ffee\nexit 0\n')
    fake.chmod(0o755)
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
    options = {'additional_imports': ['numpy', 'math'], 'executor_backend': 'smolagents', 'port': daemon.port, 'timeout_s': 5}
    env = CodingEnv.from_docker_image('glovebox:latest', docker_args=['--memory', '1g'], **options)
    assert env.reset().observation.exit_code == 0
    env.close()
    asked = (tmp_path / 'asked').read_text().splitlines()
    assert asked == [
        f'run -d --rm -p 127.0.0.1:{daemon.port}:8000 -e GLOVEBOX_ALLOW_ANONYMOUS=yes -e ADDITIONAL_IMPORTS=numpy,math -e EXECUTOR_BACKEND=smolagents --memory 1g glovebox:latest',
        'rm -f c0ffee',
    ]
    fake.write_text(f'#!/bin/sh\nfor word; do case $word in seccomp=*) cat "${{word#*=}}" > {tmp_path}/seccomp;; esac; done\necho "$@" >> {tmp_path}/asked\n')
    CodingEnv.from_docker_image('glovebox', port=daemon.port).close()
    assert '--security-opt apparmor=unconfined --security-opt systempaths=unconfined glovebox' in (tmp_path / 'asked').read_text()
    (rule,) = json.loads((tmp_path / 'seccomp').read_text())['syscalls']
    (ours,) = json.loads((gb.ROOT / 'deploy/seccomp.json').read_text())['syscalls']
    assert rule['names'] == ours['names'] and rule['action'] == ours['action'], 'the same as deploy/seccomp.json'
    fake.write_text('#!/bin/sh\necho "no such image" >&2\nexit 125\n')
    with pytest.raises(glovebox.GloveboxError, match='no such image'):
        CodingEnv.from_docker_image('nope')


class Provider:
    """As OpenEnv's providers; the container is the daemon of the tests."""

    def __init__(self, url):
        self.url, self.calls = url, []

    def start_container(self, image, **kwargs):
        self.calls.append(('start', image, kwargs))
        return self.url

    def wait_for_ready(self, base_url, timeout_s=30.0):
        self.calls.append(('wait', base_url, timeout_s))
        if timeout_s < 1:
            raise TimeoutError(f'Container at {base_url} did not become ready within {timeout_s}s')

    def stop_container(self):
        self.calls.append(('stop',))


def test_coding_env_from_a_provider(daemon):
    provider = Provider(daemon.url)
    env = CodingEnv.from_docker_image('coding-env:latest', provider, ['pandas', 'math'], 'smolagents', timeout_s=120.0, step_timeout_s=0.5)
    with env:
        env.reset()
        assert env.step(CodeAction('import time\ntime.sleep(60)')).observation.exit_code == 124, 'step_timeout_s is about steps'
        assert provider.calls == [
            ('start', 'coding-env:latest', {'env_vars': {'ADDITIONAL_IMPORTS': 'pandas,math', 'EXECUTOR_BACKEND': 'smolagents'}}),
            ('wait', daemon.url, 120.0),
        ]
    assert provider.calls[-1] == ('stop',)
    provider.calls.clear()
    CodingEnv.from_docker_image('coding-env:latest', provider=provider, env_vars={'A': 'b'}).close()
    assert provider.calls == [('start', 'coding-env:latest', {'env_vars': {'A': 'b'}}), ('wait', daemon.url, 30.0), ('stop',)]
    with pytest.raises(TimeoutError, match='within 0.1s'):
        CodingEnv.from_docker_image('coding-env:latest', provider, timeout_s=0.1)
    assert provider.calls[-1] == ('stop',), 'a container that is not ready is not left behind'


def test_other_arguments_of_an_image_are_its_providers(daemon, api):
    provider = Provider(daemon.url)
    with CodingEnv.from_docker_image('coding-env:latest', provider, memory='2g', port=9999, display=False) as env:
        env.reset()
        assert 'screenshot_error' in env.step(CodeAction('1', capture_screenshot=True)).observation.metadata, 'display is a field of the reset'
    assert provider.calls[0] == ('start', 'coding-env:latest', {'memory': '2g', 'port': 9999})

    said = api.post('/reset', json={'no_such_field': 1}).json()['detail'][0]['msg']
    assert set(said.partition('Known fields: ')[2].split(', ')) == glovebox.coding_env._RESET_FIELDS


def test_coding_env_waits_for_its_server(tmp_path, monkeypatch):
    fake = tmp_path / 'docker'
    fake.write_text('#!/bin/sh\n[ "$1" = run ] && echo c0ffee\n[ "$1" = logs ] && echo "installing pandas"\nexit 0\n')
    fake.chmod(0o755)
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
    with pytest.raises(glovebox.GloveboxError, match='(?s)did not become ready within 0.3 s.*installing pandas'):
        CodingEnv.from_docker_image('glovebox', timeout_s=0.3)


def test_values_of_any_type(s):
    import datetime

    given = {'t': (1, (2,)), 'when': datetime.date(2020, 2, 3), 'keys': {(1, 2): b'x'}, 'plain': [1, None]}
    o = s.run('(t, when, keys, plain)', variables=given, typed=True)
    assert o.value == tuple(given.values())
    assert s.run('t').value == [1, [2]], 'otherwise JSON'
    assert s.run('plain').value == [1, None], 'they stay'
    with pytest.raises(TypeError, match='Cannot safely serialize object of type object'):
        s.run('1', variables={'o': object()})
    with pytest.raises(glovebox.InvalidRequest, match='variables'):
        s.box.request('POST', f'/v1/sessions/{s.id}/execute', {'code': '1', 'variables': [1]})


def test_session_executor_and_notebook(s, box):
    executor = SessionExecutor(s)
    assert executor.execute('a + b', {'a': 1, 'b': 2}).value == 3
    assert executor.execute('a').value == 1
    book = SessionNotebook(executor)
    assert book.execute('import math as m\nfrom os import path\nx = m.pi').ok
    assert book.imports == ['import math as m', 'from os import path']
    assert book.execute('m.floor(2.5), path.sep').value == [2, '/']
    assert book.execute('x').error.type == 'NameError', 'only imports are remembered'
    assert not book.execute('import json\n1/0').ok and len(book.imports) == 2
    with SessionExecutor(box=box, timeout=5) as own:
        assert own.session.info()['limits']['timeout_s'] == 5
        id = own.session.id
    with pytest.raises(glovebox.SessionGone):
        box.attach(id)


def test_going_back(s):
    s.run('x = 1', check=True)
    point = s.checkpoint('one')
    s.run('x = 2', check=True)
    s.rollback(point)
    assert s.run('x').value == 1
    s.run('x = 3')
    s.rollback('one')
    assert s.run('x').value == 1 and 'one' in str(s.checkpoints())
    with pytest.raises(RuntimeError), s.transaction():
        s.run('x = 99\nopen("f.txt", "w").write("x")', check=True)
        raise RuntimeError('undo it')
    assert s.run('x').value == 1 and s.files() == []
    with s.transaction():
        s.run('x = 5')
    assert s.run('x').value == 5
    s.run('x = 6')
    s.undo()
    assert s.run('x').value == 5
    s.checkpoint('last')
    s.run('x = 7')
    s.rollback()
    assert s.run('x').value == 5, 'without a name the last one is meant'
    s.delete_checkpoint('one')
    s.delete_checkpoint('last')
    with pytest.raises(ValueError, match='checkpoint\\(\\)'):
        s.rollback()


def test_going_back_and_branching_with_asyncio(daemon):
    async def main():
        async with AsyncGlovebox(daemon.url) as box, box.session() as s:
            await s.run('x = 1', check=True)
            point = await s.checkpoint('one')
            await s.run('x = 2', check=True)
            await s.rollback()
            assert (await s.run('x')).value == 1
            await s.run('x = 3', check=True)
            await s.undo()
            with pytest.raises(RuntimeError):
                async with s.transaction():
                    await s.run('x = 4', check=True)
                    raise RuntimeError
            assert (await s.run('x')).value == 1
            copies = await s.fork(2)
            async with box.session(from_=point) as branch:
                assert [(await c.run('x')).value for c in (*copies, branch)] == [1, 1, 1]
            for copy in copies:
                await copy.close()

    asyncio.run(main())


def test_forks(box):
    with box.session(tools=[len_of]) as s:
        s.run('x = 1', check=True)
        copies = s.fork(2)
        try:
            for i, copy in enumerate(copies):
                copy.run(f'x += {i + 10}', check=True)
            assert [c.run('x, len_of("abc")').value for c in copies] == [[11, 3], [12, 3]]
            assert s.run('x').value == 1 and len({s.id, *(c.id for c in copies)}) == 3
        finally:
            for copy in copies:
                copy.close()
        point = s.checkpoint()
        s.run('x = 2', check=True)
        for source, x in ((s, 2), (s.id, 2), (point, 1), (point['id'], 1)):
            with box.session(from_=source, name='branch', tools=[len_of]) as branch:
                assert branch.run('x, len_of("ab")').value == [x, 2] and branch.created['name'] == 'branch'
