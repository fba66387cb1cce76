"""Urgent data on unix sockets: little code, no use, and a way into the kernel once."""

import socket

near, far = socket.socketpair()
tries('sent', near.send, b'x', socket.MSG_OOB)
if escapes:
    tries('received', far.recv, 1, socket.MSG_OOB)
tries('in a message', near.sendmsg, [b'x'], [], socket.MSG_OOB)
