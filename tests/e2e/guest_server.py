"""A web server that tests start inside a session; see test_ports.py."""

import base64
import hashlib
import os
import socket
import sys
import threading


def read_head(stream):
    first = stream.readline().decode()
    headers = {}
    while (line := stream.readline().decode().strip()):
        name, _, value = line.partition(':')
        headers[name.lower()] = value.strip()
    return first.split(), headers


def answer(connection, body, *headers, status='200 OK'):
    text = ''.join(f'{h}\r\n' for h in headers)
    connection.sendall(f'HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{text}\r\n'.encode() + body)


def chunks(stream):
    while (size := int(stream.readline(), 16)):
        yield stream.read(size)
        stream.readline()


def upload(connection, stream, headers):
    """Answers each piece of the body while the next ones are still on their way."""
    connection.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    for piece in chunks(stream):
        text = hashlib.sha256(piece).hexdigest().encode() if len(piece) > 1000 else piece.upper()
        connection.sendall(b'%x\r\n%s\r\n' % (len(text), text))
    connection.sendall(b'0\r\n\r\n')


def digest(connection, stream, headers):
    total, left = hashlib.sha256(), int(headers['content-length'])
    while left:
        piece = stream.read(min(left, 1 << 16))
        total.update(piece)
        left -= len(piece)
    answer(connection, total.hexdigest().encode())


def websocket(connection, stream, headers):
    token = base64.b64encode(hashlib.sha1((headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()).decode()
    connection.sendall(f'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {token}\r\n\r\n'.encode())
    while len(head := stream.read(2)) == 2:
        length = head[1] & 127
        if length == 126:
            length = int.from_bytes(stream.read(2), 'big')
        mask = stream.read(4)
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(stream.read(length)))
        size = bytes([len(data)]) if len(data) < 126 else b'\x7e' + len(data).to_bytes(2, 'big')
        connection.sendall(head[:1] + size + data)


def endless(connection, stream, headers):
    connection.sendall(b'HTTP/1.1 200 OK\r\n\r\n')
    with open('streaming', 'w') as f:
        f.write('1')
    try:
        while True:
            connection.sendall(b'x' * 65536)
    except OSError:
        os.unlink('streaming')


RAW = {
    '/nonsense': b'hello\r\n\r\n',
    '/long': b'HTTP/1.1 200 OK\r\nX: ' + b'a' * 100_000 + b'\r\n\r\n',
    '/many': b'HTTP/1.1 200 OK\r\n' + b'A: b\r\n' * 500 + b'\r\n',
    '/short': b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc',
    '/both': b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    '/two': b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
    '/interim': b'HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    '/switch': b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n',
    '/none': b'',
    '/close': b'HTTP/1.0 200 OK\r\n\r\nuntil the end',
}


def serve(connection):
    stream = connection.makefile('rb')
    (method, target, _), headers = read_head(stream)
    path = target.partition('?')[0]
    if path in RAW:
        connection.sendall(RAW[path])
    elif path == '/upload':
        upload(connection, stream, headers)
    elif path == '/digest':
        digest(connection, stream, headers)
    elif path == '/ws':
        websocket(connection, stream, headers)
    elif path == '/endless':
        endless(connection, stream, headers)
    elif path == '/silent':
        with open('silent', 'w') as f:
            f.write('1')
        stream.read()
        os.unlink('silent')
    elif path == '/large':
        answer(connection, b'0123456789' * 1_000_000)
    elif path == '/headers':
        answer(connection, b'x', 'Set-Cookie: mine=1', 'Set-Cookie: wide=1; Domain=localhost', 'Set-Cookie: glovebox_port_key=1',
               'Strict-Transport-Security: max-age=9', 'Connection: X-Hop', 'X-Hop: 1', 'X-Kept: ü', 'Location: /there')  # fmt: skip
    else:
        answer(connection, '\n'.join([method, target, *(f'{n}: {v}' for n, v in headers.items())]).encode(), 'Content-Type: text/html')
    connection.close()


def main():
    family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((sys.argv[1], int(sys.argv[2])))
    listener.listen()
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


main()
