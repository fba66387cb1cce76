"""The history and the contents of sessions: cells, events, variables, completion."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any, AsyncIterator, Iterator, Mapping, Optional, Union

from . import _requests as requests
from ._net import Address
from ._websocket import AsyncWebSocket, WebSocket


def _update(name: Optional[str], metadata: Optional[Mapping[str, Any]], ttl_s: Optional[float], idle_timeout_s: Optional[float]) -> dict[str, Any]:
    body = {'name': name, 'metadata': metadata, 'ttl_s': ttl_s, 'idle_timeout_s': idle_timeout_s}
    return {k: v for k, v in body.items() if v is not None}


def _ask(code: str, cursor: Optional[int]) -> dict[str, Any]:
    return {'code': code, **({} if cursor is None else {'cursor': cursor})}


def _events_path(session: Any, after: Optional[str], output: bool) -> str:
    return requests.query('/v1/events', session=requests.id_of(session), after=after, output=None if output else False)


def events(address: Address, session: Any = None, after: Optional[str] = None, output: bool = True) -> Iterator[dict[str, Any]]:
    """The events of sessions, live; ends when the server stops."""
    socket = WebSocket(address, _events_path(session, after, output))
    try:
        while (event := socket.receive()) is not None:
            yield event
    finally:
        socket.close()


async def async_events(address: Address, session: Any = None, after: Optional[str] = None, output: bool = True) -> AsyncIterator[dict[str, Any]]:
    socket = await AsyncWebSocket.connect(address, _events_path(session, after, output))
    try:
        while (event := await socket.receive()) is not None:
            yield event
    finally:
        await socket.close()


def _pack(folder: Union[str, Path]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        tar.add(str(folder), arcname='.')
    return out.getvalue()


def _unpack(data: bytes, folder: Union[str, Path]) -> None:
    """Unpacks regular files and directories only, and checks their names, although the server checks them too."""
    base = Path(folder).resolve()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            place = (base / member.name).resolve()
            if base != place and base not in place.parents:
                raise ValueError(f'the archive names a file outside: {member.name}')
            if member.isdir():
                place.mkdir(parents=True, exist_ok=True)
            elif member.isfile():
                place.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                place.write_bytes(content.read() if content else b'')


_TAR = {'Content-Type': 'application/x-tar'}


class HistoryCalls:
    """The methods of a session for its history, variables and settings."""

    box: Any
    _path: str

    def cells(self, last: Optional[int] = None) -> list[dict[str, Any]]:
        """The cells of the session from all clients, oldest first; only the last ones when a number is given. Values are references: see value_of()."""
        found: list[dict[str, Any]] = []
        query: dict[str, Any] = {'last': last}
        while True:
            page = self.box.request('GET', requests.query(f'{self._path}/cells', **query)).json()
            found += page['cells']
            if page.get('next') is None:
                return found
            query = {'after': page['next']}

    def value_of(self, reference: Mapping[str, Any]) -> dict[str, Any]:
        """All forms of a value from cells(): a cell's `result`, or one of its `displays`."""
        return self.box.request('GET', reference['href']).json()

    def export(self, target: Union[str, Path]) -> None:
        """Writes the cells to a notebook (.ipynb) or a program (.py), depending on the file name extension."""
        kind = 'py' if str(target).endswith('.py') else 'ipynb'
        Path(target).write_bytes(self.box.request('GET', f'{self._path}/export?format={kind}').body)

    def upload_folder(self, source: Union[str, Path], path: str = '') -> dict[str, Any]:
        """Copies a local folder and its contents into /workspace or a folder below it."""
        return self.box.request('PUT', requests.query(f'{self._path}/archive', path=path or None), _pack(source), _TAR).json()

    def download_folder(self, target: Union[str, Path], path: str = '') -> None:
        """Copies /workspace, or a folder below it, to a local folder."""
        _unpack(self.box.request('GET', requests.query(f'{self._path}/archive', path=path or None)).body, target)

    def variables(self) -> list[dict[str, Any]]:
        """Name, type, shape, size and short repr of the variables. Works between cells, and runs no code of the session."""
        return self.box.request('GET', f'{self._path}/variables').json()['variables']

    def complete(self, code: str, cursor: Optional[int] = None) -> dict[str, Any]:
        """The possible completions at the cursor (a position in characters; default: the end)."""
        return self.box.request('POST', f'{self._path}/complete', _ask(code, cursor)).json()

    def inspect(self, code: str, cursor: Optional[int] = None) -> dict[str, Any]:
        """Type, signature and documentation of the name at the cursor."""
        return self.box.request('POST', f'{self._path}/inspect', _ask(code, cursor)).json()

    def update(
        self, name: Optional[str] = None, metadata: Optional[Mapping[str, Any]] = None, ttl_s: Optional[float] = None, idle_timeout_s: Optional[float] = None
    ) -> dict[str, Any]:
        """Changes the session. Omitted fields are unchanged; an empty name removes the name."""
        return self.box.request('PATCH', self._path, _update(name, metadata, ttl_s, idle_timeout_s)).json()

    def pause(self) -> dict[str, Any]:
        """Pauses the session until resume(): its processes are stopped, cells are refused, and it does not expire."""
        return self.box.request('POST', f'{self._path}/pause').json()

    def resume(self, ttl_s: Optional[float] = None) -> dict[str, Any]:
        """Resumes a paused session. It then lives for `ttl_s` more seconds."""
        return self.box.request('POST', f'{self._path}/resume', {'ttl_s': ttl_s} if ttl_s else {}).json()

    def share(self, ttl_s: Optional[float] = None) -> dict[str, Any]:
        """Makes a link (`url`, a path on the server) that shows the session for reading, for an hour or `ttl_s` seconds."""
        return self.box.request('POST', f'{self._path}/share', {'ttl_s': ttl_s} if ttl_s else {}).json()

    def connections(self) -> list[dict[str, Any]]:
        """The last connections that the session tried to make: time, target, verdict, bytes."""
        return self.box.request('GET', f'{self._path}/network').json()['connections']


