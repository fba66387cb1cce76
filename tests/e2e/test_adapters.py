"""Adapters for other people's frameworks. Where a framework is not installed, the adapter's stand-in of its base class is used."""

import asyncio
import sys
import types

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

from glovebox import AsyncGlovebox, Glovebox  # noqa: E402
from glovebox.integrations import deepagents, inspect_ai, openai_agents, ray_pool, verifiers  # noqa: E402


def test_inspect_ai(daemon):
    async def sample():
        made = await inspect_ai.GloveboxSandboxEnvironment.sample_init('task', {'url': daemon.url}, {})
        env = made['default']
        try:
            done = await env.exec(['bash', '-c', 'cat; echo $A; pwd; exit 3'], input='in\n', cwd='/tmp', env={'A': 'b'})
            assert (done.success, done.returncode, done.stdout) == (False, 3, 'in\nb\n/tmp\n')
            assert (await env.exec(['nonesuch'])).returncode == 127
            with pytest.raises(TimeoutError):
                await env.exec(['sleep', '30'], timeout=1)
            await env.write_file('a/b.txt', 'grün')
            await env.write_file('/tmp/raw', b'\0\xff')
            assert await env.read_file('/workspace/a/b.txt') == 'grün' and await env.read_file('/tmp/raw', text=False) == b'\0\xff'
            for missing in ('none', '/tmp/none'):
                with pytest.raises(FileNotFoundError):
                    await env.read_file(missing)
            for call in (env.read_file('a'), env.write_file('a', 'x')):
                with pytest.raises(IsADirectoryError):
                    await call
        finally:
            await inspect_ai.GloveboxSandboxEnvironment.sample_cleanup('task', None, made, False)

    asyncio.run(sample())


def test_verifiers(daemon):
    async def rollout():
        env = verifiers.GloveboxEnv(daemon.url, session={'limits': {'timeout_s': 10}}, max_output=100)
        states = [await env.setup_state({}) for _ in range(2)]

        async def call(state, code):
            return await env.python(**env.update_tool_args('python', {'code': code}, [], state))

        assert await call(states[0], 'x = 6\nprint("hi")') == 'hi'
        assert await call(states[0], 'x * 7') == '42'
        assert 'NameError' in await call(states[1], 'x')
        assert 'characters left out' in await call(states[1], 'print("y" * 1000)')
        for state in states:
            await env.post_rollout(state)
        async with AsyncGlovebox(daemon.url) as box:
            assert not {s['id'] for s in await box.sessions()} & {s['session_id'] for s in states}

    asyncio.run(rollout())


def test_deepagents(daemon):
    with Glovebox(daemon.url) as box, deepagents.GloveboxSandbox(box, max_output=20) as backend:
        assert backend.id.startswith('s_')
        done = backend.execute('echo out; echo err >&2; exit 2')
        assert (done.output, done.exit_code, done.truncated) == ('out\nerr\n', 2, False)
        assert backend.execute('seq 1000').truncated
        assert backend.execute('sleep 30', timeout=0.5).exit_code == 124
        (up,) = backend.upload_files([('/workspace/a.txt', b'hi')])
        found, missing = backend.download_files(['/workspace/a.txt', '/none'])
        assert up.error is None and found.content == b'hi' and missing.error == 'file_not_found'


def test_openai_agents(daemon):
    async def agent():
        async with AsyncGlovebox(daemon.url) as box:
            python = openai_agents.PythonTool(box)
            assert await python.tool('x = 1\nopen("f", "w").write("ab")') == '2\ncreated: f (2 bytes)'
            assert await python.tool('x + 1') == '2' and 'ZeroDivisionError' in await python.tool('1/0')
            await python.close()

    asyncio.run(agent())


def test_ray(daemon, monkeypatch):
    """A ray that runs everything at once, in this process."""

    class Remote:
        def __init__(self, thing):
            self._thing = thing

        def __getattr__(self, name):
            return types.SimpleNamespace(remote=getattr(self._thing, name))

    fake = types.SimpleNamespace(remote=lambda cls: types.SimpleNamespace(remote=lambda *args: Remote(cls(*args))))

    class ActorPool:
        def __init__(self, actors):
            self.actors = actors

        def map(self, call, values):
            return [call(self.actors[i % len(self.actors)], value) for i, value in enumerate(values)]

    monkeypatch.setattr(ray_pool, 'ray', None)
    with pytest.raises(ImportError, match='pip install ray'):
        ray_pool.GloveboxPool([daemon.url])
    monkeypatch.setattr(ray_pool, 'ray', fake)
    monkeypatch.setattr(ray_pool, 'ActorPool', ActorPool)
    pool = ray_pool.GloveboxPool([daemon.url] * 2)
    results = list(pool.map([{'code': f'print({i})'} for i in range(5)], chunk=2))
    assert [r['observation']['stdout'] for r in results] == [f'{i}\n' for i in range(5)]
    assert pool.actors[0].grade.remote('print(input())', [('a', 'a'), ('b', 'c')]) == 0.5
