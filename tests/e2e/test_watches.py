"""inotify: changes of files are told, reads and opens are not, and a session has its own share of watches."""

import ctypes
import os

WATCH = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def watch(fd, path, mask):
    return libc.inotify_add_watch(fd, path.encode(), mask)
fd = libc.inotify_init1(os.O_NONBLOCK)
"""
ACCESS, MODIFY, CLOSE_WRITE, CLOSE_NOWRITE, OPEN, CREATE, DELETE, ALL = 1, 2, 8, 0x10, 0x20, 0x100, 0x200, 0xFFF


def count_instances():
    """How many more this user may have."""
    libc, taken = ctypes.CDLL(None), []
    while (fd := libc.inotify_init1(0)) >= 0:
        taken.append(fd)
    for fd in taken:
        os.close(fd)
    return len(taken)


def test_changes_are_told(session):
    session.execute(WATCH).ok()
    code = f"""
watch(fd, '/workspace', {MODIFY | CREATE | DELETE | CLOSE_WRITE})
open('new', 'w').write('x')
os.unlink('new')
data, masks = os.read(fd, 4096), []
while data:
    masks.append(int.from_bytes(data[4:8], 'little'))
    data = data[16 + int.from_bytes(data[12:16], 'little'):]
masks
"""
    assert session.value(code) == str([CREATE, MODIFY, CLOSE_WRITE, DELETE])


def test_tail_follows(session):
    code = """
import subprocess, time
open('log', 'w').write('one\\n')
tail = subprocess.Popen(['tail', '-n', '+1', '-f', 'log'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
first = tail.stdout.readline()
with open('log', 'a') as f:
    f.write('two\\n')
second = tail.stdout.readline()
tail.kill()
first, second, tail.stderr.read()
"""
    assert session.value(code) == "(b'one\\n', b'two\\n', b'')"


def test_who_opens_and_reads_is_not_told(session):
    session.execute(WATCH).ok()
    for mask in (OPEN, ACCESS, CLOSE_NOWRITE, ALL, OPEN | MODIFY):
        assert session.value(f'watch(fd, "/usr/bin", {mask}), ctypes.get_errno()') == '(-1, 1)'


def test_a_session_has_its_share(api):
    before = count_instances()
    sessions = [api.session() for _ in range(3)]
    for session in sessions:
        session.execute(WATCH).ok()
        assert 4 < int(session.value('n = 0\nwhile libc.inotify_init1(0) >= 0: n += 1\nn')) < 32
    if os.geteuid() == 0:
        assert count_instances() > before - 16, 'those of sessions are not counted as ours'


def test_secret_memory_is_locked(session):
    code = 'import subprocess\nsubprocess.run("gpgconf --version >/dev/null; gpg --batch --passphrase x -c < /etc/passwd", shell=True, capture_output=True).stderr'
    said = session.value(code)
    assert 'insecure memory' not in said
    assert session.value('import ctypes, mmap\nm = mmap.mmap(-1, 4096)\nctypes.CDLL(None).mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), 4096)') == '0'
