# network: "loopback"
"""With sockets for TCP and UDP: other kinds of them, what lies behind their options, and the interfaces."""

for name, family, kind, protocol in (
    ('routes', 16, 3, 0),
    ('netfilter', 16, 3, 12),
    ('packets', 17, 3, 0x300),
    ('raw IP', 2, 3, 255),
    ('raw IPv6', 10, 3, 58),
    ('ping', 2, 2, 1),
    ('MPTCP', 2, 1, 262),
    ('UDP-Lite', 2, 2, 136),
    ('AF_ALG', 38, 5, 0),
    ('vsock', 40, 1, 0),
    ('TCP of family 2 in the high half', 17 | 2 << 32, 3, 0),
    ('packets behind a flag', 17, 3 | 0o2000000, 0x300),
):
    fd, _ = call('socket', family, kind, protocol)
    if fd >= 0:
        got(name)
        os.close(fd)
tcp, _ = call('socket', 2, 1, 0)
udp, _ = call('socket', 2, 2, 0)
tcp6, _ = call('socket', 10, 1, 0)
SETSOCKOPT = 54 if X86 else 208
value = ctypes.create_string_buffer(b'tls\0\1\0\0\0', 8)
one = ctypes.create_string_buffer(struct.pack('i', 1), 4)
for name, fd, level, option, data, size in (
    ('TCP_ULP', tcp, 6, 31, value, 4),
    ('TCP_REPAIR', tcp, 6, 19, one, 4),
    ('TCP_MD5SIG', tcp, 6, 14, value, 8),
    ('UDP_ENCAP', udp, 17, 100, one, 4),
    ('UDP_SEGMENT', udp, 17, 103, one, 4),
    ('SOL_TLS', tcp, 282, 1, value, 8),
    ('TCP_CONGESTION', tcp, 6, 13, value, 3),
    ('IP_OPTIONS', tcp, 0, 4, one, 0),
    ('IP_XFRM_POLICY', tcp, 0, 17, value, 8),
    ('IP_TRANSPARENT', tcp, 0, 19, one, 4),
    ('MCAST_MSFILTER', udp, 0, 48, value, 8),
    ('IPV6_ADDRFORM', tcp6, 41, 1, one, 4),
    ('IPV6_2292PKTOPTIONS', tcp6, 41, 6, one, 0),
    ('IPV6_FLOWLABEL_MGR', tcp6, 41, 32, value, 8),
    ('IPV6_RTHDR', tcp6, 41, 57, value, 0),
):
    if fd >= 0 and reached(SETSOCKOPT, fd, level, option, data, size):
        got(name)
SIOCSIFFLAGS, SIOCSIFADDR, SIOCADDRT, SIOCGIFCONF = 0x8914, 0x8916, 0x890B, 0x8912
for name, code in (('SIOCSIFFLAGS', SIOCSIFFLAGS), ('SIOCSIFADDR', SIOCSIFADDR), ('SIOCADDRT', SIOCADDRT), ('SIOCGIFCONF', SIOCGIFCONF)):
    # flags: up, so that the control does not switch the machine's own loopback off
    if fd >= 0 and reached('ioctl', udp, code, ctypes.create_string_buffer(b'lo'.ljust(16, b'\0') + b'\x49\0', 256)):
        got(name)
