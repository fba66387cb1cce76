"""Volumes: directories that outlive sessions (docs/data.md)."""

import asyncio
import contextlib
import os
import sys
import threading

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))
import glovebox  # noqa: E402

NOBODY = 65534
ARGUMENTS = ('--preload', 'none', '--ready', '1')


@pytest.fixture(scope='module')
def server():
    with gb.running_daemon(*ARGUMENTS, '--max-volumes', '8') as daemon:
        yield daemon


@pytest.fixture
def api(server):
    with server.api() as api:
        yield api


def make(api, name, **fields):
    made = api.post('/v1/volumes', json={'name': name, **fields})
    assert made.status_code == 201, made.text
    return made.json()


def wait_until_free(api, name):
    """The session of a run ends a moment after its answer."""
    gb.wait_until(lambda: (v := info(api, name)) and not v['writer'] and not v['readers'], 'nobody has the volume')


def remove(api, name):
    wait_until_free(api, name)
    gone = api.delete(f'/v1/volumes/{name}')
    assert gone.status_code == 204, gone.text


@pytest.fixture
def volume(api, request):
    name = request.node.name.removeprefix('test_')[:31]
    make(api, name, quota_bytes=8 << 20)
    yield name
    remove(api, name)


@pytest.fixture
def volume_of_case(api):
    make(api, 'case', quota_bytes=8 << 20)
    yield 'case'
    remove(api, 'case')


def info(api, name):
    return api.get(f'/v1/volumes/{name}').json()


def write(name, text='kept'):
    return f'open({name!r}, "w").write({text!r})'


def read(name):
    return f'open({name!r}).read()'


def test_files_outlive_the_session(api, volume):
    one = api.session(volumes={volume: '/mnt/v'})
    assert one.get()['volumes'] == {volume: '/mnt/v'} and info(api, volume)['writer'] == one.id
    one.value(write('/mnt/v/a.txt'))
    one.value('import os; os.mkdir("/mnt/v/d"); os.chmod("/mnt/v/a.txt", 0o600)')
    one.delete()
    gb.wait_until(lambda: info(api, volume)['files'] == 2, what='measured')
    other = api.session(volumes={volume: '/mnt/other'})
    assert other.value(read('/mnt/other/a.txt')) == "'kept'"
    assert other.value(write('/mnt/other/a.txt', 'changed')) == '7'
    other.delete()


def test_one_writes_or_several_read(api, volume):
    writer = api.session(volumes={volume: '/mnt/v'})
    writer.value(write('/mnt/v/a'))
    for path in ('/mnt/v', '/mnt/v:ro'):
        gb.assert_problem(api.post('/v1/sessions', json={'volumes': {volume: path}}), 409, 'volume_in_use')
    gb.assert_problem(api.delete(f'/v1/volumes/{volume}'), 409, 'volume_in_use')
    writer.delete()
    readers = [api.session(volumes={volume: '/mnt/v:ro'}) for _ in range(3)]
    for reader in readers:
        assert reader.value(read('/mnt/v/a')) == "'kept'"
        for code in (write('/mnt/v/a'), write('/mnt/v/b'), 'import os; os.remove("/mnt/v/a")', 'import os; os.chmod("/mnt/v/a", 0)'):
            assert reader.execute(code)['error']['type'] in ('OSError', 'PermissionError'), code
    assert info(api, volume)['readers'] == 3
    gb.assert_problem(api.post('/v1/sessions', json={'volumes': {volume: '/mnt/v'}}), 409, 'volume_in_use')
    for reader in readers:
        reader.delete()
    api.session(volumes={volume: '/mnt/v'}).delete()


def test_others_see_nothing_of_it(api, volume):
    with_it = api.session(volumes={volume: '/mnt/v'})
    with_it.value(write('/mnt/v/secret'))
    code = 'import os; [sorted(os.listdir("/mnt")), os.listdir("/run/mounts")]'
    assert api.session().value(code) == '[[], []]'
    assert with_it.value(code) == "[['v'], []]"
    flags = int(with_it.value('os.statvfs("/mnt/v").f_flag'))
    assert flags & 15 == 14, 'ST_NOSUID, ST_NODEV and ST_NOEXEC'
    with_it.delete()


