"""Small executors for programs that hold a container of their own today."""

from __future__ import annotations

import ast
from typing import Any, Mapping, Optional

from .client import Glovebox, Session
from .models import Observation


class CodeExecutor:
    """`execute(code, context)`: runs code in a session and returns its Observation.

    Uses the session given, or makes one in the box given, or in the one on this machine; closes what it made. Fields beyond
    that are those of Glovebox.session().
    """

    def __init__(self, session: Optional[Session] = None, box: Optional[Glovebox] = None, **fields: Any) -> None:
        self._own_box = Glovebox.local() if session is None and box is None else None
        self._own_session: Optional[Session] = None
        if session is None:
            try:
                session = self._own_session = (box or self._own_box).session(**fields)  # type: ignore[union-attr]
            except BaseException:
                self.close()
                raise
        self.session: Session = session

    def execute(self, code: str, context: Optional[Mapping[str, Any]] = None, **options: Any) -> Observation:
        """Runs the code with the values of `context` as variables; options as Session.run()."""
        return self.session.run(code, variables=context, **options)

    def close(self) -> None:
        for thing in (self._own_session, self._own_box):
            if thing is not None:
                thing.close()
        self._own_session = self._own_box = None

    def __enter__(self) -> 'CodeExecutor':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


class Notebook:
    """Executions that start from nothing each time but the imports of those before, which are remembered.

    Only the imports of executions that ended well count. `imports` is what would be run first.
    """

    def __init__(self, executor: Optional[CodeExecutor] = None, **fields: Any) -> None:
        self._own = CodeExecutor(**fields) if executor is None else None
        self.executor = executor or self._own
        self.imports: list[str] = []

    def execute(self, code: str, context: Optional[Mapping[str, Any]] = None, **options: Any) -> Observation:
        executor = self.executor
        assert executor is not None
        executor.session.reset()
        if self.imports:
            executor.session.run('\n'.join(self.imports), check=True)
        observation = executor.execute(code, context, **options)
        if observation.ok:
            self.imports += [line for line in imports_of(code) if line not in self.imports]
        return observation

    def clear(self) -> None:
        self.imports = []

    def close(self) -> None:
        if self._own:
            self._own.close()

    def __enter__(self) -> 'Notebook':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def imports_of(code: str) -> list[str]:
    """The import statements at the top level of the code, each as one line."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return []
    return [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
