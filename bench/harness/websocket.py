"""A small WebSocket client over a raw socket, for text messages that fit into one frame each way."""

import base64
import os
import socket
import struct

from harness.client import Refused


class WebSocket:
    """send() and receive() are apart so that many can be under way at once."""

    def __init__(self, port, path, timeout=60):
        self.socket = socket.create_connection(('127.0.0.1', port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b''
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f'GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
            f'Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n'.encode()
        )
        while b'\r\n\r\n' not in self.rest:
            self._more()
        head, _, self.rest = self.rest.partition(b'\r\n\r\n')
        if not head.startswith(b'HTTP/1.1 101'):
            raise Refused(f'{path}: {head[:200]!r}')

    def close(self):
        self.socket.close()

    def fileno(self):
        return self.socket.fileno()

    def _more(self):
        data = self.socket.recv(1 << 18)
        if not data:
            raise Refused('the server closed the connection')
        self.rest += data

    @staticmethod
    def frame(text):
        """The bytes of a message, masked with zeros: as valid as any mask, and cheap to make."""
        data = text.encode()
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b'\xfe' + struct.pack('>H', len(data))
        return b'\x81' + size + b'\0\0\0\0' + data

    def send(self, frame):
        self.socket.sendall(frame)

    def receive(self):
        """The text of the next message; pings are answered."""
        while True:
            opcode, data = self._frame()
            if opcode == 1:
                return data
            if opcode == 9:
                self.socket.sendall(b'\x8a' + bytes([0x80 | len(data)]) + b'\0\0\0\0' + data)
            elif opcode == 8:
                raise Refused(f'the server closed the WebSocket: {data!r}')

    def _frame(self):
        self._need(2)
        size, at = self.rest[1] & 127, 2
        if size == 126:
            self._need(4)
            size, at = struct.unpack_from('>H', self.rest, 2)[0], 4
        elif size == 127:
            self._need(10)
            size, at = struct.unpack_from('>Q', self.rest, 2)[0], 10
        self._need(at + size)
        opcode, data = self.rest[0] & 15, self.rest[at : at + size]
        self.rest = self.rest[at + size :]
        return opcode, data

    def _need(self, n):
        while len(self.rest) < n:
            self._more()

    def ask(self, frame):
        self.socket.sendall(frame)
        return self.receive()
