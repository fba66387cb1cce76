"""A build backend (PEP 517, PEP 660) of our own: a wheel is a zip file with a few more files in it, and installing it from the tree needs
no network. From the tree it is pure Python; `make dist` makes one with the program inside (build_with_program)."""

import base64
import hashlib
import re
import zipfile
from pathlib import Path

# CodeAgent(executor_type='glovebox'), where smolagents looks for executors of others.
_ENTRY_POINTS = '[smolagents.executors]\nglovebox = glovebox.integrations.smolagents:GloveboxExecutor\n'

HERE = Path(__file__).resolve().parent
SOURCE = HERE / 'src'


def _project(name):
    """One text of the [project] table."""
    if name == 'version':  # of the whole project; a source distribution has a copy
        return next(p for p in (HERE / 'VERSION', HERE.parents[1] / 'VERSION') if p.exists()).read_text().strip()
    return re.search(rf'^{name} = "(.*)"$', (HERE / 'pyproject.toml').read_text(), re.M)[1]


def _metadata():
    lines = ['Metadata-Version: 2.1']
    for key, name in (('Name', 'name'), ('Version', 'version'), ('Summary', 'description'), ('Requires-Python', 'requires-python')):
        lines.append(f'{key}: {_project(name)}')
    lines += ['License: Apache-2.0', 'Description-Content-Type: text/markdown', '', (HERE / 'README.md').read_text()]
    return '\n'.join(lines)


def _info():
    return f'{_project("name")}-{_project("version")}.dist-info'


def _write(directory, files, tag='py3-none-any', commands='', executable=()):
    """A wheel with the given {path: bytes}; returns its name."""
    info = _info()
    pure = str(tag.endswith('-any')).lower()
    files = {
        **files,
        f'{info}/METADATA': _metadata().encode(),
        f'{info}/entry_points.txt': (_ENTRY_POINTS + commands).encode(),
        f'{info}/WHEEL': f'Wheel-Version: 1.0\nGenerator: glovebox\nRoot-Is-Purelib: {pure}\nTag: {tag}\n'.encode(),
    }
    record = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        record.append(f'{path},sha256={digest},{len(data)}\n')
    record.append(f'{info}/RECORD,,\n')
    files[f'{info}/RECORD'] = ''.join(record).encode()
    name = f'{_project("name")}-{_project("version")}-{tag}.whl'
    with zipfile.ZipFile(Path(directory) / name, 'w', zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if path in executable else 0o100644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def _modules():
    paths = sorted(p for p in SOURCE.rglob('*') if p.suffix == '.py' or p.name == 'py.typed')
    files = {p.relative_to(SOURCE).as_posix(): p.read_bytes() for p in paths}
    return {**files, 'glovebox/_version.py': f"VERSION = '{_project('version')}'\n".encode()}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, _modules())


def build_with_program(wheel_directory, prefix, platform):
    """A wheel with the program of this installation (bin/glovebox, lib/glovebox) and a command of its name."""
    program = {p for p in Path(prefix).glob('lib/glovebox/*') if p.is_file()} | {Path(prefix) / 'bin/glovebox'}
    notices = {p for p in Path(prefix).glob('share/doc/glovebox/**/*') if p.is_file()}
    inside = {f'glovebox/_program/{p.relative_to(prefix).as_posix()}': p.read_bytes() for p in sorted(program | notices)}
    commands = '\n[console_scripts]\nglovebox = glovebox._local:main\n'
    executable = ('glovebox/_program/bin/glovebox',)
    return _write(wheel_directory, {**_modules(), **inside}, f'py3-none-{platform}', commands, executable)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, {'_glovebox_client.pth': f'{SOURCE}\n'.encode()})


def build_sdist(sdist_directory, config_settings=None):
    import tarfile

    stem = f'{_project("name")}-{_project("version")}'
    with tarfile.open(Path(sdist_directory) / f'{stem}.tar.gz', 'w:gz') as tar:
        for path in [HERE / n for n in ('pyproject.toml', 'README.md', 'build_wheel.py')] + sorted(SOURCE.rglob('*.py')):
            tar.add(path, f'{stem}/{path.relative_to(HERE).as_posix()}')
        tar.add(SOURCE / 'glovebox/py.typed', f'{stem}/src/glovebox/py.typed')
        tar.add(HERE.parents[1] / 'VERSION', f'{stem}/VERSION')
        import io

        data = _metadata().encode()
        entry = tarfile.TarInfo(f'{stem}/PKG-INFO')
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    return f'{stem}.tar.gz'
