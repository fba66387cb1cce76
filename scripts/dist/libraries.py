"""The libraries that a package brings along: those of the linker's list that are not of the C library."""

import os
import re
import shutil
import subprocess
from pathlib import Path

# Of the C library: they must come from the system, whose loader they belong to.
SYSTEM = re.compile(r'^(ld-linux.*|linux-vdso|lib(c|m|dl|pthread|rt|resolv|util))\.so')


def needed(files):
    """{name: path} of the libraries of these files, and of theirs."""
    found = {}
    for file in files:
        listing = subprocess.run(['ldd', file], capture_output=True, text=True, check=True).stdout
        for name, path in re.findall(r'^\s*(\S+) => (\S+)', listing, re.M):
            if path == 'not':
                raise SystemExit(f'{file} needs {name}, which is not installed')
            if not SYSTEM.match(name):
                found[name] = Path(path)
    return dict(sorted(found.items()))


def owner(path):
    """(package, version, source) of Debian that a file is from; None for a file of no package."""
    for name in dict.fromkeys((str(path), os.path.realpath(path), re.sub('^/lib', '/usr/lib', str(path)), re.sub('^/usr/lib', '/lib', os.path.realpath(path)))):
        done = subprocess.run(['dpkg-query', '-S', name], capture_output=True, text=True)
        if done.returncode == 0:
            package = done.stdout.split(': ')[0].split(', ')[0]
            form = '${Package}\t${Version}\t${source:Package}'
            return tuple(subprocess.run(['dpkg-query', '-W', '-f', form, package], capture_output=True, text=True, check=True).stdout.split('\t'))
    return None


def bundle(stage, files):
    """Copies the libraries into lib/glovebox of the staged tree and their licences into its documentation; returns what was copied, for
    the SBOM: [{name, path, package, version, source}]."""
    copied = []
    for name, path in needed(files).items():
        target = stage / 'lib/glovebox' / name
        shutil.copyfile(path, target)
        target.chmod(0o644)
        package, version, source = owner(path) or (name, '', name)
        copied.append({'name': name, 'path': target, 'package': package, 'version': version, 'source': source})
        notice = Path('/usr/share/doc') / package / 'copyright'
        if notice.exists():
            where = stage / 'share/doc/glovebox/third-party'
            where.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(notice, where / f'{package}.txt')
    return copied
