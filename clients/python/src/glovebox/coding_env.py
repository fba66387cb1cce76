"""CodingEnv: reset, step, state, as users of OpenEnv's coding_env know them, without installing OpenEnv.

It speaks OpenEnv's own protocol, so it works against any server of coding_env; what Glovebox has beyond it (time limits, screenshots,
coming back after a broken connection) works against Glovebox. AsyncCodingEnv is the same for asyncio.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional
from urllib.parse import urlencode

from ._docker import LocalDockerProvider, wait_for_ready
from ._local import Server, find_or_start
from ._net import Address, Http
from ._websocket import AsyncWebSocket, WebSocket
from .errors import ConnectionFailed, GloveboxError
from .models import Observation, Screenshot


@dataclass
class CodeAction:
    """Code to run; with capture_screenshot also a picture of the environment's display, whose windows may take render_timeout seconds to be
    painted after the code has ended."""

    code: str
    capture_screenshot: bool = False
    timeout_s: Optional[float] = None
    metadata: dict[str, Any] = field(default_factory=dict)
    render_timeout: Optional[float] = None  # 0.5, when the server is left to choose


@dataclass
class CodeObservation:
    stdout: str = ''
    stderr: str = ''
    exit_code: int = 0
    done: bool = False
    reward: Optional[float] = None
    screenshot: Optional[Screenshot] = None  # a str: the PNG in base64
    metadata: dict[str, Any] = field(default_factory=dict)
    info: Optional[Observation] = None  # Glovebox's own observation, where the server gives it


@dataclass
class CodeState:
    episode_id: Optional[str] = None
    step_count: int = 0
    last_exit_code: int = 0

    def __call__(self) -> 'CodeState':
        """So that both env.state and env.state() read well."""
        return self


@dataclass
class StepResult:
    observation: CodeObservation
    reward: Optional[float] = None
    done: bool = False


# What OpenEnv's client takes and this one has no use for.
_NOT_OURS = frozenset(('max_message_size_mb', 'websocket_ping_interval_s', 'websocket_ping_timeout_s', 'mode'))


# What a reset may hold, and what the constructor takes: every other argument of from_docker_image() is the provider's.
_RESET_FIELDS = frozenset(
    ('episode_id', 'rewards', 'name', 'env', 'preload', 'metadata', 'profile', 'executor_backend', 'additional_imports', 'exec', 'network',
     'limits', 'ttl_s', 'idle_timeout_s', 'pause_on_expiry', 'private_ports', 'seed', 'transactions', 'keep_files_bytes', 'keep_checkpoints', 'packages', 'mounts', 'volumes', 'display')
)  # fmt: skip
_OWN_FIELDS = _RESET_FIELDS | _NOT_OURS | {'token', 'message_timeout_s', 'session', 'connect_timeout_s'}


def _profile_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with coding_env's name of the profile as the server knows it."""
    found = dict(fields)
    backend = found.pop('executor_backend', None)
    if backend is not None:
        found['profile'] = backend
    return found


