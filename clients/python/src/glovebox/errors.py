"""What can go wrong, as one tree:

GloveboxError
├── ConnectionFailed      the server cannot be reached, or the connection broke
├── ApiError              the server said no: .status, .code, .detail, .remediation
│   ├── InvalidRequest, Unauthorized, NotFound (SessionNotFound, FileMissing), SessionGone, TooMany, Unavailable
└── CellError             a cell did not end well, where that was asked for (check=True): .observation
    ├── CellTimeout, CellInterrupted, CellOutOfMemory, CellKilled, CellRefused
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import Observation


class GloveboxError(Exception):
    """Everything this package raises by itself."""


class ConnectionFailed(GloveboxError, ConnectionError):
    """The server cannot be reached, or the connection broke."""


class ApiError(GloveboxError):
    """The server refused a request, and says why and what to do."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.code: str = problem.get('code') or ''
        self.detail: str = problem.get('detail') or problem.get('title') or f'HTTP status {status}'
        self.remediation: str = problem.get('remediation') or ''
        self.request_id: str = problem.get('request_id') or ''
        super().__init__(self.detail + (f' ({self.remediation})' if self.remediation else ''))


class InvalidRequest(ApiError):
    """Something in the request is wrong."""


class Unauthorized(ApiError):
    """The token is missing or wrong, or the server does not allow this."""


class NotFound(ApiError):
    """There is no such thing."""


class SessionNotFound(NotFound):
    """There is no such session."""


class FileMissing(NotFound, FileNotFoundError):
    """There is no such file in the session."""


class SessionGone(ApiError):
    """The session ended; the text says why and when."""


class TooMany(ApiError):
    """Too many sessions or waiting cells: try again later."""


class Unavailable(ApiError):
    """The server starts, ends, or is short of something."""


_BY_CODE: dict[str, type[ApiError]] = {'session_not_found': SessionNotFound, 'file_not_found': FileMissing, 'session_gone': SessionGone, 'server_full': TooMany}
_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    410: SessionGone,
    429: TooMany,
    500: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    507: Unavailable,
}


def error_of(status: int, body: bytes | dict[str, Any]) -> ApiError:
    """The exception for a problem of the server's."""
    problem: Any = body
    if isinstance(body, bytes):
        try:
            problem = json.loads(body)
        except ValueError:
            problem = None
    if not isinstance(problem, dict):
        problem = {'detail': f'HTTP status {status}'}
    code = problem.get('code') or ''
    kind = _BY_CODE[code] if code in _BY_CODE else _BY_STATUS.get(status, InvalidRequest)
    return kind(status, problem)


class CellError(GloveboxError):
    """A cell raised an exception, or ended in another way than well."""

    def __init__(self, observation: 'Observation') -> None:
        self.observation = observation
        error = observation.error
        text = f'{error.type}: {error.message}' if error else f'the cell ended as {observation.status}'
        super().__init__(text)


class CellTimeout(CellError, TimeoutError):
    """The cell ran longer than its limit."""


class CellInterrupted(CellError):
    """Somebody interrupted the cell."""


class CellOutOfMemory(CellError):
    """The session reached its memory limit."""


class CellKilled(CellError):
    """The interpreter ended under the cell."""


class CellRefused(CellError):
    """The session's profile does not allow what the cell does; nothing of it ran."""


def cell_error_of(observation: 'Observation') -> CellError:
    kinds: dict[str, type[CellError]] = {
        'timeout': CellTimeout,
        'interrupted': CellInterrupted,
        'out_of_memory': CellOutOfMemory,
        'killed': CellKilled,
        'refused': CellRefused,
    }
    return kinds.get(observation.status, CellError)(observation)
