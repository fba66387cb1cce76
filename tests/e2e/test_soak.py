"""A short part of tests/soak: random sessions beside a model, with and without kills. Whatever is lost, put back or run again is told."""

import os
import subprocess
import sys

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'tests/soak'))

from walk import Walk  # noqa: E402


@pytest.mark.parametrize('seed', [1, 2])
def test_every_difference_is_told(daemon, seed):
    walk = Walk(daemon.url, seed)
    try:
        walk.run(50)
    finally:
        print(*walk.trail, sep='\n')
    assert walk.counts['POST execute 200'] > 50


def test_kills_of_every_kind():
    done = subprocess.run(
        [gb.PYTHON, gb.ROOT / 'tests/soak/kills', '--seconds', '8', '--every', '0.2'],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, 'GLOVEBOX': str(gb.PROGRAM), 'GLOVEBOX_BUILD': str(gb.PROGRAM.parent)},
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
