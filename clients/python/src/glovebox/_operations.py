"""What a server and a session can be asked, written once for both kinds of clients.

An operation is a generator: it yields requests, gets their answers, and returns its result. Glovebox and Session carry it out
with carry_out(), AsyncGlovebox and AsyncSession with carry_out_async().
"""

from __future__ import annotations

from typing import Any, Awaitable, Callable, Generator, Iterable, Mapping, NamedTuple, Optional, TypeVar, Union

from . import _requests as requests
from ._net import Answer
from .models import Observation
from .tools import Tool


class Request(NamedTuple):
    method: str
    path: str
    body: Any = None
    headers: Optional[Mapping[str, str]] = None


T = TypeVar('T')
Operation = Generator[Request, Answer, T]
Checkpoint = Union[str, Mapping[str, Any]]


def carry_out(ask: Callable[..., Answer], operation: Operation[T]) -> T:
    try:
        request = next(operation)
        while True:
            request = operation.send(ask(*request))
    except StopIteration as end:
        return end.value


async def carry_out_async(ask: Callable[..., Awaitable[Answer]], operation: Operation[T]) -> T:
    try:
        request = next(operation)
        while True:
            request = operation.send(await ask(*request))
    except StopIteration as end:
        return end.value


def get(path: str) -> Operation[Any]:
    return (yield Request('GET', path)).json()


# ---- the server -------------------------------------------------------------


def sessions(query: dict[str, Any]) -> Operation[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []
    while True:
        page = (yield Request('GET', requests.query('/v1/sessions', **query))).json()
        found += page['sessions']
        if page.get('next') is None:
            return found
        query['cursor'] = page['next']


def volumes() -> Operation[list[dict[str, Any]]]:
    return (yield Request('GET', '/v1/volumes')).json()['volumes']


def create_volume(name: str, quota_bytes: Optional[int]) -> Operation[dict[str, Any]]:
    body = {'name': name} if quota_bytes is None else {'name': name, 'quota_bytes': quota_bytes}
    return (yield Request('POST', '/v1/volumes', body)).json()


def delete_volume(name: str) -> Operation[None]:
    yield Request('DELETE', f'/v1/volumes/{requests.quote(name, safe="")}')


def run(code: str, files: Optional[Mapping[str, Any]], check: bool, fields: dict[str, Any]) -> Operation[Observation]:
    headers = requests.key_header(fields)
    observation = Observation((yield Request('POST', '/v1/run', requests.run_body(code, files, fields), headers)).json())
    return observation.raise_for_error() if check else observation


# ---- a session ----------------------------------------------------------------


class SessionState:
    """What a session's object knows of it."""

    def __init__(self, info: Mapping[str, Any], owned: bool) -> None:
        self.id: str = info['id']
        self.created = dict(info)
        self.limits_not_enforced: list[str] = list(info.get('limits_not_enforced') or [])  # those that the server cannot keep
        self._path = f'/v1/sessions/{self.id}'
        self._owned = owned
        self._tools: dict[str, Tool] = {}

    def detach(self) -> str:
        """Lets the session live on when this object is closed; its id."""
        self._owned = False
        return self.id


def tools_by_name(tools: Iterable[Any]) -> dict[str, Tool]:
    return {t.name: t for t in (Tool.of(t) for t in tools)}


def interrupt(session: str) -> Operation[bool]:
    return (yield Request('POST', f'{session}/interrupt')).json()['interrupted']


def checkpoint(session: str, name: Optional[str], fields: Mapping[str, Any]) -> Operation[dict[str, Any]]:
    body = {**fields, **({'name': name} if name else {})}
    return (yield Request('POST', f'{session}/checkpoints', body)).json()['checkpoint']


def delete_checkpoint(session: str, of: Checkpoint) -> Operation[None]:
    yield Request('DELETE', requests.checkpoint_path(session, of))


def rollback(session: str, to: Optional[Checkpoint], fields: Mapping[str, Any]) -> Operation[dict[str, Any]]:
    if to is None and not fields:
        to = requests.last_checkpoint((yield Request('GET', f'{session}/checkpoints')).json())
    body = {**fields, **({'checkpoint': requests.id_of(to)} if to else {})}
    return (yield Request('POST', f'{session}/rollback', body)).json()


def fork(session: str, count: int, fields: dict[str, Any]) -> Operation[list[dict[str, Any]]]:
    headers = requests.key_header(fields)
    return (yield Request('POST', f'{session}/fork', {'count': count, **fields}, headers)).json()['sessions']


def write_file(session: str, path: str, data: Any) -> Operation[None]:
    headers = {'Content-Type': 'application/octet-stream'}
    yield Request('PUT', requests.file_path(session, path), requests.as_bytes(data), headers)


def read_file(session: str, path: str) -> Operation[bytes]:
    return (yield Request('GET', requests.file_path(session, path))).body


def delete_file(session: str, path: str) -> Operation[None]:
    yield Request('DELETE', requests.file_path(session, path))


def files(session: str, path: Optional[str], recursive: bool) -> Operation[list[dict[str, Any]]]:
    return (yield Request('GET', requests.query(f'{session}/files', path=path, recursive=recursive))).json()['files']


def ports(session: str) -> Operation[list[dict[str, Any]]]:
    return (yield Request('GET', f'{session}/ports')).json()['ports']


def port_url(session: str, port: int) -> Operation[str]:
    url = (yield Request('GET', f'{session}/ports')).json()['url']
    if url is None:
        raise ValueError('the server is called by an address that no name leads to: call it by a name, or use the paths of ports()')
    return url.replace('{port}', str(port))


def logs(session: str, query: dict[str, Any]) -> Operation[str]:
    parts: list[str] = []
    while True:
        page = (yield Request('GET', requests.query(f'{session}/logs', **query))).json()
        parts += [entry['text'] for entry in page['entries']]
        if page.get('end', True):
            return ''.join(parts)
        query['after'] = page['next']
