"""Glovebox and its sessions, for code without an event loop."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

from . import _operations as operations
from . import _requests as requests
from ._local import Server, find_or_start
from ._net import Address, Answer, Http
from ._operations import Operation, SessionState, T, carry_out, tools_by_name
from . import batch as batches
from ._requests import JSON, Callback, Display, Listener, Names, Options, Profile
from ._socket import SessionSocket, refuse_reentry
from .batch import BatchResult
from .commands import Commands
from .errors import ConnectionFailed, GloveboxError, NotFound, SessionGone, SessionNotFound
from .history import HistoryCalls, events
from .models import Observation
from .screen import ScreenCalls
from .watching import watch

Tools = Iterable[Any]


class Glovebox:
    """A server: `Glovebox("http://127.0.0.1:8000")`, or `Glovebox.local()`.

    The token is that of the server, when it wants one; $GLOVEBOX_TOKEN when left out. Threads may share it.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, connect_timeout: float = 10.0) -> None:
        url = url or os.environ.get('GLOVEBOX_URL') or 'http://127.0.0.1:8000'
        self.address = Address(url, token or os.environ.get('GLOVEBOX_TOKEN'), connect_timeout)
        self._http = Http(self.address)
        self._server: Optional[Server] = None

    @classmethod
    def local(cls, program: Optional[str] = None, *options: str, token: Optional[str] = None) -> 'Glovebox':
        """The server on this machine: the one of $GLOVEBOX_URL or on 127.0.0.1:8000, or one that is started now and ends with the
        last client that uses it. `options` are those of `glovebox serve`; with any, one of its own is started."""
        server = find_or_start(program, options, token)
        box = cls(server.url, token)
        box._server = server
        return box

    @property
    def url(self) -> str:
        return self.address.url

    def request(self, method: str, path: str, body: Any = None, headers: Optional[Mapping[str, str]] = None) -> Answer:
        """Any request to the server; the answer, or the exception for its problem."""
        if isinstance(body, Mapping):
            body, headers = requests.dump(body), {**JSON, **(headers or {})}
        return self._http.request(method, path, body, headers).check()

    def _do(self, operation: Operation[T]) -> T:
        return carry_out(self.request, operation)

    def health(self) -> dict[str, Any]:
        return self._do(operations.get('/health'))

    def version(self) -> dict[str, Any]:
        return self._do(operations.get('/version'))

    def session(
        self, *, tools: Optional[Tools] = None, profile: Profile = None, additional_imports: Names = None, packages: Names = None,
        display: Options = None, timeout: Optional[float] = None, memory: Optional[int] = None,
        limits: Optional[Mapping[str, Any]] = None, **fields: Any,
    ) -> 'Session':
        """A new session. Other fields of POST /v1/sessions (name, env, metadata, ttl_s, idle_timeout_s, seed, …) go by their names.

        idempotency_key  sent again with the same fields, it gives the same session instead of another one
        from_   a session or a checkpoint whose state it goes on from, as fork() does; of the others only name, metadata, ttl_s, idle_timeout_s and
                reseed go with it
        """
        headers = requests.key_header(fields)
        body = requests.session_body(profile, additional_imports, packages, display, timeout, memory, limits, fields)
        session = Session(self, self.request('POST', '/v1/sessions', body, headers).json())
        if tools:
            try:
                session.set_tools(tools)
            except BaseException:
                session.close()
                raise
        return session

    def attach(self, id: str) -> 'Session':
        """An existing session. It does not end with the `with` block in which it is used."""
        return Session(self, self.request('GET', f'/v1/sessions/{id}').json(), owned=False)

    def sessions(self, **query: Any) -> list[dict[str, Any]]:
        """All sessions of your token, as the server describes them."""
        return self._do(operations.sessions(query))

    def volumes(self) -> list[dict[str, Any]]:
        """The volumes of your token: directories that outlive sessions. session(volumes={'name': '/mnt/place'}) mounts one, `:ro` for reading."""
        return self._do(operations.volumes())

    def create_volume(self, name: str, quota_bytes: Optional[int] = None) -> dict[str, Any]:
        """A new volume; quota_bytes is the server's largest when left out."""
        return self._do(operations.create_volume(name, quota_bytes))

    def delete_volume(self, name: str) -> None:
        """Removes a volume and its files. No session may have it."""
        self._do(operations.delete_volume(name))

    def run(self, code: str, *, files: Optional[Mapping[str, Any]] = None, check: bool = False, **fields: Any) -> Observation:
        """Runs a program once, in a new session; takes the fields of POST /v1/run, and idempotency_key."""
        return self._do(operations.run(code, files, check, fields))

    def batch(
        self, items: Iterable[Any], *, concurrency: Optional[int] = None, deduplicate: bool = False, key: Optional[str] = None
    ) -> Iterator[BatchResult]:
        """Runs many programs, each in a session of its own; yields each result as soon as it is there, in the order in which they finish.

        An item is a text (the code), or a mapping: the fields of POST /v1/run, and id, expected_output, compare, checker, fetch_files.
        key         with the same key and the same items again, only what did not finish before runs
        deduplicate equal items run once
        Leaving the loop cancels what is left.
        """
        for first, body, headers in batches.parts(items, concurrency, deduplicate, key):
            yield from batches.stream(self.address, body, headers, first)

    def events(self, session: Any = None, *, after: Optional[str] = None, output: bool = True) -> Iterator[dict[str, Any]]:
        """The events of your sessions (or of one session), live. `after`: the event_id of the last event received."""
        return events(self.address, session, after, output)

    def close(self) -> None:
        self._http.close()
        if self._server:
            self._server.release()
            self._server = None

    def __enter__(self) -> 'Glovebox':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f'<Glovebox {self.url}>'


