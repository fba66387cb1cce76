"""Client of Glovebox, which runs the Python a language model wrote, in a jail, with its variables kept.

    from glovebox import Glovebox

    with Glovebox.local() as box, box.session() as s:
        s.run("x = 6 * 7")
        print(s.run("x").value)
"""

from .aio import AsyncGlovebox, AsyncSession
from .client import Glovebox, Session
from .coding_env import AsyncCodingEnv, CodeAction, CodeObservation, CodeState, CodingEnv, StepResult
from .errors import (
    ApiError,
    CellError,
    CellInterrupted,
    CellKilled,
    CellOutOfMemory,
    CellRefused,
    CellTimeout,
    ConnectionFailed,
    FileMissing,
    GloveboxError,
    InvalidRequest,
    NotFound,
    SessionGone,
    SessionNotFound,
    TooMany,
    Unauthorized,
    Unavailable,
)
from .executors import CodeExecutor, Notebook, SessionExecutor, SessionNotebook
from .models import ErrorInfo, FileChange, Film, Observation, Screenshot, Window
from .screen import Frame, InputResult, LiveLink, Recording
from .tools import Tool, tool

__version__ = '0.1.0'

__all__ = [
    'ApiError',
    'AsyncCodingEnv',
    'AsyncGlovebox',
    'AsyncSession',
    'CellError',
    'CellInterrupted',
    'CellKilled',
    'CellOutOfMemory',
    'CellRefused',
    'CellTimeout',
    'CodeAction',
    'CodeExecutor',
    'CodeObservation',
    'CodeState',
    'CodingEnv',
    'ConnectionFailed',
    'ErrorInfo',
    'FileChange',
    'FileMissing',
    'Film',
    'Frame',
    'Glovebox',
    'GloveboxError',
    'InputResult',
    'InvalidRequest',
    'LiveLink',
    'NotFound',
    'Notebook',
    'Observation',
    'Recording',
    'Screenshot',
    'Session',
    'SessionExecutor',
    'SessionGone',
    'SessionNotFound',
    'SessionNotebook',
    'StepResult',
    'TooMany',
    'Tool',
    'Unauthorized',
    'Unavailable',
    'Window',
    'tool',
]
