"""Directories of the server that sessions ask for by name (the setting `mount`)."""

import os
import re
import subprocess
import sys

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))
import glovebox  # noqa: E402

NOBODY = 65534


@pytest.fixture(scope='module')
def shared(tmp_path_factory):
    """A directory to share, beside one that is not shared."""
    top = tmp_path_factory.mktemp('served')
    for folder in [top, *top.parents]:
        if folder.stat().st_uid == os.getuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o055)
    data, other = top / 'data', top / 'other'
    data.mkdir()
    other.mkdir()
    (data / 'numbers.csv').write_text('a,b\n1,2\n')
    (data / 'program').write_text('#!/bin/sh\necho started\n')
    (data / 'program').chmod(0o755)
    (other / 'secret').write_text('not shared')
    (data / 'link').symlink_to(other / 'secret')
    (data / 'up').symlink_to('../other/secret')
    (other / 'models').write_text('weights')
    return top


@pytest.fixture(scope='module')
def server(shared):
    if os.geteuid() == 0:
        subprocess.run(['mknod', '-m', '666', shared / 'data/zero', 'c', '1', '5'], check=True)
    with gb.running_daemon('--preload', 'none', '--mount', f'data:{shared}/data', '--mount', f'models:{shared}/other') as daemon:
        yield daemon


@pytest.fixture
def api(server):
    with server.api() as api:
        yield api


READ = 'open({!r}).read()'


def test_a_session_sees_what_it_asked_for(api):
    session = api.session(mounts={'data': '/data', 'models': '/mnt/weights'})
    assert session.value(READ.format('/data/numbers.csv')) == repr('a,b\n1,2\n')
    assert session.value(READ.format('/mnt/weights/models')) == repr('weights')
    assert session.value('import os; sorted(os.listdir("/mnt"))') == "['weights']"


def test_a_session_that_asked_for_nothing_sees_nothing(api):
    one, other = api.session(), api.session(mounts={'data': '/data'})
    code = 'import os; [sorted(os.listdir(d)) for d in ("/data", "/models", "/mnt", "/run/mounts")]'
    assert one.value(code) == '[[], [], [], []]'
    assert other.value('import os; [os.listdir(d) for d in ("/models", "/mnt", "/run/mounts")]') == '[[], [], []]'


def test_nothing_of_it_can_be_changed(api):
    session = api.session(mounts={'data': '/data', 'models': '/mnt/m'}, exec='any')
    for code in (
        'open("/data/new", "w")', 'open("/data/numbers.csv", "a")', 'import os; os.remove("/data/numbers.csv")',
        'import os; os.chmod("/data/numbers.csv", 0o777)', 'import os; os.utime("/data/numbers.csv")', 'open("/mnt/new", "w")',
        'import os; os.mkdir("/run/mounts/x")', 'import os; os.rename("/data/numbers.csv", "/data/other")',
    ):  # fmt: skip
        error = session.execute(code)['error']
        assert error and error['type'] in ('OSError', 'PermissionError'), code


def test_no_program_device_or_link_leads_out(api):
    session = api.session(mounts={'data': '/data'}, exec='any')
    for code in (
        'import subprocess; subprocess.run(["/data/program"])',
        READ.format('/data/link'),
        READ.format('/data/up'),
        READ.format('/data/../other/secret'),
        READ.format('/run/mounts/models/secret'),
    ):
        error = session.execute(code)['error']
        assert error and error['type'] in ('FileNotFoundError', 'PermissionError'), code
    if os.geteuid() == 0:
        assert session.execute('open("/data/zero", "rb").read(1)')['error']['type'] == 'PermissionError'
    flags = int(session.value('import os; os.statvfs("/data").f_flag'))
    assert flags & 15 == 15, 'ST_RDONLY, ST_NOSUID, ST_NODEV and ST_NOEXEC'
    code = 'import ctypes; [ctypes.CDLL(None).mount(None, b"/data", None, 4096 | 32, None), ctypes.CDLL(None).umount2(b"/run/mounts", 2)]'
    assert session.value(code) == '[-1, -1]'


def test_it_stays_after_a_crash_a_reset_and_in_forks(api):
    session = api.session(mounts={'data': '/data'})
    session.execute('import os; os._exit(1)')
    assert session.value(READ.format('/data/numbers.csv')) == repr('a,b\n1,2\n')
    session.reset()
    assert session.value(READ.format('/data/numbers.csv')) == repr('a,b\n1,2\n')
    made = api.post(f'{session.path}/fork', json={})
    assert made.status_code == 201, made.text
    fork = api.adopt(made.json()['sessions'][0])
    assert fork.value(READ.format('/data/numbers.csv')) == repr('a,b\n1,2\n')
    assert fork.value('import os; os.listdir("/run/mounts")') == '[]'


def test_a_session_says_what_it_has(api):
    assert api.session(mounts={'data': '/mnt/d'}).get()['mounts'] == {'data': '/mnt/d'}
    assert api.session().get()['mounts'] == {}


def test_the_python_client(server):
    with glovebox.Glovebox(server.url) as box, box.session(mounts={'data': '/data'}) as session:
        assert session.run('open("/data/numbers.csv").read()').value == 'a,b\n1,2\n'


def test_a_server_of_an_ordinary_user(shared):
    arguments = ('--preload', 'none', '--ready', '1', '--waive', 'cgroup', '--mount', f'data:{shared}/data')
    with gb.running_daemon(*arguments, user=NOBODY) as daemon, daemon.api() as api:
        assert api.session(mounts={'data': '/data'}).value(READ.format('/data/numbers.csv')) == repr('a,b\n1,2\n')
        assert api.session().value('import os; [os.listdir("/data"), os.listdir("/run/mounts")]') == '[[], []]'
        assert api.session(mounts={'data': '/data'}).execute('open("/data/new", "w")')['error']['type'] == 'OSError'


def test_runs_have_them_too(api):
    assert api.run(READ.format('/data/numbers.csv'), mounts={'data': '/data'}).ok().text == repr('a,b\n1,2\n')


def test_what_the_server_does_not_have_is_refused(api):
    gb.assert_problem(api.post('/v1/sessions', json={'mounts': {'etc': '/etc'}}), 404, 'mount_not_found')
    gb.assert_problem(api.post('/v1/sessions', json={'mounts': {'dat': '/data'}}), 404, 'mount_not_found', 'use one of: data, models')
    for place in ('/etc', '/models', '/workspace', 'data', '/data/..', '/mnt/../etc', '/mnt/a/b', '/mnt/', '/mnt/' + 'x' * 80, '/data/', ''):
        gb.assert_problem(api.post('/v1/sessions', json={'mounts': {'data': place}}), 400, 'invalid_field')


@pytest.mark.parametrize('setting', ['data', 'usr:/srv', 'a/b:/srv', 'data:srv', 'data:/no/such/directory', 'data:/etc/passwd', 'd:/srv,d:/tmp'])
def test_settings_that_are_wrong(setting):
    done = gb.cli('serve', '--listen', '127.0.0.1:0', '--preload', 'none', '--mount', setting)
    assert done.returncode != 0 and 'mount' in done.stderr
    assert re.search('write mount = |No such file or directory|Not a directory', done.stderr), done.stderr
