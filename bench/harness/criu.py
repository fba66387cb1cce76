"""CRIU, the checkpoint of processes as files: a plain python3 with the same heap, dumped and restored."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE = 120
PR_SET_CHILD_SUBREAPER = 36
# Says how often it has woken, so that whoever restored it can see that it lives.
PROGRAM = """
import sys, time
exec(sys.argv[1])
n = 0
while True:
    n += 1
    with open(sys.argv[2], 'w') as f: f.write(str(n))
    time.sleep(0.001)
"""


def first_error(text):
    lines = [line for line in text.splitlines() if 'Error' in line]
    return (lines[0] if lines else text.strip()[-200:]) or 'no output'


class Criu:
    """One process with a heap. Use as a context."""

    def __init__(self, code):
        self.code = code

    @staticmethod
    def missing():
        """Why it cannot be measured here, in words; '' when it can."""
        if not shutil.which('criu'):
            return 'criu is not installed (scripts/install-deps --bench)'
        found = subprocess.run(['criu', 'check'], capture_output=True, text=True, timeout=PATIENCE)
        if found.returncode == 0:
            return ''
        version = subprocess.run(['criu', '--version'], capture_output=True, text=True).stdout.split()
        kernel = Path('/proc/sys/kernel/osrelease').read_text().strip()
        return f'criu {version[1] if len(version) > 1 else "?"} does not work on this kernel, {kernel}: {first_error(found.stderr + found.stdout)}'

    def __enter__(self):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # what is restored becomes a child of ours, whom we can wait for
        self.folder = Path(tempfile.mkdtemp(prefix='glovebox-criu-'))
        self.sign = self.folder / 'alive'
        program = [sys.executable, '-c', PROGRAM, self.code, self.sign]
        self.process = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.pid = self.process.pid
        self.wait_for_life()
        return self

    def __exit__(self, *exc):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self):
        """Its number must be free again before another process can be restored under it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self.process.returncode = -signal.SIGKILL

    def wait_for_life(self):
        self.sign.unlink(missing_ok=True)
        end = time.monotonic() + PATIENCE
        while not self.sign.exists() or not self.sign.read_text():
            if time.monotonic() > end:
                raise RuntimeError('the process does not run')
            time.sleep(0.0005)

    def run(self, *words):
        done = subprocess.run(['criu', *words], capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            raise RuntimeError(first_error(done.stderr + done.stdout))

    def checkpoint(self):
        """Milliseconds until its image is there; the process runs on."""
        images = self.folder / 'images'
        shutil.rmtree(images, ignore_errors=True)
        images.mkdir()
        began = time.perf_counter()
        self.run('dump', '-t', str(self.pid), '-D', str(images), '--leave-running')
        return (time.perf_counter() - began) * 1e3

    def image_bytes(self):
        return sum(f.stat().st_size for f in (self.folder / 'images').iterdir())

    def rollback(self):
        """Milliseconds until the process of the image runs in the place of the one that is."""
        began = time.perf_counter()
        self.end()
        self.run('restore', '-D', str(self.folder / 'images'), '-d')
        self.wait_for_life()
        return (time.perf_counter() - began) * 1e3
