"""What deploy/ has: the container's entry point and its filter."""

import json
import os
import re
import subprocess

import gb

CONTAINER = gb.ROOT / 'deploy/container'


def container(*args, **env):
    """Runs the entry point with the program that is tested."""
    env = gb.clean_env(PATH=f'{gb.PROGRAM.parent}:{os.environ["PATH"]}', **env)
    return subprocess.run([CONTAINER, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=gb.PATIENCE, env=env)


def test_settings_of_the_container(tmp_path):
    state = {'GLOVEBOX_STATE_DIR': tmp_path}
    assert container('--check', GLOVEBOX_ALLOW_ANONYMOUS='yes', **state).returncode == 0
    assert container('--check', GLOVEBOX_ALLOW_ANONYMOUS='no', **state).returncode != 0
    assert not (tmp_path / 'token').exists()
    assert container('--check', KG_AUTH_TOKEN='a-token-of-sixteen-letters', **state).returncode == 0
    short = container('--check', KG_AUTH_TOKEN='short', **state)
    assert short.returncode != 0 and 'shorter than' in short.stderr, 'the variable is taken for a token'


def test_a_container_without_a_token_makes_one(tmp_path):
    first, second = (container('--check', GLOVEBOX_STATE_DIR=tmp_path) for _ in range(2))
    token = (tmp_path / 'token').read_text().strip()
    assert first.returncode == second.returncode == 0 and len(token) == 48 and (tmp_path / 'token').stat().st_mode & 0o077 == 0
    assert token in first.stderr and token in second.stderr, 'it stays the same'


def test_compose_file_says_what_the_documents_say():
    compose, page = (gb.ROOT / 'deploy/compose.yaml').read_text(), (gb.ROOT / 'docs/docker.md').read_text()
    options = re.findall(r'--security-opt (\S+=\S+)', page.split('```')[1])
    assert len(options) == 3
    for option in options:
        assert option.replace('deploy/', './').replace('=', ':', 1) in compose
    assert '127.0.0.1:8000:8000' in compose


def test_other_commands_in_the_container():
    assert container('glovebox', 'version').stdout == gb.cli('version').stdout


def test_health_check(daemon):
    assert container('healthcheck', GLOVEBOX_LISTEN=f'0.0.0.0:{daemon.port}').returncode == 0
    assert container('healthcheck', GLOVEBOX_LISTEN='0.0.0.0:1').returncode != 0


def test_the_filter_lets_jails_be_made():
    profile = json.loads((gb.ROOT / 'deploy/seccomp.json').read_text())
    refused = {name for rule in profile['syscalls'] for name in rule['names']}
    assert profile['defaultAction'] == 'SCMP_ACT_ALLOW' and all(r['action'] == 'SCMP_ACT_ERRNO' for r in profile['syscalls'])
    assert not refused & {'clone', 'clone3', 'unshare', 'setns', 'mount', 'umount2', 'pivot_root', 'move_mount', 'open_tree'}
    assert {'init_module', 'kexec_load', 'bpf', 'reboot', 'open_by_handle_at'} <= refused
