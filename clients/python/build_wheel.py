"""A build backend (PEP 517, PEP 660) of our own: the package is pure Python, so a wheel is a zip file with a few more files in it, and
installing it from the tree needs no network."""

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
    return re.search(rf'^{name} = "(.*)"$', (HERE / 'pyproject.toml').read_text(), re.M)[1]


def _metadata():
    lines = ['Metadata-Version: 2.1']
    for key, name in (('Name', 'name'), ('Version', 'version'), ('Summary', 'description'), ('Requires-Python', 'requires-python')):
        lines.append(f'{key}: {_project(name)}')
    lines += ['License: Apache-2.0', 'Description-Content-Type: text/markdown', '', (HERE / 'README.md').read_text()]
    return '\n'.join(lines)


def _info():
    return f'{_project("name")}-{_project("version")}.dist-info'


def _write(directory, files):
    """A wheel with the given {path: bytes}; returns its name."""
    info = _info()
    files = {
        **files,
        f'{info}/METADATA': _metadata().encode(),
        f'{info}/entry_points.txt': _ENTRY_POINTS.encode(),
        f'{info}/WHEEL': b'Wheel-Version: 1.0\nGenerator: glovebox\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    }
    record = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        record.append(f'{path},sha256={digest},{len(data)}\n')
    record.append(f'{info}/RECORD,,\n')
    files[f'{info}/RECORD'] = ''.join(record).encode()
    name = f'{_project("name")}-{_project("version")}-py3-none-any.whl'
    with zipfile.ZipFile(Path(directory) / name, 'w', zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), data)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    paths = sorted(p for p in SOURCE.rglob('*') if p.suffix == '.py' or p.name == 'py.typed')
    return _write(wheel_directory, {p.relative_to(SOURCE).as_posix(): p.read_bytes() for p in paths})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, {'_glovebox_client.pth': f'{SOURCE}\n'.encode()})


def build_sdist(sdist_directory, config_settings=None):
    import tarfile

    stem = f'{_project("name")}-{_project("version")}'
    with tarfile.open(Path(sdist_directory) / f'{stem}.tar.gz', 'w:gz') as tar:
        for path in [HERE / n for n in ('pyproject.toml', 'README.md', 'build_wheel.py')] + sorted(SOURCE.rglob('*.py')):
            tar.add(path, f'{stem}/{path.relative_to(HERE).as_posix()}')
        tar.add(SOURCE / 'glovebox/py.typed', f'{stem}/src/glovebox/py.typed')
        import io

        data = _metadata().encode()
        entry = tarfile.TarInfo(f'{stem}/PKG-INFO')
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    return f'{stem}.tar.gz'
