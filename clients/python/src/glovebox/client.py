"""Glovebox and its sessions, for code without an event loop."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

from . import _requests as requests
from ._local import Server, find_or_start
from ._net import Address, Answer, Http
from ._requests import JSON, Callback, Display, Listener
from ._socket import SessionSocket, refuse_reentry
from .errors import ConnectionFailed, GloveboxError, NotFound, SessionGone, SessionNotFound
from .models import Observation
from .screen import ScreenCalls
from .tools import Tool

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

    def health(self) -> dict[str, Any]:
        return self.request('GET', '/health').json()

    def version(self) -> dict[str, Any]:
        return self.request('GET', '/version').json()

    def session(
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
    ) -> 'Session':
        """A new session. Other fields of POST /v1/sessions (name, env, metadata, ttl_s, idle_timeout_s, seed, …) go by their names.

        from_   a session or a checkpoint whose state it goes on from, as fork() does; of the others only name, metadata, ttl_s, idle_timeout_s and
                reseed go with it
        """
        body = requests.session_body(profile, additional_imports, packages, display, timeout, memory, limits, fields)
        session = Session(self, self.request('POST', '/v1/sessions', body).json())
        if tools:
            try:
                session.set_tools(tools)
            except BaseException:
                session.close()
                raise
        return session

    def attach(self, id: str) -> 'Session':
        """A session that is there already. It does not end with the block it is used in."""
        return Session(self, self.request('GET', f'/v1/sessions/{id}').json(), owned=False)

    def sessions(self, **query: Any) -> list[dict[str, Any]]:
        """All sessions that are yours, as the server describes them."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.request('GET', requests.query('/v1/sessions', **query)).json()
            found += page['sessions']
            if page.get('next') is None:
                return found
            query['cursor'] = page['next']

    def run(self, code: str, *, files: Optional[Mapping[str, Any]] = None, check: bool = False, **fields: Any) -> Observation:
        """Runs a program once, in a session made for it; takes the fields of POST /v1/run."""
        body = requests.run_body(code, files, fields)
        observation = Observation(self.request('POST', '/v1/run', body).json())
        return observation.raise_for_error() if check else observation

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


class Session(ScreenCalls):
    """An interpreter in a jail, which keeps its variables from cell to cell. Ends with its block, or with close()."""

    def __init__(self, box: Glovebox, info: Mapping[str, Any], owned: bool = True) -> None:
        self.box = box
        self.id: str = info['id']
        self.created = dict(info)
        self.limits_not_enforced: list[str] = list(info.get('limits_not_enforced') or [])  # those that the server cannot keep
        self._path = f'/v1/sessions/{self.id}'
        self._owned = owned
        self._tools: dict[str, Tool] = {}
        self._socket: Optional[SessionSocket] = None
        self._lock = threading.RLock()

    # ---- cells ----------------------------------------------------------

    def run(
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
        """Runs a cell and waits for its outcome, whatever it is; with check=True anything but "ok" raises CellError.

        variables   put into the session before the code runs
        screenshot  a picture of the display: True, or its options; render_timeout=… seconds may go by until it is painted, after the code
        on_block    what becomes of code that waits in a main loop: "close" its windows, "leave" it running, or "wait"
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
        found = [Tool.of(t) for t in tools]
        with self._lock:
            self._tools = {t.name: t for t in found}
            if self._socket and not self._socket.closed:
                self._socket.set_tools(self._tools)
            elif self._tools:
                self._connect()

    def interrupt(self) -> bool:
        """KeyboardInterrupt in the running cell. False when none runs."""
        return self.box.request('POST', f'{self._path}/interrupt').json()['interrupted']

    def reset(self) -> None:
        """A fresh interpreter: variables are gone, files stay."""
        self.box.request('POST', f'{self._path}/reset')

    def info(self) -> dict[str, Any]:
        return self.box.request('GET', self._path).json()

    # ---- time -----------------------------------------------------------

    def checkpoint(self, name: Optional[str] = None, **fields: Any) -> dict[str, Any]:
        """Keeps the state of now, to come back to."""
        body = {**fields, **({'name': name} if name else {})}
        return self.box.request('POST', f'{self._path}/checkpoints', body).json()['checkpoint']

    def delete_checkpoint(self, checkpoint: Union[str, Mapping[str, Any]]) -> None:
        self.box.request('DELETE', requests.checkpoint_path(self._path, checkpoint))

    def checkpoints(self) -> Any:
        return self.box.request('GET', f'{self._path}/checkpoints').json()

    def rollback(self, checkpoint: Union[str, Mapping[str, Any], None] = None, **fields: Any) -> dict[str, Any]:
        """Back to a checkpoint; the last one when none is named."""
        if checkpoint is None and not fields:
            checkpoint = requests.last_checkpoint(self.checkpoints())
        body = {**fields, **({'checkpoint': requests.id_of(checkpoint)} if checkpoint else {})}
        return self.box.request('POST', f'{self._path}/rollback', body).json()

    def undo(self) -> dict[str, Any]:
        """Back to before the last cell."""
        return self.rollback(undo=True)

    def fork(self, count: int = 1, **fields: Any) -> list['Session']:
        """Copies of this session, each a session of its own from here on; with the same tools."""
        made = self.box.request('POST', f'{self._path}/fork', {'count': count, **fields}).json()['sessions']
        copies = [Session(self.box, info) for info in made]
        for copy in copies:
            if self._tools:
                copy.set_tools(self._tools.values())
        return copies

    @contextlib.contextmanager
    def transaction(self) -> Iterator['Session']:
        """A block that is undone when it raises: variables and files are as they were before it."""
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
        """Writes text, bytes or what an open binary file holds to a path below /workspace."""
        headers = {'Content-Type': 'application/octet-stream'}
        self.box.request('PUT', requests.file_path(self._path, path), requests.as_bytes(data), headers)

    def read_file(self, path: str) -> bytes:
        return self.box.request('GET', requests.file_path(self._path, path)).body

    def delete_file(self, path: str) -> None:
        self.box.request('DELETE', requests.file_path(self._path, path))

    def files(self, path: Optional[str] = None, recursive: bool = True) -> list[dict[str, Any]]:
        return self.box.request('GET', requests.query(f'{self._path}/files', path=path, recursive=recursive)).json()['files']

    def upload(self, source: Union[str, Path], path: Optional[str] = None) -> None:
        """Copies a file of ours into the session."""
        with open(source, 'rb') as f:
            self.write_file(path or Path(source).name, f)

    def download(self, path: str, target: Union[str, Path]) -> None:
        """Copies a file of the session's to us."""
        Path(target).write_bytes(self.read_file(path))

    # ---- log -------------------------------------------------------------

    def logs(self, **query: Any) -> str:
        """Everything the session printed, as text."""
        parts: list[str] = []
        while True:
            page = self.box.request('GET', requests.query(f'{self._path}/logs', **query)).json()
            parts += [entry['text'] for entry in page['entries']]
            if page.get('end', True):
                return ''.join(parts)
            query['after'] = page['next']

    # ---- the end --------------------------------------------------------

    def detach(self) -> str:
        """Lets the session live on when this object is closed; its id."""
        self._owned = False
        return self.id

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
