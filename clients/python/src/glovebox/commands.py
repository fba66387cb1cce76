"""Processes beside the interpreter of a session: `session.commands`."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Iterator, Optional, Sequence, Union

from . import _requests as requests
from ._net import Address, _Connection, _parse_head, _read_body
from .errors import ConnectionFailed, GloveboxError, error_of

if TYPE_CHECKING:
    from .aio import AsyncSession
    from .client import Session

Command = Union[str, Sequence[str]]
Listen = Optional[Callable[[str], Any]]


class CommandFailed(GloveboxError):
    """A command with check=True ended with an exit code other than 0."""

    def __init__(self, result: 'CommandResult') -> None:
        super().__init__(f'the command ended with exit code {result.exit_code}: {result.stderr[-500:].strip()}')
        self.result = result


@dataclass
class CommandResult:
    id: int
    exit_code: Optional[int]  # 128 and the signal's number when a signal ended it
    signal: Optional[int]
    timed_out: bool
    stdout: str = ''
    stderr: str = ''
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any], stdout: str = '', stderr: str = '') -> 'CommandResult':
        return cls(
            raw['id'],
            raw['exit_code'],
            raw['signal'],
            raw['timed_out'],
            raw.get('stdout') or stdout,
            raw.get('stderr') or stderr,
            raw,
        )

    def check(self) -> 'CommandResult':
        if self.exit_code:
            raise CommandFailed(self)
        return self


def _body(command: Command, fields: dict[str, Any]) -> dict[str, Any]:
    fields = {('timeout_s' if k == 'timeout' else k): v for k, v in fields.items() if v is not None}
    return {'cmd': command, **fields} if isinstance(command, str) else {'argv': list(command), **fields}


def _input(data: Union[str, bytes], close: bool) -> dict[str, Any]:
    told = {'base64': base64.b64encode(data).decode()} if isinstance(data, bytes) else {'text': data}
    return {**told, 'close': close}


class _Follow:
    """Collects the events of a stream and tells listeners."""

    def __init__(self, on_stdout: Listen, on_stderr: Listen) -> None:
        self.listeners = {'stdout': on_stdout, 'stderr': on_stderr}
        self.text = {'stdout': '', 'stderr': ''}
        self.end: Optional[dict[str, Any]] = None
        self.event, self.data = '', ''

    def line(self, line: str) -> None:
        if line.startswith('event:'):
            self.event = line[6:].strip()
        elif line.startswith('data:'):
            self.data += line[5:].lstrip()
        elif not line and self.data:
            self.tell(self.event, json.loads(self.data))
            self.event = self.data = ''

    def tell(self, event: str, data: dict[str, Any]) -> None:
        if event in self.text:
            self.text[event] += data['text']
            listener = self.listeners[event]
            if listener:
                listener(data['text'])
        elif event in ('exit', 'failed'):
            self.end = data

    def result(self) -> CommandResult:
        if self.end is None:
            raise ConnectionFailed('the server ended the stream before the process ended')
        return CommandResult.of(self.end, self.text['stdout'], self.text['stderr'])


def _follow(address: Address, method: str, path: str, body: Optional[bytes], follow: _Follow) -> CommandResult:
    connection = _Connection(address)
    headers = {**address.headers(), 'Accept': 'text/event-stream', **(requests.JSON if body else {})}
    try:
        connection.request(method, address.prefix + path, body, headers)
        response = connection.getresponse()
        if response.status != 200:
            raise error_of(response.status, response.read())
        for line in response:
            follow.line(line.decode().rstrip('\r\n'))
        return follow.result()
    except (OSError, http.client.HTTPException) as e:
        raise e if isinstance(e, ConnectionFailed) else address.failed(e) from e
    finally:
        connection.close()


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """Lines of a chunked body, the empty ones too."""
    left = b''
    while True:
        size = int((await reader.readuntil(b'\r\n')).split(b';')[0], 16)
        data = await reader.readexactly(size)
        await reader.readuntil(b'\r\n')
        if not size:
            return
        *whole, left = (left + data).split(b'\n')
        for line in whole:
            yield line.decode().rstrip('\r')


async def _follow_async(address: Address, method: str, path: str, body: Optional[bytes], follow: _Follow) -> CommandResult:
    head = {**address.headers(), 'Accept': 'text/event-stream', 'Connection': 'close', **(requests.JSON if body else {})}
    head['Content-Length'] = str(len(body or b''))
    reader, writer = await address.open()
    try:
        lines = ''.join(f'{k}: {v}\r\n' for k, v in head.items())
        writer.write(f'{method} {address.prefix}{path} HTTP/1.1\r\n{lines}\r\n'.encode('latin-1') + (body or b''))
        await writer.drain()
        status, answered = _parse_head(await reader.readuntil(b'\r\n\r\n'))
        if status != 200:
            raise error_of(status, await _read_body(reader, answered))
        async for line in _chunks(reader):
            follow.line(line)
        return follow.result()
    except (OSError, asyncio.IncompleteReadError) as e:
        raise e if isinstance(e, ConnectionFailed) else address.failed(e) from e
    finally:
        writer.close()


class Process:
    """A process in the background."""

    def __init__(self, commands: 'Commands', info: dict[str, Any]) -> None:
        self._commands, self.id, self.started = commands, info['id'], info
        self._path = f'{commands.path}/{self.id}'

    def info(self) -> dict[str, Any]:
        return self._commands.session.box.request('GET', self._path).json()

    def wait(self, on_stdout: Listen = None, on_stderr: Listen = None) -> CommandResult:
        """Waits until the process ends. Returns its output from the beginning, as far as it is kept."""
        return _follow(self._commands.session.box.address, 'GET', f'{self._path}/stream', None, _Follow(on_stdout, on_stderr))

    def write(self, data: Union[str, bytes], close: bool = False) -> None:
        """Writes to the standard input of the process, which must have been started with stdin_open=True or a pty."""
        self._commands.session.box.request('POST', f'{self._path}/stdin', _input(data, close))

    def signal(self, name: str = 'TERM') -> None:
        self._commands.session.box.request('POST', f'{self._path}/signal', {'signal': name})

    def resize(self, rows: int, cols: int) -> None:
        self._commands.session.box.request('POST', f'{self._path}/resize', {'rows': rows, 'cols': cols})

    def kill(self) -> None:
        self._commands.kill(self.id)

    def __repr__(self) -> str:
        return f'<Process {self.id} of {self._commands.session.id}>'


class Commands:
    """`session.commands`: shell commands (a text) or programs with arguments (a list) beside the interpreter."""

    def __init__(self, session: 'Session') -> None:
        self.session = session
        self.path = f'/v1/sessions/{session.id}/processes'

    def run(
        self,
        command: Command,
        *,
        on_stdout: Listen = None,
        on_stderr: Listen = None,
        check: bool = False,
        **fields: Any,
    ) -> CommandResult:
        """Runs a command until it ends. Fields: cwd, env, stdin, timeout (seconds), pty, tag. Listeners get the output while the command runs."""
        body = _body(command, fields)
        if on_stdout or on_stderr:
            result = _follow(self.session.box.address, 'POST', self.path, requests.dump(body), _Follow(on_stdout, on_stderr))
        else:
            result = CommandResult.of(self.session.box.request('POST', self.path, body).json())
        return result.check() if check else result

    def start(self, command: Command, **fields: Any) -> Process:
        """Starts a command in the background. Fields as in run(), and stdin_open."""
        return Process(self, self.session.box.request('POST', self.path, {**_body(command, fields), 'background': True}).json())

    def list(self) -> Any:
        return self.session.box.request('GET', self.path).json()['processes']

    def get(self, id: int) -> Process:
        return Process(self, self.session.box.request('GET', f'{self.path}/{id}').json())

    def kill(self, id: int) -> None:
        """Kills the process group of the process and deletes its record."""
        self.session.box.request('DELETE', f'{self.path}/{id}')


class AsyncProcess:
    """As Process, for asyncio."""

    def __init__(self, commands: 'AsyncCommands', info: dict[str, Any]) -> None:
        self._commands, self.id, self.started = commands, info['id'], info
        self._path = f'{commands.path}/{self.id}'

    async def info(self) -> dict[str, Any]:
        return (await self._commands.session.box.request('GET', self._path)).json()

    async def wait(self, on_stdout: Listen = None, on_stderr: Listen = None) -> CommandResult:
        return await _follow_async(self._commands.session.box.address, 'GET', f'{self._path}/stream', None, _Follow(on_stdout, on_stderr))

    async def write(self, data: Union[str, bytes], close: bool = False) -> None:
        await self._commands.session.box.request('POST', f'{self._path}/stdin', _input(data, close))

    async def signal(self, name: str = 'TERM') -> None:
        await self._commands.session.box.request('POST', f'{self._path}/signal', {'signal': name})

    async def resize(self, rows: int, cols: int) -> None:
        await self._commands.session.box.request('POST', f'{self._path}/resize', {'rows': rows, 'cols': cols})

    async def kill(self) -> None:
        await self._commands.kill(self.id)


class AsyncCommands:
    """As Commands, for asyncio."""

    def __init__(self, session: 'AsyncSession') -> None:
        self.session = session
        self.path = f'/v1/sessions/{session.id}/processes'

    async def run(
        self,
        command: Command,
        *,
        on_stdout: Listen = None,
        on_stderr: Listen = None,
        check: bool = False,
        **fields: Any,
    ) -> CommandResult:
        body = _body(command, fields)
        if on_stdout or on_stderr:
            result = await _follow_async(self.session.box.address, 'POST', self.path, requests.dump(body), _Follow(on_stdout, on_stderr))
        else:
            result = CommandResult.of((await self.session.box.request('POST', self.path, body)).json())
        return result.check() if check else result

    async def start(self, command: Command, **fields: Any) -> AsyncProcess:
        body = {**_body(command, fields), 'background': True}
        return AsyncProcess(self, (await self.session.box.request('POST', self.path, body)).json())

    async def list(self) -> Any:
        return (await self.session.box.request('GET', self.path)).json()['processes']

    async def get(self, id: int) -> AsyncProcess:
        return AsyncProcess(self, (await self.session.box.request('GET', f'{self.path}/{id}')).json())

    async def kill(self, id: int) -> None:
        await self.session.box.request('DELETE', f'{self.path}/{id}')
