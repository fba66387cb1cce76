"""E2B's unmodified SDKs against a daemon: the programs of tests/e2b, one test for each check."""

import json
import re
import shutil
import subprocess

import gb
import node
import pytest

SOURCES = gb.ROOT / 'tests/e2b'
PROGRAMS = ['checks.mjs', 'desktop.mjs']
CHECKS = [name for p in PROGRAMS for name in re.findall(r"^  async '(.*)'\(\)", (SOURCES / p).read_text(), re.M)]
TOKEN = 'e2b_' + '0' * 40


@pytest.fixture(scope='module')
def outcomes():
    program, folder = node.packages('e2b')
    for source in SOURCES.glob('*.mjs'):
        shutil.copy(source, folder)
    told, stderr = {}, ''
    with gb.running_daemon('--token', TOKEN, token=TOKEN) as daemon:
        url = f'http://localhost:{daemon.port}'
        env = gb.clean_env(E2B_API_URL=url, E2B_SANDBOX_URL=url, E2B_API_KEY=TOKEN)
        for name in PROGRAMS:
            done = subprocess.run([program, name], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
            stderr += done.stderr
            for line in done.stdout.splitlines():
                if line.startswith('{'):
                    check = json.loads(line)
                    told[check['name']] = check['error']
        with daemon.api() as api:
            left = api.get('/v1/sessions').json()['sessions']
    return told, stderr, left


@pytest.mark.parametrize('name', CHECKS)
def test_sdk(outcomes, name):
    errors, stderr, _ = outcomes
    assert name in errors, stderr
    assert errors[name] is None, errors[name]


def test_no_sandbox_is_left(outcomes):
    assert outcomes[2] == []


def test_wrong_key_is_refused():
    with gb.running_daemon('--token', TOKEN, '--preload', 'none', '--ready', '0', token=TOKEN) as daemon:
        with gb.Api(daemon.url) as api:
            answer = api.post('/v2/sandboxes', json={'templateID': 'base'}, headers={'X-API-KEY': 'wrong'})
            assert answer.status_code == 401
