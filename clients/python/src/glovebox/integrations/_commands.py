"""A program run in a session, for the adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Union

_RUN = """
import subprocess as _s
try:
    _done = _s.run(cmd, input=input_bytes, cwd=cwd, env=None if env is None else {**__import__('os').environ, **env}, timeout=limit,
                   stdout=_s.PIPE, stderr=_s.PIPE, shell=isinstance(cmd, str), executable='/bin/bash' if isinstance(cmd, str) else None)
    _answer = (_done.returncode, _done.stdout, _done.stderr)
except _s.TimeoutExpired as _e:
    _answer = (None, _e.stdout or b'', _e.stderr or b'')
except (FileNotFoundError, PermissionError) as _e:
    _answer = (127 if isinstance(_e, FileNotFoundError) else 126, b'', str(_e).encode())
_answer
"""


@dataclass
class Done:
    """How a program ended; returncode is None when it took too long."""

    returncode: Optional[int]
    stdout: bytes
    stderr: bytes


def request(
    cmd: Union[str, Sequence[str]], input: Union[str, bytes, None], cwd: Optional[str], env: Optional[Mapping[str, str]], timeout: Optional[float]
) -> dict[str, Any]:
    """The arguments of Session.run() for it."""
    data = input.encode() if isinstance(input, str) else input
    variables = {
        'cmd': cmd if isinstance(cmd, str) else list(cmd),
        'input_bytes': data,
        'cwd': cwd,
        'env': dict(env) if env else None,
        'limit': timeout,
    }
    return {'code': _RUN, 'variables': variables, 'timeout': timeout + 10 if timeout else None, 'typed': True, 'check': True}


def done(observation: Any) -> Done:
    return Done(*observation.value)
