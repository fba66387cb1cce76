"""`%%shell` cells: bash that goes on where the last one ended (docs/jupyter.md)."""

import gb
import pytest


@pytest.fixture(scope='module')
def api():
    with gb.running_daemon('--ready', '1', '--preload', 'none') as daemon, daemon.api() as a:
        yield a


@pytest.fixture
def path(api):
    session = f'/v1/sessions/{api.post("/v1/sessions", json={}).json()["id"]}'
    yield session
    api.delete(session)


def bash(api, path, text):
    return api.post(f'{path}/execute', json={'code': f'%%shell\n{text}'}).json()


def test_the_state_goes_on(api, path):
    o = bash(api, path, 'cd /tmp; a=(1 "2 3"); text=$\'line\\nü\'; f() { echo "in $FUNCNAME"; }; set -u; shopt -s extglob')
    assert (o['status'], o['stdout'], o['stderr']) == ('ok', '', ''), o
    o = bash(api, path, 'pwd; echo "${a[1]}"; echo "$text"; f; [[ aab == +(a)b ]] && echo glob; echo "$nosuch" || true')
    assert o['stdout'] == '/tmp\n2 3\nline\nü\nin f\nglob\n'
    assert 'nosuch: unbound variable' in o['stderr']


def test_exit_and_failure_keep_the_state(api, path):
    o = bash(api, path, 'x=1; exit 4')
    assert (o['status'], o['error']['type']) == ('error', 'subprocess.CalledProcessError') and 'exit status 4' in o['error']['message']
    o = bash(api, path, 'set -e\nx=2\nfalse\nx=3')
    assert o['status'] == 'error'
    o = bash(api, path, 'set +e; echo $x')
    assert o['stdout'] == '2\n'


def test_a_killed_shell_keeps_the_state_of_before(api, path):
    bash(api, path, 'x=1')
    assert bash(api, path, 'x=2; kill -9 $$')['status'] == 'error'
    assert bash(api, path, 'echo $x')['stdout'] == '1\n'


def test_the_environment_of_the_interpreter_is_the_shells(api, path):
    api.post(f'{path}/execute', json={'code': 'import os\nos.environ["FROM"] = "1"'})
    assert bash(api, path, 'echo $FROM')['stdout'] == '1\n'
    api.post(f'{path}/execute', json={'code': 'os.environ["FROM"] = "2"'})
    assert bash(api, path, 'echo $FROM')['stdout'] == '2\n'


def test_rollbacks_and_forks_have_it(api, path):
    bash(api, path, 'x=before')
    kept = api.post(f'{path}/checkpoints', json={'name': 'a'})
    assert kept.status_code == 201, kept.text
    bash(api, path, 'x=after')
    fork = f'/v1/sessions/{api.post(f"{path}/fork", json={}).json()["sessions"][0]["id"]}'
    assert bash(api, fork, 'echo $x')['stdout'] == 'after\n'
    assert api.post(f'{path}/rollback', json={'checkpoint': 'a'}).status_code == 200
    assert bash(api, path, 'echo $x')['stdout'] == 'before\n'
    api.delete(fork)


def test_a_state_that_is_too_large_is_not_kept(api, path):
    bash(api, path, 'x=small')
    o = bash(api, path, 'x=$(head -c 5000000 /dev/zero | tr "\\0" z)')
    assert o['status'] == 'ok' and 'not kept' in o['stderr']
    assert bash(api, path, 'echo $x')['stdout'] == 'small\n'
