"""What a first cell touches lies side by side: learnt at the first start with a template, used from then on."""

import os
import signal
import struct
from pathlib import Path

import gb

LEARNING = 'first start with these modules'
CELL = 'import pandas as pd\npd.DataFrame({"a": [1, 2, 3]})["a"].sum()'


def server(state, *args):
    """One whose sessions are forked on demand, and that knows nothing but what is in `state`."""
    return gb.running_daemon('--ready', '0', '--state-dir', state, *args, learnt=False)


def faults_of_a_first_cell(daemon):
    """Pages that a session was given until its first answer."""
    with daemon.api() as api:
        session = api.session()
        assert session.value(CELL) in ('6', 'np.int64(6)')
        return int(Path(f'/proc/{session.get()["pid"]}/stat').read_text().rpartition(')')[2].split()[7])


def test_learnt_once_and_then_used(tmp_path):
    faults = {}
    with server(tmp_path / 'state') as daemon:
        assert daemon.log().count(LEARNING) == 1
        (book,) = (tmp_path / 'state/layout').iterdir()
        learnt = book.read_bytes()
        assert book.stat().st_mode & 0o777 == 0o600
        faults['first start'] = faults_of_a_first_cell(daemon)
        zygotes = daemon.children('glovebox-zygote')
        os.kill(zygotes[0], signal.SIGKILL)
        gb.wait_until(lambda: (now := daemon.children('glovebox-zygote')) and now != zygotes, 'there is a new zygote')
        faults['its next zygote'] = faults_of_a_first_cell(daemon)
        assert daemon.log().count(LEARNING) == 1
    with server(tmp_path / 'state') as daemon:
        assert LEARNING not in daemon.log()
        faults['next start'] = faults_of_a_first_cell(daemon)
    assert book.read_bytes() == learnt
    (tmp_path / 'other').mkdir()
    (tmp_path / 'other/layout').touch()  # where a folder should be
    with server(tmp_path / 'other') as daemon:
        assert 'sessions start slower than they could' in daemon.log()
        without = faults_of_a_first_cell(daemon)
    assert max(faults.values()) < 0.7 * without, (faults, without)


def test_the_first_start_of_all_serves_at_once(tmp_path):
    """Sessions do not wait until the modules are imported, and what a first cell uses is learnt."""
    with gb.running_daemon('--state-dir', tmp_path / 'state', wait=False, learnt=False) as daemon:
        gb.wait_until(lambda: 'listening' in daemon.log(), 'the server listens')
        with daemon.api() as api:
            session = api.session()
            assert session.get()['template'] == 'plain' and session.value('6 * 7') == '42'
            gb.wait_until(lambda: api.get('/readyz').status_code == 200, 'the modules are imported')
            assert api.session().get()['template'] == 'default' and session.value('6 * 7') == '42'


def test_other_modules_are_learnt_apart(tmp_path):
    state = tmp_path / 'state'
    for modules, books in (('json', 1), ('json,decimal', 2), ('json', 2), ('none', 2)):
        with server(state, '--preload', modules) as daemon, daemon.api() as api:
            assert api.run('print(6 * 7)').ok().stdout == '42\n'
        found = list((state / 'layout').iterdir())
        assert len(found) == books and all(book.stat().st_size for book in found)


def test_what_is_no_book_is_learnt_anew(tmp_path):
    with server(tmp_path / 'state', '--preload', 'json') as daemon:
        (book,) = (tmp_path / 'state/layout').iterdir()
        good = book.read_bytes()
    for spoilt in (b'rubbish', good[: len(good) // 2], good[:-1] + bytes([good[-1] ^ 1]), bytes(10 * len(good))):
        book.write_bytes(spoilt)
        with server(tmp_path / 'state', '--preload', 'json') as daemon, daemon.api() as api:
            assert api.run('print(6 * 7)').ok().stdout == '42\n'
        assert book.read_bytes()[:8] == good[:8] and abs(len(book.read_bytes()) - len(good)) < len(good) / 2


def book_of(names):
    """As zygote/book.c writes it: of blocks of 64 bytes that are written to."""
    total = len(names)
    for name in names:
        total = (total ^ name ^ 64 << 32) * 0x9E3779B97F4A7C15 % 2**64
    entries = b''.join(struct.pack('=QII', name, 64, 0) for name in names)
    return struct.pack('=8sQQ', b'gbbook1', len(names), total) + entries


def test_a_book_about_something_else_is_thrown_away(tmp_path):
    """As after an update of the modules: what is in it is not met, and the next start learns."""
    with server(tmp_path / 'state', '--preload', 'json'):
        (book,) = (tmp_path / 'state/layout').iterdir()
    book.write_bytes(book_of(range(1, 2000)))
    with server(tmp_path / 'state', '--preload', 'json') as daemon, daemon.api() as api:
        assert api.run('print(6 * 7)').ok().stdout == '42\n'
        assert LEARNING not in daemon.log() and book.read_bytes() == b''
    with server(tmp_path / 'state', '--preload', 'json') as daemon:
        assert LEARNING in daemon.log() and book.read_bytes()[:7] == b'gbbook1'


def test_nothing_of_it_is_seen(tmp_path):
    """Neither in the log, where a module that fails is told of once, nor in sessions."""
    look = 'import sys; [type(f).__name__ for f in sys.meta_path], sys.getallocatedblocks() > 10_000'
    seen = []
    for _ in range(2):
        with server(tmp_path / 'state', '--preload', 'json,no_such_module') as daemon, daemon.api() as api:
            seen.append(api.session().value(look))
            gb.wait_until(lambda: 'ready after' in daemon.log(), 'it says that it is ready')
            assert daemon.log().count('not preloaded') == 1, daemon.log()
    (tmp_path / 'other').mkdir()
    (tmp_path / 'other/layout').touch()
    with server(tmp_path / 'other', '--preload', 'json') as daemon, daemon.api() as api:
        seen.append(api.session().value(look))
    assert len(set(seen)) == 1, seen


def test_switched_off_by_its_setting(tmp_path):
    with server(tmp_path / 'state', '--no-heap-placement') as daemon:
        assert LEARNING not in daemon.log()
        assert not (tmp_path / 'state/layout').exists()
        assert faults_of_a_first_cell(daemon)
