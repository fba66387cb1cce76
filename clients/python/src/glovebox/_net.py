"""Where a server is and how bytes get there: addresses and HTTP/1.1, with blocking sockets and with asyncio."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import threading
import time
from typing import Any, Mapping, Optional, Union
from urllib.parse import urlsplit

from .errors import ConnectionFailed, error_of

Body = Union[bytes, Any, None]  # bytes, or a file to read from
MAX_IDLE_S = 60  # the server closes idle connections after 120 s
MAX_IDLE = 16
LIMIT = 1 << 30  # no answer and no message is longer


class Address:
    """http://host:port, https://host:port or unix:/path of a socket."""

    def __init__(self, url: str, token: Optional[str] = None, connect_timeout: float = 10.0) -> None:
        self.url, self.token, self.connect_timeout = url.rstrip('/'), token, connect_timeout
        self.path: Optional[str] = None
        self.prefix = ''
        if url.startswith(('unix:', 'http+unix:')):
            self.path = url.split(':', 1)[1].replace('//', '/') if '%2F' not in url else url.split('//', 1)[1].replace('%2F', '/')
            self.host, self.port, self.tls = 'localhost', 80, None
            return
        parts = urlsplit(url if '//' in url else f'http://{url}')
        if parts.scheme not in ('http', 'https', 'ws', 'wss') or not parts.hostname:
            raise ValueError(f'{url!r} is no address of a server; write it as http://host:port or unix:/path')
        self.tls = ssl.create_default_context() if parts.scheme in ('https', 'wss') else None
        self.host, self.port = parts.hostname, parts.port or (443 if self.tls else 80)
        self.prefix = parts.path.rstrip('/')

    @property
    def host_header(self) -> str:
        name = f'[{self.host}]' if ':' in self.host else self.host
        return name if self.path or self.port == (443 if self.tls else 80) else f'{name}:{self.port}'

    def headers(self) -> dict[str, str]:
        found = {'Host': self.host_header, 'Accept-Encoding': 'identity'}
        if self.token:
            found['Authorization'] = f'Bearer {self.token}'
        return found

    def failed(self, error: BaseException) -> ConnectionFailed:
        return ConnectionFailed(f'the server at {self.url} cannot be reached: {error}. Start one with `glovebox serve`, or use Glovebox.local()')

    def dial(self) -> socket.socket:
        try:
            if self.path:
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                sock.settimeout(self.connect_timeout)
                sock.connect(self.path)
            else:
                sock = socket.create_connection((self.host, self.port), self.connect_timeout)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                if self.tls:
                    sock = self.tls.wrap_socket(sock, server_hostname=self.host)
            sock.settimeout(None)
            return sock
        except OSError as e:
            raise self.failed(e) from e

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            if self.path:
                opening = asyncio.open_unix_connection(self.path, limit=1 << 20)
            else:
                opening = asyncio.open_connection(self.host, self.port, ssl=self.tls, limit=1 << 20)
            return await asyncio.wait_for(opening, self.connect_timeout)
        except (OSError, asyncio.TimeoutError) as e:
            raise self.failed(e or TimeoutError('no answer')) from e


class Answer:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    def check(self) -> 'Answer':
        if self.status >= 400:
            raise error_of(self.status, self.body)
        return self


# ---- HTTP with blocking sockets ----------------------------------------


class _Connection(http.client.HTTPConnection):
    def __init__(self, address: Address) -> None:
        super().__init__(address.host, address.port)
        self.address = address
        self.used_at = time.monotonic()

    def connect(self) -> None:
        self.sock = self.address.dial()