class Session(ScreenCalls, HistoryCalls, SessionState):
    """An interpreter in a jail, which keeps its variables from cell to cell. Ends with its block, or with close()."""

    def __init__(self, box: Glovebox, info: Mapping[str, Any], owned: bool = True) -> None:
        self.box = box
        SessionState.__init__(self, info, owned)
        self._socket: Optional[SessionSocket] = None
        self._lock = threading.RLock()
        self.commands = Commands(self)  # processes beside the interpreter

    def _do(self, operation: Operation[T]) -> T:
        return self.box._do(operation)

    # ---- cells ----------------------------------------------------------

    def run(
        self, code: str, *, timeout: Optional[float] = None, stdin: Optional[str] = None, variables: Optional[Mapping[str, Any]] = None,
        screenshot: Options = None, on_block: Optional[str] = None, record: Options = None, on_stdout: Optional[Callback] = None,
        on_stderr: Optional[Callback] = None, on_display: Optional[Display] = None, typed: bool = False, check: bool = False,
        **fields: Any,
    ) -> Observation:
        """Runs a cell and waits for its outcome, whatever it is; with check=True anything but "ok" raises CellError.

        variables   put into the session before the code runs
        screenshot  a picture of the display: True, or its options; render_timeout=… seconds may go by until it is painted, after the code
        on_block    what happens to code that waits in a main loop: "close" its windows, "leave" it running, or "wait"
        record      films the display meanwhile; the observation's `recording` is the film's id
        typed       `value` keeps its type (tuples, sets, dates, arrays, …), not only what JSON has
        on_stdout, on_stderr, on_display   hear of output as it comes
        Ctrl-C interrupts the cell and then is raised here.
        """
        refuse_reentry(self.id)
        body = requests.execute_body(code, timeout, stdin, variables, screenshot, on_block, record, typed, fields)
        listener = Listener(on_stdout, on_stderr, on_display)
        if listener.listens or self._tools:
            raw = self._run_on_socket(body, listener)
        else:
            raw = self.box.request('POST', f'{self._path}/execute', body).json()
        observation = Observation(raw)
        return observation.raise_for_error() if check else observation

    def _run_on_socket(self, body: dict[str, Any], listener: Listener) -> dict[str, Any]:
        socket = self._connect()
        try:
            return socket.ask('execute', listener.tell, **body)['observation']
        except KeyboardInterrupt:
            with contextlib.suppress(ConnectionFailed):
                socket.interrupt()
            raise

    def _connect(self) -> SessionSocket:
        """The WebSocket, made when it is first needed and made again when it broke."""
        with self._lock:
            if self._socket is None or self._socket.closed:
                self._socket = SessionSocket(self.box.address, self.id, self._tools)
                if self._tools:
                    self._socket.set_tools(self._tools)
            return self._socket

    def set_tools(self, tools: Tools) -> None:
        """Gives the session functions (functions, Tools, or objects like smolagents' tools), in place of those before. They
        are there from the next cell on, and answered as long as this object is open."""
        found = tools_by_name(tools)
        with self._lock:
            self._tools = found
            if self._socket and not self._socket.closed:
                self._socket.set_tools(self._tools)
            elif self._tools:
                self._connect()

    def interrupt(self) -> bool:
        """Raises KeyboardInterrupt in the running cell. Returns False if no cell runs."""
        return self._do(operations.interrupt(self._path))

    def reset(self) -> None:
        """Starts a fresh interpreter: variables are lost, files stay."""
        self.box.request('POST', f'{self._path}/reset')

    def info(self) -> dict[str, Any]:
        return self._do(operations.get(self._path))

    # ---- time -----------------------------------------------------------

    def checkpoint(self, name: Optional[str] = None, **fields: Any) -> dict[str, Any]:
        """Takes a checkpoint of the present state."""
        return self._do(operations.checkpoint(self._path, name, fields))

    def delete_checkpoint(self, checkpoint: Union[str, Mapping[str, Any]]) -> None:
        self._do(operations.delete_checkpoint(self._path, checkpoint))

    def checkpoints(self) -> Any:
        return self._do(operations.get(f'{self._path}/checkpoints'))

    def rollback(self, checkpoint: Union[str, Mapping[str, Any], None] = None, **fields: Any) -> dict[str, Any]:
        """Rolls back to a checkpoint; default: the last one."""
        return self._do(operations.rollback(self._path, checkpoint, fields))

    def undo(self) -> dict[str, Any]:
        """Rolls back to before the last cell."""
        return self.rollback(undo=True)

    def fork(self, count: int = 1, **fields: Any) -> list['Session']:
        """Forks this session: returns independent copies of it, with the same tools."""
        made = self._do(operations.fork(self._path, count, fields))
        copies = [Session(self.box, info) for info in made]
        for copy in copies:
            if self._tools:
                copy.set_tools(self._tools.values())
        return copies

    @contextlib.contextmanager
    def transaction(self) -> Iterator['Session']:
        """A `with` block that is rolled back if it raises: variables and files are restored."""
        point = self.checkpoint()
        try:
            yield self
        except BaseException:
            self.rollback(point)
            raise
        finally:
            with contextlib.suppress(NotFound):  # it may have had to go, when more were taken in the block
                self.delete_checkpoint(point)

    # ---- files ----------------------------------------------------------

    def write_file(self, path: str, data: Any) -> None:
        """Writes text, bytes or the contents of an open binary file to a path below /workspace."""
        self._do(operations.write_file(self._path, path, data))

    def read_file(self, path: str) -> bytes:
        return self._do(operations.read_file(self._path, path))

    def delete_file(self, path: str) -> None:
        self._do(operations.delete_file(self._path, path))

    def files(self, path: Optional[str] = None, recursive: bool = True) -> list[dict[str, Any]]:
        return self._do(operations.files(self._path, path, recursive))

    def watch(self, path: Optional[str] = None, recursive: bool = False) -> Iterator[dict[str, Any]]:
        """What changes in a directory below /workspace, as it changes: {'type': 'create' | 'write' | 'remove' | 'rename' | 'chmod', 'name': …}, or
        {'type': 'missed'} when events were lost. Ends with the session."""
        return watch(self.box.address, self._path, path, recursive)

    def upload(self, source: Union[str, Path], path: Optional[str] = None) -> None:
        """Copies a local file into the session."""
        with open(source, 'rb') as f:
            self.write_file(path or Path(source).name, f)

    def download(self, path: str, target: Union[str, Path]) -> None:
        """Copies a file of the session to a local file."""
        Path(target).write_bytes(self.read_file(path))

    # ---- servers inside the session --------------------------------------

    def ports(self) -> list[dict[str, Any]]:
        """What listens in the session: `port`, `url` for a browser, `path` below the API. It needs network='loopback'."""
        return self._do(operations.ports(self._path))

    def port_url(self, port: int) -> str:
        """The address of a server inside the session, for a browser; also before it listens."""
        return self._do(operations.port_url(self._path, port))

    # ---- log -------------------------------------------------------------

    def logs(self, **query: Any) -> str:
        """The whole output of the session, as text."""
        return self._do(operations.logs(self._path, query))

    # ---- the end --------------------------------------------------------

    def close(self) -> None:
        """Ends the session (unless attached or detached) and the connection to it."""
        with self._lock:
            if self._socket:
                self._socket.close()
                self._socket = None
        if self._owned:
            self._owned = False
            with contextlib.suppress(SessionGone, SessionNotFound):
                self.box.request('DELETE', self._path)

    def __enter__(self) -> 'Session':
        return self

    def __exit__(self, kind: Any, *exc: Any) -> None:
        try:
            self.close()
        except GloveboxError:
            if kind is None:
                raise

    def __repr__(self) -> str:
        return f'<Session {self.id} at {self.box.url}>'
