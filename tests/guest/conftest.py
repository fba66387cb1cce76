"""Loads the guest's Python as the guest does, into this process (gb) or into one of its own (guest)."""

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import host
import pytest

HERE = Path(__file__).parent
SUPPORT = HERE.parent.parent / 'src' / 'guest' / 'support'


@pytest.fixture
def gb():
    """The support code, not installed: builtins and modules of the test process stay as they are."""
    return host.load(SUPPORT)


class Cells:
    """Runs source text as cells of one session, in this process."""

    def __init__(self, gb):
        self.gb, self.namespace, self.n = gb, {'__name__': '__main__'}, 0

    def error(self, source):
        """format_error() of what the cell raises, as seen from C: without the frame of this method."""
        self.n += 1
        name = f'<cell {self.n}>'
        self.gb.register_source(name, source)
        try:
            exec(compile(source, name, 'exec'), self.namespace)
        except BaseException as e:
            e.__traceback__ = e.__traceback__.tb_next
            return self.gb.format_error(e, name)
        return None


@pytest.fixture
def cells(gb):
    return Cells(gb)


@pytest.fixture
def guest(tmp_path):
    """guest(cell, cell, …) runs them in a fresh interpreter and returns the last outcome; .report has everything."""

    def run(*cells, env=None, timeout=120, **options):
        request_r, request_w = os.pipe()
        answer_r, answer_w = os.pipe()
        starter = (
            'import builtins, os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); '
            'host = {"__name__": "host", "__builtins__": dict(vars(builtins))}; '
            f'exec(compile(open({host.__file__!r}).read(), "<glovebox>", "exec"), host); host["main"]({str(SUPPORT)!r})'
        )
        environ = {k: v for k, v in os.environ.items() if k not in ('MPLBACKEND', 'DISPLAY')}
        environ.update(env or {}, PYTHONDONTWRITEBYTECODE='1')
        process = subprocess.Popen(
            [sys.executable, '-c', starter, str(request_r), str(answer_w)],
            pass_fds=(request_r, answer_w),
            cwd=tmp_path,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        os.close(request_r)
        os.close(answer_w)
        with os.fdopen(request_w, 'w') as f:
            json.dump({'cells': cells, **options}, f)
        with os.fdopen(answer_r) as f:
            text = f.read()
        output = process.communicate(timeout=timeout)[0]
        assert text, output.decode()
        run.report, run.output = json.loads(text), output.decode()
        run.cells = [types.SimpleNamespace(**cell) for cell in run.report['cells']]
        return run.cells[-1] if run.cells else None

    return run


def forms(bundle):
    """A bundle as {mime: (kind, text)}."""
    return {mime: (kind, text) for mime, kind, text in bundle}
