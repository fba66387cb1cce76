"""Following a directory of a session: `session.watch()`."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any, AsyncIterator, Iterator, Optional

from . import _requests as requests
from ._net import Address, _Connection, _parse_head, _read_body
from .commands import _chunks
from .errors import ConnectionFailed, error_of


def _path(session: str, path: Optional[str], recursive: bool) -> str:
    return requests.query(f'{session}/files', watch=True, path=path, recursive=recursive or None)


def _change(line: str) -> Optional[dict[str, Any]]:
    """What a line of the stream tells; the start of the stream tells nothing."""
    return json.loads(line[5:]) or None if line.startswith('data:') else None


def watch(address: Address, session: str, path: Optional[str], recursive: bool) -> Iterator[dict[str, Any]]:
    connection = _Connection(address)
    try:
        connection.request('GET', address.prefix + _path(session, path, recursive), None, address.headers())
        response = connection.getresponse()
        if response.status != 200:
            raise error_of(response.status, response.read())
        for line in response:
            if change := _change(line.decode().strip()):
                yield change
    except (OSError, http.client.HTTPException) as e:
        raise e if isinstance(e, ConnectionFailed) else address.failed(e) from e
    finally:
        connection.close()


async def watch_async(address: Address, session: str, path: Optional[str], recursive: bool) -> AsyncIterator[dict[str, Any]]:
    head = {**address.headers(), 'Connection': 'close'}
    reader, writer = await address.open()
    try:
        lines = ''.join(f'{k}: {v}\r\n' for k, v in head.items())
        writer.write(f'GET {address.prefix}{_path(session, path, recursive)} HTTP/1.1\r\n{lines}\r\n'.encode('latin-1'))
        await writer.drain()
        status, answered = _parse_head(await reader.readuntil(b'\r\n\r\n'))
        if status != 200:
            raise error_of(status, await _read_body(reader, answered))
        async for line in _chunks(reader):
            if change := _change(line):
                yield change
    except (OSError, asyncio.IncompleteReadError) as e:
        raise e if isinstance(e, ConnectionFailed) else address.failed(e) from e
    finally:
        writer.close()
