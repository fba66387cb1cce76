"""CodeExecutor: `execute(code, context)` reports to a context, and each execution starts from nothing but the imports of those before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Protocol, Union

from ..client import Glovebox, Session
from ..models import Observation
from ._imports import imports_of, without_future_imports

MAX_OUTPUT_BYTES = 1 << 20  # of stdout and of stderr, each
TIMEOUT_EXIT_CODE = 124  # as the program timeout(1)
LIMITS = {'memory_bytes': 2 << 30, 'cpus': 1}  # of a session that is made here


class CodeExecutorContext(Protocol):
    """Where an execution reports to. Any object with these two methods will do."""

    def add_output(self, output: dict[str, Any]) -> Any: ...

    def add_error(self, error: dict[str, Any]) -> Any: ...


@dataclass
class ListContext:
    """A context that keeps the reports in two lists."""

    outputs: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)

    def add_output(self, output: dict[str, Any]) -> None:
        self.outputs.append(output)

    def add_error(self, error: dict[str, Any]) -> None:
        self.errors.append(error)


class Notebook:
    """The imports of a session: statements at the top level of code, remembered, and put before the code that follows."""

    def __init__(self) -> None:
        self._imports: set[str] = set()

    @property
    def imports(self) -> list[str]:
        """The remembered statements, sorted; those of __future__ first, where Python wants them."""
        return sorted(self._imports, key=lambda line: (not line.startswith('from __future__ '), line))

    def add_imports_from_code(self, code: str) -> None:
        """Remembers the import statements at the top level of the code."""
        self._imports.update(imports_of(code))

    def get_code_with_imports(self, code: str) -> str:
        """The code with the remembered imports before it."""
        lines = self.imports
        future = {line for line in imports_of(code) if line.startswith('from __future__ ')}
        if future and lines:  # they must stand before every other statement
            lines = sorted(future) + [line for line in lines if line not in future]
            code = without_future_imports(code)
        return '\n'.join([*lines, code])


@dataclass
class _Outcome:
    exit_code: int
    stdout: str
    stderr: str


# What an interpreter does when its program is over; the session goes on, until it is reset.
_END = """
import atexit, gc, io, threading
threading._shutdown()
atexit._run_exitfuncs()
for thing in gc.get_objects():
    if issubclass(type(thing), io.IOBase) and not thing.closed and thing.writable():
        thing.flush()
"""


class _SessionEngine:
    """Runs code as `python -c` in a session would: a fresh interpreter, the files of before."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, code: str, timeout: float) -> _Outcome:
        self.session.reset()
        seen = self.session.run(code, timeout=timeout)
        stdout, stderr = seen.stdout, seen.stderr + _words(seen, timeout)
        if seen.status in ('ok', 'error'):  # else there is no interpreter, or code that hangs
            end = self.session.run(_END, timeout=timeout)
            stdout, stderr = stdout + end.stdout, stderr + end.stderr
        return _Outcome(TIMEOUT_EXIT_CODE if seen.status == 'timeout' else seen.exit_code, stdout, stderr)


class _ContainerEngine:
    """Runs `python -c` in a container object that has exec_run(command, demux=True), such as docker-py's."""

    def __init__(self, container: Any) -> None:
        self.container = container

    def run(self, code: str, timeout: float) -> _Outcome:
        # exec_run itself has no time limit: timeout(1) of the container ends the code.
        command = ['timeout', '-k', '2', f'{timeout:g}', 'python', '-c', code]  # as busybox has it, too
        done = self.container.exec_run(command, demux=True)
        stdout, stderr = (part.decode('utf-8', 'replace') if part else '' for part in done.output)
        if done.exit_code == TIMEOUT_EXIT_CODE:
            stderr += _timed_out(timeout)
        return _Outcome(done.exit_code, stdout, stderr)


class CodeExecutor:
    """`execute(code, context) -> None` in a session (or in a container of your own).

    container_or_session   a Session, a Glovebox in which a session is made, an object with exec_run() as docker-py's containers
                           have it, or None: a session on this machine's server
    timeout                seconds that one execution may take; its code is stopped then
    Other fields are those of Glovebox.session(); without other `limits` the session has 2 GiB of memory and one processor. What was made here ends with close() or the block.
    """

    def __init__(
        self, container_or_session: Union[Session, Glovebox, Any] = None, timeout: float = 30, *, box: Optional[Glovebox] = None, **fields: Any
    ) -> None:
        self._timeout = timeout
        self.notebook = Notebook()
        self._own: list[Any] = []
        self._container = container_or_session
        self._engine: Any
        if container_or_session is not None and hasattr(container_or_session, 'exec_run'):
            self._engine = _ContainerEngine(container_or_session)
        else:
            self._engine = _SessionEngine(self._find_session(container_or_session, box, fields))

    def _find_session(self, given: Any, box: Optional[Glovebox], fields: Mapping[str, Any]) -> Session:
        if isinstance(given, Session):
            return given
        box = given if isinstance(given, Glovebox) else box
        if box is None:
            box = Glovebox.local()
            self._own.append(box)
        try:
            session = box.session(timeout=self._timeout, **{**fields, 'limits': {**LIMITS, **fields.get('limits', {})}})
        except BaseException:
            self.close()
            raise
        self._own.insert(0, session)
        return session

    @property
    def session(self) -> Optional[Session]:
        """The session that runs the code; None in a container of your own."""
        return getattr(self._engine, 'session', None)

    def execute(self, code: str, context: CodeExecutorContext) -> None:
        """Runs the code; the outcome goes to context.add_output() when its exit code is 0, else to context.add_error()."""
        done = self._engine.run(self.notebook.get_code_with_imports(code), self._timeout)
        report: dict[str, Any] = {'stdout': _cut(done.stdout), 'stderr': _cut(done.stderr)}
        if done.exit_code == 0:
            self.notebook.add_imports_from_code(code)
            context.add_output({'type': 'successful_execution', **report})
        else:
            self._remember_what_works(code)
            context.add_error({'type': 'execution_error', 'exit_code': done.exit_code, **report})

    def _remember_what_works(self, code: str) -> None:
        """Of code that failed, only imports that work by themselves: a wrong one would end every later execution."""
        for line in imports_of(code):
            if line not in self.notebook._imports and self._engine.run(line, self._timeout).exit_code == 0:
                self.notebook.add_imports_from_code(line)

    def close(self) -> None:
        own, self._own = self._own, []
        for thing in own:
            thing.close()

    def __enter__(self) -> 'CodeExecutor':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def _words(seen: Observation, timeout: float) -> str:
    """What the interpreter would have said on stderr of how the code ended."""
    if seen.status == 'timeout':
        return _timed_out(timeout)
    if seen.ok or seen.error is None or seen.error.type == 'SystemExit':
        return ''
    text = seen.error.traceback or f'{seen.error.type}: {seen.error.message}'
    return text if text.endswith('\n') else text + '\n'


def _timed_out(timeout: float) -> str:
    return f'Execution timed out after {timeout:g} s\n'


def _cut(text: str) -> str:
    """The text within MAX_OUTPUT_BYTES of UTF-8."""
    if len(text) * 4 <= MAX_OUTPUT_BYTES:
        return text
    data = text.encode('utf-8', 'replace')
    return text if len(data) <= MAX_OUTPUT_BYTES else data[:MAX_OUTPUT_BYTES].decode('utf-8', 'ignore')
