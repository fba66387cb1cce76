"""A session's WebSocket, with a thread that reads it: answers go to whoever waits for them, calls of tools to workers."""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
from typing import Any, Callable, Mapping, Optional

from ._net import Address
from ._websocket import WebSocket
from .errors import ConnectionFailed, GloveboxError, error_of
from .tools import Tool

# The sessions whose cells wait for a tool that runs here: running another cell in one of them would wait for ever.
busy_sessions: contextvars.ContextVar[frozenset[str]] = contextvars.ContextVar('busy_sessions', default=frozenset())


def refuse_reentry(session: str) -> None:
    if session in busy_sessions.get():
        raise GloveboxError('a tool cannot run a cell in the session that called it: that cell waits for the tool. Use another session')


class Workers:
    """Threads for tools: as many as calls wait at once, kept for the next ones. They end with the program."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Optional[Callable[[], None]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = self._all = 0

    def submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            start = self._idle == 0
            if start:
                self._all += 1
            else:
                self._idle -= 1
        self._jobs.put(job)
        if start:
            threading.Thread(target=self._work, daemon=True, name='glovebox-tool').start()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            job()
            with self._lock:
                self._idle += 1

    def close(self) -> None:
        for _ in range(self._all):
            self._jobs.put(None)


class SessionSocket:
    def __init__(self, address: Address, session: str, tools: Mapping[str, Tool]) -> None:
        self.session, self.tools = session, dict(tools)
        self._ws = WebSocket(address, f'/v1/sessions/{session}/ws')
        self._ids = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[Optional[dict[str, Any]]]] = {}
        self._lock = threading.Lock()
        self._workers = Workers()
        self.closed = False
        self._thread = threading.Thread(target=self._read, daemon=True, name='glovebox-session')
        self._thread.start()

    # ---- asking ---------------------------------------------------------

    def ask(self, type: str, on_message: Optional[Callable[[dict[str, Any]], Any]] = None, **fields: Any) -> dict[str, Any]:
        """Sends a message and waits for the one that ends it; those in between go to on_message."""
        id = next(self._ids)
        answers: queue.SimpleQueue[Optional[dict[str, Any]]] = queue.SimpleQueue()
        with self._lock:
            if self.closed:
                raise ConnectionFailed('the connection to the session is closed')
            self._waiting[id] = answers
        try:
            self._ws.send({'id': id, 'type': type, **fields})
            while True:
                message = answers.get()
                if message is None:
                    raise ConnectionFailed('the connection to the session broke')
                if message['type'] == 'error':
                    raise error_of(message.get('status') or 500, message)
                if message['type'] not in ('started', 'stdout', 'stderr', 'display'):
                    return message
                if on_message:
                    on_message(message)
        finally:
            with self._lock:
                self._waiting.pop(id, None)

    def set_tools(self, tools: Mapping[str, Tool]) -> None:
        self.tools = dict(tools)
        self.ask('tools', tools=[t.definition for t in tools.values()])

    def interrupt(self) -> None:
        self._ws.send({'id': next(self._ids), 'type': 'interrupt'})

    # ---- reading --------------------------------------------------------

    def _read(self) -> None:
        try:
            while True:
                message = self._ws.receive()
                if message is None:
                    break
                if message['type'] == 'tool_call':
                    self._workers.submit(lambda m=message: self._call(m))  # type: ignore[misc]
                elif message['type'] != 'tool_cancel':
                    with self._lock:
                        answers = self._waiting.get(message.get('id'))
                    if answers:
                        answers.put(message)
        except Exception:
            pass  # whoever waits is told below
        finally:
            with self._lock:
                self.closed = True
                waiting = list(self._waiting.values())
            for answers in waiting:
                answers.put(None)

    def _call(self, message: Mapping[str, Any]) -> None:
        called = self.tools.get(message['tool'])
        token = busy_sessions.set(busy_sessions.get() | {self.session})
        try:
            if called is None or called.function is None:
                answer: dict[str, Any] = {'error': {'type': 'ToolUnavailable', 'message': f'there is no {message["tool"]} here'}}
            else:
                answer = called.call(message['arguments'])
        finally:
            busy_sessions.reset(token)
        try:
            self._ws.send({'id': next(self._ids), 'type': 'tool_result', 'call': message['call'], **answer})
        except ConnectionFailed:
            pass  # nobody waits any more

    def close(self) -> None:
        self._ws.close()
        self._workers.close()
