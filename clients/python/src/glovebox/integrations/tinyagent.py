"""tinyAgent's executors on Glovebox: PythonExecutor, LocalExecutor, ExecutionResult and ExecutionLimits by their names and shapes.

The functions that an executor is given (`inject`, or `_globals` of a PythonExecutor, where tinyAgent's own agents put their tools) stay
in this process and are called back. Limits hold here: time and memory are enforced from outside the process, and a final answer is that of its own run alone.
"""

from __future__ import annotations

import ast
import builtins
import sys
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional

from ..client import Glovebox, Session
from ..models import Observation
from ..tools import Tool


@dataclass
class ExecutionLimits:
    timeout_seconds: float = 30.0
    max_memory_mb: int = 256
    max_output_bytes: int = 10_000
    max_steps: int = 10

    def truncate_output(self, text: str) -> tuple[str, bool]:
        """The text within max_output_bytes, and whether it was longer."""
        data = text.encode()
        if len(data) <= self.max_output_bytes:
            return text, False
        return data[: self.max_output_bytes].decode('utf-8', 'ignore') + '\n[OUTPUT TRUNCATED]', True


@dataclass
class ExecutionResult:
    output: str
    is_final: bool = False
    duration_ms: float = 0.0
    memory_used_bytes: int = 0
    error: Optional[str] = None
    timeout: bool = False
    final_value: Any = None
    namespace: dict[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        return self.error is None and not self.timeout


@dataclass
class FinalResult:
    """What final_answer() was given."""

    value: Any


class _Executor:
    """A session with a profile of tinyAgent's, made when it is first needed. Only the imports given are allowed."""

    _profile: dict[str, Any] = {'base': 'tinyagent'}
    _base_imports: frozenset[str] = frozenset()  # allowed without being named

    def __init__(self, imports: Optional[Iterable[str]], box: Optional[Glovebox], url: Optional[str], fields: dict[str, Any]) -> None:
        self.imports = set(imports or ())
        self._box, self._url, self._fields = box, url, fields
        self._own_box: Optional[Glovebox] = None
        self._session: Optional[Session] = None
        self._tools: dict[str, Any] = {}

    @property
    def session(self) -> Session:
        if self._session is None:
            box = self._box
            if box is None:
                box = self._own_box = self._own_box or (Glovebox(self._url) if self._url else Glovebox.local())
            fields: dict[str, Any] = {'profile': {**self._profile, 'imports': sorted({*self._base_imports, *self.imports})}, **self._fields}
            self._session = box.session(**fields)
        return self._session

    def _give(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """Functions become tools, which the code calls back; what else there is are variables."""
        tools = {name: value for name, value in names.items() if callable(value)}
        if tools != self._tools:
            self.session.set_tools([Tool(function, name=name) for name, function in tools.items()])
            self._tools = tools
        return {name: value for name, value in names.items() if name not in tools}

    def close(self) -> None:
        """Ends the session, and the server when it was started for this."""
        for thing in (self._session, self._own_box):
            if thing is not None:
                thing.close()
        self._session = self._own_box = None
        self._tools = {}

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


class PythonExecutor(_Executor):
    """`run(code) -> (output, is_final)`: fresh names for each run, exceptions are raised.

    Modules beyond `collections` are imported when they are in extra_imports. SAFE_BUILTINS are the builtins that the code has.
    """

    SAFE_BUILTINS = frozenset(
        (
            'abs', 'all', 'any', 'bool', 'dict', 'enumerate', 'float', 'int', 'len', 'list', 'max', 'min', 'print', 'range', 'round',
            'sorted', 'str', 'sum', 'tuple', 'type', 'zip',
        )
    )  # fmt: skip
    _base_imports = frozenset(('collections',))

    def __init__(
        self, extra_imports: Optional[Iterable[str]] = None, *, box: Optional[Glovebox] = None, url: Optional[str] = None, **fields: Any
    ) -> None:
        super().__init__(extra_imports, box, url, fields)
        self._globals: dict[str, Any] = {}  # where tinyAgent's own agents put their tools
        self._allowed = self.imports
        self.final_result: Optional[FinalResult] = None  # of the last run

    def run(self, code: str) -> tuple[str, bool]:
        """Runs the code; what it printed and False, or the text of its final answer and True."""
        self.final_result = None
        observation = self.session.run(code, variables=self._give(self._globals) or None, typed=True)
        if not observation.ok:
            raise _exception_of(observation)
        if observation.is_final_answer:
            self.final_result = FinalResult(observation.final_answer)
            return str(observation.final_answer), True
        return observation.stdout.strip(), False


class LocalExecutor(_Executor):
    """`run(code) -> ExecutionResult`: names stay from run to run; errors are in the result."""

    _profile = {'base': 'tinyagent-0.73.5'}

    def __init__(
        self,
        allowed_imports: Optional[Iterable[str]] = None,
        limits: Optional[ExecutionLimits] = None,
        *,
        box: Optional[Glovebox] = None,
        url: Optional[str] = None,
        **fields: Any,
    ) -> None:
        self.limits = limits or ExecutionLimits()
        memory = {'memory_bytes': self.limits.max_memory_mb << 20}
        super().__init__(allowed_imports, box, url, {**fields, 'limits': {**memory, **fields.get('limits', {})}})
        self._functions: dict[str, Any] = {}
        self._injected: dict[str, Any] = {}

    def run(self, code: str) -> ExecutionResult:
        injected, self._injected = self._injected, {}
        variables = self._give({**self._functions, **injected})
        observation = self.session.run(code, timeout=self.limits.timeout_seconds, variables=variables or None, typed=True)
        final = observation.final_answer if observation.is_final_answer else None
        timed_out = observation.status == 'timeout'
        return ExecutionResult(
            output=self.limits.truncate_output(observation.stdout.strip())[0],
            is_final=observation.is_final_answer,
            duration_ms=float(observation.usage.get('wall_ms') or 0),
            memory_used_bytes=int(observation.usage.get('peak_memory_bytes') or 0),
            error=self._error(observation),
            timeout=timed_out,
            final_value=final,
        )

    def _error(self, observation: Observation) -> Optional[str]:
        if observation.ok:
            return None
        if observation.status == 'timeout':
            return f'Execution timed out after {self.limits.timeout_seconds}s'
        return _words(observation)

    def inject(self, name: str, value: Any) -> None:
        """A variable for the runs that follow. A function is called back from the session."""
        (self._functions if callable(value) else self._injected)[name] = value

    def reset(self) -> None:
        self._injected, self._functions = {}, {}
        if self._session:
            self._give({})
            self._session.reset()

    def kill(self) -> None:
        """Stops what runs."""
        if self._session:
            self._session.interrupt()


def _words(observation: Observation) -> str:
    error = observation.error
    if error is None:
        return f'the code ended as {observation.status}'
    if _is_syntax_error(observation):
        return f'Syntax error in code: {error.message}'
    return error.message if observation.status == 'refused' else f'{error.type}: {error.message}'


def _is_syntax_error(observation: Observation) -> bool:
    """The code was no Python, so nothing of it ran."""
    error = observation.error
    kind = getattr(builtins, error.type, None) if error else None
    return isinstance(kind, type) and issubclass(kind, SyntaxError) and not (error and error.traceback.startswith('Traceback'))


def _exception_of(observation: Observation) -> Exception:
    """The exception of the code: of its own class when that is one of Python's."""
    error = observation.error
    if error and error.code == 'policy_function':  # a builtin that is not there
        return NameError(error.message)
    kind = _class_of(error.type) if error else None
    if error and kind and observation.status in ('error', 'out_of_memory'):
        return _with_text(kind, error.message)
    if observation.status == 'timeout':
        return TimeoutError(error.message if error else 'the code ran too long')
    return RuntimeError(_words(observation))


def _class_of(name: str) -> Optional[type[Exception]]:
    """The exception class of this name among Python's own: a builtin, or one of a standard module that this process has imported."""
    module, _, word = name.rpartition('.')
    if module and module.partition('.')[0] not in getattr(sys, 'stdlib_module_names', ()):
        return None
    found = getattr(sys.modules.get(module) if module else builtins, word, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _with_text(kind: type[Exception], text: str) -> Exception:
    """An exception of this class whose text is this one."""
    for argument in (lambda: text, lambda: ast.literal_eval(text)):  # KeyError's text is its argument as Python writes it
        try:
            made = kind(argument())
        except Exception:
            continue
        if str(made) == text:
            return made
    # UnicodeDecodeError and others are made of more than their text
    derived = type(kind.__name__, (kind,), {'__init__': lambda self: None, '__str__': lambda self: text, '__module__': kind.__module__})
    made = derived.__new__(derived)
    made.args = (text,)
    return made
