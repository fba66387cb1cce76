"""The network namespace of a jail without a network is used again: what an earlier session did in it must not show in a later one."""

import ast
import os
from pathlib import Path

import gb
import pytest

SESSIONS = 12
# A listening socket with a name that is sent to itself: the kernel keeps both when every process has ended.
CIRCLE = """
import socket, array
named = socket.socket(socket.AF_UNIX)
named.bind("\\0left-behind")
named.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("\\0left-behind")
client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [named.fileno()]))])
"""
BIND = 'import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind("\\0left-behind")\ns.close()'
# whatever the namespace tells; softnet_stat, netlink and ptype are about the whole machine
FIGURES = """
import os
# unix has addresses; behind the first line of sockstat, and in other columns of protocols, are figures of the whole machine
SHORT = {"unix": lambda f: [line.split()[7:] for line in f], "sockstat": lambda f: f.readline(),
    "protocols": lambda f: [line.split()[0:3:2] for line in f]}
told = {}
for name in sorted(os.listdir("/proc/self/net")):
    path = "/proc/self/net/" + name
    if name in ("softnet_stat", "netlink", "ptype") or os.path.isdir(path):
        continue
    try:
        with open(path) as f:
            told[name] = f.read() if name not in SHORT else SHORT[name](f)
    except OSError as e:
        told[name] = e.errno
print(told)
"""


@pytest.fixture(scope='module')
def api():
    if os.geteuid() != 0:
        pytest.skip('only root may look at the network namespace of another user')
    with gb.running_daemon('--preload', 'json', '--ready', '1') as daemon, daemon.api() as api:
        yield api


def network(session):
    """The session's network namespace, seen from outside."""
    return os.readlink(f'/proc/{session.get()["pid"]}/ns/net')


def life(api, *cells, **fields):
    """The namespace of a session that runs these cells and ends."""
    session = api.session(**fields)
    session.execute('pass').ok()  # its guest is there
    name = network(session)
    for code in cells:
        session.execute(code).ok()
    session.delete()
    return name


def test_a_namespace_is_used_again_and_no_two_sessions_share_one(api):
    names = [life(api, 'x = 1') for _ in range(SESSIONS)]
    assert len(set(names)) < len(names)
    sessions = [api.session() for _ in range(SESSIONS)]
    for session in sessions:
        session.execute('pass').ok()
    names = {network(session) for session in sessions}
    assert len(names) == SESSIONS and os.readlink('/proc/self/ns/net') not in names
    for session in sessions:
        session.delete()


def test_a_socket_that_outlives_its_session_is_not_there_in_a_later_one(api):
    for _ in range(SESSIONS):
        life(api, CIRCLE)
        later = api.session()
        assert 'left-behind' not in later.execute('print(open("/proc/self/net/unix").read())').ok().stdout
        later.execute(BIND).ok()
        later.delete()


def test_a_namespace_tells_nothing_of_its_earlier_sessions(api):
    use = 'import socket\nfor i in range(200):\n  a, b = socket.socketpair(); a.send(b"x" * 1000); b.recv(1000); a.close(); b.close()'
    told = {}
    for _ in range(SESSIONS):
        session = api.session()
        figures = ast.literal_eval(session.execute(FIGURES).ok().stdout)
        told.setdefault(network(session), []).append(figures)
        session.execute(use).ok()
        session.delete()
    again = [figures for figures in told.values() if len(figures) > 1]
    assert again
    for first, *others in again:
        for other in others:
            assert {name for name in first if first[name] != other[name]} == set()


def test_a_session_with_a_loopback_leaves_its_namespace_to_nobody(api):
    session = api.session(network='loopback')
    session.execute('pass').ok()
    name = network(session)
    pins = os.open(f'/proc/{session.get()["pid"]}/ns/net', os.O_RDONLY)
    try:
        session.delete()
        assert name not in [life(api, 'x = 1') for _ in range(SESSIONS)]
    finally:
        os.close(pins)


def test_code_has_no_power_over_its_namespace(api):
    """The namespace belongs to the jailer's user namespace: not even a process with all capabilities in the jail's own could change it."""
    session = api.session()
    session.execute('pass').ok()
    status = Path(f'/proc/{session.get()["pid"]}/status').read_text()
    assert 'CapEff:\t0000000000000000' in status
    assert session.value('__import__("os").path.exists("/proc/sys/net")') == 'False'
    session.delete()
