"""Timers without end; each is kernel memory."""

event = ctypes.create_string_buffer(struct.pack('qii', 0, 0, 1), 64)  # SIGEV_NONE
number = (ctypes.c_int * 1)()
made = 0
while made < 20000 and call('timer_create', 1, event, number)[0] == 0:
    made += 1
if made >= 20000:
    got(f'{made} timers')