class _Env:
    """What both kinds have in common: everything but the waiting."""

    def __init__(
        self, base_url: str = 'http://127.0.0.1:8000', token: Optional[str] = None, timeout_s: Optional[float] = None,
        message_timeout_s: Optional[float] = None, session: Optional[str] = None, connect_timeout_s: float = 10.0, provider: Any = None,
        step_timeout_s: Optional[float] = None, **reset_fields: Any,
    ) -> None:  # fmt: skip
        """`session` names the environment: when the connection breaks, it is made again and the step under way is not lost.

        step_timeout_s     time limit of a step that names none (also as timeout_s)
        executor_backend   the profile of the environment; `profile` is the same
        provider           has a container that ends with this environment: stop_container()
        Other fields go with every reset.
        """
        self.address = Address(base_url, token or os.environ.get('GLOVEBOX_TOKEN'), connect_timeout_s)
        self.timeout_s = step_timeout_s if step_timeout_s is not None else timeout_s
        self.message_timeout_s, self.session = message_timeout_s, session
        self._fields = _profile_of({k: v for k, v in reset_fields.items() if v is not None and k not in _NOT_OURS})
        self._ids = itertools.count(1)
        self._server: Optional[Server] = None
        self._provider = provider

    def _settings(self) -> tuple[Any, ...]:
        a = self.address
        return a.url, a.token, self.timeout_s, self.message_timeout_s, self.session, a.connect_timeout

    def _path(self) -> str:
        return '/ws?' + urlencode({'extras': 1, **({'session': self.session} if self.session else {})})

    def _message(self, type: str, data: Optional[dict[str, Any]]) -> dict[str, Any]:
        message: dict[str, Any] = {'type': type}
        if data is not None:
            message['data'] = data
        if self.session:  # by which its answer is found again; other servers know none
            message['id'] = f'{id(self):x}-{next(self._ids)}'
        return message

    def _reset_data(self, seed: Optional[int], episode_id: Optional[str], fields: Mapping[str, Any]) -> dict[str, Any]:
        data = {'seed': seed, 'episode_id': episode_id, **self._fields, **_profile_of(fields)}
        return {k: v for k, v in data.items() if v is not None}

    def _step_data(self, action: Any, timeout_s: Optional[float]) -> dict[str, Any]:
        if isinstance(action, str):
            action = CodeAction(action)
        data = self._step_payload(action)
        limit = timeout_s or getattr(action, 'timeout_s', None) or self.timeout_s
        return data if limit is None else {**data, 'timeout_s': limit}

    # These three have the names of OpenEnv's client, so that classes derived from it can replace them.

    def _step_payload(self, action: Any) -> dict[str, Any]:
        """The action as the server gets it. Fields that a server may not know are left out when they say nothing."""
        data: dict[str, Any] = {'code': action.code}
        for name in ('metadata', 'capture_screenshot'):
            if getattr(action, name, None):
                data[name] = getattr(action, name)
        if getattr(action, 'render_timeout', None) is not None:
            data['render_timeout'] = action.render_timeout
        return data

    def _data_of(self, message: Optional[dict[str, Any]]) -> dict[str, Any]:
        if message is None:
            raise ConnectionFailed(f'the server at {self.address.url} closed the connection; the environment is gone')
        if message['type'] == 'error':
            said = message['data']
            wrong = ''.join(f'; {".".join(map(str, one.get("loc") or ()))}: {one.get("msg")}' for one in said.get('errors') or ())
            raise RuntimeError(f'Server error: {said.get("message")}{wrong} (code: {said.get("code")})')
        return message['data']

    def _parse_state(self, data: Mapping[str, Any]) -> CodeState:
        return CodeState(data.get('episode_id'), data.get('step_count') or 0, data.get('last_exit_code') or 0)

    def _parse_result(self, data: dict[str, Any]) -> StepResult:
        seen, info = data.get('observation') or {}, data.get('info')
        metadata = {**(seen.get('metadata') or {}), **(data.get('metadata') or {})}  # beside the observation, where OpenEnv's servers put it
        known = {**((info or {}).get('screenshot') or {})}
        if seen.get('screenshot'):
            known.update(data=seen['screenshot'])
            known.setdefault('note', metadata.get('screenshot_note'))
        observation = CodeObservation(
            stdout=seen.get('stdout') or '',
            stderr=seen.get('stderr') or '',
            exit_code=seen.get('exit_code') or 0,
            done=bool(data.get('done')),
            reward=data.get('reward'),
            screenshot=Screenshot(known) if known.get('data') else None,
            metadata=metadata,
            info=Observation(info) if info and 'status' in info else None,
        )
        return StepResult(observation, data.get('reward'), bool(data.get('done')))

    def _let_go(self) -> None:
        """Of the server or the container that was started for it."""
        if self._server:
            self._server.release()
            self._server = None
        if self._provider:
            provider, self._provider = self._provider, None
            provider.stop_container()


