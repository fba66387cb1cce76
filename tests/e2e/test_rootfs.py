"""Sessions over a system tree of their own: they see it and nothing of the host's system; a tree that lacks something is named."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gb
import pytest

VERSION = f'python3.{sys.version_info[1]}'
STDLIB = Path(f'/usr/lib/{VERSION}')


def libraries_of(*files):
    said = subprocess.run(['ldd', *map(str, files)], capture_output=True, text=True).stdout
    return {Path(p) for p in re.findall(r'(/\S+\.so[^\s:]*) \(', said)}


@pytest.fixture(scope='module')
def tree():
    """Python and what it needs, copied: about as small as a system can be."""
    top = Path(tempfile.mkdtemp(prefix='glovebox-rootfs-'))
    top.chmod(0o755)  # another user reads it, too
    (top / 'usr/bin').mkdir(parents=True)
    (top / 'etc').mkdir()
    for name in ('bin', 'lib', 'lib64'):
        if Path('/' + name).is_symlink():
            (top / name).symlink_to(os.readlink('/' + name))
    shutil.copy2(f'/usr/bin/{VERSION}', top / 'usr/bin')
    shutil.copytree(STDLIB, top / STDLIB.relative_to('/'), ignore=shutil.ignore_patterns('test', 'tests', '__pycache__', 'config-*', 'dist-packages'))
    for library in libraries_of(f'/usr/bin/{VERSION}', gb.PROGRAM.parent / 'glovebox-guest.so', *STDLIB.glob('lib-dynload/*.so')):
        place = top / Path(os.path.realpath(library.parent)).relative_to('/')
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place / library.name)
    (top / 'etc/os-release').symlink_to('/etc/mine')  # a link of the tree's own, not of the host's
    (top / 'etc/mine').write_text('NAME=mine\n')
    yield top
    shutil.rmtree(top)


def test_sessions_see_it(tree):
    with gb.running_daemon('--rootfs', tree, '--preload', 'json', '--ready', '1') as daemon, daemon.api() as api:
        session = api.session()
        assert session.value('__import__("os").listdir("/usr/bin")') == repr([VERSION])
        assert session.value('open("/etc/os-release").read()') == repr('NAME=mine\n')
        session.execute('import sqlite3, ctypes, decimal; assert sqlite3.connect(":memory:").execute("select 1").fetchone() == (1,)').ok()
        o = session.execute('open("/usr/bin/x", "w")')
        assert o.error['code'] == 'read_only'
        session.execute('import subprocess, sys; subprocess.run([sys.executable, "-c", "print(1)"], check=True)').ok()
        assert session.execute('import subprocess; subprocess.run(["/usr/bin/ls"])').error['type'] == 'FileNotFoundError'
        os.kill(daemon.children('glovebox-jailer')[0], 9)  # a new one makes the same tree
        gb.wait_until(lambda: api.run('__import__("os").listdir("/usr/bin")').text == repr([VERSION]), 'jails are made again')


def test_an_ordinary_user_has_one_too(tree):
    with gb.running_daemon('--rootfs', tree, '--preload', 'json', '--ready', '1', '--waive', 'cgroup', user=65534) as daemon, daemon.api() as api:
        assert api.run('__import__("os").listdir("/usr/bin")').ok().text == repr([VERSION])


@pytest.mark.parametrize(
    ('gone', 'words'),
    [
        (f'usr/bin/{VERSION}', [f'/usr/bin/{VERSION}', 'install python3']),
        (f'usr/lib/{VERSION}', ['os.py', 'install python3']),
        ('usr/lib/*/libseccomp.so.2', ['libseccomp.so.2', 'install libseccomp2']),
    ],
)
def test_what_is_missing_is_named(tree, gone, words):
    place = next(tree.glob(gone))
    aside = tree / 'aside'
    place.rename(aside)
    try:
        done = gb.cli('run', '--rootfs', tree, '-c', '1')
    finally:
        aside.rename(place)
    assert done.returncode == 125
    for word in [str(tree), *words]:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize(('path', 'word'), [('/nonexistent', 'No such file'), ('relative', 'absolute path'), ('/etc/hostname', 'Not a directory')])
def test_no_tree(path, word):
    done = gb.cli('run', '--rootfs', path, '-c', '1')
    assert done.returncode == 125 and word in done.stderr and 'rootfs' in done.stderr
