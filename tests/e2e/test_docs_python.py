"""The Python of the pages: every block that uses our client runs as it stands there."""

import re
import subprocess

import gb
import pytest

PAGES = ['README.md', *(f'docs/{name}.md' for name in ('python', 'tools', 'from-openenv', 'from-tinyagent', 'from-e2b', 'from-smolagents'))]
URL = 'http://127.0.0.1:8000'


def blocks():
    for page in PAGES:
        for n, code in enumerate(re.findall(r'```python\n(.*?)```', (gb.ROOT / page).read_text(), re.S), 1):
            if re.match(r'(import asyncio\n)?from glovebox', code) and 'CodeAgent(' not in code:
                yield pytest.param(code, id=f'{page}-{n}')


def test_there_are_some():
    assert len(list(blocks())) >= 7


@pytest.mark.parametrize('code', blocks())
def test_block(code, daemon, tmp_path):
    env = gb.clean_env(GLOVEBOX_URL=daemon.url, PYTHONPATH=gb.ROOT / 'clients/python/src', PYTHONDONTWRITEBYTECODE='1')
    done = subprocess.run(
        [gb.PYTHON, '-c', code.replace(URL, daemon.url)],
        capture_output=True, text=True, env=env, cwd=tmp_path, timeout=gb.PATIENCE * 2, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout, done.stdout + done.stderr