class CodingEnv(_Env):
    """One environment on a server; it ends with close() or with its block. `async with` makes it an AsyncCodingEnv."""

    _ws: Optional[WebSocket] = None
    _awaited: 'AsyncCodingEnv'

    # ---- where it runs --------------------------------------------------

    @classmethod
    def from_local(
        cls,
        *,
        additional_imports: Optional[Iterable[str]] = None,
        executor_backend: Optional[str] = None,
        timeout_s: Optional[float] = None,
        step_timeout_s: Optional[float] = None,
        display: Any = None,
        **reset_fields: Any,
    ) -> 'CodingEnv':
        """An environment on this machine's server; one is started when there is none. No container.

        step_timeout_s   time limit of a step (also as timeout_s)
        """
        fields = {
            'additional_imports': list(additional_imports) if additional_imports else None,
            'executor_backend': executor_backend,
            'display': display,
            **reset_fields,
        }
        server = find_or_start(None, (), None)
        env = cls(server.url, timeout_s=timeout_s, step_timeout_s=step_timeout_s, **fields)
        env._server = server
        return env

    @classmethod
    def from_docker_image(
        cls,
        image: str,
        provider: Any = None,
        additional_imports: Optional[Iterable[str]] = None,
        executor_backend: Optional[str] = None,
        timeout_s: float = 30.0,
        env_vars: Optional[Mapping[str, str]] = None,
        *,
        step_timeout_s: Optional[float] = None,
        docker_args: Optional[Iterable[str]] = None,
        port: Optional[int] = None,
        provider_args: Optional[Mapping[str, Any]] = None,
        **fields: Any,
    ) -> 'CodingEnv':
        """Starts a container of the image and an environment in it; close() ends both.

        provider         starts the container: start_container(image, **kwargs) -> base_url, wait_for_ready(base_url, timeout_s),
                         stop_container(); without one the docker of this machine does
        timeout_s        how long the server may take to become ready: 120 and more while it installs packages
        step_timeout_s   time limit of a step
        docker_args      go to `docker run` in place of the rights that the image of deploy/Dockerfile needs; [] for other images
        provider_args    more arguments of start_container()
        Other fields are those of CodingEnv() and of its resets; names that are neither go to start_container() as well.
        """
        settings = dict(env_vars or {})
        if additional_imports:
            settings.setdefault('ADDITIONAL_IMPORTS', ','.join(additional_imports))
        if executor_backend:
            settings.setdefault('EXECUTOR_BACKEND', executor_backend)
        ours = {name: value for name, value in fields.items() if name in _OWN_FIELDS}
        theirs = {name: value for name, value in fields.items() if name not in _OWN_FIELDS}
        given = {'env_vars': settings or None, 'port': port, 'docker_args': docker_args, **theirs, **(provider_args or {})}
        provider = provider or LocalDockerProvider()
        base_url = provider.start_container(image, **{name: value for name, value in given.items() if value is not None})
        try:
            provider.wait_for_ready(base_url, timeout_s=timeout_s)
            return cls(base_url, step_timeout_s=step_timeout_s, provider=provider, **ours)
        except BaseException:
            provider.stop_container()
            raise

    def wait_for_ready(self, timeout_s: float = 30.0) -> None:
        """Returns when the server is ready, its packages installed."""
        wait_for_ready(self.address, timeout_s)

    # ---- the environment ------------------------------------------------

    def connect(self) -> 'CodingEnv':
        """Connects now; otherwise the first message does."""
        if self._ws is None:
            self._ws = WebSocket(self.address, self._path())
        return self

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **fields: Any) -> StepResult:
        """A fresh environment: no variables, no files."""
        return self._parse_result(self._ask('reset', self._reset_data(seed, episode_id, fields)))

    def step(self, action: Any, timeout_s: Optional[float] = None) -> StepResult:
        """Runs an action (a CodeAction, or code as text)."""
        return self._parse_result(self._ask('step', self._step_data(action, timeout_s)))

    @property
    def state(self) -> CodeState:
        return self._parse_state(self._ask('state', None))

    def _ask(self, type: str, data: Optional[dict[str, Any]]) -> dict[str, Any]:
        message = self._message(type, data)
        try:
            return self._data_of(self._exchange(message))
        except ConnectionFailed:
            if not self.session:
                raise
        return self._data_of(self._exchange(message))

    def _exchange(self, message: dict[str, Any]) -> Optional[dict[str, Any]]:
        answer = None
        try:
            ws = self.connect()._ws
            assert ws is not None
            ws.send(message)
            answer = ws.receive(self.message_timeout_s)
            return answer
        finally:
            if answer is None and self._ws:  # broken, or out of step: the next answer would be that of this message
                broken, self._ws = self._ws, None
                broken.drop()

    # ---- the end --------------------------------------------------------

    def close(self) -> None:
        if self._ws:
            ws, self._ws = self._ws, None
            try:
                ws.send({'type': 'close'})
            except ConnectionFailed:
                pass
            ws.close()
        self._let_go()

    disconnect = close

    def sync(self) -> 'CodingEnv':
        """It is synchronous already."""
        return self

    def __enter__(self) -> 'CodingEnv':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    async def __aenter__(self) -> 'AsyncCodingEnv':
        self._awaited = AsyncCodingEnv._of(self)
        return self._awaited

    async def __aexit__(self, *exc: Any) -> None:
        await self._awaited.close()


