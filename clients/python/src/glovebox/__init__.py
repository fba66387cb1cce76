"""Client of Glovebox, which runs the Python a language model wrote, in a jail, with its variables kept.

    from glovebox import Glovebox

    with Glovebox.local() as box, box.session() as s:
        s.run("x = 6 * 7")
        print(s.run("x").value)
"""

from ._about import version as _version
from .aio import AsyncGlovebox, AsyncSession
from .batch import BatchResult, Verdict
from .client import Glovebox, Session
from .coding_env import AsyncCodingEnv, CodeAction, CodeObservation, CodeState, CodingEnv, StepResult
from .commands import AsyncProcess, CommandFailed, CommandResult, Process
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
from .grading import Case, CaseGrade, Grade, grade, grade_async
from .models import ErrorInfo, FileChange, Film, Observation, Screenshot, Window
from .screen import Frame, InputResult, LiveLink, Recording
from .tools import Tool, input_tool, tool

__version__ = _version()

__all__ = [
    'ApiError',
    'AsyncCodingEnv',
    'AsyncGlovebox',
    'AsyncProcess',
    'AsyncSession',
    'BatchResult',
    'Case',
    'CaseGrade',
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
    'CommandFailed',
    'CommandResult',
    'ConnectionFailed',
    'ErrorInfo',
    'FileChange',
    'FileMissing',
    'Film',
    'Frame',
    'Glovebox',
    'GloveboxError',
    'Grade',
    'InputResult',
    'InvalidRequest',
    'LiveLink',
    'NotFound',
    'Notebook',
    'Observation',
    'Process',
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
    'Verdict',
    'Window',
    'grade',
    'grade_async',
    'input_tool',
    'tool',
]
