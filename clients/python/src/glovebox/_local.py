"""The server on this machine: found, or started for as long as somebody here uses it."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Optional, Sequence

from ._net import Address, Http
from .errors import GloveboxError

START_SECONDS = 60
DEFAULT_URL = 'http://127.0.0.1:8000'
INSIDE = Path(__file__).resolve().parent / '_program' / 'bin' / 'glovebox'

# Ends the server when our end of its standard input closes, so that neither it nor its log ($0 is their folder) outlives a program that was killed.
_KEEPER = (
    'exec 3<&0; "$@" </dev/null 3<&- & pid=$!; trap "kill $pid" TERM INT; '
    '(read -r _ <&3; rm -rf "$0"; kill $pid) & keeper=$!; wait $pid; code=$?; kill $keeper 2>/dev/null; exit $code'
)

_lock = threading.Lock()
_started: Optional['Server'] = None


class Server:
    """A server somebody uses. One that was started here ends when its last user lets go."""

    def __init__(self, url: str, process: Optional['subprocess.Popen[bytes]'] = None, log: Optional[Path] = None) -> None:
        self.url, self.process, self.log = url, process, log
        self.users = 1

    def release(self) -> None:
        global _started
        with _lock:
            self.users -= 1
            if self.users > 0 or self.process is None:
                return
            if _started is self:
                _started = None
        self.stop()

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.stdin.close()  # type: ignore[union-attr]
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self.log:
            shutil.rmtree(self.log.parent, ignore_errors=True)


def _stop_at_exit() -> None:
    if _started:
        _started.stop()


atexit.register(_stop_at_exit)


def find_or_start(program: Optional[str], options: Sequence[str], token: Optional[str]) -> Server:
    global _started
    if program is None and not options:
        for url in (os.environ.get('GLOVEBOX_URL'), DEFAULT_URL):
            if url and _is_glovebox(url, token):
                return Server(url)
    if options:
        return start(program, options)
    with _lock:
        if _started and _started.process and _started.process.poll() is None:
            _started.users += 1
            return _started
        _started = start(program, options)
        return _started


def _is_glovebox(url: str, token: Optional[str]) -> bool:
    http = Http(Address(url, token, connect_timeout=1.0))
    try:
        return http.request('GET', '/version').check().json().get('name') == 'glovebox'
    except (GloveboxError, ValueError, AttributeError):
        return False
    finally:
        http.close()


def find_program(program: Optional[str] = None) -> str:
    """The glovebox program: the one given, $GLOVEBOX_PROGRAM, that of this package (of the wheel with the program inside), the one on PATH, or
    that of the source tree this file is in."""
    tree = Path(__file__).resolve().parents[4] / 'build' / 'glovebox' if len(Path(__file__).resolve().parents) > 4 else None
    for candidate in (program, os.environ.get('GLOVEBOX_PROGRAM'), INSIDE, shutil.which('glovebox'), tree):
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    raise GloveboxError(
        'there is no server on 127.0.0.1:8000 and no glovebox program to start one: build it (make), put it on PATH, or name it in '
        '$GLOVEBOX_PROGRAM; for a server elsewhere use Glovebox(url)'
    )


def main() -> None:
    """The command `glovebox` of the wheel with the program inside."""
    os.execv(INSIDE, ['glovebox', *sys.argv[1:]])


def start(program: Optional[str], options: Sequence[str]) -> Server:
    found = find_program(program)
    log = Path(tempfile.mkdtemp(prefix='glovebox-')) / 'log'
    listen = [] if '--listen' in options else ['--listen', '127.0.0.1:0']
    # Without wishes of the caller, the first session does not wait until pandas and the others are imported.
    listen += [] if options else ['--quick-start']
    command = ['/bin/sh', '-c', _KEEPER, str(log.parent), found, 'serve', *listen, *options]
    env = {k: v for k, v in os.environ.items() if k not in ('GLOVEBOX_URL', 'GLOVEBOX_LISTEN')}
    with open(log, 'wb') as out:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, env=env, start_new_session=True)
    server = Server('', process, log)
    try:
        server.url = _wait_for_address(process, log)
    except BaseException:
        server.stop()
        raise
    return server


def _wait_for_address(process: 'subprocess.Popen[bytes]', log: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        text = log.read_text(errors='replace')
        found = re.search(r'listening on ([^\s;]+)', text)
        if found:
            return found[1] if found[1].startswith(('http', 'unix:')) else f'http://{found[1]}'
        if process.poll() is not None:
            raise GloveboxError(f'glovebox serve did not start:\n{text.strip()[-2000:]}')
        time.sleep(0.01)
    raise GloveboxError(f'glovebox serve did not start within {START_SECONDS} s:\n{log.read_text(errors="replace")[-2000:]}')
