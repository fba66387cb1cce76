"""A sandbox for inspect_ai: `Task(…, sandbox="glovebox")` after `import glovebox.integrations.inspect_ai`.

Each sample has a session of its own. The config, if there is one, is the address of the server or the path of a JSON file with the fields of
Glovebox.session(); $GLOVEBOX_URL is used otherwise.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, Optional, Union, overload

from ..aio import AsyncGlovebox, AsyncSession
from ..errors import GloveboxError
from . import _commands

try:
    from inspect_ai.util import ExecResult, SandboxEnvironment, sandboxenv  # type: ignore
except ImportError:
    from dataclasses import dataclass

    class SandboxEnvironment:  # type: ignore[no-redef]
        """Stands in for inspect_ai's base class where that is not installed."""

    @dataclass
    class ExecResult:  # type: ignore[no-redef]
        success: bool
        returncode: int
        stdout: str
        stderr: str

        def __class_getitem__(cls, item: Any) -> Any:
            return cls

    def sandboxenv(name: str) -> Any:  # type: ignore[no-redef]
        return lambda cls: cls


@sandboxenv(name='glovebox')
class GloveboxSandboxEnvironment(SandboxEnvironment):
    """One session."""

    def __init__(self, box: AsyncGlovebox, session: AsyncSession) -> None:
        super().__init__()
        self._box, self._session = box, session

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, str]) -> dict[str, Any]:
        url, fields = _read_config(config)
        box = AsyncGlovebox(url)
        return {'default': cls(box, await box.create(name=task_name[:100] or None, **fields))}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Any, environments: dict[str, Any], interrupted: bool) -> None:
        for environment in environments.values():
            await environment._session.close()
            await environment._box.close()

    async def exec(
        self,
        cmd: list[str],
        input: Union[str, bytes, None] = None,
        cwd: Optional[str] = None,
        env: Optional[dict[str, str]] = None,
        user: Optional[str] = None,
        timeout: Optional[int] = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> Any:
        """Runs a program; TimeoutError when it takes longer than `timeout`. There is one user."""
        done = _commands.done(await self._session.run(**_commands.request(cmd, input, cwd, env, timeout)))
        if done.returncode is None:
            raise TimeoutError(f'{cmd[0]} took longer than {timeout} s')
        out, err = done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')
        return ExecResult(success=done.returncode == 0, returncode=done.returncode, stdout=out, stderr=err)

    async def write_file(self, file: str, contents: Union[str, bytes]) -> None:
        path = _below_workspace(file)
        if path is not None:
            try:
                await self._session.write_file(path, contents)
            except GloveboxError as e:
                raise _as_python_has_it(e, file) from e
            return
        data = contents.encode() if isinstance(contents, str) else contents
        code = 'import pathlib\np = pathlib.Path(file)\np.parent.mkdir(parents=True, exist_ok=True)\nn = p.write_bytes(data)'
        await self._session.run(code, variables={'file': file, 'data': data}, check=True)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> Union[str, bytes]:
        path = _below_workspace(file)
        if path is not None:
            try:
                data = await self._session.read_file(path)
            except GloveboxError as e:
                raise _as_python_has_it(e, file) from e
        else:
            seen = await self._session.run('open(file, "rb").read()', variables={'file': file}, typed=True)
            if seen.error and seen.error.type in ('FileNotFoundError', 'IsADirectoryError', 'PermissionError'):
                raise getattr(__import__('builtins'), seen.error.type)(file)
            data = seen.raise_for_error().value
        return data.decode() if text else data


def _as_python_has_it(e: GloveboxError, file: str) -> Exception:
    """inspect_ai's tools expect the exceptions of open()."""
    kinds = {'file_not_found': FileNotFoundError, 'is_a_directory': IsADirectoryError, 'path_refused': PermissionError}
    kind = kinds.get(e.code or '')
    return kind(file) if kind else e


def _below_workspace(file: str) -> Optional[str]:
    if file.startswith('/workspace/'):
        return file[len('/workspace/') :]
    return None if file.startswith('/') or '..' in Path(file).parts else file.removeprefix('./')


def _read_config(config: Any) -> tuple[Optional[str], dict[str, Any]]:
    if config is None:
        return None, {}
    if isinstance(config, str) and config.startswith(('http:', 'https:', 'unix:')):
        return config, {}
    fields = dict(config) if isinstance(config, dict) else json.loads(Path(config).read_text())
    return fields.pop('url', None), fields
