"""Glovebox and its sessions for asyncio. The same names as in client.py; what waits is awaited."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import os
from pathlib import Path
from typing import Any, AsyncIterator, Iterable, Mapping, Optional, Union

from . import _operations as operations
from . import _requests as requests
from ._local import Server, find_or_start
from ._net import Address, Answer, AsyncHttp
from ._operations import Operation, SessionState, T, carry_out_async, tools_by_name
from . import batch as batches
from ._requests import JSON, Callback, Display, Listener, Names, Options, Profile
from ._socket import busy_sessions, refuse_reentry
from ._websocket import AsyncWebSocket
from .batch import BatchResult
from .client import Tools
from .commands import AsyncCommands
from .errors import ConnectionFailed, GloveboxError, NotFound, SessionGone, SessionNotFound, error_of
from .history import AsyncHistoryCalls, async_events
from .models import Observation
from .screen import AsyncScreenCalls
from .tools import Tool
from .watching import watch_async


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

    async def _do(self, operation: Operation[T]) -> T:
        return await carry_out_async(self.request, operation)

    async def health(self) -> dict[str, Any]:
        return await self._do(operations.get('/health'))

    async def version(self) -> dict[str, Any]:
        return await self._do(operations.get('/version'))

    async def create(
        self, *, tools: Optional[Tools] = None, profile: Profile = None, additional_imports: Names = None, packages: Names = None,
        display: Options = None, timeout: Optional[float] = None, memory: Optional[int] = None,
        limits: Optional[Mapping[str, Any]] = None, **fields: Any,
    ) -> 'AsyncSession':
        """A new session, as Glovebox.session()."""
        headers = requests.key_header(fields)
        body = requests.session_body(profile, additional_imports, packages, display, timeout, memory, limits, fields)
        session = AsyncSession(self, (await self.request('POST', '/v1/sessions', body, headers)).json())
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
        return await self._do(operations.sessions(query))

    async def volumes(self) -> list[dict[str, Any]]:
        """The volumes of your token, as Glovebox.volumes()."""
        return await self._do(operations.volumes())

    async def create_volume(self, name: str, quota_bytes: Optional[int] = None) -> dict[str, Any]:
        """A new volume, as Glovebox.create_volume()."""
        return await self._do(operations.create_volume(name, quota_bytes))

    async def delete_volume(self, name: str) -> None:
        """Removes a volume and its files."""
        await self._do(operations.delete_volume(name))

    async def run(self, code: str, *, files: Optional[Mapping[str, Any]] = None, check: bool = False, **fields: Any) -> Observation:
        """Runs a program once, as Glovebox.run()."""
        return await self._do(operations.run(code, files, check, fields))

    async def batch(
        self, items: Iterable[Any], *, concurrency: Optional[int] = None, deduplicate: bool = False, key: Optional[str] = None
    ) -> AsyncIterator[BatchResult]:
        """Runs many programs, as Glovebox.batch()."""
        for first, body, headers in batches.parts(items, concurrency, deduplicate, key):
            results = batches.stream_async(self.address, body, headers, first)
            try:
                async for result in results:
                    yield result
            finally:
                await results.aclose()

    def events(self, session: Any = None, *, after: Optional[str] = None, output: bool = True) -> AsyncIterator[dict[str, Any]]:
        """What happens in your sessions (or in one), as it happens. `after`: the event_id of the last event that was seen."""
        return async_events(self.address, session, after, output)

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


class AsyncSession(AsyncScreenCalls, AsyncHistoryCalls, SessionState):
    """An interpreter in a jail, for asyncio. Tools may be coroutine functions; plain ones run in threads."""

    def __init__(self, box: AsyncGlovebox, info: Mapping[str, Any], owned: bool = True) -> None:
        self.box = box
        SessionState.__init__(self, info, owned)
        self._socket: Optional[_Socket] = None
        self._connecting = asyncio.Lock()
        self.commands = AsyncCommands(self)  # processes beside the interpreter

    async def _do(self, operation: Operation[T]) -> T:
        return await self.box._do(operation)

    async def run(
        self, code: str, *, timeout: Optional[float] = None, stdin: Optional[str] = None, variables: Optional[Mapping[str, Any]] = None,
        screenshot: Options = None, on_block: Optional[str] = None, record: Options = None, on_stdout: Optional[Callback] = None,
        on_stderr: Optional[Callback] = None, on_display: Optional[Display] = None, typed: bool = False, check: bool = False,
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
        self._tools = tools_by_name(tools)
        if self._socket and not self._socket.closed:
            await self._socket.set_tools(self._tools)
        elif self._tools:
            await self._connect()

    async def interrupt(self) -> bool:
        return await self._do(operations.interrupt(self._path))

    async def reset(self) -> None:
        await self.box.request('POST', f'{self._path}/reset')

    async def info(self) -> dict[str, Any]:
        return await self._do(operations.get(self._path))

    async def checkpoint(self, name: Optional[str] = None, **fields: Any) -> dict[str, Any]:
        return await self._do(operations.checkpoint(self._path, name, fields))

    async def delete_checkpoint(self, checkpoint: Union[str, Mapping[str, Any]]) -> None:
        await self._do(operations.delete_checkpoint(self._path, checkpoint))

    async def checkpoints(self) -> Any:
        return await self._do(operations.get(f'{self._path}/checkpoints'))

    async def rollback(self, checkpoint: Union[str, Mapping[str, Any], None] = None, **fields: Any) -> dict[str, Any]:
        """Back to a checkpoint; the last one when none is named."""
        return await self._do(operations.rollback(self._path, checkpoint, fields))

    async def undo(self) -> dict[str, Any]:
        return await self.rollback(undo=True)

    async def fork(self, count: int = 1, **fields: Any) -> list['AsyncSession']:
        made = await self._do(operations.fork(self._path, count, fields))
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
        await self._do(operations.write_file(self._path, path, data))

    async def read_file(self, path: str) -> bytes:
        return await self._do(operations.read_file(self._path, path))

    async def delete_file(self, path: str) -> None:
        await self._do(operations.delete_file(self._path, path))

    async def files(self, path: Optional[str] = None, recursive: bool = True) -> list[dict[str, Any]]:
        return await self._do(operations.files(self._path, path, recursive))

    def watch(self, path: Optional[str] = None, recursive: bool = False) -> AsyncIterator[dict[str, Any]]:
        return watch_async(self.box.address, self._path, path, recursive)

    async def upload(self, source: Union[str, Path], path: Optional[str] = None) -> None:
        await self.write_file(path or Path(source).name, Path(source).read_bytes())

    async def download(self, path: str, target: Union[str, Path]) -> None:
        Path(target).write_bytes(await self.read_file(path))

    async def ports(self) -> list[dict[str, Any]]:
        return await self._do(operations.ports(self._path))

    async def port_url(self, port: int) -> str:
        return await self._do(operations.port_url(self._path, port))

    async def logs(self, **query: Any) -> str:
        return await self._do(operations.logs(self._path, query))

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
