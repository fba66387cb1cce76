"""The pages: every block of Python that uses our client, and every block of shell commands that asks a server, runs as it stands there."""

import os
import re
import subprocess

import gb
import pytest

PAGES = [
    'README.md',
    *(f'docs/{name}.md' for name in ('python', 'tools', 'openenv', 'from-openenv', 'from-tinyagent', 'from-e2b', 'from-smolagents')),
]
SHELL_PAGES = [
    'README.md',
    *(f'docs/{name}.md' for name in ('openenv', 'jupyter', 'tools', 'profiles', 'sandboxfusion', 'nemo', 'dify', 'librechat', 'batch')),
]
URL = 'http://127.0.0.1:8000'
# What builds, installs or starts a server is tried elsewhere.
ELSEWHERE = re.compile(r'^(git clone|make|pip install|jupyter server|docker|claude) ', re.M)


def blocks_of(page, language):
    return re.findall(rf'^```{language}\n(.*?)^```', (gb.ROOT / page).read_text(), re.S | re.M)


def python_blocks():
    for page in PAGES:
        for n, code in enumerate(blocks_of(page, 'python'), 1):
            ours = re.match(r'(import asyncio\n)?from (glovebox|coding_env)', code)
            if ours and 'CodeAgent(' not in code and 'from_docker_image' not in code:
                yield pytest.param(code, id=f'{page}-{n}')


def run(command, daemon, tmp_path, **more):
    """In a directory that has of the tree what the pages use, and OpenEnv's package, which is our client by another name."""
    (tmp_path / 'clients').symlink_to(gb.ROOT / 'clients')
    (tmp_path / 'build').symlink_to(gb.PROGRAM.parent)
    (tmp_path / 'coding_env.py').write_text('from glovebox import *\n')
    env = gb.clean_env(
        GLOVEBOX_URL=daemon.url, PYTHONPATH=f'{gb.ROOT}/clients/python/src:{tmp_path}', PYTHONDONTWRITEBYTECODE='1', HOME=tmp_path,
        PATH=f'{gb.PROGRAM.parent}:{os.environ["PATH"]}',
    )  # fmt: skip
    return subprocess.run(
        command, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=gb.PATIENCE * 2, stdin=subprocess.DEVNULL, **more
    )


def test_there_are_some():
    assert len(list(python_blocks())) >= 9


@pytest.mark.parametrize('code', python_blocks())
def test_block(code, daemon, tmp_path):
    done = run([gb.PYTHON, '-c', code.replace(URL, daemon.url)], daemon, tmp_path)
    assert done.returncode == 0 and done.stdout, done.stdout + done.stderr


def shell_script(page, daemon):
    """All its blocks in their order, since they build on each other. A request that is refused ends it."""
    blocks = [b for b in blocks_of(page, 'sh') if not ELSEWHERE.search(b)]
    script = '\n'.join(blocks).replace(URL, daemon.url).replace('python3 -', '/usr/bin/python3 -').replace('/usr/bin//usr/bin/', '/usr/bin/')
    refusal = 'curl() { command curl -Sf "$@" || { echo "failed: curl $*" >&2; kill -KILL $$; }; }\n'
    return refusal + script


@pytest.fixture
def tidy(science_daemon):
    """Ends the sessions that the commands of a page leave behind."""
    with science_daemon.api() as api:
        before = {s['id'] for s in api.get('/v1/sessions').json()['sessions']}
        yield
        for session in api.get('/v1/sessions').json()['sessions']:
            if session['id'] not in before:
                api.delete('/v1/sessions/' + session['id'])


@pytest.mark.parametrize('page', SHELL_PAGES)
def test_commands(page, science_daemon, tidy, tmp_path):
    done = run(['/bin/bash', '-c', shell_script(page, science_daemon)], science_daemon, tmp_path)
    assert done.returncode == 0 and done.stdout, done.stdout + done.stderr
