"""The Debian package: one for Debian 12, Debian 13 and Ubuntu 24.04, with its own libraries and a guest module for each Python."""

import email.utils
import gzip
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / 'deploy/debian'

MAINTAINER = 'The Glovebox authors <noreply@glovebox.invalid>'
RECOMMENDS = (
    'python3-numpy', 'python3-pandas', 'python3-matplotlib', 'python3-pil', 'python3-tk', 'python3-pip', 'xvfb', 'ffmpeg', 'fonts-dejavu-core',
    'fonts-droid-fallback', 'xdotool', 'scrot',
)  # fmt: skip


def _control(version, arch, pythons, size):
    """`pythons` are the versions with a guest module, sorted: the package is for no other."""
    first, last = pythons[0], pythons[-1]
    beyond = f'{last.split(".")[0]}.{int(last.split(".")[1]) + 1}'
    return f'''Package: glovebox
Version: {version}
Architecture: {arch}
Maintainer: {MAINTAINER}
Installed-Size: {size}
Depends: libc6 (>= 2.36), python3 (>= {first}~), python3 (<< {beyond}~), passwd
Recommends: {', '.join(RECOMMENDS)}
Suggests: fonts-droid-fallback
Section: devel
Priority: optional
Description: run Python written by language models in sealed sessions
 Glovebox is a server and a command that run Python in jails made of namespaces,
 a system call filter and control groups. Sessions keep their variables, start
 within milliseconds, can be rolled back and forked, and have screens for
 windows. It needs no Docker and no virtual machine.
'''


def _compress(path):
    """As Debian's policy wants it: without a name and a time inside."""
    with open(path, 'rb') as plain, open(f'{path}.gz', 'wb') as packed, gzip.GzipFile('', 'wb', 9, packed, mtime=0) as out:
        shutil.copyfileobj(plain, out)
    path.unlink()


def _documents(usr, version, when):
    doc = usr / 'share/doc/glovebox'
    shutil.copyfile(PARTS / 'copyright', doc / 'copyright')
    (doc / 'LICENSE').unlink()
    _compress(doc / 'CHANGELOG.md')
    stamp = email.utils.format_datetime(when)
    (doc / 'changelog').write_text(f'glovebox ({version}) stable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n -- {MAINTAINER}  {stamp}\n')
    _compress(doc / 'changelog')
    _compress(usr / 'share/man/man1/glovebox.1')
    vendor = usr / 'share/zsh/vendor-completions'  # where Debian's zsh looks
    (usr / 'share/zsh/site-functions').rename(vendor)


def _client(usr, version):
    """The Python client, for the system's python3."""
    source = ROOT / 'clients/python/src/glovebox'
    target = usr / 'lib/python3/dist-packages/glovebox'
    shutil.copytree(source, target, ignore=shutil.ignore_patterns('__pycache__', '_program'))
    (target / '_version.py').write_text(f"VERSION = '{version}'\n")


def build(stage, tree, out, version, when, arch, pythons):
    """Packs the staged /usr; returns the file."""
    shutil.rmtree(tree, ignore_errors=True)
    usr = tree / 'usr'
    shutil.copytree(stage, usr, symlinks=True)
    _documents(usr, version, when)
    _client(usr, version)
    (tree / 'etc/glovebox').mkdir(parents=True)
    shutil.copyfile(PARTS / 'glovebox.conf', tree / 'etc/glovebox/glovebox.conf')
    for path in tree.rglob('*'):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    files = sorted(p for p in tree.rglob('*') if p.is_file())
    debian = tree / 'DEBIAN'
    debian.mkdir()
    size = sum(p.stat().st_size for p in files) // 1024
    (debian / 'control').write_text(_control(version, arch, pythons, size))
    (debian / 'conffiles').write_text('/etc/glovebox/glovebox.conf\n')
    sums = (f'{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(tree)}\n' for p in files if 'etc' not in p.relative_to(tree).parts[:1])
    (debian / 'md5sums').write_text(''.join(sums))
    for name in ('postinst', 'prerm', 'postrm'):
        shutil.copyfile(PARTS / name, debian / name)
        (debian / name).chmod(0o755)
    assert re.fullmatch(r'[0-9][A-Za-z0-9.+~]*', version), version
    target = out / f'glovebox_{version}_{arch}.deb'
    subprocess.run(['dpkg-deb', '-Zxz', '--root-owner-group', '--build', tree, target], check=True, stdout=subprocess.DEVNULL)
    return target
