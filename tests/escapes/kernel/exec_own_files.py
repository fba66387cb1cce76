"""Programs that code wrote itself: a script, a copied program, a library, by every way of starting them."""

import shutil
import subprocess

LOADERS = ('/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1')


def runs(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=10).stdout.strip() == 'ran'
    except OSError:
        return False


for place in (os.getcwd(), '/tmp', '/dev/shm', '/var/tmp', '/run'):
    try:
        script, program, library = (f'{place}/gb-{os.getpid()}-{kind}' for kind in ('script', 'echo', 'lib.so'))
        with open(script, 'w') as f:
            f.write('#!/bin/sh\necho ran\n')
        shutil.copy('/bin/echo', program)
    except OSError:
        continue
    for path in (script, program):
        os.chmod(path, 0o755)
    if runs(script):
        got(f'a script in {place}')
    if runs(program, 'ran'):
        got(f'a program in {place}')
    for loader in filter(os.path.exists, LOADERS):
        if runs(loader, program, 'ran'):
            got(f'a program in {place} by the loader')
    source = next((line.split()[-1] for line in open('/proc/self/maps') if 'libc.so' in line or 'libm.so' in line), None)
    if source:
        shutil.copy(source, library)
        tries(f'a library in {place}', ctypes.CDLL, library)
    with open(program, 'rb') as f:
        tries(f'a mapped file in {place}', mmap.mmap, f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    for path in (script, program, library):
        if os.path.exists(path):
            os.unlink(path)
