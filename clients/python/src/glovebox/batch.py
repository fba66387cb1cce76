"""Many programs at once: POST /v1/batch, which returns each result as soon as its program has ended."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
from dataclasses import dataclass, field
from typing import Any, AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Optional

from . import _requests as requests
from ._net import Address, _Connection, _parse_head, _read_body
from .errors import ConnectionFailed, error_of
from .models import Observation

MAX_ITEMS = 1000  # of one request; more items are several requests
MAX_BYTES = 16 << 20


@dataclass
class Verdict:
    """Whether an outcome is the expected outcome."""

    passed: bool
    score: float
    reason: str = ''


@dataclass
class BatchResult:
    """The outcome of one item. `observation` is None when the item could not run; `error` says why."""

    index: int
    id: Any
    observation: Optional[Observation]
    error: Optional[dict[str, Any]] = None
    verdict: Optional[Verdict] = None
    fetched: dict[str, Optional[bytes]] = field(default_factory=dict)
    duplicate_of: Optional[int] = None
    waited_ms: float = 0.0
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def passed(self) -> bool:
        return bool(self.verdict and self.verdict.passed)

    @classmethod
    def of(cls, raw: dict[str, Any], first: int = 0) -> 'BatchResult':
        observation, verdict, duplicate = raw.get('observation'), raw.get('verdict'), raw.get('duplicate_of')
        return cls(
            index=raw['index'] + first,
            id=raw.get('id'),
            observation=Observation(observation) if observation else None,
            error=raw.get('error'),
            verdict=Verdict(**verdict) if verdict else None,
            fetched={k: v and base64.b64decode(v) if v is not None else None for k, v in (raw.get('fetched') or {}).items()},
            duplicate_of=None if duplicate is None else duplicate + first,
            waited_ms=raw.get('waited_ms') or 0.0,
            raw=raw,
        )


def parts(items: Iterable[Any], concurrency: Optional[int], deduplicate: bool, key: Optional[str]) -> Iterator[tuple[int, bytes, dict[str, str]]]:
    """(index of the first item, body, headers) of the requests that the items need."""
    chunk: list[bytes] = []
    first, size = 0, 0
    for item in items:
        text = requests.dump(item if isinstance(item, Mapping) else {'code': str(item)})
        if chunk and (len(chunk) >= MAX_ITEMS or size + len(text) > MAX_BYTES):
            yield first, *_request(chunk, first, concurrency, deduplicate, key)
            first, chunk, size = first + len(chunk), [], 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield first, *_request(chunk, first, concurrency, deduplicate, key)


def _request(chunk: list[bytes], first: int, concurrency: Optional[int], deduplicate: bool, key: Optional[str]) -> tuple[bytes, dict[str, str]]:
    more = {k: v for k, v in (('concurrency', concurrency), ('deduplicate', deduplicate or None)) if v is not None}
    head = requests.dump(more)[:-1]
    body = head + (b',' if more else b'') + b'"items":[' + b','.join(chunk) + b']}'
    headers = {**requests.JSON, **({'Idempotency-Key': f'{key}-{first}' if first else key} if key else {})}
    return body, headers


def stream(address: Address, body: bytes, headers: Mapping[str, str], first: int) -> Iterator[BatchResult]:
    """The results of one request. Leaving the loop cancels the remaining items."""
    connection = _Connection(address)
    done = False
    try:
        connection.request('POST', address.prefix + '/v1/batch', body, {**address.headers(), **headers})
        response = connection.getresponse()
        if response.status != 200:
            raise error_of(response.status, response.read())
        for line in response:
            raw = json.loads(line)
            done = bool(raw.get('done'))
            if not done:
                yield BatchResult.of(raw, first)
        if not done:
            raise ConnectionFailed('the server closed the connection before the last line of the batch')
    except (OSError, http.client.HTTPException) as e:
        if isinstance(e, ConnectionFailed):
            raise
        raise address.failed(e) from e
    finally:
        connection.close()


async def stream_async(address: Address, body: bytes, headers: Mapping[str, str], first: int) -> AsyncGenerator[BatchResult, None]:
    head = {**address.headers(), **headers, 'Content-Length': str(len(body)), 'Connection': 'close'}
    lines = ''.join(f'{k}: {v}\r\n' for k, v in head.items())
    reader, writer = await address.open()
    done = False
    try:
        writer.write(f'POST {address.prefix}/v1/batch HTTP/1.1\r\n{lines}\r\n'.encode('latin-1') + body)
        await writer.drain()
        status, answered = _parse_head(await reader.readuntil(b'\r\n\r\n'))
        if status != 200:
            raise error_of(status, await _read_body(reader, answered))
        async for line in _lines(reader):
            raw = json.loads(line)
            done = bool(raw.get('done'))
            if not done:
                yield BatchResult.of(raw, first)
        if not done:
            raise ConnectionFailed('the server closed the connection before the last line of the batch')
    except (OSError, asyncio.IncompleteReadError) as e:
        if isinstance(e, ConnectionFailed):
            raise
        raise address.failed(e) from e
    finally:
        writer.close()


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines of a chunked body."""
    left = b''
    while True:
        size = int((await reader.readuntil(b'\r\n')).split(b';')[0], 16)
        data = await reader.readexactly(size)
        await reader.readuntil(b'\r\n')
        if not size:
            return
        *whole, left = (left + data).split(b'\n')
        for line in whole:
            if line:
                yield line
