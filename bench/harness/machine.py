"""Where the figures come from: machine, kernel, versions."""

import os
import platform
import subprocess
from pathlib import Path

from harness.daemon import ROOT, build_dir
from harness.peers import PYTHON


def _read(path, default='?'):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


def _said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip() or '?'
    except (OSError, subprocess.SubprocessError):
        return '?'


def _processor():
    for line in _read('/proc/cpuinfo').splitlines():
        if line.startswith('model name'):
            return line.partition(':')[2].strip()
    return platform.machine()


def _release():
    for line in _read('/etc/os-release').splitlines():
        if line.startswith('PRETTY_NAME='):
            return line.partition('=')[2].strip('"')
    return '?'


def _memory_gb():
    return round(os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9, 1)


_MODULES = """
from importlib.metadata import version
for name in 'numpy', 'pandas', 'matplotlib', 'ipykernel', 'jupyter_client':
    try:
        print(name, version(name))
    except Exception:
        pass
"""


def _commit():
    commit = _said('git', '-C', str(ROOT), 'rev-parse', '--short', 'HEAD')
    changed = _said(
        'git', '-C', str(ROOT), 'status', '--porcelain', '--untracked-files=no', 'src', 'meson.build'
    )
    return commit + (' with changes' if changed != '?' else '')


def describe():
    """Facts of this machine and of what runs on it, for the head of the report."""
    return {
        'processor': _processor(),
        'cpus': len(os.sched_getaffinity(0)),
        'memory_gb': _memory_gb(),
        'system': _release(),
        'kernel': platform.release(),
        'huge_pages': _read('/sys/kernel/mm/transparent_hugepage/enabled'),
        'glovebox': _said(str(build_dir() / 'glovebox'), 'version').splitlines()[0],
        'commit': _commit(),
        'python': _said(PYTHON, '--version'),
        'modules': dict(line.split() for line in _said(PYTHON, '-c', _MODULES).splitlines() if ' ' in line),
        'load_average': os.getloadavg()[0],
    }
