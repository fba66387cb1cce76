"""WebSocket: frames are made and read by code that does no I/O, which the blocking and the asyncio connection share."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import socket
import threading
from typing import Any, Iterator, Mapping, Optional

from ._net import Address, LIMIT, _parse_head, _read_body
from .errors import ConnectionFailed, error_of

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_GUID = b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11'


def frame(opcode: int, payload: bytes) -> bytes:
    """One frame of a client, masked as the protocol wants it."""
    n = len(payload)
    if n < 126:
        head = bytes((0x80 | opcode, 0x80 | n))
    elif n < 1 << 16:
        head = bytes((0x80 | opcode, 0xFE)) + n.to_bytes(2, 'big')
    else:
        head = bytes((0x80 | opcode, 0xFF)) + n.to_bytes(8, 'big')
    mask = os.urandom(4)
    key = (mask * (n // 4 + 1))[:n]
    return head + mask + (int.from_bytes(payload, 'little') ^ int.from_bytes(key, 'little')).to_bytes(n, 'little')


class Frames:
    """What a server sends, put together into messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._parts: list[bytes] = []
        self._opcode = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """(opcode, payload) of each message and control frame that is complete now."""
        self._bytes += data
        while True:
            one = self._next()
            if one is None:
                return
            final, opcode, payload = one
            if opcode >= CLOSE:
                yield opcode, payload
                continue
            self._opcode = opcode or self._opcode
            self._parts.append(payload)
            if final:
                message, self._parts = b''.join(self._parts), []
                yield self._opcode, message

    def _next(self) -> Optional[tuple[bool, int, bytes]]:
        have = self._bytes
        if len(have) < 2:
            return None
        n, at = have[1] & 0x7F, 2
        if n >= 126:
            at = 4 if n == 126 else 10
            if len(have) < at:
                return None
            n = int.from_bytes(have[2:at], 'big')
        if n > LIMIT or have[1] & 0x80:
            raise ConnectionFailed('the server sent a WebSocket frame that cannot be')
        if len(have) < at + n:
            return None
        first, payload = have[0], bytes(have[at : at + n])
        del have[: at + n]
        return bool(first & 0x80), first & 0x0F, payload


def _handshake(address: Address, path: str) -> tuple[bytes, bytes]:
    """The request, and what must come back."""
    key = base64.b64encode(os.urandom(16))
    headers = {
        **address.headers(),
        'Upgrade': 'websocket',
        'Connection': 'Upgrade',
        'Sec-WebSocket-Key': key.decode(),
        'Sec-WebSocket-Version': '13',
    }
    lines = ''.join(f'{k}: {v}\r\n' for k, v in headers.items())
    accept = base64.b64encode(hashlib.sha1(key + _GUID).digest())
    return f'GET {address.prefix}{path} HTTP/1.1\r\n{lines}\r\n'.encode('latin-1'), accept


def _check_handshake(status: int, headers: Mapping[str, str], body: bytes, accept: bytes) -> None:
    if status != 101:
        raise error_of(status, body)
    if headers.get('sec-websocket-accept', '').encode() != accept:
        raise ConnectionFailed('the server answered the WebSocket handshake wrongly')