def test_it_stays_after_a_death_and_forks_read(api, volume):
    session = api.session(volumes={volume: '/mnt/v'})
    session.value(write('/mnt/v/a'))
    session.execute('import os; os._exit(1)')
    assert session.value(read('/mnt/v/a')) == "'kept'"
    assert session.value(write('/mnt/v/b')) == '4'
    made = api.post(f'{session.path}/fork', json={})
    assert made.status_code == 201, made.text
    fork = api.adopt(made.json()['sessions'][0])
    assert fork.get()['volumes'] == {volume: '/mnt/v:ro'} and fork.value(read('/mnt/v/a')) == "'kept'"
    assert fork.execute(write('/mnt/v/c'))['error']['type'] == 'OSError'
    assert api.post(f'{session.path}/rollback', json={'undo': True}).status_code == 200
    assert session.value(read('/mnt/v/b')) == "'kept'", 'a rollback changes no volume'
    fork.delete()
    session.delete()


def test_the_quota_stops_code(api, volume):
    session = api.session(volumes={volume: '/mnt/v'})
    endless = 'with open("/mnt/v/big", "wb") as f:\n    while f.tell() < 1 << 30: f.write(bytes(1 << 16)); f.flush()'
    seen = session.execute(endless)
    assert seen['error']['code'] == 'volume_full', seen
    assert session.value('import os; os.remove("/mnt/v/big"); os.listdir("/mnt/v")') == '[]', 'the session goes on'
    gb.wait_until(lambda: not info(api, volume)['full'], what='room again')
    assert session.value(write('/mnt/v/small')) == '4'
    session.delete()


def test_a_session_that_writes_on_ends(api, volume):
    session = api.session(volumes={volume: '/mnt/v'})
    session.execute(
        'import threading\n'
        'def fill():\n    with open("/mnt/v/big", "ab") as f:\n        while f.tell() < 1 << 30: f.write(bytes(1 << 16)); f.flush()\n'
        'threading.Thread(target=fill, daemon=True).start()'
    )
    gb.wait_until(lambda: api.get(session.path).status_code in (404, 410), what='ended')
    assert 'quota' in api.get(session.path).text
    gb.wait_until(lambda: info(api, volume)['full'], what='full')


def test_it_outlives_the_server(tmp_path):
    state = tmp_path / 'state'
    for start in range(2):
        with gb.running_daemon(*ARGUMENTS, '--state-dir', state) as daemon, daemon.api() as api:
            if start == 0:
                make(api, 'kept')
                api.run(write('/mnt/k/a'), volumes={'kept': '/mnt/k'}).ok()
                wait_until_free(api, 'kept')
            assert [v['name'] for v in api.get('/v1/volumes').json()['volumes']] == ['kept']
            assert api.run(read('/mnt/k/a'), volumes={'kept': '/mnt/k:ro'}).ok().text == "'kept'"
            if start == 1:
                remove(api, 'kept')
                gb.wait_until(lambda: os.listdir(state / 'volumes/data') == [], what='the files are removed')
                assert os.listdir(state / 'volumes/records') == []


def test_deep_and_many_files_are_removed(server, api):
    make(api, 'deep')
    code = (
        'import os\nos.chdir("/mnt/d")\n'
        'for i in range(100):\n    os.mkdir("x"); os.chdir("x"); open("f", "w").close()\n'
        'os.chdir("/mnt/d"); os.mkdir("closed"); open("closed/f", "w").close(); os.chmod("closed", 0)\n'
        'os.symlink("/", "root"); os.mkfifo("fifo")'
    )
    api.run(code, volumes={'deep': '/mnt/d'}).ok()
    gb.wait_until(lambda: info(api, 'deep')['full'], what='too deep')
    remove(api, 'deep')
    gb.wait_until(lambda: not [d for d in os.listdir(server.dir / 'state/volumes/data') if d.startswith('-')], what='the files are removed')


