"""Node and its packages, for the tests that run programs of JavaScript (scripts/node-for-tests)."""

import subprocess

import gb
import pytest

BUILD = gb.PROGRAM.resolve().parent
NOT_REACHED = 75  # npm could not reach its registry


def packages(name):
    """(path of Node, folder with node_modules) of a set: mcp, e2b or console. Without network the test is skipped."""
    done = subprocess.run([gb.ROOT / 'scripts/node-for-tests', BUILD, name], capture_output=True, text=True, timeout=600)
    if done.returncode == NOT_REACHED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), BUILD / 'npm' / name