class Http:
    """Kept-alive connections, as many as threads ask at once."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()

    def request(self, method: str, path: str, body: Body = None, headers: Optional[Mapping[str, str]] = None) -> Answer:
        """The answer, whatever its status. An exception in between (Ctrl-C too) closes the connection, which interrupts its cell."""
        connection, reused = self._take()
        try:
            try:
                return self._ask(connection, method, path, body, headers)
            except (http.client.RemoteDisconnected, ConnectionError):
                # A kept-alive connection may have been closed meanwhile. What can be asked twice is.
                if not reused or method == 'POST' or not isinstance(body, (bytes, type(None))):
                    raise
                connection.close()
                connection = _Connection(self.address)
                return self._ask(connection, method, path, body, headers)
        except (OSError, http.client.HTTPException) as e:
            connection.close()
            if isinstance(e, ConnectionFailed):
                raise
            raise self.address.failed(e) from e
        except BaseException:
            connection.close()
            raise

    def _ask(self, connection: _Connection, method: str, path: str, body: Body, headers: Optional[Mapping[str, str]]) -> Answer:
        connection.request(method, self.address.prefix + path, body, {**self.address.headers(), **(headers or {})})
        response = connection.getresponse()
        answer = Answer(response.status, {k.lower(): v for k, v in response.headers.items()}, response.read())
        self._give_back(connection, response)
        return answer

    def _take(self) -> tuple[_Connection, bool]:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if time.monotonic() - connection.used_at < MAX_IDLE_S:
                    return connection, True
                connection.close()
        return _Connection(self.address), False

    def _give_back(self, connection: _Connection, response: http.client.HTTPResponse) -> None:
        connection.used_at = time.monotonic()
        with self._lock:
            if not response.will_close and len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


# ---- HTTP with asyncio -------------------------------------------------


class AsyncHttp:
    """The same for one event loop."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter, float]] = []

    async def request(self, method: str, path: str, body: Body = None, headers: Optional[Mapping[str, str]] = None) -> Answer:
        data = body if isinstance(body, bytes) else b'' if body is None else body.read()
        head = {**self.address.headers(), **(headers or {})}
        if data or method in ('POST', 'PUT'):
            head['Content-Length'] = str(len(data))
        lines = ''.join(f'{k}: {v}\r\n' for k, v in head.items())
        message = f'{method} {self.address.prefix}{path} HTTP/1.1\r\n{lines}\r\n'.encode('latin-1') + data
        reader, writer, reused = await self._take()
        try:
            try:
                return await self._ask(reader, writer, method, message)
            except (asyncio.IncompleteReadError, ConnectionError):
                if not reused or method == 'POST':
                    raise
                writer.close()
                reader, writer = await self.address.open()
                return await self._ask(reader, writer, method, message)
        except (OSError, asyncio.IncompleteReadError, ValueError) as e:
            writer.close()
            if isinstance(e, ConnectionFailed):
                raise
            raise self.address.failed(e) from e
        except BaseException:
            writer.close()  # also when cancelled: the server sees that nobody waits any more
            raise

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, message: bytes) -> Answer:
        writer.write(message)
        await writer.drain()
        status, headers = _parse_head(await reader.readuntil(b'\r\n\r\n'))
        while status == 100:
            status, headers = _parse_head(await reader.readuntil(b'\r\n\r\n'))
        body = b'' if method == 'HEAD' or status in (204, 304) else await _read_body(reader, headers)
        if headers.get('connection', '').lower() == 'close' or len(self._idle) >= MAX_IDLE * 8:
            writer.close()
        else:
            self._idle.append((reader, writer, time.monotonic()))
        return Answer(status, headers, body)

    async def _take(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bool]:
        while self._idle:
            reader, writer, used_at = self._idle.pop()
            if time.monotonic() - used_at < MAX_IDLE_S and not reader.at_eof():
                return reader, writer, True
            writer.close()
        return (*await self.address.open(), False)

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for _, writer, _ in idle:
            writer.close()


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    lines = head.decode('latin-1').split('\r\n')
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(':')
        if colon:
            headers[name.strip().lower()] = value.strip()
    return int(lines[0].split(' ', 2)[1]), headers


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get('transfer-encoding', '').lower() != 'chunked':
        if 'content-length' not in headers:
            return await reader.read(LIMIT)
        return await reader.readexactly(int(headers['content-length']))
    parts = []
    while True:
        size = int((await reader.readuntil(b'\r\n')).split(b';')[0], 16)
        parts.append(await reader.readexactly(size))
        await reader.readuntil(b'\r\n')
        if not size:
            return b''.join(parts)
