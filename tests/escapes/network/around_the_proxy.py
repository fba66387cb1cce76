# network: {"allow": ["allowed.invalid:443", "*.allowed.invalid:*", "localhost:@VICTIM@", "8.8.8.8:53"]}
# timeout: 60
"""With something allowed, to something else: directly, by other spellings of an address, by what a proxy could be talked into."""

import socket

PORT = @VICTIM@
PROXY = ('127.77.0.1', 3128)


def speak(address, data, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(5)
            s.connect(address)
            s.sendall(data)
            answer = b''
            while b'CAUGHT' not in answer and (more := s.recv(4096)):
                answer += more
            return b'CAUGHT' in answer
    except OSError:
        return False


GET = b'GET / HTTP/1.0\r\n\r\n'
for address in ('127.0.0.1', '0.0.0.0', 'localhost'):
    if speak((address, PORT), GET):
        got(f'directly by {address}')
if speak(('127.0.0.1', PORT), b'x', kind=socket.SOCK_DGRAM):
    got('UDP')
if speak(f'\0glovebox-victim-{PORT}', GET, family=socket.AF_UNIX):
    got('an abstract socket')

SPELLINGS = ('127.0.0.1', 'localhost', 'LOCALHOST.', '0.0.0.0', '[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '127.1',
             '0x7f000001', '2130706433', '0177.0.0.1', '127.0.0.1.', 'allowed.invalid@127.0.0.1', '127.0.0.1%00.allowed.invalid', '127.0.0.1#.allowed.invalid',
             '127.0.0.1\\.allowed.invalid', 'localhost\0.allowed.invalid')
for name in SPELLINGS:
    where = f'{name}:{PORT}'.encode()
    for what, data in (
        ('CONNECT', b'CONNECT ' + where + b' HTTP/1.1\r\n\r\n' + GET),
        ('CONNECT with another Host', b'CONNECT ' + where + b' HTTP/1.1\r\nHost: allowed.invalid:443\r\n\r\n' + GET),
        ('a whole URL', b'GET http://' + where + b'/ HTTP/1.1\r\nHost: allowed.invalid\r\n\r\n'),
    ):
        if speak(PROXY, data):
            got(f'{what} to {name}')
    bare = name.strip('[]').encode()
    if speak(PROXY, b'\x05\x01\x00\x05\x01\x00\x03' + bytes([len(bare)]) + bare + PORT.to_bytes(2, 'big') + GET):
        got(f'SOCKS to the name {name}')
for what, data in (
    ('SOCKS to an address', b'\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01' + PORT.to_bytes(2, 'big') + GET),
    ('SOCKS to IPv6', b'\x05\x01\x00\x05\x01\x00\x04' + bytes(15) + b'\x01' + PORT.to_bytes(2, 'big') + GET),
    ('SOCKS to a mapped address', b'\x05\x01\x00\x05\x01\x00\x04' + bytes(10) + b'\xff\xff\x7f\x00\x00\x01' + PORT.to_bytes(2, 'big') + GET),
    ('SOCKS BIND', b'\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01' + PORT.to_bytes(2, 'big') + GET),
    ('SOCKS UDP', b'\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01' + PORT.to_bytes(2, 'big') + GET),
    ('SOCKS 4', b'\x04\x01' + PORT.to_bytes(2, 'big') + b'\x7f\x00\x00\x01\x00' + GET),
    ('two requests', b'CONNECT allowed.invalid:443 HTTP/1.1\r\n\r\nCONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n' % PORT + GET),
    ('a request in a header', b'CONNECT allowed.invalid:443 HTTP/1.1\nX: y\r\nCONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n' % PORT + GET),
    ('a request in a body', b'GET http://allowed.invalid/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
                            b'GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n' % PORT),
    ('a bare path', b'GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n' % PORT),
):
    if speak(PROXY, data):
        got(what)
