"""The daemon under test, with its own port and state, and default settings but for those given."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from harness.client import Connection

READY_SECONDS = 60
ROOT = Path(__file__).resolve().parents[2]


def build_dir():
    return (ROOT / os.environ.get('GLOVEBOX_BUILD', os.environ.get('BUILD', 'build'))).resolve()


# What the first one learnt about its modules is there for those after it, as it is for a server that is started again.
_learnt = tempfile.TemporaryDirectory(prefix='glovebox-bench-')


class Daemon:
    """A context: started and warm inside, ended after it."""

    def __init__(self, *flags):
        self.flags = flags
        self.process = self.port = self.folder = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='glovebox-bench-')
        base = Path(self.folder.name)
        (base / 'empty.conf').touch()  # settings of this machine stay out of the measurement
        (base / 'state').mkdir()
        shutil.copytree(_learnt.name, base / 'state' / 'layout')
        self.log = base / 'log'
        command = [
            build_dir() / 'glovebox',
            'serve',
            '--listen',
            '127.0.0.1:0',
            '--state-dir',
            base / 'state',
        ]
        command += ['--config', base / 'empty.conf', '--no-access-log', *self.flags]
        env = {k: v for k, v in os.environ.items() if not k.startswith('GLOVEBOX_')}
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env
            )
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        shutil.copytree(base / 'state' / 'layout', _learnt.name, dirs_exist_ok=True)
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.folder.cleanup()

    def _wait(self):
        """Until a guest is warm; the template's imports take some seconds."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            text = self.log.read_text(errors='replace')
            if found := re.search(r'ready after .* on 127\.0\.0\.1:(\d+)', text):
                self.port = int(found[1])
                return
            time.sleep(0.05)
        tail = '\n'.join(self.log.read_text(errors='replace').splitlines()[-20:])
        raise SystemExit(f'the daemon does not start:\n{tail}')

    @property
    def pid(self):
        return self.process.pid

    def connect(self, timeout=60):
        return Connection(self.port, timeout)

    def children(self):
        """pid → name of the daemon's child processes: guests, the jails' inits, the zygote and the jailer."""
        found = {}
        for pid in Path(f'/proc/{self.pid}/task/{self.pid}/children').read_text().split():
            try:
                found[int(pid)] = Path(f'/proc/{pid}/comm').read_text().strip()
            except OSError:
                pass  # ended in between
        return found
