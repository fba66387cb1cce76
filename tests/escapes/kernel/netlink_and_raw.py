"""Talking to the kernel's network code: routing, packet and audit sockets, and interfaces by ioctl."""

for name, family, kind, protocol in (
    ('routes', 16, 3, 0),
    ('audit', 16, 3, 9),
    ('netfilter', 16, 3, 12),
    ('packets', 17, 3, 0x300),
    ('raw IP', 2, 3, 255),
    ('ping', 2, 2, 1),
    ('AF_ALG', 38, 5, 0),
    ('vsock', 40, 1, 0),
):
    fd, _ = call('socket', family, kind, protocol)
    if fd >= 0:
        got(name)
SIOCGIFCONF, SIOCSIFFLAGS, SIOCGIFINDEX = 0x8912, 0x8914, 0x8933
request = ctypes.create_string_buffer(b'lo', 40)
pair = (ctypes.c_int * 2)()
call('socketpair', 1, 1, 0, pair)
for name, code in (('SIOCGIFINDEX', SIOCGIFINDEX), ('SIOCSIFFLAGS', SIOCSIFFLAGS)):
    if reached('ioctl', pair[0], code, request):
        got(name)