class AsyncCodingEnv(_Env):
    """The same for asyncio: `await env.reset()`, `await env.step(…)`, `await env.state()`."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self._ws: Optional[AsyncWebSocket] = None
        self._turn: Optional[asyncio.Lock] = None  # made where the loop is: one step after another

    @classmethod
    def _of(cls, env: _Env) -> 'AsyncCodingEnv':
        """Takes over what the other one holds."""
        made = cls(*env._settings(), **env._fields)
        made._server, made._provider, env._server, env._provider = env._server, env._provider, None, None
        return made

    @classmethod
    async def from_local(cls, **options: Any) -> 'AsyncCodingEnv':
        """As CodingEnv.from_local()."""
        return cls._of(await _in_thread(lambda: CodingEnv.from_local(**options)))

    @classmethod
    async def from_docker_image(cls, image: str, *args: Any, **options: Any) -> 'AsyncCodingEnv':
        """As CodingEnv.from_docker_image()."""
        return cls._of(await _in_thread(lambda: CodingEnv.from_docker_image(image, *args, **options)))

    async def connect(self) -> 'AsyncCodingEnv':
        """Connects now; otherwise the first message does."""
        if self._ws is None:
            self._ws = await AsyncWebSocket.connect(self.address, self._path())
        return self

    async def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **fields: Any) -> StepResult:
        """A fresh environment: no variables, no files."""
        return self._parse_result(await self._ask('reset', self._reset_data(seed, episode_id, fields)))

    async def step(self, action: Any, timeout_s: Optional[float] = None) -> StepResult:
        """Runs an action (a CodeAction, or code as text)."""
        return self._parse_result(await self._ask('step', self._step_data(action, timeout_s)))

    async def state(self) -> CodeState:
        return self._parse_state(await self._ask('state', None))

    async def _ask(self, type: str, data: Optional[dict[str, Any]]) -> dict[str, Any]:
        message = self._message(type, data)
        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            try:
                return self._data_of(await self._exchange(message))
            except ConnectionFailed:
                if not self.session:
                    raise
            return self._data_of(await self._exchange(message))

    async def _exchange(self, message: dict[str, Any]) -> Optional[dict[str, Any]]:
        answer = None
        try:
            ws = (await self.connect())._ws
            assert ws is not None
            await ws.send(message)
            answer = await asyncio.wait_for(ws.receive(), self.message_timeout_s)
            return answer
        except asyncio.TimeoutError as e:
            raise TimeoutError(f'no message within {self.message_timeout_s} s') from e
        finally:
            if answer is None and self._ws:  # broken, cancelled, or out of step
                broken, self._ws = self._ws, None
                broken.drop()

    async def close(self) -> None:
        if self._ws:
            ws, self._ws = self._ws, None
            try:
                await ws.send({'type': 'close'})
            except ConnectionFailed:
                pass
            await ws.close()
        await _in_thread(self._let_go)

    disconnect = close

    def sync(self) -> CodingEnv:
        """The same environment's address for programs that do not await."""
        return CodingEnv(*self._settings(), **self._fields)

    async def __aenter__(self) -> 'AsyncCodingEnv':
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.close()


async def _in_thread(function: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, function)
