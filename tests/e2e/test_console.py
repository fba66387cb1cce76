"""The console in a real browser: console/test/console.mjs runs there, and each of its tests is one here."""

import json
import os
import re
import shutil
import subprocess

import gb
import node
import pytest

CONSOLE = gb.ROOT / 'console'
SCRIPT = CONSOLE / 'test/console.mjs'
NAMES = re.findall(r"^test\('([^']+)'", SCRIPT.read_text(), re.MULTILINE)
TOKEN = 'a-token-of-the-console-tests'
# What `npm run build` runs, without npm: Debian's runs with Debian's Node only.
BUILD = [['node_modules/typescript/bin/tsc', '--noEmit'], ['node_modules/vite/bin/vite.js', 'build']]


@pytest.fixture(scope='module')
def outcomes():
    program, folder = node.packages('console')
    script = shutil.copy(SCRIPT, folder)
    with gb.running_daemon(
        '--preload', 'json,numpy,pandas,matplotlib.pyplot', '--ready', '3', '--token', TOKEN, token=TOKEN
    ) as daemon:
        run = subprocess.run([program, script, daemon.url, TOKEN], cwd=folder, capture_output=True, text=True, timeout=900)
    found = {o['name']: o for line in run.stdout.splitlines() if line.startswith('{') for o in [json.loads(line)]}
    return found, run.stderr


@pytest.mark.parametrize('name', NAMES)
def test_in_a_browser(outcomes, name):
    found, stderr = outcomes
    assert name in found, f'it did not run:\n{stderr}'
    assert found[name]['error'] is None, found[name]['error']


def test_the_built_files_are_those_of_the_sources(tmp_path):
    """What the program embeds is in the repository, so that building needs no npm; it must not be older than the sources."""
    program, folder = node.packages('console')
    copy = tmp_path / 'console'
    shutil.copytree(CONSOLE, copy, ignore=shutil.ignore_patterns('node_modules', 'dist'))
    os.symlink(folder / 'node_modules', copy / 'node_modules')
    for command in BUILD:
        done = subprocess.run([program, *command], cwd=copy, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    files = {p.relative_to(copy / 'dist'): p.read_bytes() for p in (copy / 'dist').rglob('*') if p.is_file()}
    kept = {p.relative_to(CONSOLE / 'dist'): p.read_bytes() for p in (CONSOLE / 'dist').rglob('*') if p.is_file()}
    assert set(files) == set(kept), 'run: cd console && npm run build'
    assert files == kept
