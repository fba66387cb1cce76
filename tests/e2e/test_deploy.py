"""What deploy/ has: the container's entry point and its filter."""

import json
import os
import subprocess

import gb

CONTAINER = gb.ROOT / 'deploy/container'


def container(*args, **env):
    """Runs the entry point with the program that is tested."""
    env = gb.clean_env(PATH=f'{gb.PROGRAM.parent}:{os.environ["PATH"]}', **env)
    return subprocess.run([CONTAINER, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=gb.PATIENCE, env=env)


def test_settings_of_the_container(tmp_path):
    state = {'GLOVEBOX_STATE_DIR': tmp_path}
    assert container('--check', **state).returncode == 0, 'what is published decides, so no token is asked for'
    assert container('--check', GLOVEBOX_ALLOW_ANONYMOUS='no', **state).returncode != 0
    assert container('--check', KG_AUTH_TOKEN='a-token-of-sixteen-letters', **state).returncode == 0
    short = container('--check', KG_AUTH_TOKEN='short', **state)
    assert short.returncode != 0 and 'shorter than' in short.stderr, 'the variable is taken for a token'


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
