"""smolagents' CodeAgent on Glovebox: `CodeAgent(tools, model, executor=GloveboxExecutor())`.

The code runs in a session with the profile "smolagents": its authorised imports, refusals and error texts, but CPython's semantics,
real time limits and a jail. Tools and managed agents stay in this process and are called from there; final answers and
values travel in smolagents' safe encoding, never as pickles.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, MutableMapping, Optional, Union

from ..client import Glovebox, Session
from .._limits import merged, session_limits
from ..models import Observation
from ..tools import Tool

try:
    from smolagents.local_python_executor import (  # type: ignore
        BASE_PYTHON_TOOLS,
        CodeOutput,
        ExecutionTimeoutError,
        InterpreterError,
        PythonExecutor,
    )
except ImportError:
    from dataclasses import dataclass

    class PythonExecutor:  # type: ignore[no-redef]
        """Stands in for smolagents' base class where that is not installed."""

    class InterpreterError(ValueError):  # type: ignore[no-redef]
        """The code raised an exception, or was refused."""

    class ExecutionTimeoutError(Exception):  # type: ignore[no-redef]
        """The code took longer than it may."""

    BASE_PYTHON_TOOLS: dict[str, Any] = {}  # type: ignore[no-redef]

    @dataclass
    class CodeOutput:  # type: ignore[no-redef]
        output: Any
        logs: str
        is_final_answer: bool


class StepTimeout(InterpreterError, ExecutionTimeoutError):  # type: ignore[misc]
    """Both of the classes that callers of smolagents catch."""


DEFAULT_MAX_LEN_OUTPUT = 50_000
DEFAULT_TIMEOUT = 30

# What smolagents' own list has; the profile "smolagents" allows these without being asked.
BASE_BUILTIN_MODULES = [
    'collections', 'datetime', 'itertools', 'math', 'queue', 'random', 're', 'stat', 'statistics', 'time', 'unicodedata',
]  # fmt: skip

_CHECKED_FINAL_ANSWER = """
import builtins
_finish = builtins.final_answer

def final_answer(*args, **kwargs):
    return _finish(checked_final_answer(*args, **kwargs))
"""


# Told by a session without a profile; the names are words with dots.
_MISSING = """
import importlib.util

def missing(name):
    try:
        return importlib.util.find_spec(name) is None
    except (ImportError, ValueError):
        return True

[name for name in names if missing(name)]
"""


class State(MutableMapping[str, Any]):
    """The variables of the session, as LocalPythonExecutor.state has them. A value is fetched when it is asked for; a value that is set is there
    when the next code runs. Names of our own (`_print_outputs`) stay here."""

    def __init__(self, executor: 'GloveboxExecutor') -> None:
        self._executor = executor
        self._own: dict[str, Any] = {'__name__': '__main__', '_print_outputs': ''}

    def __getitem__(self, name: str) -> Any:
        for known in (self._own, self._executor._variables):
            if name in known:
                return known[name]
        if not isinstance(name, str) or name not in self._names():
            raise KeyError(name)
        return self._executor.session.run(name, typed=True, check=True).value

    def __setitem__(self, name: str, value: Any) -> None:
        (self._own if name in self._own else self._executor._variables)[name] = value

    def __delitem__(self, name: str) -> None:
        if self._executor._variables.pop(name, None) is None:
            self._executor.session.run(f'del {name}', check=True)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._own, *self._executor._variables, *self._names()]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._executor._variables or name in self._names()

    def _names(self) -> list[str]:
        session = self._executor.session
        return [v['name'] for v in session.box.request('GET', f'/v1/sessions/{session.id}/variables').json()['variables']]


