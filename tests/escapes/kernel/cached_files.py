"""Which files of the system are in the page cache, which all sessions and the machine share: what others have read."""

RWF_NOWAIT, RWF_DONTCACHE = 8, 0x80

fd = os.open('/usr/bin/env', os.O_RDONLY)
os.read(fd, 4096)
for name, flags in (('NOWAIT', RWF_NOWAIT), ('NOWAIT, with others', RWF_NOWAIT | 1), ('NOWAIT, with high bits', 1 << 32 | RWF_NOWAIT)):
    buffer = ctypes.create_string_buffer(4096)
    vector = struct.pack('PP', ctypes.addressof(buffer), 4096)
    result, error = call('preadv2', fd, vector, 1, 0, 0, flags)
    if result >= 0 or error == errno.EAGAIN:
        got(f'read what is cached: {name}')
