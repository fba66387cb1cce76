"""The server side of coding_env for programs that import it: its executors and its environment, over sessions.

State is kept from run() to run(). PyExecutor has the rules of smolagents, RestrictedPythonExecutor those of RestrictedPython with
annotations, augmented assignment and `__name__` (the profile "restrictedpython").
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Iterable, Optional

from ..coding_env import CodeAction, CodeObservation, CodeState, CodingEnv, StepResult


@dataclass
class CodeExecResult:
    """What running code gave."""

    stdout: str
    stderr: str
    exit_code: int


class ExecutorBackend(ABC):
    """What an environment needs of the thing that runs its code."""

    @abstractmethod
    def run(self, code: str, capture_screenshot: bool = False, render_timeout: float = 0.5) -> CodeExecResult:
        """Runs code; with capture_screenshot also takes a picture of the display, within render_timeout seconds after the code."""

    @abstractmethod
    def get_captured_screenshot(self) -> Optional[str]:
        """The picture of the last run, a PNG in base64; None when none was taken."""

    @abstractmethod
    def clear_screenshot(self) -> None:
        """Forgets the picture."""


class _EnvExecutor(ExecutorBackend):
    """Runs code as steps of an environment of its own, on this machine's server or on that of `url`."""

    backend = 'smolagents'

    def __init__(self, additional_imports: Optional[Iterable[str]] = None, *, url: Optional[str] = None, **fields: Any) -> None:
        asked = {'additional_imports': list(additional_imports or ()) or None, 'executor_backend': self.backend, **fields}
        self._env = CodingEnv(url, **asked) if url else CodingEnv.from_local(**asked)
        self._captured_screenshot: Optional[str] = None
        self._last: Optional[StepResult] = None
        try:
            self.reset()
        except BaseException:
            self.close()
            raise

    def reset(self) -> StepResult:
        """Everything from the beginning: no variables, no files."""
        self.clear_screenshot()
        first = self._env.reset()
        missing = [entry['name'] for entry in (first.observation.metadata.get('packages') or {}).get('failed') or ()]
        if missing:
            from ..integrations.smolagents import InterpreterError

            raise InterpreterError(
                f'Non-installed authorized modules: {", ".join(missing)}. '
                'Please install these modules or remove them from the authorized imports list.'
            )
        return first

    def step(self, action: CodeAction) -> StepResult:
        """run() for an action, with everything that the environment says of it."""
        self.clear_screenshot()
        result = self._last = self._env.step(action)
        picture = result.observation.screenshot
        self._captured_screenshot = str(picture) if isinstance(picture, str) else base64.b64encode(picture.data).decode() if picture else None
        return result

    def run(self, code: str, capture_screenshot: bool = False, render_timeout: float = 0.5) -> CodeExecResult:
        seen = self.step(CodeAction(code, capture_screenshot=capture_screenshot, render_timeout=render_timeout)).observation
        return CodeExecResult(seen.stdout, seen.stderr, seen.exit_code)

    def get_captured_screenshot(self) -> Optional[str]:
        return self._captured_screenshot

    def clear_screenshot(self) -> None:
        self._captured_screenshot = None

    def close(self) -> None:
        self._env.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


class PyExecutor(_EnvExecutor):
    """Runs code under the rules of smolagents (profile "smolagents")."""


class RestrictedPythonExecutor(_EnvExecutor):
    """Runs code under the rules of RestrictedPython (profile "restrictedpython")."""

    backend = 'restrictedpython'


_EXECUTORS = {'smolagents': PyExecutor, 'restrictedpython': RestrictedPythonExecutor}


def _executor_of(backend: str) -> type[_EnvExecutor]:
    """The class of a backend of coding_env; else one of the profile of that name, which the server knows or refuses."""
    return _EXECUTORS.get(backend) or type('ProfileExecutor', (_EnvExecutor,), {'backend': backend})


class PythonCodeActEnv:
    """coding_env's environment: `reset()`, `step(CodeAction)`, `state`. Observations carry reward and done.

    executor_backend   "smolagents", "restrictedpython", or any other profile of the server
    """

    def __init__(self, additional_imports: Optional[Iterable[str]] = None, executor_backend: str = 'smolagents', **fields: Any) -> None:
        self.executor_backend = executor_backend
        try:
            self._executor = _executor_of(executor_backend)(additional_imports, **fields)
        except RuntimeError as e:  # the server's words have the list
            if 'there is no profile' not in str(e):
                raise
            raise ValueError(f'unknown executor_backend {executor_backend!r}: {e}') from e

    def reset(self) -> CodeObservation:
        """A new episode."""
        return self._executor.reset().observation

    def step(self, action: CodeAction) -> CodeObservation:
        """Runs the action's code."""
        if not isinstance(action, CodeAction):
            raise ValueError(f'Expected CodeAction, got {type(action)}')
        return self._executor.step(action).observation

    def _apply_transform(self, observation: CodeObservation) -> CodeObservation:
        """Gives an observation the reward of the last step. A derived class that makes the observation in its own step() calls this, as in coding_env."""
        last = self._executor._last
        if last is not None and observation.reward is None:
            observation.reward, observation.done = last.reward, last.done
        return observation

    @property
    def state(self) -> CodeState:
        return self._executor._env.state

    def close(self) -> None:
        self._executor.close()

    def __enter__(self) -> 'PythonCodeActEnv':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
