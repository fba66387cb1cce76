"""Glovebox and its sessions for asyncio. The same names as in client.py; what waits is awaited."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import os
from pathlib import Path
from typing import Any, AsyncIterator, Iterable, Mapping, Optional, Union

from . import _requests as requests
from ._local import Server, find_or_start
from ._net import Address, Answer, AsyncHttp, AsyncWebSocket
from ._requests import JSON, Callback, Display, Listener
from ._socket import busy_sessions, refuse_reentry
from .client import Tools
from .errors import ConnectionFailed, GloveboxError, NotFound, SessionGone, SessionNotFound, error_of
from .models import Observation
from .screen import AsyncScreenCalls
from .tools import Tool


class AsyncGlovebox:
    """A server, for one event loop: `async with AsyncGlovebox(url) as box`."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, connect_timeout: float = 10.0) -> None:
        url = url or os.environ.get('GLOVEBOX_URL') or 'http://127.0.0.1:8000'
        self.address = Address(url, token or os.environ.get('GLOVEBOX_TOKEN'), connect_timeout)
        self._http = AsyncHttp(self.address)
        self._server: Optional[Server] = None

    @classmethod
    async def local(cls, program: Optional[str] = None, *options: str, token: Optional[str] = None) -> 'AsyncGlovebox':
        """The server on this machine, as Glovebox.local()."""
        server = await asyncio.get_running_loop().run_in_executor(None, find_or_start, program, options, token)
        box = cls(server.url, token)
        box._server = server
        return box

    @property
    def url(self) -> str:
        return self.address.url

    async def request(self, method: str, path: str, body: Any = None, headers: Optional[Mapping[str, str]] = None) -> Answer:
        if isinstance(body, Mapping):
            body, headers = requests.dump(body), {**JSON, **(headers or {})}
        return (await self._http.request(method, path, body, headers)).check()

    async def health(self) -> dict[str, Any]:
        return (await self.request('GET', '/health')).json()

    async def version(self) -> dict[str, Any]:
        return (await self.request('GET', '/version')).json()

    async def create(
        self,
        *,
        tools: Optional[Tools] = None,
        profile: Union[str, Mapping[str, Any], None] = None,
        additional_imports: Optional[Iterable[str]] = None,
        packages: Optional[Iterable[str]] = None,
        display: Union[bool, Mapping[str, Any], None] = None,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        limits: Optional[Mapping[str, Any]] = None,
        **fields: Any,
    ) -> 'AsyncSession':
        """A new session, as Glovebox.session()."""
        body = requests.session_body(profile, additional_imports, packages, display, timeout, memory, limits, fields)
        session = AsyncSession(self, (await self.request('POST', '/v1/sessions', body)).json())
        if tools:
            try:
                await session.set_tools(tools)
            except BaseException:
                await session.close()
                raise
        return session

    @contextlib.asynccontextmanager
    async def session(self, **fields: Any) -> AsyncIterator['AsyncSession']:
        """`async with box.session(…) as s`: a session for a block; the fields of create()."""
        session = await self.create(**fields)
        async with session:
            yield session

    async def attach(self, id: str) -> 'AsyncSession':
        """A session that is there already. It does not end with the block it is used in."""
        return AsyncSession(self, (await self.request('GET', f'/v1/sessions/{id}')).json(), owned=False)

    async def sessions(self, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = (await self.request('GET', requests.query('/v1/sessions', **query))).json()
            found += page['sessions']
            if page.get('next') is None:
                return found
            query['cursor'] = page['next']

    async def run(self, code: str, *, files: Optional[Mapping[str, Any]] = None, check: bool = False, **fields: Any) -> Observation:
        """Runs a program once, as Glovebox.run()."""
        body = requests.run_body(code, files, fields)
        observation = Observation((await self.request('POST', '/v1/run', body)).json())
        return observation.raise_for_error() if check else observation

    async def close(self) -> None:
        await self._http.close()
        if self._server:
            server, self._server = self._server, None
            await asyncio.get_running_loop().run_in_executor(None, server.release)

    async def __aenter__(self) -> 'AsyncGlovebox':
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.close()


class _Socket:
    """A session's WebSocket and the task that reads it."""

    def __init__(self, ws: AsyncWebSocket, session: str, tools: Mapping[str, Tool]) -> None:
        self.ws, self.session, self.tools = ws, session, dict(tools)
        self.closed = False
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Optional[dict[str, Any]]]] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._reader = asyncio.ensure_future(self._read())

    async def ask(self, type: str, listener: Optional[Listener] = None, **fields: Any) -> dict[str, Any]:
        if self.closed:
            raise ConnectionFailed('the connection to the session is closed')
        id = next(self._ids)
        answers: asyncio.Queue[Optional[dict[str, Any]]] = asyncio.Queue()
        self._waiting[id] = answers
        try:
            await self.ws.send({'id': id, 'type': type, **fields})
            while True:
                message = await answers.get()
                if message is None:
                    raise ConnectionFailed('the connection to the session broke')
                if message['type'] == 'error':
                    raise error_of(message.get('status') or 500, message)
                if message['type'] not in ('started', 'stdout', 'stderr', 'display'):
                    return message
                told = listener.tell(message) if listener else None
                if inspect.isawaitable(told):
                    await told
        finally:
            self._waiting.pop(id, None)

    async def set_tools(self, tools: Mapping[str, Tool]) -> None:
        self.tools = dict(tools)
        await self.ask('tools', tools=[t.definition for t in tools.values()])

    async def interrupt(self) -> None:
        await self.ws.send({'id': next(self._ids), 'type': 'interrupt'})

    async def _read(self) -> None:
        try:
            while True:
                message = await self.ws.receive()
                if message is None:
                    break
                if message['type'] == 'tool_call':
                    self._calls[message['call']] = asyncio.ensure_future(self._call(message))
                elif message['type'] == 'tool_cancel':
                    call = self._calls.get(message['call'])
                    if call:
                        call.cancel()
                elif message.get('id') in self._waiting:
                    self._waiting[message['id']].put_nowait(message)
        except GloveboxError:
            pass
        finally:
            self.closed = True
            for answers in self._waiting.values():
                answers.put_nowait(None)

    async def _call(self, message: Mapping[str, Any]) -> None:
        busy_sessions.set(busy_sessions.get() | {self.session})
        called = self.tools.get(message['tool'])
        try:
            if called is None or called.function is None:
                answer: dict[str, Any] = {'error': {'type': 'ToolUnavailable', 'message': f'there is no {message["tool"]} here'}}
            else:
                answer = await called.call_async(message['arguments'])
            await self.ws.send({'id': next(self._ids), 'type': 'tool_result', 'call': message['call'], **answer})
        except ConnectionFailed:
            pass  # nobody waits any more
        finally:
            self._calls.pop(message['call'], None)

    async def close(self) -> None:
        await self.ws.close()
        self._reader.cancel()
        for call in list(self._calls.values()):
            call.cancel()


