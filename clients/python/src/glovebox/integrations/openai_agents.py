"""A tool for the OpenAI Agents SDK: `Agent(tools=[PythonTool(box).tool])`."""

from __future__ import annotations

from typing import Any, Optional

from ..aio import AsyncGlovebox, AsyncSession

try:
    from agents import function_tool  # type: ignore
except ImportError:

    def function_tool(function: Any = None, **options: Any) -> Any:  # type: ignore[misc]
        """Stands in for the decorator of the SDK where that is not installed."""
        return function if function is not None else lambda f: f


class PythonTool:
    """A session that starts with the first call and keeps its variables; `tool` is what the agent gets."""

    def __init__(self, box: AsyncGlovebox, *, timeout: float = 30.0, max_output: int = 20_000, **fields: Any) -> None:
        self._box, self._timeout, self._max_output, self._fields = box, timeout, max_output, fields
        self._session: Optional[AsyncSession] = None

        async def run_python(code: str) -> str:
            """Runs Python code in a sandbox and returns what it prints, the value of its last expression, or its error. Variables and files are kept.

            Args:
                code: Python source.
            """
            return await self.run(code)

        self.tool = function_tool(run_python)

    async def run(self, code: str) -> str:
        if self._session is None:
            self._session = await self._box.create(**self._fields)
        seen = await self._session.run(code, timeout=self._timeout)
        parts = [seen.stdout, seen.stderr, str(seen.error) if seen.error else seen.text or '']
        parts += [f'{f.change}: {f.path} ({f.size} bytes)' for f in seen.files]
        text = '\n'.join(p.rstrip('\n') for p in parts if p) or '(no output)'
        return text if len(text) <= self._max_output else text[: self._max_output] + '\n… cut'

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()