class GloveboxExecutor(PythonExecutor):
    """An executor for CodeAgent(executor=…).

    additional_authorized_imports   as in smolagents: "numpy", "numpy.*", "*"
    box, url, token                 the server; the one on this machine when none is named
    session                         a session of your own instead
    timeout_seconds, timeout        of one step; None for the server's
    memory_limit                    bytes, or a size such as "256m"
    coerce                          arguments of tools need not be of the types that the tools name, as in smolagents; those that can be converted are
    Other fields (packages, display, limits, …) are those of Glovebox.session().
    """

    def __init__(
        self,
        additional_authorized_imports: Optional[Iterable[str]] = None,
        logger: Any = None,
        *,
        url: Optional[str] = None,
        token: Optional[str] = None,
        box: Optional[Glovebox] = None,
        session: Optional[Session] = None,
        profile: Optional[str] = 'smolagents',
        max_print_outputs_length: Optional[int] = None,
        additional_functions: Optional[Mapping[str, Any]] = None,
        timeout_seconds: Optional[float] = DEFAULT_TIMEOUT,
        timeout: Optional[float] = None,
        memory_limit: Union[int, str, None] = None,
        coerce: bool = True,
        **fields: Any,
    ) -> None:
        self.logger = logger
        self.additional_authorized_imports = list(additional_authorized_imports or ())
        self.authorized_imports = sorted({*self._base_modules, *self.additional_authorized_imports})
        self.max_print_outputs_length = max_print_outputs_length or DEFAULT_MAX_LEN_OUTPUT
        self.timeout_seconds = timeout if timeout is not None else timeout_seconds
        self.coerce = coerce
        self.static_tools: dict[str, Any] = {}
        self._functions = dict(additional_functions or {})
        self._variables: dict[str, Any] = {}
        self._own_box = self._own_session = None
        self._box, self._url, self._token, self._profile = box, url, token, profile
        limits = merged(fields.pop('limits', None), session_limits(memory_limit))
        self._fields = {**fields, **({'limits': limits} if limits else {})}
        self.session: Session = session  # type: ignore[assignment]
        self.setup_session()

    # ---- the session ----------------------------------------------------

    _base_modules: Iterable[str] = BASE_BUILTIN_MODULES
    _prelude = ''  # code that every session runs first

    def setup_session(self) -> None:
        """Makes the session, unless there is one; its names are those of a fresh one."""
        self.state = State(self)
        if self.session is None:
            try:
                self.session = self._own_session = self._find_box().session(
                    profile=self._profile, additional_imports=self._imports_to_ask(), **self._fields
                )
                self._check_imports()
            except BaseException:
                self.cleanup()
                raise
        if self._prelude:
            self.session.run(self._prelude, check=True)

    def restart_session(self) -> None:
        """A fresh interpreter: variables are gone; tools and the files of the session stay."""
        self._variables = {}
        self.session.reset()
        self.setup_session()

    def _find_box(self) -> Glovebox:
        if self._box is None:
            self._box = self._own_box = Glovebox(self._url, self._token) if self._url else Glovebox.local(token=self._token)
        return self._box

    def _imports_to_ask(self) -> list[str]:
        """What the profile does not allow by itself."""
        return self.additional_authorized_imports

    def _check_imports(self) -> None:
        """As smolagents: an executor is not made with modules that cannot be imported."""
        report = self.session.created.get('packages') or {}
        missing = [entry['name'] for entry in report.get('failed') or ()]
        if not report and not self._fields.get('packages'):
            names = sorted({n.partition('.')[0] for n in self.additional_authorized_imports} - {'*', ''})
            found = self._find_box().run(_MISSING, variables={'names': names}, profile='python') if names else None
            missing = found.value if found and found.ok else []
        if missing:
            raise InterpreterError(
                f'Non-installed authorized modules: {", ".join(missing)}. '
                'Please install these modules or remove them from the authorized imports list.'
            )

    # ---- what CodeAgent calls -------------------------------------------

    def send_tools(self, tools: Mapping[str, Any]) -> None:
        """Makes tools (and managed agents) callable in the session, under the names of the mapping."""
        self.static_tools = {**tools, **BASE_PYTHON_TOOLS, **self._functions}
        found = [_as_tool(name, tool, self.coerce) for name, tool in {**self._functions, **tools}.items() if name != 'final_answer']
        answer = tools.get('final_answer')
        # The usual one gives back what it got, which is what the session's own does; another one has something to say first.
        if answer is not None and type(answer).__name__ != 'FinalAnswerTool':
            found.append(_as_tool('checked_final_answer', answer))
            found.append(Tool(name='final_answer', source=_CHECKED_FINAL_ANSWER))
        self.session.set_tools(found)

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """They are there when the next code runs."""
        self._variables.update(variables)

    def __call__(self, code_action: str) -> Any:
        observation = self._observe(code_action)
        if observation.status == 'timeout':
            raise StepTimeout(self._words(observation))
        if not observation.ok:
            raise InterpreterError(self._words(observation))
        output = observation.final_answer if observation.is_final_answer else observation.value
        return CodeOutput(output=output, logs=self.state['_print_outputs'], is_final_answer=observation.is_final_answer)

    def _observe(self, code: str, timeout: Optional[float] = None) -> Observation:
        """Runs the code; what it printed is in state["_print_outputs"]."""
        self.state['_print_outputs'] = ''
        variables, self._variables = self._variables, {}
        limit = timeout if timeout is not None else self.timeout_seconds
        observation = self.session.run(code, timeout=limit, variables=variables or None, typed=True)
        self.state['_print_outputs'] = truncate(observation.stdout + observation.stderr, self.max_print_outputs_length)
        return observation

    def _words(self, observation: Observation) -> str:
        error = observation.error
        if observation.status == 'timeout':
            return f'ExecutionTimeoutError: Code execution exceeded the maximum execution time of {self.timeout_seconds} seconds'
        if error is None:
            return f'The code ended as {observation.status}'
        told = error.type in ('InterpreterError', '') or error.message.startswith('Code execution failed at line ')
        return error.message if told else f'{error.type}: {error.message}'

    def cleanup(self) -> None:
        """Ends the session, and the server when it was started for this."""
        for thing in (self._own_session, self._own_box):
            if thing is not None:
                thing.close()
        self._own_session = self._own_box = None

    delete = close = cleanup

    # ---- as the remote executors have it --------------------------------

    run_code_raise_errors = __call__

    def install_packages(self, additional_imports: Iterable[str]) -> list[str]:
        names = list(additional_imports)
        if names:
            self.session.box.request('POST', f'/v1/sessions/{self.session.id}/packages', {'packages': names})
        return names

    def __enter__(self) -> 'GloveboxExecutor':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.cleanup()


