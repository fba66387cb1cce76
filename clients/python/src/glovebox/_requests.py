"""Requests as the server wants them, the same for both kinds of clients."""

from __future__ import annotations

import base64
import json
from typing import Any, Callable, Iterable, Mapping, MutableMapping, Optional, Union
from urllib.parse import quote, urlencode

from ._markers import to_json

JSON = {'Content-Type': 'application/json'}
Callback = Callable[[str], Any]
Names = Optional[Iterable[str]]
Options = Union[bool, Mapping[str, Any], None]  # on, off, or on with these options
Profile = Union[str, Mapping[str, Any], None]
Display = Callable[[dict[str, Any]], Any]


def dump(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(',', ':')).encode('utf-8', 'backslashreplace')


def key_header(fields: MutableMapping[str, Any]) -> Optional[dict[str, str]]:
    """Takes `idempotency_key` out of the fields of a request: it is a header."""
    key = fields.pop('idempotency_key', None)
    return {'Idempotency-Key': key} if key else None


def session_body(
    profile: Union[str, Mapping[str, Any], None],
    additional_imports: Optional[Iterable[str]],
    packages: Optional[Iterable[str]],
    display: Union[bool, Mapping[str, Any], None],
    timeout: Optional[float],
    memory: Optional[int],
    limits: Optional[Mapping[str, Any]],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """The body of POST /v1/sessions: what is None is the server's default."""
    all_limits = {**(limits or {})}
    if timeout is not None:
        all_limits['timeout_s'] = timeout
    if memory is not None:
        all_limits['memory_bytes'] = memory
    body = {
        'profile': profile,
        'additional_imports': list(additional_imports) if additional_imports else None,
        'packages': list(packages) if packages else None,
        'display': display or None,
        'limits': all_limits or None,
        **more,
    }
    if 'from_' in body:
        body['from'] = id_of(body.pop('from_'))
    return {k: v for k, v in body.items() if v is not None}


def id_of(thing: Any) -> Any:
    """Of a session or a checkpoint, as an object, as the server describes it, or as it is."""
    return thing['id'] if isinstance(thing, Mapping) else getattr(thing, 'id', thing)


def last_checkpoint(found: Mapping[str, Any]) -> str:
    """The newest of the answer to GET …/checkpoints that somebody asked for."""
    named = [c['id'] for c in found['checkpoints'] if c['name']]
    if not named:
        raise ValueError('the session has no checkpoint to go back to: take one with checkpoint(), or take the last cell back with undo()')
    return named[-1]


def execute_body(
    code: str,
    timeout: Optional[float],
    stdin: Optional[str],
    variables: Optional[Mapping[str, Any]],
    screenshot: Union[bool, Mapping[str, Any], None],
    on_block: Optional[str],
    record: Union[bool, Mapping[str, Any], None],
    typed: bool,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    body: dict[str, Any] = {'code': code, 'timeout_s': timeout, 'stdin': stdin, 'typed_result': typed or None, **more}
    body.update(on_block=on_block, record=dict(record) if isinstance(record, Mapping) else record or None)
    if variables:
        body['variables'] = {name: to_json(value) for name, value in variables.items()}
    if isinstance(screenshot, Mapping):
        body['screenshot'] = dict(screenshot)
    elif screenshot:
        body['capture_screenshot'] = True
    return {k: v for k, v in body.items() if v is not None}


def run_body(code: str, files: Optional[Mapping[str, Any]], more: Mapping[str, Any]) -> dict[str, Any]:
    """The body of POST /v1/run, with the names that run() of a session has."""
    body: dict[str, Any] = {'code': code, **more}
    if 'timeout' in body:
        body['timeout_s'] = body.pop('timeout')
    if isinstance(body.get('screenshot'), bool):
        body['capture_screenshot'] = body.pop('screenshot')
    if files:
        body['files'] = {path: _file_content(data) for path, data in files.items()}
    return body


def _file_content(data: Any) -> Any:
    return {'base64': base64.b64encode(data).decode()} if isinstance(data, (bytes, bytearray)) else data


def query(path: str, /, **parameters: Any) -> str:
    given = {k: str(v).lower() if isinstance(v, bool) else v for k, v in parameters.items() if v is not None}
    return f'{path}?{urlencode(given)}' if given else path


def file_path(session: str, path: str) -> str:
    return f'{session}/files/{quote(str(path).removeprefix("/workspace/") if hasattr(str, "removeprefix") else str(path))}'


def checkpoint_path(session: str, checkpoint: Union[str, Mapping[str, Any]]) -> str:
    name = checkpoint if isinstance(checkpoint, str) else str(checkpoint['id'])
    return f'{session}/checkpoints/{quote(name, safe="")}'


def as_bytes(data: Any) -> Any:
    """Text as UTF-8; bytes and files as they are."""
    return data.encode() if isinstance(data, str) else data


class Listener:
    """What somebody wants to hear of a cell while it runs."""

    def __init__(self, on_stdout: Optional[Callback], on_stderr: Optional[Callback], on_display: Optional[Display]) -> None:
        self.calls = {'stdout': on_stdout, 'stderr': on_stderr, 'display': on_display}

    @property
    def listens(self) -> bool:
        return any(self.calls.values())

    def tell(self, message: Mapping[str, Any]) -> Any:
        call = self.calls.get(message['type'])
        return call(message['data'] if message['type'] == 'display' else message['text']) if call else None
