"""CodingEnv: reset, step, state, as users of OpenEnv's coding_env know them, without installing OpenEnv.

It speaks OpenEnv's own protocol, so it works against any server of coding_env; what Glovebox has beyond it (time limits, screenshots)
works against Glovebox.
"""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional
from urllib.parse import urlencode

from ._local import Server, find_or_start
from ._net import Address, Http, WebSocket
from .errors import ConnectionFailed, GloveboxError
from .models import Observation, Screenshot


@dataclass
class CodeAction:
    """Code to run; with capture_screenshot also a picture of the environment's display."""

    code: str
    capture_screenshot: bool = False
    timeout_s: Optional[float] = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class CodeObservation:
    stdout: str = ''
    stderr: str = ''
    exit_code: int = 0
    done: bool = False
    reward: Optional[float] = None
    screenshot: Optional[Screenshot] = None
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


class CodingEnv:
    """One environment on a server; it ends with close() or with its block."""

    def __init__(
        self, base_url: str = 'http://127.0.0.1:8000', token: Optional[str] = None, timeout_s: Optional[float] = None,
        message_timeout_s: Optional[float] = None, **reset_fields: Any,
    ) -> None:  # fmt: skip
        self.address = Address(base_url, token or os.environ.get('GLOVEBOX_TOKEN'))
        self.timeout_s, self.message_timeout_s = timeout_s, message_timeout_s
        self._fields = {k: v for k, v in reset_fields.items() if v is not None}
        self._ws: Optional[WebSocket] = None
        self._server: Optional[Server] = None
        self._container: Optional[str] = None

    # ---- where it runs --------------------------------------------------

    @classmethod
    def from_local(
        cls,
        *,
        additional_imports: Optional[Iterable[str]] = None,
        executor_backend: Optional[str] = None,
        timeout_s: Optional[float] = None,
        display: Any = None,
        **reset_fields: Any,
    ) -> 'CodingEnv':
        """An environment on this machine's server; one is started when there is none. No container."""
        fields = {
            'additional_imports': list(additional_imports) if additional_imports else None,
            'profile': executor_backend,
            'display': display,
            **reset_fields,
        }
        server = find_or_start(None, (), None)
        env = cls(server.url, timeout_s=timeout_s, **fields)
        env._server = server
        return env

    @classmethod
    def from_docker_image(
        cls,
        image: str,
        *,
        additional_imports: Optional[Iterable[str]] = None,
        executor_backend: Optional[str] = None,
        timeout_s: Optional[float] = None,
        env_vars: Optional[Mapping[str, str]] = None,
        docker_args: Iterable[str] = (),
        port: Optional[int] = None,
        wait_s: float = 60.0,
        **reset_fields: Any,
    ) -> 'CodingEnv':
        """Starts a container of the image and an environment in it; close() ends both. `docker_args` go to `docker run`."""
        settings = dict(env_vars or {})
        if additional_imports:
            settings.setdefault('ADDITIONAL_IMPORTS', ','.join(additional_imports))
        if executor_backend:
            settings.setdefault('EXECUTOR_BACKEND', executor_backend)
        port = port or _free_port()
        command = ['docker', 'run', '-d', '--rm', '-p', f'127.0.0.1:{port}:8000']
        for name, value in settings.items():
            command += ['-e', f'{name}={value}']
        try:
            done = subprocess.run([*command, *docker_args, image], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        except FileNotFoundError as e:
            raise GloveboxError('docker is not installed; CodingEnv.from_local() needs none') from e
        if done.returncode:
            raise GloveboxError(f'docker run failed: {done.stderr.strip()[-1000:]}')
        env = cls(f'http://127.0.0.1:{port}', timeout_s=timeout_s, **reset_fields)
        env._container = done.stdout.strip()
        try:
            env.wait_for_ready(wait_s)
        except BaseException:
            env.close()
            raise
        return env

    def wait_for_ready(self, timeout_s: float = 30.0) -> None:
        http, end = Http(self.address), time.monotonic() + timeout_s
        try:
            while True:
                try:
                    if http.request('GET', '/health').status == 200:
                        return
                except ConnectionFailed:
                    if time.monotonic() > end:
                        raise
                if time.monotonic() > end:
                    raise GloveboxError(f'the server at {self.address.url} is not healthy after {timeout_s} s')
                time.sleep(0.05)
        finally:
            http.close()

    # ---- the environment ------------------------------------------------

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **fields: Any) -> StepResult:
        """A fresh environment: no variables, no files."""
        data = {'seed': seed, 'episode_id': episode_id, **self._fields, **fields}
        return self._result(self._ask('reset', {k: v for k, v in data.items() if v is not None}))

    def step(self, action: Any, timeout_s: Optional[float] = None) -> StepResult:
        """Runs an action (a CodeAction, or code as text)."""
        if isinstance(action, str):
            action = CodeAction(action)
        data: dict[str, Any] = {'code': action.code}
        if action.metadata:
            data['metadata'] = action.metadata
        if getattr(action, 'capture_screenshot', False):
            data['capture_screenshot'] = True
        limit = timeout_s or getattr(action, 'timeout_s', None) or self.timeout_s
        if limit is not None:
            data['timeout_s'] = limit
        return self._result(self._ask('step', data))

    @property
    def state(self) -> CodeState:
        data = self._ask('state', None)
        return CodeState(data.get('episode_id'), data.get('step_count') or 0, data.get('last_exit_code') or 0)

    def _ask(self, type: str, data: Optional[dict[str, Any]]) -> dict[str, Any]:
        if self._ws is None:
            self._ws = WebSocket(self.address, f'/ws?{urlencode({"extras": 1})}')
        self._ws.send({'type': type} if data is None else {'type': type, 'data': data})
        message = self._ws.receive(self.message_timeout_s)
        if message is None:
            self._ws = None
            raise ConnectionFailed(f'the server at {self.address.url} closed the connection; the environment is gone')
        if message['type'] == 'error':
            said = message['data']
            raise RuntimeError(f'Server error: {said.get("message")} (code: {said.get("code")})')
        return message['data']

    @staticmethod
    def _result(data: dict[str, Any]) -> StepResult:
        seen, info = data.get('observation') or {}, data.get('info')
        picture = (info or {}).get('screenshot') or seen.get('screenshot')
        if isinstance(picture, str):
            picture = {'data': picture}
        observation = CodeObservation(
            stdout=seen.get('stdout') or '',
            stderr=seen.get('stderr') or '',
            exit_code=seen.get('exit_code') or 0,
            done=bool(data.get('done')),
            reward=data.get('reward'),
            screenshot=Screenshot(picture) if picture else None,
            metadata=seen.get('metadata') or {},
            info=Observation(info) if info and 'status' in info else None,
        )
        return StepResult(observation, data.get('reward'), bool(data.get('done')))

    # ---- the end --------------------------------------------------------

    def close(self) -> None:
        if self._ws:
            ws, self._ws = self._ws, None
            try:
                ws.send({'type': 'close'})
            except ConnectionFailed:
                pass
            ws.close()
        if self._server:
            self._server.release()
            self._server = None
        if self._container:
            subprocess.run(['docker', 'rm', '-f', self._container], capture_output=True, stdin=subprocess.DEVNULL)
            self._container = None

    def sync(self) -> 'CodingEnv':
        """It is synchronous already."""
        return self

    def __enter__(self) -> 'CodingEnv':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def _free_port() -> int:
    import socket

    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]
