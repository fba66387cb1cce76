"""The executor family: `execute(code) -> PythonToolOutput`, one class for each kind of isolation that programs ask for by name.

All of them are sessions of Glovebox: CPython in a jail on this machine (or on a server: url=). They differ in what the code may say, in
their limits and in the form of their output. `executor(code)`, `send_tools()` and `send_variables()` work as in smolagents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, MutableMapping, Optional, Union

from ..integrations.smolagents import GloveboxExecutor
from ..models import Observation
from .._answers import has_final_answer, printed_final_answer
from ._imports import assigns
from .._limits import merged, session_limits

TIMED_OUT = 'Execution timed out'

# Allowed in a LocalPythonExecutor without being named.
BASE_BUILTIN_MODULES = frozenset(
    (
        'math', 'random', 'datetime', 'json', 're', 'collections', 'itertools', 'functools', 'operator', 'statistics', 'fractions',
        'decimal', 'hashlib', 'uuid', 'base64', 'secrets', 'string',
    )
)  # fmt: skip


@dataclass
class PythonToolOutput:
    """The outcome of an execution: `error` is None when it ended well, `logs` is everything that was printed."""

    output: Any = ''
    error: Optional[str] = None
    logs: str = ''
    is_final_answer: bool = False


class PythonExecutor(ABC):
    """What all executors of the family have."""

    @abstractmethod
    def execute(self, code: str, **kwargs: Any) -> PythonToolOutput:
        """Runs the code and says how it went; never raises what the code raises."""

    @abstractmethod
    def restart_session(self) -> None:
        """Forgets everything that was executed."""


class _SessionExecutor(GloveboxExecutor, PythonExecutor):
    """`execute` and `restart_session` over a session."""

    def __init__(self, additional_authorized_imports: Optional[Iterable[str]], printed_final_answers: bool, **fields: Any) -> None:
        self.printed_final_answers = printed_final_answers
        super().__init__(additional_authorized_imports, **fields)

    def execute(self, code: str, **kwargs: Any) -> PythonToolOutput:
        """Runs the code. `timeout` (seconds) and `variables` may be given for this execution.

        A final answer is what final_answer(x) was given or, with printed_final_answers, what stands behind `final_answer:` (or behind
        `Answer:` at the beginning) in what was printed.
        """
        self._variables.update(kwargs.get('variables') or {})
        seen = self._observe(code, kwargs.get('timeout'))
        logs = self.state['_print_outputs']
        if not seen.ok:
            return PythonToolOutput('', TIMED_OUT if seen.status == 'timeout' else self._words(seen), logs)
        if seen.is_final_answer:
            return PythonToolOutput(seen.final_answer, None, logs, True)
        output = self._output_of(code, seen)
        if self.printed_final_answers:
            said = printed_final_answer(seen.stdout)
            if said is not None:
                return PythonToolOutput(said, None, logs, True)
            if isinstance(output, str) and self._check_final_answer_pattern(output):
                return PythonToolOutput(output, None, logs, True)
        return PythonToolOutput(output, None, logs)

    @property
    def session_globals(self) -> MutableMapping[str, Any]:
        """The variables of the session."""
        return self.state

    def _check_final_answer_pattern(self, output: str) -> bool:
        return has_final_answer(output)

    def _output_of(self, code: str, seen: Observation) -> Any:
        """What was printed; the last value of code that printed nothing."""
        return seen.stdout or ('' if seen.value is None else seen.value)


class LocalPythonExecutor(_SessionExecutor):
    """Code under smolagents' rules: authorised imports, refused functions, its error texts.

    Behind it stands a session with the profile "smolagents", not this process. Beyond the base modules only the
    `additional_authorized_imports` can be imported; one that is not installed is installed, and where that fails the constructor
    raises InterpreterError. math, random and json are imported already. `output` is the last value, else the variable `_result` or
    `result` when the code assigned it.

    max_print_outputs_length   characters of `logs`
    timeout                    seconds of one execution (also as timeout_seconds)
    memory_limit               bytes, or "256m"
    printed_final_answers      recognise answers that are printed (`final_answer: …`, `Answer: …`)
    Other fields (url, token, box, session, packages, display, limits, …) as GloveboxExecutor has them.
    """

    BASE_BUILTIN_MODULES = BASE_BUILTIN_MODULES
    _base_modules = BASE_BUILTIN_MODULES
    _prelude = 'import json, math, random'

    def __init__(
        self,
        additional_authorized_imports: Optional[Iterable[str]] = None,
        max_print_outputs_length: Optional[int] = None,
        additional_functions: Optional[Mapping[str, Any]] = None,
        *,
        printed_final_answers: bool = True,
        **fields: Any,
    ) -> None:
        fields.update(max_print_outputs_length=max_print_outputs_length, additional_functions=additional_functions)
        super().__init__(additional_authorized_imports, printed_final_answers, **fields)

    def _imports_to_ask(self) -> list[str]:
        return self.authorized_imports

    def _output_of(self, code: str, seen: Observation) -> Any:
        if seen.value is not None:
            return seen.value
        for name in assigns(code, ('_result', 'result')):
            return self.session.run(name, typed=True).value
        return ''


class _ContainerExecutor(_SessionExecutor):
    """Code without a list of imports, under the limits of a container: what the jail holds is all that holds it."""

    _base_modules: Iterable[str] = ()

    def __init__(
        self, additional_authorized_imports: Optional[Iterable[str]], timeout: Optional[float], limits: Mapping[str, Any],
        printed_final_answers: bool, fields: dict[str, Any],
    ) -> None:  # fmt: skip
        fields.setdefault('profile', 'python')
        fields['limits'] = merged(fields.get('limits'), limits)
        super().__init__(additional_authorized_imports, printed_final_answers, timeout=timeout, **fields)


# What these constructors take elsewhere and has no meaning where no image is built and no cloud is called.
_NOT_OURS = frozenset(
    ('allow_pickle', 'host', 'port', 'image_name', 'image', 'container_image', 'build_new_image', 'dockerfile', 'remove', 'template', 'api_key',
     'deno_path', 'deno_permissions', 'stdout', 'stderr')
)  # fmt: skip


def _ours(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in _NOT_OURS}


class DockerExecutor(_ContainerExecutor):
    """Code under the limits of a container: 128 MiB of memory, half a processor, 50 processes, read-only system, no network.

    No Docker stands behind it but a session with the profile "python": the same limits, set by the jail's control groups. The system
    is always read-only, and there is no network unless `network_mode` (or `network`) says otherwise. Variables stay from one execution
    to the next, until restart_session(). `output` is what was printed, else the last value.

    memory_limit, mem_limit   bytes, or "128m"
    cpu_quota, cpu_period     microseconds of processor time in each period
    pids_limit                processes and threads
    timeout                   seconds of one execution
    network_mode              "none", or "bridge": every address the server allows
    container_run_kwargs      the same names in a mapping, as smolagents' DockerExecutor takes them
    """

    def __init__(
        self,
        additional_authorized_imports: Optional[Iterable[str]] = None,
        logger: Any = None,
        *,
        memory_limit: Union[int, str, None] = None,
        mem_limit: Union[int, str, None] = None,
        timeout: Optional[float] = 30,
        cpu_quota: int = 50_000,
        cpu_period: int = 100_000,
        pids_limit: int = 50,
        network_mode: str = 'none',
        readonly: bool = True,
        read_only: bool = True,
        container_run_kwargs: Optional[Mapping[str, Any]] = None,
        printed_final_answers: bool = True,
        **fields: Any,
    ) -> None:
        asked: dict[str, Any] = {
            'mem_limit': mem_limit or memory_limit or '128m', 'cpu_quota': cpu_quota, 'cpu_period': cpu_period, 'pids_limit': pids_limit,
            'network_mode': network_mode, 'read_only': readonly and read_only, **(container_run_kwargs or {}),
        }  # fmt: skip
        if not asked['read_only']:
            raise ValueError('read_only: the system of a session is read-only; code writes to /workspace and /tmp')
        if asked['network_mode'] not in ('none', 'bridge'):
            raise ValueError(f'network_mode: {asked["network_mode"]!r} is not one of "none", "bridge"')
        if asked['network_mode'] == 'bridge':
            fields.setdefault('network', {'allow': ['*:*']})
        limits = session_limits(asked['mem_limit'], asked['cpu_quota'], asked['cpu_period'], pids=asked['pids_limit'])
        super().__init__(additional_authorized_imports, timeout, limits, printed_final_answers, {**_ours(fields), 'logger': logger})


class E2BExecutor(_ContainerExecutor):
    """Code in a sandbox of its own: no list of imports, no network, 30 seconds for each execution.

    No cloud stands behind it but a session with the profile "python" on this machine; an `api_key` or `template` is not needed. `output` is
    what was printed, else the last value.
    """

    def __init__(
        self, additional_authorized_imports: Optional[Iterable[str]] = None, logger: Any = None, *, timeout: Optional[float] = 30,
        memory_limit: Union[int, str, None] = None, printed_final_answers: bool = True, **fields: Any,
    ) -> None:  # fmt: skip
        limits = session_limits(memory_limit)
        super().__init__(additional_authorized_imports, timeout, limits, printed_final_answers, {**_ours(fields), 'logger': logger})


class WasmExecutor(_ContainerExecutor):
    """Code that starts no programs and reaches no network, as in WebAssembly.

    No WebAssembly stands behind it but a session with the profile "python" whose jail lets it start no program (`exec: "none"`) and gives it no
    network; the packages are CPython's own, not Pyodide's. `output` is what was printed, else the last value.
    """

    def __init__(
        self, additional_authorized_imports: Optional[Iterable[str]] = None, logger: Any = None, *, timeout: Optional[float] = 60,
        memory_limit: Union[int, str, None] = None, printed_final_answers: bool = True, **fields: Any,
    ) -> None:  # fmt: skip
        fields.setdefault('exec', 'none')
        limits = session_limits(memory_limit)
        super().__init__(additional_authorized_imports, timeout, limits, printed_final_answers, {**_ours(fields), 'logger': logger})
