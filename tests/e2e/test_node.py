"""scripts/node-for-tests: Node and its packages for the tests that need them."""

import json
import os
import subprocess

import gb
import pytest

SCRIPT = gb.ROOT / 'scripts/node-for-tests'
LOCKS = [gb.ROOT / folder / 'package-lock.json' for folder in ('console', 'tests/e2b', 'tests/mcp', 'tests/node')]


def run(*args, **extra):
    return subprocess.run([SCRIPT, *args], env={**os.environ, **extra}, capture_output=True, text=True, timeout=gb.PATIENCE)


@pytest.mark.parametrize('lock', LOCKS, ids=lambda path: path.parent.name)
def test_a_lock_file_has_every_package_and_names_no_registry(lock):
    """npm leaves out of a lock file the optional packages that it could not find, and then refuses to install from it."""
    packages = json.loads(lock.read_text())['packages']
    names = {path.rpartition('node_modules/')[2] for path in packages}
    for path, package in packages.items():
        assert 'resolved' not in package, path
        assert not path or 'integrity' in package or package.get('inBundle'), path
        assert set(package.get('optionalDependencies', {})) <= names, path


def test_a_registry_out_of_reach_is_named_as_the_reason(tmp_path):
    unreachable = {
        'npm_config_registry': 'http://127.0.0.1:9/',
        'npm_config_cache': str(tmp_path / 'cache'),
        'npm_config_fetch_retry_mintimeout': '10',
    }
    done = run(tmp_path, 'e2b', **unreachable)
    assert done.returncode == 75, done.stderr
    assert 'npm config get registry' in done.stderr and done.stdout == ''


@pytest.fixture
def new_node(tmp_path):
    """A PATH on which the first `node` says that it is new enough."""
    program = tmp_path / 'node'
    program.write_text('#!/bin/sh\ncase $2 in *execPath) echo /a/node ;; *) echo 22.19.0 ;; esac\n')
    program.chmod(0o755)
    return f'{tmp_path}:{os.environ["PATH"]}'


def test_a_node_on_path_that_is_new_enough_is_taken(tmp_path, new_node):
    assert run(tmp_path, PATH=new_node).stdout == '/a/node\n'


def test_an_unknown_set_is_refused(tmp_path, new_node):
    done = run(tmp_path, 'nothing', PATH=new_node)
    assert done.returncode == 2 and 'mcp, e2b and console' in done.stderr
