"""A small HTTP client over a raw socket: what it costs itself is a few tens of microseconds, less than http.client."""

import json
import re
import socket

_LENGTH = re.compile(rb'\r\ncontent-length: *(\d+)', re.IGNORECASE)
_CHUNKED = re.compile(rb'\r\ntransfer-encoding: *chunked', re.IGNORECASE)


class Refused(Exception):
    """An answer that is not the one that was asked for."""


def request_bytes(method, path, body=None):
    data = b'' if body is None else json.dumps(body).encode()
    head = f'{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n'
    return head.encode() + b'Content-Length: %d\r\n\r\n' % len(data) + data


class Connection:
    """One kept-alive connection. send() and receive() are apart so that many can be under way at once."""

    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(('127.0.0.1', port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b''

    def close(self):
        self.socket.close()

    def fileno(self):
        return self.socket.fileno()

    def send(self, request):
        self.socket.sendall(request)

    def receive(self):
        """(status, body) of the next answer."""
        data = self.rest
        while (end := data.find(b'\r\n\r\n')) < 0:
            data += self._more()
        head, self.rest = data[: end + 2], data[end + 4 :]
        length = _LENGTH.search(head)
        if length:
            body = self._take(int(length[1]))
        else:
            body = self._chunks() if _CHUNKED.search(head) else b''
        return int(head[9:12]), body

    def ask(self, request):
        self.socket.sendall(request)
        return self.receive()

    def call(self, method, path, body=None):
        """The decoded answer; Refused for anything but success."""
        status, data = self.ask(request_bytes(method, path, body))
        if status >= 300:
            raise Refused(f'{method} {path}: {status} {data[:500]!r}')
        return json.loads(data) if data else None

    def create(self, **fields):
        """A new session: its description."""
        return self.call('POST', '/v1/sessions', fields)

    def cell(self, session, code):
        """Runs a cell that must succeed; its observation."""
        answer = self.call('POST', f'/v1/sessions/{session}/execute', {'code': code})
        if answer['status'] != 'ok':
            raise Refused(f'{code!r}: {answer["status"]} {answer["error"]} {answer["stderr"][-500:]}')
        return answer

    def delete(self, session):
        self.call('DELETE', f'/v1/sessions/{session}')

    def _more(self):
        data = self.socket.recv(1 << 18)
        if not data:
            raise Refused('the server closed the connection')
        return data

    def _take(self, n):
        parts, have = [self.rest], len(self.rest)
        while have < n:
            parts.append(self._more())
            have += len(parts[-1])
        data = b''.join(parts)
        self.rest = data[n:]
        return data[:n]

    def _line(self):
        while (end := self.rest.find(b'\r\n')) < 0:
            self.rest += self._more()
        line, self.rest = self.rest[:end], self.rest[end + 2 :]
        return line

    def _chunks(self):
        parts = []
        while size := int(self._line().split(b';')[0], 16):
            parts.append(self._take(size))
            self._line()
        self._line()
        return b''.join(parts)
