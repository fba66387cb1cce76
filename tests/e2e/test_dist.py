"""The packages of a release: what they contain, and that they run. scripts/try-dist installs them into fresh systems, by hand."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import gb
import pytest

VERSION = (gb.ROOT / 'VERSION').read_text().strip()
PYTHON = 'python%d.%d' % sys.version_info[:2]


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=gb.PATIENCE, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope='module')
def dist(tmp_path_factory):
    """The packages, made of the build that is tested."""
    out = tmp_path_factory.mktemp('dist')
    run(gb.ROOT / 'scripts/make-dist', '--build', gb.PROGRAM.parent, '--out', out, env=gb.clean_env(PATH=os.environ['PATH']))
    return out


def only(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def test_checksums_and_bill_of_materials(dist):
    sums = dict(reversed(line.split()) for line in (dist / 'SHA256SUMS').read_text().splitlines())
    assert set(sums) == {p.name for p in dist.glob('glovebox*')} and len(sums) == 4
    for name, digest in sums.items():
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    bill = json.loads(only(dist, '*.cdx.json').read_text())
    assert bill['bomFormat'] == 'CycloneDX' and bill['metadata']['component']['version'] == VERSION
    listed = {p['value'] for c in bill['components'] for p in c.get('properties', ()) if p['name'] == 'file'}
    with tarfile.open(only(dist, '*.tar.gz')) as tar:
        bundled = {name.split('/', 1)[1] for name in tar.getnames() if re.search(r'lib/glovebox/lib[^/]+\.so', name)}
    assert listed == bundled and len(bundled) > 5
    assert {'libuv1', 'libseccomp2'} <= {c['name'].removesuffix('t64') for c in bill['components']}


def test_package_of_debian(dist):
    deb = only(dist, '*.deb')
    field = {name: run('dpkg-deb', '-f', deb, name).strip() for name in ('Package', 'Version', 'Architecture', 'Depends', 'Recommends')}
    assert field['Package'] == 'glovebox' and field['Version'] == VERSION
    assert re.search(r'libc6 \(>= 2\.36\).*python3 \(>= 3\.\d+~\), python3 \(<< 3\.\d+~\)', field['Depends'])
    assert {'python3-pandas', 'xvfb', 'ffmpeg'} <= set(field['Recommends'].split(', '))
    listing = [line.split(None, 5) for line in run('dpkg-deb', '-c', deb).splitlines()]
    modes = {path.split(' -> ')[0].removeprefix('.'): (mode, owner) for mode, owner, _, _, _, path in listing}
    for path in (
        '/usr/bin/glovebox', f'/usr/lib/glovebox/glovebox-guest-{PYTHON}.so', '/usr/lib/glovebox/glovebox-xserver.so',
        '/usr/lib/systemd/system/glovebox.service', '/usr/lib/systemd/user/glovebox.service', '/usr/share/man/man1/glovebox.1.gz',
        '/usr/share/bash-completion/completions/glovebox', '/usr/share/zsh/vendor-completions/_glovebox',
        '/usr/share/fish/vendor_completions.d/glovebox.fish', '/usr/share/doc/glovebox/copyright',
        '/usr/share/doc/glovebox/changelog.gz', '/etc/glovebox/glovebox.conf', '/usr/lib/python3/dist-packages/glovebox/_version.py',
    ):  # fmt: skip
        assert path in modes, path
    assert all(owner == 'root/root' for _, owner in modes.values())
    assert not [path for path, (mode, _) in modes.items() if re.search('[sSt]', mode) or (mode[0] != 'l' and (mode[5] == 'w' or mode[8] == 'w'))]
    assert not [path for path in modes if '__pycache__' in path or path.startswith('/usr/local')]


@pytest.fixture(scope='module')
def unpacked(dist, tmp_path_factory):
    where = tmp_path_factory.mktemp('another folder')
    run('tar', '-C', where, '-xf', only(dist, '*.tar.gz'))
    return only(where, 'glovebox-*')


def test_tarball_runs_from_any_folder(unpacked):
    program = unpacked / 'bin/glovebox'
    used = run('ldd', program)
    assert f'{unpacked}/bin/../lib/glovebox/libuv.so' in used, 'it uses the libraries beside it'
    strangers = [line for line in used.splitlines() if '=> /' in line and str(unpacked) not in line]
    assert all(re.match(r'\s*lib[cm]\.so', line) for line in strangers), strangers
    env = gb.clean_env(GLOVEBOX_STATE_DIR=unpacked / 'state')
    assert run(program, 'run', '-c', 'print(6 * 7)', env=env) == '42\n'


def test_units_and_manual_of_the_package(dist, tmp_path):
    run('dpkg-deb', '-x', only(dist, '*.deb'), tmp_path)
    for kind in ('system', 'user'):
        unit = (tmp_path / f'usr/lib/systemd/{kind}/glovebox.service').read_text()
        assert re.search('^Delegate=yes$', unit, re.M) and '@' not in unit
        assert re.search('^ExecStart=/\\S*/bin/glovebox serve$', unit, re.M)
    manual = run('gzip', '-dc', tmp_path / 'usr/share/man/man1/glovebox.1.gz')
    verbs = re.findall(r'^  ([a-z]{2,}) +\S', gb.cli('--help').stdout, re.M)
    assert [verb for verb in verbs if f'.SS glovebox {verb}\n' not in manual] == []


def test_wheel_brings_the_program(dist, tmp_path):
    wheel = only(dist, '*.whl')
    assert wheel.name.endswith(f'manylinux_2_36_{os.uname().machine}.whl')
    run(sys.executable, '-m', 'venv', '--without-pip', tmp_path / 'venv')
    python, packages = tmp_path / 'venv/bin/python', only(tmp_path, f'venv/lib/{PYTHON}/site-packages')
    env = gb.clean_env(GLOVEBOX_STATE_DIR=tmp_path / 'state', PATH='/usr/bin:/bin')
    run(sys.executable, '-m', 'pip', '--python', python, 'install', '-q', '--no-index', '--no-compile', wheel, env=env)
    assert run(python, '-c', 'import glovebox; print(glovebox.__version__, glovebox.__file__)', env=env).split() == [
        VERSION, str(packages / 'glovebox/__init__.py'),
    ]  # fmt: skip
    assert run(tmp_path / 'venv/bin/glovebox', 'version', env=env) == f'glovebox {VERSION}\n'
    code = 'from glovebox import Glovebox\nwith Glovebox.local(None, "--preload", "none") as box:\n    print(box.run("6 * 7").value)'
    assert run(python, '-c', code, env=env, cwd=tmp_path) == '42\n'


def test_one_version(dist):
    assert f'glovebox {VERSION}\n' == gb.cli('version').stdout
    with zipfile.ZipFile(only(dist, '*.whl')) as wheel:
        (metadata,) = [name for name in wheel.namelist() if name.endswith('/METADATA')]
        assert f'\nVersion: {VERSION}\n' in wheel.read(metadata).decode()


@pytest.mark.parametrize('shell, check', [('zsh', ['-n']), ('fish', ['--no-execute'])])
def test_completions_are_read_by_their_shells(shell, check):
    file = gb.ROOT / {'zsh': 'completions/_glovebox', 'fish': 'completions/glovebox.fish'}[shell]
    assert shutil.which(shell), f'{shell} is not installed: scripts/install-deps --test'
    run(shell, *check, file)
