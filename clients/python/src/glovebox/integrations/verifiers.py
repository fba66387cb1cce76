"""An environment for verifiers whose tool is a Python session: `GloveboxEnv(dataset=…, rubric=…)`.

Every rollout has a session of its own, which keeps its variables from call to call and ends with the rollout.
"""

from __future__ import annotations

from typing import Any, Optional

from ..aio import AsyncGlovebox, AsyncSession

try:
    from verifiers import StatefulToolEnv  # type: ignore
except ImportError:

    class StatefulToolEnv:  # type: ignore[no-redef]
        """Stands in for verifiers' base class where that is not installed."""

        def __init__(self, **kwargs: Any) -> None:
            self.tools: list[Any] = []

        def add_tool(self, tool: Any, args_to_skip: Optional[list[str]] = None) -> None:
            self.tools.append(tool)

        async def setup_state(self, state: Any, **kwargs: Any) -> Any:
            return state


class GloveboxEnv(StatefulToolEnv):
    """url, token: the server. session: fields of Glovebox.session(), such as packages and limits. timeout: of one call."""

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        session: Optional[dict[str, Any]] = None,
        timeout: float = 30.0,
        max_output: int = 8000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._url, self._token, self._fields = url, token, session or {}
        self._timeout, self._max_output = timeout, max_output
        self._open: dict[str, tuple[AsyncGlovebox, AsyncSession]] = {}
        self.add_tool(self.python, args_to_skip=['session_id'])

    async def setup_state(self, state: Any, **kwargs: Any) -> Any:
        state = (await super().setup_state(state, **kwargs)) or state
        box = AsyncGlovebox(self._url, self._token)
        session = await box.create(**self._fields)
        self._open[session.id] = (box, session)
        state['session_id'] = session.id
        return state

    def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], messages: Any = None, state: Any = None, **kwargs: Any) -> dict[str, Any]:
        return {**tool_args, 'session_id': state['session_id']} if tool_name == 'python' else tool_args

    async def python(self, code: str, session_id: str) -> str:
        """Runs Python code; variables are kept from call to call.

        Args:
            code: Python source. The value of the last expression is shown.
        """
        _, session = self._open[session_id]
        seen = await session.run(code, timeout=self._timeout)
        parts = [seen.stdout, seen.stderr, str(seen.error) if seen.error else seen.text or '']
        text = '\n'.join(p.rstrip('\n') for p in parts if p) or '(no output)'
        half = self._max_output // 2
        return text if len(text) <= self._max_output else f'{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}'

    async def post_rollout(self, state: Any) -> None:
        """The end of a rollout: its session ends."""
        box, session = self._open.pop(state['session_id'], (None, None))
        if session is not None and box is not None:
            await session.close()
            await box.close()

    destroy_session = post_rollout
