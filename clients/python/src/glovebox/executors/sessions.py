"""Executors that return an Observation: code with variables in a session, and executions that keep only their imports."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ..client import Glovebox, Session
from ..models import Observation
from ._imports import imports_of


class SessionExecutor:
    """`execute(code, variables)`: runs code in a session, which keeps its variables, and returns the Observation.

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

    def execute(self, code: str, variables: Optional[Mapping[str, Any]] = None, **options: Any) -> Observation:
        """Runs the code with these variables; options as Session.run()."""
        return self.session.run(code, variables=variables, **options)

    def close(self) -> None:
        for thing in (self._own_session, self._own_box):
            if thing is not None:
                thing.close()
        self._own_session = self._own_box = None

    def __enter__(self) -> 'SessionExecutor':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


class SessionNotebook:
    """Executions that start from nothing each time but the imports of those before, which are remembered.

    Only the imports of executions that ended well count. `imports` is what would be run first.
    """

    def __init__(self, executor: Optional[SessionExecutor] = None, **fields: Any) -> None:
        self._own = SessionExecutor(**fields) if executor is None else None
        self.executor = executor or self._own
        self.imports: list[str] = []

    def execute(self, code: str, variables: Optional[Mapping[str, Any]] = None, **options: Any) -> Observation:
        executor = self.executor
        assert executor is not None
        executor.session.reset()
        if self.imports:
            executor.session.run('\n'.join(self.imports), check=True)
        observation = executor.execute(code, variables, **options)
        if observation.ok:
            self.imports += [line for line in imports_of(code) if line not in self.imports]
        return observation

    def clear(self) -> None:
        self.imports = []

    def close(self) -> None:
        if self._own:
            self._own.close()

    def __enter__(self) -> 'SessionNotebook':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
