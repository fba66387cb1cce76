"""Put behind prelude.py and wire.py in a session: a guest that answers anything at any time, by the numbers of a seed.

`SEED` and `SANE` are set before it: SANE of ten frames are answered as a guest would, so that the daemon's state machines get far enough
to be confused later.
"""

import contextlib
import random

dice = random.Random(SEED)
lock = threading.Lock()
tickets, calls, serials = [0], [1], [1]


def some_pidfd():
    kind = dice.randrange(4)
    if kind == 0:
        return os.dup(spawned()[1])
    pid, fd = spawned()
    if kind == 1:
        os.kill(pid, signal.SIGKILL)  # of a process that ends
    return fd


children = []


def spawned():
    for pid, fd in children[:-6]:
        os.kill(pid, signal.SIGKILL)
        os.close(fd)
        with contextlib.suppress(ChildProcessError):  # a sibling is the daemon's to collect
            os.waitpid(pid, 0)
    del children[:-6]
    children.append(spawn(lambda: time.sleep(1000), dice.choice([SIBLING, SIBLING, CLONE_PIDFD | SIGCHLD])))
    pid, fd = children[-1]
    return pid, os.dup(fd)


def some_fd():
    """A descriptor of any kind that code can make, and what keeps its other end."""
    kind = dice.randrange(9)
    if kind == 0:
        return some_pidfd()
    if kind == 1:
        return os.pipe()[dice.randrange(2)]
    if kind == 2:
        return os.memfd_create('x', 8)
    if kind == 3:
        return os.open('/workspace', os.O_RDONLY)
    if kind == 4:
        return os.dup(CONTROL)
    if kind == 5:
        return os.open('/usr/bin/env', os.O_RDONLY)
    if kind == 6:
        ours, theirs = socket.socketpair(socket.AF_UNIX, dice.choice([socket.SOCK_DGRAM, socket.SOCK_SEQPACKET]))
        keep.append(ours)
        return os.dup(theirs.fileno())
    ours, theirs = socket.socketpair()
    if dice.random() < 0.7:
        threading.Thread(target=copy, args=(ours,), daemon=True).start()
    else:
        keep.append(ours)
    return os.dup(theirs.fileno())


keep = []


def parked_pair():
    ours, theirs = socket.socketpair()
    threading.Thread(target=copy, args=(ours,), daemon=True).start()
    return [spawned()[1], os.dup(theirs.fileno())]


def some_ticket():
    return dice.choice([dice.choice(tickets), tickets[-1], 0, dice.getrandbits(64), tickets[-1] + 1])


def some_serial():
    return dice.choice([serials[-1], dice.choice(serials), 0, dice.getrandbits(32), serials[-1] + 1])


def some_fields():
    made = []
    for _ in range(dice.randrange(4)):
        tag = dice.choice([T_TICKET, T_TEXT, T_JSON, T_MIME, T_EXIT_CODE, T_OUTCOME, T_CALL, dice.randrange(256)])
        value = some_ticket() & (2**64 - 1) if dice.random() < 0.5 else dice.randbytes(dice.choice([0, 1, 7, 8, 100, 5000]))
        made.append(field(tag, value))
    return made


def send(w, kind, serial, *fields, fds=()):
    try:
        with lock:
            w.send(kind, serial & 0xFFFFFFFF, *fields, fds=fds)
    except OSError:
        pass
    for fd in fds:
        os.close(fd)


def anything(w):
    """One message that nobody asked for."""
    what = dice.randrange(12)
    if what < 5:
        kind = dice.choice([PARKED, PARKED, LIVED, LIVED, DONE, RESULT, TOOL_CALL, TOOL_CANCEL, REPLAYED, STARTED, WAITS, ANSWER, CHECKED, READY, FILES])
        send(w, kind, some_serial(), *some_fields(), fds=[some_fd() for _ in range(dice.randrange(3))])
    elif what < 7:
        send(w, dice.choice([PARKED, LIVED]), 0, field(T_TICKET, some_ticket() & (2**64 - 1)), fds=parked_pair())
    elif what == 7:
        send(w, TOOL_CALL, serials[-1], field(T_CALL, dice.choice([1, 2, 2**63])), field(T_TEXT, b'ask'), field(T_JSON, dice.choice([b'{}', b'{"a":1}', b'[', b'{' * 3000])))
    elif what == 8:
        send(w, PARKED, 0, field(T_TICKET, tickets[-1]), field(T_TEXT, dice.randbytes(40)), fds=[some_fd()])
    elif what == 9 and dice.random() < 0.2:
        try:
            with lock:
                w.send_raw(dice.randbytes(dice.choice([1, 11, 12, 40])))  # from now on the daemon reads nonsense
        except OSError:
            pass
    elif what == 10:
        time.sleep(dice.random() / 20)
    else:
        send(w, dice.randrange(256), some_serial(), *some_fields())


def copy(ours):
    """The other end of a copy's socket: told to live, it says and does what it likes."""
    o = Wire(ours.fileno())
    try:
        while True:
            kind, serial, f = o.receive()
            came, o.fds = o.fds, []
            tickets.append(number(f.get(T_TICKET, b'')))
            ending = dice.randrange(5)
            if ending == 0 and len(came) >= 9:
                def inside():
                    join(came[3:9])
                    pid, pidfd = clone_child(dice.choice([SIBLING, CLONE_PIDFD | SIGCHLD]))
                    if pid == 0:
                        g = Wire(came[0])
                        g.send(READY)
                        time.sleep(1000)
                    Wire(came[0]).send(LIVED, 0, fds=[pidfd])
                    time.sleep(1000)
                children.append(spawn(inside))
            elif ending == 1 and T_ITSELF in f and came:
                Wire(came[0]).send(READY)
            elif ending < 4:
                for _ in range(dice.randrange(1, 3)):
                    send(Wire(came[0]) if came else o, LIVED, 0, *some_fields(), fds=[some_fd()])
            for fd in came:
                os.close(fd)
    except (OSError, ValueError):
        pass


def noise():
    while True:
        time.sleep(dice.random() / 10)
        anything(w)


w = Wire()
w.done(this_cell())
threading.Thread(target=noise, daemon=True).start()
while True:
    kind, serial, f = w.receive()
    if T_TICKET in f:
        tickets.append(number(f[T_TICKET]))
    if serial:
        serials.append(serial)
    if dice.randrange(10) >= SANE:
        anything(w)
    if kind in (EXECUTE, REPLAY):
        if dice.random() < 0.1:
            anything(w)
        send(w, DONE, serial, field(T_EXIT_CODE, 0), field(T_OUTCOME, dice.choice([0, 0, 0, 1, 3, 9])))
        if kind == REPLAY:
            send(w, REPLAYED, 0)
    elif kind in (PARK, PARK_NEXT) and dice.random() < 0.9:
        for _ in range(dice.choice([1, 1, 1, 2])):  # sometimes twice
            send(w, PARKED, 0, field(T_TICKET, number(f[T_TICKET])), fds=parked_pair())
    elif kind == TOOL_RESULT:
        anything(w)