def test_what_is_wrong_is_refused(api, volume):
    for name in ('', 'usr', 'a/b', 'a-b', 'x' * 32, '..'):
        gb.assert_problem(api.post('/v1/volumes', json={'name': name}), 400, 'invalid_field')
    gb.assert_problem(api.post('/v1/volumes', json={'name': volume}), 409, 'volume_exists')
    gb.assert_problem(api.post('/v1/volumes', json={'name': 'large', 'quota_bytes': 1 << 50}), 400, 'invalid_field', 'max-volume-bytes')
    gb.assert_problem(api.get('/v1/volumes/none'), 404, 'volume_not_found')
    gb.assert_problem(api.delete('/v1/volumes/none'), 404, 'volume_not_found')
    gb.assert_problem(api.post('/v1/sessions', json={'volumes': {'none': '/mnt/n'}}), 404, 'volume_not_found')
    for place in ('/data', f'/{volume}', '/workspace', '/mnt/', '/mnt/a/b', '/mnt/..', 'v', ':ro', '', '/mnt/' + 'x' * 80):
        gb.assert_problem(api.post('/v1/sessions', json={'volumes': {volume: place}}), 400, 'invalid_field')
    make(api, 'second')
    gb.assert_problem(api.post('/v1/sessions', json={'volumes': {volume: '/mnt/a', 'second': '/mnt/b'}}), 400, 'invalid_field')
    gb.assert_problem(api.post('/v1/sessions', json={'volumes': {volume: '/mnt/a:ro', 'second': '/mnt/a'}}), 400, 'invalid_field')
    both = api.session(volumes={volume: '/mnt/a', 'second': '/mnt/b:ro'})
    assert both.value('import os; sorted(os.listdir("/mnt"))') == "['a', 'b']"
    both.delete()
    remove(api, 'second')
    for n in range(7):
        make(api, f'more{n}')
    gb.assert_problem(api.post('/v1/volumes', json={'name': 'more7'}), 409, 'too_many_volumes')
    for n in range(7):
        remove(api, f'more{n}')


def test_tokens_have_their_own(tmp_path):
    """Also after a restart with the tokens in another order."""
    for tokens in (('one', 'two'), ('two', 'one')):
        options = [word for token in tokens for word in ('--token', token * 8)]
        with gb.running_daemon(*ARGUMENTS, *options, '--state-dir', tmp_path / 'state') as daemon:
            with glovebox.Glovebox(daemon.url, 'one' * 8) as one, glovebox.Glovebox(daemon.url, 'two' * 8) as two:
                if tokens[0] == 'one':
                    one.create_volume('mine')
                assert [v['name'] for v in one.volumes()] == ['mine'] and two.volumes() == []
                with pytest.raises(glovebox.NotFound):
                    two.session(volumes={'mine': '/mnt/m'})


def test_the_python_client_and_the_command_line(server):
    with glovebox.Glovebox(server.url) as box:
        assert box.create_volume('client', 2 << 20)['quota_bytes'] == 2 << 20
        with box.session(volumes={'client': '/mnt/c'}) as session:
            session.run(write('/mnt/c/a'), check=True)

    async def look():
        async with glovebox.AsyncGlovebox(server.url) as box:
            names = [v['name'] for v in await box.volumes()]
            async with box.session(volumes={'client': '/mnt/c:ro'}) as session:
                return names, (await session.run(read('/mnt/c/a'))).value

    assert asyncio.run(look()) == (['client'], 'kept')
    assert gb.cli('volumes', '--url', server.url, 'create', 'words', '--quota', '4M').stdout == 'words\n'
    listed = gb.cli('volumes', '--url', server.url).stdout
    assert 'client' in listed and 'words' in listed and '4.2 MB' in listed, listed
    made = gb.cli('new', '--url', server.url, '--volume', 'words:/mnt/w', '--volume', 'client:/mnt/c:ro')
    done = gb.cli('exec', '--url', server.url, made.stdout.strip(), '--', 'sh', '-c', 'cp /mnt/c/a /mnt/w/b && cat /mnt/w/b')
    assert done.stdout == 'kept', done
    assert gb.cli('volumes', '--url', server.url, 'rm', 'words').returncode == 1
    gb.cli('kill', '--url', server.url, made.stdout.strip())
    assert gb.cli('volumes', '--url', server.url, 'rm', 'words', 'client').returncode == 0


