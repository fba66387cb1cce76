"""Put behind prelude.py in a session: the guest's half of the wire, in the hands of the code itself.

`Wire` speaks on descriptor 1023 in place of the interpreter's own loop. The cell that makes it never returns.
"""

import array
import select
import socket
import threading

CONTROL = 1023
SETUP, EXECUTE, CHECK, REHEARSE, TOOLS, TOOL_RESULT, PARK, PARK_NEXT, REPLAY, LIVE = range(1, 11)
READY, FAILED, DISPLAY, RESULT, ERROR, FILES, DONE, CHECKED, TOOL_CALL, TOOL_CANCEL, ANSWER, PARKED, LIVED, REPLAYED, STARTED, WAITS = range(32, 48)
T_CODE, T_TEXT, T_JSON, T_MIME, T_EXIT_CODE, T_OUTCOME, T_CALL, T_TICKET, T_RESTORE, T_MOVE, T_ITSELF = 1, 8, 9, 10, 16, 17, 23, 32, 35, 37, 48
MARK = 0x6C696A67
CLONE_PIDFD, CLONE_VM, CLONE_FILES, CLONE_PARENT, SIGCHLD = 0x1000, 0x100, 0x400, 0x8000, 17
SIBLING = CLONE_PIDFD | CLONE_PARENT  # a child of the daemon, as copies and guests are
NAMESPACES = (0x10000000, 0x00020000, 0x40000000, 0x08000000, 0x04000000, 0x20000000)  # user, mnt, net, ipc, uts, pid


def field(tag, value):
    data = struct.pack('<Q', value) if isinstance(value, int) else value
    return struct.pack('<BI', tag, len(data)) + data


def frame(kind, serial=0, *fields):
    body = b''.join(fields)
    return struct.pack('<IB3xI', len(body), kind, serial) + body


def parse(body):
    found, at = {}, 0
    while at + 5 <= len(body):
        tag, size = struct.unpack_from('<BI', body, at)
        found[tag] = body[at + 5 : at + 5 + size]
        at += 5 + size
    return found


def number(data):
    return struct.unpack('<Q', data)[0] if data and len(data) == 8 else 0


def clone_child(flags=CLONE_PIDFD | SIGCHLD):
    """(0, -1) in the child, (pid, pidfd) in the parent."""
    fd = ctypes.c_int(-1)
    libc.syscall.restype = ctypes.c_long
    pid = libc.syscall(ctypes.c_long(CALLS['clone']), ctypes.c_ulong(flags), None, ctypes.byref(fd), None, ctypes.c_ulong(0))
    if pid < 0:
        raise OSError(ctypes.get_errno(), 'clone')
    return pid, fd.value


def spawn(function, flags=CLONE_PIDFD | SIGCHLD):
    """A child that runs function(): (pid, pidfd)."""
    pid, fd = clone_child(flags)
    if pid == 0:
        try:
            function()
        finally:
            os._exit(0)
    return pid, fd


class Wire:
    def __init__(self, fd=CONTROL):
        self.socket = socket.socket(fileno=os.dup(fd))
        self.socket.setblocking(True)
        self.data = b''
        self.fds = []

    def send(self, kind, serial=0, *fields, fds=()):
        self.send_raw(frame(kind, serial, *fields), fds)

    def send_raw(self, data, fds=()):
        along = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
        self.socket.sendmsg([data], along)

    def receive(self):
        """(kind, serial, fields) of the next frame; descriptors that came are in `fds`."""
        while True:
            if len(self.data) >= 12:
                size, kind, serial = struct.unpack_from('<IB3xI', self.data)
                if len(self.data) >= 12 + size:
                    body, self.data = self.data[12 : 12 + size], self.data[12 + size :]
                    return kind, serial, parse(body)
            data, extra, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(32 * 4))
            for level, what, value in extra:
                if what == socket.SCM_RIGHTS:
                    came = array.array('i')
                    came.frombytes(value[: len(value) // 4 * 4])
                    self.fds += came
            if not data:
                os._exit(0)
            self.data += data

    def done(self, serial):
        self.send(DONE, serial, field(T_EXIT_CODE, 0), field(T_OUTCOME, 0))


def this_cell():
    """The serial of the cell that runs: its file is called after it."""
    return int(sys._getframe(1).f_code.co_filename.strip('<>').split()[-1])


def join(namespaces):
    """Into the namespaces that came with an order, as a copy would; which of them were joined."""
    return [call('setns', fd, kind, MARK)[0] == 0 for fd, kind in zip(namespaces, NAMESPACES)]