class WebSocket:
    """A WebSocket on a blocking socket. One thread receives; any may send."""

    def __init__(self, address: Address, path: str) -> None:
        self.address = address
        request, accept = _handshake(address, path)
        self._socket = address.dial()
        self._lock = threading.Lock()
        self._frames = Frames()
        self._ready: list[tuple[int, bytes]] = []
        try:
            self._socket.settimeout(address.connect_timeout)
            self._socket.sendall(request)
            file = self._socket.makefile('rb', buffering=0)
            head = b''
            while not head.endswith(b'\r\n\r\n'):
                byte = file.read(1)
                if not byte:
                    raise ConnectionError('it closed the connection')
                head += byte
            status, headers = _parse_head(head)
            body = b'' if status == 101 else self._read_problem(headers)
            _check_handshake(status, headers, body, accept)
            self._socket.settimeout(None)
        except ConnectionFailed:
            self._socket.close()
            raise
        except OSError as e:
            self._socket.close()
            raise address.failed(e) from e
        except BaseException:
            self._socket.close()
            raise

    def _read_problem(self, headers: Mapping[str, str]) -> bytes:
        want, body = int(headers.get('content-length', 0)), b''
        while len(body) < want:
            data = self._socket.recv(want - len(body))
            if not data:
                break
            body += data
        return body

    def send(self, message: Any) -> None:
        self._send(TEXT, json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(',', ':')).encode())

    def _send(self, opcode: int, payload: bytes) -> None:
        data = frame(opcode, payload)
        try:
            with self._lock:
                self._socket.sendall(data)
        except OSError as e:
            raise self.address.failed(e) from e

    def receive(self, timeout: Optional[float] = None) -> Optional[Any]:
        """The next message; None when the server closed. TimeoutError after `timeout` seconds without one."""
        payload = self.receive_bytes(timeout)
        return None if payload is None else json.loads(payload)

    def receive_bytes(self, timeout: Optional[float] = None) -> Optional[bytes]:
        """The same as it came."""
        while True:
            while self._ready:
                opcode, payload = self._ready.pop(0)
                if opcode in (TEXT, BINARY):
                    return payload
                if opcode == PING:
                    self._send(PONG, payload)
                elif opcode == CLOSE:
                    return None
            try:
                if timeout is not None:
                    self._socket.settimeout(timeout)
                data = self._socket.recv(1 << 18)
            except socket.timeout as e:
                raise TimeoutError(f'no message within {timeout} s') from e
            except OSError:
                return None
            finally:
                if timeout is not None:
                    self._socket.settimeout(None)
            if not data:
                return None
            self._ready += self._frames.feed(data)

    def close(self) -> None:
        try:
            with self._lock:
                self._socket.sendall(frame(CLOSE, (1000).to_bytes(2, 'big')))
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()

    def drop(self) -> None:
        """Leaves without a word: whoever holds something for this connection sees that it broke."""
        self._socket.close()


class AsyncWebSocket:
    """The same on an event loop: `await AsyncWebSocket.connect(…)`."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address, self._reader, self._writer = address, reader, writer
        self._frames = Frames()
        self._ready: list[tuple[int, bytes]] = []

    @classmethod
    async def connect(cls, address: Address, path: str) -> 'AsyncWebSocket':
        request, accept = _handshake(address, path)
        reader, writer = await address.open()
        try:
            writer.write(request)
            head = await asyncio.wait_for(reader.readuntil(b'\r\n\r\n'), address.connect_timeout)
            status, headers = _parse_head(head)
            body = b'' if status == 101 else await _read_body(reader, headers)
            _check_handshake(status, headers, body, accept)
        except ConnectionFailed:
            writer.close()
            raise
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as e:
            writer.close()
            raise address.failed(e) from e
        except BaseException:
            writer.close()
            raise
        return cls(address, reader, writer)

    async def send(self, message: Any) -> None:
        data = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(',', ':')).encode()
        await self._send(TEXT, data)

    async def _send(self, opcode: int, payload: bytes) -> None:
        try:
            self._writer.write(frame(opcode, payload))
            await self._writer.drain()
        except (OSError, RuntimeError) as e:
            raise self.address.failed(e) from e

    async def receive(self) -> Optional[Any]:
        payload = await self.receive_bytes()
        return None if payload is None else json.loads(payload)

    async def receive_bytes(self) -> Optional[bytes]:
        while True:
            while self._ready:
                opcode, payload = self._ready.pop(0)
                if opcode in (TEXT, BINARY):
                    return payload
                if opcode == PING:
                    await self._send(PONG, payload)
                elif opcode == CLOSE:
                    return None
            try:
                data = await self._reader.read(1 << 18)
            except OSError:
                return None
            if not data:
                return None
            self._ready += self._frames.feed(data)

    async def close(self) -> None:
        try:
            self._writer.write(frame(CLOSE, (1000).to_bytes(2, 'big')))
            self._writer.close()
            await self._writer.wait_closed()
        except (OSError, RuntimeError):
            pass

    def drop(self) -> None:
        """Leaves without a word."""
        self._writer.transport.abort()