class AsyncSession(AsyncScreenCalls):
    """An interpreter in a jail, for asyncio. Tools may be coroutine functions; plain ones run in threads."""

    def __init__(self, box: AsyncGlovebox, info: Mapping[str, Any], owned: bool = True) -> None:
        self.box = box
        self.id: str = info['id']
        self.created = dict(info)
        self.limits_not_enforced: list[str] = list(info.get('limits_not_enforced') or [])  # those that the server cannot keep
        self._path = f'/v1/sessions/{self.id}'
        self._owned = owned
        self._tools: dict[str, Tool] = {}
        self._socket: Optional[_Socket] = None
        self._connecting = asyncio.Lock()

    async def run(
        self,
        code: str,
        *,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
        variables: Optional[Mapping[str, Any]] = None,
        screenshot: Union[bool, Mapping[str, Any], None] = None,
        on_block: Optional[str] = None,
        record: Union[bool, Mapping[str, Any], None] = None,
        on_stdout: Optional[Callback] = None,
        on_stderr: Optional[Callback] = None,
        on_display: Optional[Display] = None,
        typed: bool = False,
        check: bool = False,
        **fields: Any,
    ) -> Observation:
        """Runs a cell, as Session.run(). Callbacks may be coroutine functions. Cancelling it interrupts the cell."""
        refuse_reentry(self.id)
        body = requests.execute_body(code, timeout, stdin, variables, screenshot, on_block, record, typed, fields)
        listener = Listener(on_stdout, on_stderr, on_display)
        if listener.listens or self._tools:
            raw = await self._run_on_socket(body, listener)
        else:
            raw = (await self.box.request('POST', f'{self._path}/execute', body)).json()
        observation = Observation(raw)
        return observation.raise_for_error() if check else observation

    async def _run_on_socket(self, body: dict[str, Any], listener: Listener) -> dict[str, Any]:
        socket = await self._connect()
        try:
            return (await socket.ask('execute', listener, **body))['observation']
        except asyncio.CancelledError:
            with contextlib.suppress(ConnectionFailed):
                await socket.interrupt()
            raise

    async def _connect(self) -> _Socket:
        async with self._connecting:
            if self._socket is None or self._socket.closed:
                ws = await AsyncWebSocket.connect(self.box.address, f'{self._path}/ws')
                self._socket = _Socket(ws, self.id, self._tools)
                if self._tools:
                    await self._socket.set_tools(self._tools)
            return self._socket

    async def set_tools(self, tools: Tools) -> None:
        self._tools = {t.name: t for t in (Tool.of(t) for t in tools)}
        if self._socket and not self._socket.closed:
            await self._socket.set_tools(self._tools)
        elif self._tools:
            await self._connect()

    async def interrupt(self) -> bool:
        return (await self.box.request('POST', f'{self._path}/interrupt')).json()['interrupted']

    async def reset(self) -> None:
        await self.box.request('POST', f'{self._path}/reset')

    async def info(self) -> dict[str, Any]:
        return (await self.box.request('GET', self._path)).json()

    async def checkpoint(self, name: Optional[str] = None, **fields: Any) -> dict[str, Any]:
        body = {**fields, **({'name': name} if name else {})}
        return (await self.box.request('POST', f'{self._path}/checkpoints', body)).json()['checkpoint']

    async def delete_checkpoint(self, checkpoint: Union[str, Mapping[str, Any]]) -> None:
        await self.box.request('DELETE', requests.checkpoint_path(self._path, checkpoint))

    async def checkpoints(self) -> Any:
        return (await self.box.request('GET', f'{self._path}/checkpoints')).json()

    async def rollback(self, checkpoint: Union[str, Mapping[str, Any], None] = None, **fields: Any) -> dict[str, Any]:
        """Back to a checkpoint; the last one when none is named."""
        if checkpoint is None and not fields:
            checkpoint = requests.last_checkpoint(await self.checkpoints())
        body = {**fields, **({'checkpoint': requests.id_of(checkpoint)} if checkpoint else {})}
        return (await self.box.request('POST', f'{self._path}/rollback', body)).json()

    async def undo(self) -> dict[str, Any]:
        return await self.rollback(undo=True)

    async def fork(self, count: int = 1, **fields: Any) -> list['AsyncSession']:
        made = (await self.box.request('POST', f'{self._path}/fork', {'count': count, **fields})).json()['sessions']
        copies = [AsyncSession(self.box, info) for info in made]
        for copy in copies:
            if self._tools:
                await copy.set_tools(self._tools.values())
        return copies

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator['AsyncSession']:
        """A block that is undone when it raises."""
        point = await self.checkpoint()
        try:
            yield self
        except BaseException:
            await self.rollback(point)
            raise
        finally:
            with contextlib.suppress(NotFound):  # it may have had to go, when more were taken in the block
                await self.delete_checkpoint(point)

    async def write_file(self, path: str, data: Any) -> None:
        headers = {'Content-Type': 'application/octet-stream'}
        await self.box.request('PUT', requests.file_path(self._path, path), requests.as_bytes(data), headers)

    async def read_file(self, path: str) -> bytes:
        return (await self.box.request('GET', requests.file_path(self._path, path))).body

    async def delete_file(self, path: str) -> None:
        await self.box.request('DELETE', requests.file_path(self._path, path))

    async def files(self, path: Optional[str] = None, recursive: bool = True) -> list[dict[str, Any]]:
        answer = await self.box.request('GET', requests.query(f'{self._path}/files', path=path, recursive=recursive))
        return answer.json()['files']

    async def upload(self, source: Union[str, Path], path: Optional[str] = None) -> None:
        await self.write_file(path or Path(source).name, Path(source).read_bytes())

    async def download(self, path: str, target: Union[str, Path]) -> None:
        Path(target).write_bytes(await self.read_file(path))

    async def logs(self, **query: Any) -> str:
        parts: list[str] = []
        while True:
            page = (await self.box.request('GET', requests.query(f'{self._path}/logs', **query))).json()
            parts += [entry['text'] for entry in page['entries']]
            if page.get('end', True):
                return ''.join(parts)
            query['after'] = page['next']

    def detach(self) -> str:
        """Lets the session live on when this object is closed; its id."""
        self._owned = False
        return self.id

    async def close(self) -> None:
        if self._socket:
            socket, self._socket = self._socket, None
            await socket.close()
        if self._owned:
            self._owned = False
            with contextlib.suppress(SessionGone, SessionNotFound):
                await self.box.request('DELETE', self._path)

    async def __aenter__(self) -> 'AsyncSession':
        return self

    async def __aexit__(self, kind: Any, *exc: Any) -> None:
        try:
            await self.close()
        except GloveboxError:
            if kind is None:
                raise