def test_a_server_of_an_ordinary_user():
    with gb.running_daemon(*ARGUMENTS, user=NOBODY) as daemon, daemon.api() as api:
        make(api, 'plain', quota_bytes=1 << 20)
        session = api.session(volumes={'plain': '/mnt/p'})
        assert session.value(write('/mnt/p/a')) == '4'
        session.delete()
        assert api.run(read('/mnt/p/a'), volumes={'plain': '/mnt/p:ro'}).ok().text == "'kept'"
        remove(api, 'plain')


@pytest.mark.parametrize(
    'hide,fd',
    [
        ('os.dup2(d, 0)', 0),
        (
            'class Fake:\n    def fileno(self): return d\n    def close(self): pass\n'
            'import asyncio\nloop = asyncio.get_running_loop()\nloop._ssock.close(); loop._csock.close()\n'
            'loop._ssock = Fake(); loop._csock = None\nawait asyncio.sleep(0)',
            'd',
        ),
    ],
    ids=['stdin', 'loop'],
)
def test_a_fork_gets_no_descriptor_that_writes(api, volume_of_case, hide, fd):
    """What code opened is opened anew, for reading. So it must not pass for something else."""
    session = api.session(volumes={volume_of_case: '/mnt/v'})
    session.execute(f'import os\nd = os.open("/mnt/v", os.O_RDONLY)\n{hide}').ok()
    made = api.post(f'{session.path}/fork', json={})
    assert made.status_code == 201, made.text
    fork = api.adopt(made.json()['sessions'][0])
    assert fork.execute(f'os.close(os.open("a", os.O_CREAT | os.O_WRONLY, dir_fd={fd}))')['error']
    assert fork.value('os.listdir("/mnt/v")') == '[]'
    fork.delete()
    session.delete()


def test_forks_that_were_handed_a_descriptor_keep_to_the_quota(api, volume):
    """Code can pass one through a socket that it makes in the volume."""
    session = api.session(volumes={volume: '/mnt/v'})
    fork = api.adopt(api.post(f'{session.path}/fork', json={}).json()['sessions'][0])
    session.execute(
        'import os, socket, threading\n'
        'd = os.open("/mnt/v", os.O_RDONLY); s = socket.socket(socket.AF_UNIX); s.bind("/mnt/v/s"); s.listen()\n'
        'threading.Thread(target=lambda: socket.send_fds(s.accept()[0], [b"x"], [d]), daemon=True).start()'
    ).ok()
    fork.execute(
        'import os, socket\nc = socket.socket(socket.AF_UNIX); c.connect("/mnt/v/s"); d = socket.recv_fds(c, 1, 1)[1][0]'
    ).ok()
    session.delete()
    gb.wait_until(lambda: not info(api, volume)['writer'], what='nobody writes')
    fork.execute(
        'n = 0\nwhile True:\n'
        '    f = os.open(f"f{n}", os.O_CREAT | os.O_WRONLY, dir_fd=d); os.write(f, bytes(1 << 16)); os.close(f); n += 1',
        timeout_s=60,
    )
    gb.wait_until(lambda: api.get(fork.path).status_code in (404, 410), what='ended')
    assert 'quota' in api.get(fork.path).text
    gb.wait_until(lambda: info(api, volume)['full'], what='full')


def test_files_that_come_during_the_removal(server, api):
    """As of a session that has just ended: its processes may still write for a moment."""
    data = server.dir / 'state/volumes/data'

    def write(directory):
        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
            for n in range(1000):
                os.mkdir(f'{n}', dir_fd=directory)

    for n in range(3):
        before = set(os.listdir(data))
        make(api, f'busy{n}')
        directory = os.open(data / (set(os.listdir(data)) - before).pop(), os.O_RDONLY)
        writer = threading.Thread(target=write, args=(directory,))
        writer.start()
        remove(api, f'busy{n}')
        writer.join()
        os.close(directory)
    gb.wait_until(lambda: os.listdir(data) == [], what='the files are removed')
