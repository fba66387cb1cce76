"""Moving pages between files, pipes and sockets: the way to files that are read-only, when the kernel has a fault there."""

source = os.open('/etc/passwd', os.O_RDONLY)
r, w = os.pipe()
r2, w2 = os.pipe()
if call('splice', source, None, w, None, 4, 0)[0] > 0:
    got('splice')
os.write(w, b'data')
if call('tee', r, w2, 4, 0)[0] > 0:
    got('tee')
vector = (ctypes.c_uint64 * 2)(ctypes.addressof(ctypes.create_string_buffer(16)), 16)
if reached('vmsplice', w, vector, 1, 0):
    got('vmsplice')
if call('sendfile', w, source, None, 4)[0] > 0:
    got('sendfile')
