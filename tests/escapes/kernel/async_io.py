"""io_uring, whose requests pass no filter, and the older asynchronous calls."""

parameters = ctypes.create_string_buffer(120)
if reached('io_uring_setup', 4, parameters):
    got('io_uring')
context = (ctypes.c_ulong * 1)()
if call('io_setup', 1, context)[0] == 0:
    got('io_setup')
