"""A sandbox backend for LangChain's deepagents: `create_deep_agent(backend=GloveboxSandbox())`."""

from __future__ import annotations

from typing import Any, Optional

from ..client import Glovebox, Session
from ..errors import GloveboxError
from . import _commands

try:
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse  # type: ignore
    from deepagents.backends.sandbox import BaseSandbox  # type: ignore
except ImportError:
    from dataclasses import dataclass

    class BaseSandbox:  # type: ignore[no-redef]
        """Stands in for deepagents' base class where that is not installed."""

    @dataclass
    class ExecuteResponse:  # type: ignore[no-redef]
        output: str
        exit_code: Optional[int] = None
        truncated: bool = False

    @dataclass
    class FileUploadResponse:  # type: ignore[no-redef]
        path: str
        error: Optional[str] = None

    @dataclass
    class FileDownloadResponse:  # type: ignore[no-redef]
        path: str
        content: Optional[bytes] = None
        error: Optional[str] = None


class GloveboxSandbox(BaseSandbox):
    """Commands and files of one session. The agent's own tools (ls, read, write, grep …) are commands of deepagents' base class."""

    def __init__(
        self,
        box: Optional[Glovebox] = None,
        *,
        session: Optional[Session] = None,
        timeout: float = 120.0,
        max_output: int = 100_000,
        **fields: Any,
    ) -> None:
        self._own = box is None and session is None
        self._box = session.box if session else box or Glovebox.local()
        self._session = session or self._box.session(**fields)
        self._timeout, self._max_output = timeout, max_output

    @property
    def id(self) -> str:
        return self._session.id

    def execute(self, command: str, *, timeout: Optional[float] = None) -> Any:
        """Runs a bash command in /workspace."""
        limit = timeout or self._timeout
        done = _commands.done(self._session.run(**_commands.request(command, None, None, None, limit)))
        text = done.stdout.decode(errors='replace') + done.stderr.decode(errors='replace')
        if done.returncode is None:
            text += f'\nthe command took longer than {limit:g} s'
        cut = len(text) > self._max_output
        return ExecuteResponse(output=text[: self._max_output], exit_code=124 if done.returncode is None else done.returncode, truncated=cut)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
        return [FileUploadResponse(path=path, error=self._try(self._session.write_file, _relative(path), data)[1]) for path, data in files]

    def download_files(self, paths: list[str]) -> list[Any]:
        found = []
        for path in paths:
            content, error = self._try(self._session.read_file, _relative(path))
            found.append(FileDownloadResponse(path=path, content=content, error=error))
        return found

    @staticmethod
    def _try(call: Any, *arguments: Any) -> tuple[Any, Optional[str]]:
        try:
            return call(*arguments), None
        except GloveboxError as e:
            code = getattr(e, 'code', None) or 'invalid_path'
            return None, {'is_a_directory': 'is_directory', 'path_refused': 'permission_denied'}.get(code, code)

    def close(self) -> None:
        self._session.close()
        if self._own:
            self._box.close()

    def __enter__(self) -> 'GloveboxSandbox':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def _relative(path: str) -> str:
    return path[len('/workspace/') :] if path.startswith('/workspace/') else path.lstrip('/')
