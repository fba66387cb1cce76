"""GET …/files?watch: changes below a directory, as events."""

import contextlib
import http.client
import itertools
import json
import os
import sys
import threading

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '2', '--preload', 'none') as d:
        yield d


@pytest.fixture
def session(daemon):
    with daemon.api() as api:
        yield api.session()


class Watch:
    def __init__(self, daemon, session, query=''):
        self.connection = http.client.HTTPConnection('127.0.0.1', daemon.port, timeout=gb.PATIENCE)
        self.connection.request('GET', f'{session.path}/files?watch{query}')
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.next()[0] == 'started'

    def next(self):
        event = None
        while line := self.answer.readline().decode().strip('\n'):
            if line.startswith('event: '):
                event = line[7:]
            if line.startswith('data: '):
                data = json.loads(line[6:])
                self.answer.readline()
                return event, data.get('name')
        return None

    def until(self, *wanted):
        """Events up to the one that is wanted; the order of others does not matter."""
        seen = []
        while wanted not in seen:
            event = self.next()
            assert event, seen
            seen.append(event)
        return seen

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.answer.close()
        self.connection.close()


def test_changes_are_told(daemon, session):
    with Watch(daemon, session) as w:
        session.execute('open("a", "w").write("1")')
        w.until('create', 'a')
        w.until('write', 'a')
        session.execute('import os; os.chmod("a", 0o600)')
        w.until('chmod', 'a')
        session.execute('os.rename("a", "b")')
        w.until('rename', 'a')
        w.until('create', 'b')
        session.execute('os.unlink("b")')
        w.until('remove', 'b')


def test_uploads_are_told_under_their_own_name(daemon, session):
    with Watch(daemon, session) as w:
        session.put_file('new', b'1')
        assert w.until('write', 'new') == [('create', 'new'), ('write', 'new')]
        session.put_file('new', b'2')
        assert w.next() == ('write', 'new')


def test_directories_below_are_followed(daemon, session):
    session.put_file('one/two/f', b'')
    with Watch(daemon, session, '&recursive') as w:
        session.execute('open("one/two/f", "w").write("1")')
        w.until('write', 'one/two/f')
        session.execute('import os; os.makedirs("three/four/five")')
        w.until('create', 'three/four/five')
        session.execute('open("three/four/five/g", "w").write("1")')
        w.until('write', 'three/four/five/g')
        session.execute('os.rename("three", "six"); open("six/four/h", "w").write("1")')
        w.until('write', 'six/four/h')
    with Watch(daemon, session, '&path=one') as w:
        session.execute('open("one/two/f", "w").write("2"); open("one/e", "w")')
        assert w.next() == ('create', 'e')


def test_a_watch_that_is_behind_is_told_so(daemon, session):
    with Watch(daemon, session, '&recursive') as w:
        session.execute('import os\nfor i in range(1100): os.mkdir(f"d{i}")')
        assert ('missed', None) in w.until('missed', None)


def test_what_cannot_be_watched_is_refused(daemon, session):
    session.put_file('file', b'')
    api = session.api
    assert api.get(f'{session.path}/files?watch&path=nope').status_code == 404
    assert api.get(f'{session.path}/files?watch&path=file').status_code == 409
    assert api.get(f'{session.path}/files?watch&path=../x').status_code == 400
    with contextlib.ExitStack() as stack:
        for _ in range(32):
            stack.enter_context(Watch(daemon, session))
        refused = api.get(f'{session.path}/files?watch')
        assert (refused.status_code, refused.json()['code']) == (429, 'too_many_watches')


def test_clients_that_vanish_and_sessions_that_end_leave_nothing(daemon):
    with daemon.api() as api:
        first = api.session()
        with Watch(daemon, first):
            pass  # the daemon's own descriptor for all watches
        first.delete()
    before = daemon.settled_fds()
    with daemon.api() as api:
        s = api.session()
        with Watch(daemon, s, '&recursive'), Watch(daemon, s) as last:
            s.delete()
            assert last.next() is None
        other = api.session()
        for _ in range(50):
            with Watch(daemon, other, '&recursive'):
                pass
        gb.wait_until(lambda: api.get(f'{other.path}/files').status_code == 200, 'the daemon serves')
        other.delete()
    gb.wait_until(lambda: daemon.settled_fds() <= before, 'no descriptor is left')


def test_client_follows_a_directory(daemon, session):
    from glovebox import Glovebox

    with Glovebox(daemon.url) as box:
        s = box.attach(session.id)
        with contextlib.closing(s.watch(recursive=True)) as changes:
            following = threading.Thread(target=lambda: seen.append(next(changes)))
            seen = []
            following.start()
            for n in itertools.count():
                s.write_file(f'file{n}', 'x')
                following.join(0.1)
                if not following.is_alive():
                    break
            assert seen[0]['type'] == 'create' and seen[0]['name'].startswith('file')