class AsyncHistoryCalls:
    """As HistoryCalls, for asyncio."""

    box: Any
    _path: str

    async def cells(self, last: Optional[int] = None) -> list[dict[str, Any]]:
        """The cells of the session from all clients, oldest first; only the last ones when a number is given."""
        found: list[dict[str, Any]] = []
        query: dict[str, Any] = {'last': last}
        while True:
            page = (await self.box.request('GET', requests.query(f'{self._path}/cells', **query))).json()
            found += page['cells']
            if page.get('next') is None:
                return found
            query = {'after': page['next']}

    async def value_of(self, reference: Mapping[str, Any]) -> dict[str, Any]:
        """All forms of a value from cells(): a cell's `result`, or one of its `displays`."""
        return (await self.box.request('GET', reference['href'])).json()

    async def export(self, target: Union[str, Path]) -> None:
        """Writes the cells to a notebook (.ipynb) or a program (.py), depending on the file name extension."""
        kind = 'py' if str(target).endswith('.py') else 'ipynb'
        Path(target).write_bytes((await self.box.request('GET', f'{self._path}/export?format={kind}')).body)

    async def upload_folder(self, source: Union[str, Path], path: str = '') -> dict[str, Any]:
        """Copies a local folder and its contents into /workspace or a folder below it."""
        return (await self.box.request('PUT', requests.query(f'{self._path}/archive', path=path or None), _pack(source), _TAR)).json()

    async def download_folder(self, target: Union[str, Path], path: str = '') -> None:
        """Copies /workspace, or a folder below it, to a local folder."""
        _unpack((await self.box.request('GET', requests.query(f'{self._path}/archive', path=path or None))).body, target)

    async def variables(self) -> list[dict[str, Any]]:
        """Name, type, shape, size and short repr of the variables. Works between cells."""
        return (await self.box.request('GET', f'{self._path}/variables')).json()['variables']

    async def complete(self, code: str, cursor: Optional[int] = None) -> dict[str, Any]:
        """The possible completions at the cursor (a position in characters; default: the end)."""
        return (await self.box.request('POST', f'{self._path}/complete', _ask(code, cursor))).json()

    async def inspect(self, code: str, cursor: Optional[int] = None) -> dict[str, Any]:
        """Type, signature and documentation of the name at the cursor."""
        return (await self.box.request('POST', f'{self._path}/inspect', _ask(code, cursor))).json()

    async def update(
        self, name: Optional[str] = None, metadata: Optional[Mapping[str, Any]] = None, ttl_s: Optional[float] = None, idle_timeout_s: Optional[float] = None
    ) -> dict[str, Any]:
        """Changes the session. Omitted fields are unchanged; an empty name removes the name."""
        return (await self.box.request('PATCH', self._path, _update(name, metadata, ttl_s, idle_timeout_s))).json()

    async def pause(self) -> dict[str, Any]:
        return (await self.box.request('POST', f'{self._path}/pause')).json()

    async def resume(self, ttl_s: Optional[float] = None) -> dict[str, Any]:
        return (await self.box.request('POST', f'{self._path}/resume', {'ttl_s': ttl_s} if ttl_s else {})).json()

    async def share(self, ttl_s: Optional[float] = None) -> dict[str, Any]:
        return (await self.box.request('POST', f'{self._path}/share', {'ttl_s': ttl_s} if ttl_s else {})).json()

    async def connections(self) -> list[dict[str, Any]]:
        return (await self.box.request('GET', f'{self._path}/network')).json()['connections']
