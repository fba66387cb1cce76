"""Executors by the names and contracts that programs already use.

    CodeExecutor, Notebook                          execute(code, context) -> None; imports are remembered
    PythonExecutor and its family                   execute(code) -> PythonToolOutput
    ExecutorBackend, PyExecutor, …                  the server side of coding_env, for programs that import it
    SessionExecutor, SessionNotebook                execute(code, variables) -> Observation
"""

from .._answers import printed_final_answer
from ._imports import imports_of
from .code_executor import CodeExecutor, CodeExecutorContext, ListContext, Notebook
from .coding import CodeExecResult, ExecutorBackend, PyExecutor, PythonCodeActEnv, RestrictedPythonExecutor
from .python_executors import (
    BASE_BUILTIN_MODULES,
    DockerExecutor,
    E2BExecutor,
    LocalPythonExecutor,
    PythonExecutor,
    PythonToolOutput,
    WasmExecutor,
)
from .sessions import SessionExecutor, SessionNotebook

__all__ = [
    'BASE_BUILTIN_MODULES',
    'CodeExecResult',
    'CodeExecutor',
    'CodeExecutorContext',
    'DockerExecutor',
    'E2BExecutor',
    'ExecutorBackend',
    'ListContext',
    'LocalPythonExecutor',
    'Notebook',
    'PyExecutor',
    'PythonCodeActEnv',
    'PythonExecutor',
    'PythonToolOutput',
    'RestrictedPythonExecutor',
    'SessionExecutor',
    'SessionNotebook',
    'WasmExecutor',
    'imports_of',
    'printed_final_answer',
]