TAKES_ANOTHERS_NAME = """
import os, shutil, time
for i in range(25):
    os.mkdir('a')
    time.sleep(0.02)  # "a" is watched before the burst
    for k in range(300):
        open(f'f{k % 2}', 'w').close()
    os.mkdir('a/b')
    os.rename('a/b', 'c')
    os.rename('a', 't')
    os.mkdir('a')
    os.rename('t', 'a/b')  # the old events of "a/b" now lead to the directory that they are of
    time.sleep(0.03)
    shutil.rmtree('a')
    shutil.rmtree('c')
open('end', 'w').close()
"""


def test_a_directory_that_takes_the_name_of_another_harms_nobody(daemon, session):
    with Watch(daemon, session, '&recursive') as w, Watch(daemon, session, '&recursive') as other:
        assert session.execute(TAKES_ANOTHERS_NAME).ok
        for watch in (w, other):
            watch.until('create', 'end')
        session.execute('import os; os.makedirs("later/below"); open("later/below/f", "w").close()')
        for watch in (w, other):
            watch.until('create', 'later/below/f')
    assert daemon.process.poll() is None


def polled(session, method, **fields):
    """A watch that keeps its events until a client asks for them, of any directory that the session sees."""
    id = session.id.removeprefix('s_')
    token = session.api.post(f'/sandboxes/{id}/connect', json={'timeout': 600}).json()['envdAccessToken']
    headers = {'E2b-Sandbox-Id': id, 'X-Access-Token': token}
    return session.api.post(f'/filesystem.Filesystem/{method}', json=fields, headers=headers)


def test_events_that_nobody_takes_are_in_the_memory_account(session):
    def held():
        return session.api.metric('glovebox_held_bytes')

    before = held()
    watchers = [polled(session, 'CreateWatcher', path='/workspace').json()['watcherId'] for _ in range(4)]
    session.execute('import os\nfor i in range(1000):\n    os.mkdir(f"{i:0200}")\n    os.rmdir(f"{i:0200}")')
    gb.wait_until(lambda: held() > before + 4 * 2000 * 200, 'the events are counted')
    for watcher in watchers:
        assert polled(session, 'RemoveWatcher', watcherId=watcher).status_code == 200
    gb.wait_until(lambda: held() < before + 100_000, 'the events are given back')


def test_directories_of_all_watches_of_a_session_are_bounded(daemon, session):
    session.execute('import os\nfor i in range(1000): os.mkdir(f"d{i}")')
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(Watch(daemon, session, '&recursive'))
        last = stack.enter_context(Watch(daemon, session, '&recursive'))
        session.execute('open("f", "w").close()')
        last.until('missed', None)
        gb.assert_problem(session.api.get(f'{session.path}/files?watch'), 429, 'too_many_watches')
    gb.wait_until(lambda: can_watch(daemon, session), 'watches that end give their directories back')


def can_watch(daemon, session):
    try:
        with Watch(daemon, session):
            return True
    except AssertionError:
        return False


def test_links_are_not_followed(daemon, session):
    session.execute('import os; os.makedirs("real/below"); os.symlink("real", "link"); os.symlink("/tmp", "out")')
    for path in ('link', 'link/below', 'out'):
        gb.assert_problem(session.api.get(f'{session.path}/files?watch&path={path}'), 403, 'path_refused')
    with Watch(daemon, session, '&path=real/below') as w:
        session.execute('open("link/below/f", "w").close()')
        assert w.next() == ('create', 'f')


def test_a_watch_has_the_rights_of_the_session(tmp_path):
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.getuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o055)
    for name, mode in (('private', 0o700), ('public', 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    with gb.running_daemon('--preload', 'none', '--mount', f'data:{tmp_path}') as daemon, daemon.api() as api:
        session = api.session(mounts={'data': '/data'})
        for name in ('private', 'public'):
            readable = session.value(f'import os; os.access("/data/{name}", os.R_OK)') == 'True'
            answer = polled(session, 'CreateWatcher', path=f'/data/{name}', recursive=True)
            assert (answer.status_code == 200) == readable, (name, answer.text)
        assert readable
        watcher = answer.json()['watcherId']
        (tmp_path / 'public/seen').write_text('')
        gb.wait_until(lambda: 'seen' in polled(session, 'GetWatcherEvents', watcherId=watcher).text, 'the change is told')