def _as_tool(name: str, thing: Any, coerce: bool = False) -> Tool:
    """Under the name the agent knows it by. Managed agents have a task, and whatever else by name: what some list as their inputs may be left out."""
    if hasattr(thing, 'run') and not hasattr(thing, 'forward'):
        parameters = {
            'type': 'object',
            'properties': {
                'task': {'type': 'string', 'description': 'Long detailed description of the task.'},
                'additional_args': {'type': 'object', 'description': 'Extra inputs to pass to the managed agent.'},
            },
            'required': ['task'],
            'additionalProperties': True,
        }
        description = getattr(thing, 'description', None) or ''
        return Tool(lambda task, **more: thing(task, **more), name=name, description=description, parameters=parameters, timeout=3600)
    found = Tool.of(thing)
    if coerce and found.source is None:
        found = _coercing(found)
    found.name = found.definition['name'] = name
    return found


_CONVERSIONS = {'string': str, 'integer': int, 'number': float}


def _coerced(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value as the type that the schema names, where nothing is lost; else as it is, which is what smolagents does."""
    kind = schema.get('type')
    convert = _CONVERSIONS.get(kind) if isinstance(kind, str) else None
    if convert is None or isinstance(value, (convert, bool)) or not isinstance(value, (str, int, float)):
        return value
    try:
        changed = convert(value)
    except (TypeError, ValueError):
        return value
    return changed if convert is str or str(changed) == str(value) or changed == value else value


def _coercing(tool: Tool) -> Tool:
    """The same tool, which takes arguments of any type."""
    parameters = tool.definition.get('parameters') or {}
    properties = parameters.get('properties') or {}

    def call(**arguments: Any) -> Any:
        return tool.function(**{k: _coerced(v, properties.get(k) or {}) for k, v in arguments.items()})  # type: ignore[misc]

    kept = ('description', 'default', 'nullable')
    loose = {name: {k: v for k, v in schema.items() if k in kept} for name, schema in properties.items()}
    options = {k: tool.definition[k] for k in ('max_calls',) if k in tool.definition}
    return Tool(
        call,
        name=tool.name,
        description=tool.definition.get('description'),
        parameters={**parameters, 'properties': loose},
        timeout=tool.definition.get('timeout_s'),
        async_in_session=bool(tool.definition.get('async')),
        **options,
    )


def truncate(text: str, limit: int) -> str:
    """Head and tail of a text that is too long, as smolagents cuts it."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f'{text[:half]}\n..._This content has been truncated to stay below {limit} characters_...\n{text[-half:]}'
