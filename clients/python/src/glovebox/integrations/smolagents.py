"""smolagents' CodeAgent on Glovebox: `CodeAgent(tools, model, executor=GloveboxExecutor())`.

The code runs in a session with the profile "smolagents": its authorised imports, refusals and error texts, but CPython's semantics,
real time limits and a jail. Tools and managed agents stay in this process and are called from there; final answers and
values travel in smolagents' safe encoding, never as pickles.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional, Union

from ..client import Glovebox, Session
from .._limits import merged, session_limits
from ..models import Observation
from ..tools import Tool

try:
    from smolagents.local_python_executor import CodeOutput, InterpreterError, PythonExecutor  # type: ignore
except ImportError:
    from dataclasses import dataclass

    class PythonExecutor:  # type: ignore[no-redef]
        """Stands in for smolagents' base class where that is not installed."""

    class InterpreterError(ValueError):  # type: ignore[no-redef]
        """The code raised an exception, or was refused."""

    @dataclass
    class CodeOutput:  # type: ignore[no-redef]
        output: Any
        logs: str
        is_final_answer: bool


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


class GloveboxExecutor(PythonExecutor):
    """An executor for CodeAgent(executor=…).

    additional_authorized_imports   as in smolagents: "numpy", "numpy.*", "*"
    box, url, token                 the server; the one on this machine when none is named
    session                         a session of your own instead
    timeout_seconds, timeout        of one step; None for the server's
    memory_limit                    bytes, or a size such as "256m"
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
        **fields: Any,
    ) -> None:
        self.logger = logger
        self.additional_authorized_imports = list(additional_authorized_imports or ())
        self.authorized_imports = sorted({*self._base_modules, *self.additional_authorized_imports})
        self.max_print_outputs_length = max_print_outputs_length or DEFAULT_MAX_LEN_OUTPUT
        self.timeout_seconds = timeout if timeout is not None else timeout_seconds
        self.state: dict[str, Any] = {}
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
        self.state = {'__name__': '__main__', '_print_outputs': ''}
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
        missing = [entry['name'] for entry in (self.session.created.get('packages') or {}).get('failed') or ()]
        if missing:
            raise InterpreterError(
                f'Non-installed authorized modules: {", ".join(missing)}. '
                'Please install these modules or remove them from the authorized imports list.'
            )

    # ---- what CodeAgent calls -------------------------------------------

    def send_tools(self, tools: Mapping[str, Any]) -> None:
        """Makes tools (and managed agents) callable in the session, under the names of the mapping."""
        found = [_as_tool(name, tool) for name, tool in {**self._functions, **tools}.items() if name != 'final_answer']
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


def _as_tool(name: str, thing: Any) -> Tool:
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
    found.name = found.definition['name'] = name
    return found


def truncate(text: str, limit: int) -> str:
    """Head and tail of a text that is too long, as smolagents cuts it."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f'{text[:half]}\n..._This content has been truncated to stay below {limit} characters_...\n{text[-half:]}'
