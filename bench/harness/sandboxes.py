"""Other ways to run a line of Python apart from the caller: what people pick today. Each is started for one line and gone
after it, as a session is; all run the same interpreter (/usr of this machine, read-only) but for the two on Node.

A contender is a context: entered once before its rounds (a daemon it needs is started there, with all it writes below one
temporary folder) and left after them. `missing()` says why it cannot be measured here, or nothing.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from harness.peers import PYTHON

NODE_MODULES = Path(os.environ.get('GLOVEBOX_BENCH_NODE', Path.home() / '.cache' / 'glovebox-bench'))
SECONDS = 120
LIBRARY_SETTINGS = Path('/etc/alternatives'), Path('/etc/matplotlibrc')  # numpy's BLAS is found through the first


class Trouble(Exception):
    """A contender did not give the answer."""


def run(command, expected, **kwargs):
    """Milliseconds of a command that must print what is expected."""
    began = time.perf_counter()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, **kwargs
    )
    took = (time.perf_counter() - began) * 1e3
    if done.stdout.split()[-1:] != [expected]:  # nspawn has warnings there as well
        raise Trouble(f'{command[0]}: exit code {done.returncode}, {(done.stderr or done.stdout)[-300:]!r}')
    return took


def make_root(folder):
    """A root file system that is empty but for where things go; /usr is bound into it."""
    root = Path(folder) / 'root'
    for name in 'usr', 'proc', 'dev', 'sys', 'tmp', 'etc', 'run', 'root', 'var/tmp':
        (root / name).mkdir(parents=True)
    for name in 'bin', 'sbin', 'lib', 'lib64':
        if Path('/', name).is_symlink():
            (root / name).symlink_to(f'usr/{name}')
    (root / 'etc' / 'passwd').write_text('root:x:0:0::/root:/bin/sh\n')
    (root / 'etc' / 'os-release').write_text('ID=debian\n')
    shutil.copy('/etc/ld.so.cache', root / 'etc')
    for path in LIBRARY_SETTINGS:
        if path.is_dir():
            shutil.copytree(path, root / 'etc' / path.name, symlinks=True)
        elif path.exists():
            shutil.copy(path, root / 'etc')
    return root


class Contender:
    """The base: a program that is called once per line."""

    name = needs = ''

    def missing(self):
        return '' if shutil.which(self.needs) else f'{self.needs} is not installed'

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='glovebox-bench-')
        return self

    def __exit__(self, *exc):
        self.folder.cleanup()

    def command(self, code):
        raise NotImplementedError

    def once(self, code, expected):
        return run(self.command(code), expected)


class Plain(Contender):
    name, needs = 'python3 -c, no sandbox', PYTHON

    def command(self, code):
        return [PYTHON, '-I', '-c', code]


class Bubblewrap(Contender):
    name, needs = 'bubblewrap', 'bwrap'

    def command(self, code):
        binds = ['--ro-bind', '/usr', '/usr']
        for path in LIBRARY_SETTINGS:
            binds += ['--ro-bind-try', path, path]
        for name in 'bin', 'lib', 'lib64':
            binds += ['--symlink', f'usr/{name}', f'/{name}']
        places = ['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp']
        return ['bwrap', '--unshare-all', '--die-with-parent', *binds, *places, PYTHON, '-I', '-c', code]


class Firejail(Contender):
    name, needs = 'firejail', 'firejail'

    def command(self, code):
        flags = ['--quiet', '--noprofile', '--private', '--net=none', '--caps.drop=all', '--seccomp']
        return ['firejail', *flags, PYTHON, '-I', '-c', code]


class Rooted(Contender):
    """One that needs a root file system."""

    def __enter__(self):
        super().__enter__()
        self.root = make_root(self.folder.name)
        return self


class Nspawn(Rooted):
    name, needs = 'systemd-nspawn', 'systemd-nspawn'

    def missing(self):
        return super().missing() or ('' if os.geteuid() == 0 else 'needs root')

    def command(self, code):
        flags = ['-q', '-D', str(self.root), '--bind-ro=/usr', '--as-pid2', '--private-network']
        return ['systemd-nspawn', *flags, '--register=no', '--keep-unit', PYTHON, '-I', '-c', code]


class Runtime(Rooted):
    """An OCI runtime by itself, on a bundle."""

    def __init__(self, program):
        self.name, self.needs, self.count = program, program, 0

    def missing(self):
        return super().missing() or ('' if os.geteuid() == 0 else 'needs root')

    def __enter__(self):
        super().__enter__()
        self.bundle = Path(self.folder.name) / 'bundle'
        self.bundle.mkdir()
        subprocess.run([self.needs, 'spec'], cwd=self.bundle, check=True)
        self.config = json.loads((self.bundle / 'config.json').read_text())
        self.config['process']['terminal'] = False
        self.config['root']['path'] = str(self.root)
        usr = {'destination': '/usr', 'type': 'bind', 'source': '/usr', 'options': ['rbind', 'ro']}
        tmp = {'destination': '/tmp', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid', 'nodev']}
        self.config['mounts'] += [usr, tmp]
        return self

    def command(self, code):
        self.count += 1
        self.config['process']['args'] = [PYTHON, '-I', '-c', code]
        (self.bundle / 'config.json').write_text(json.dumps(self.config))
        return [self.needs, 'run', '-b', str(self.bundle), f'glovebox-bench-{os.getpid()}-{self.count}']


class Podman(Rooted):
    name, needs = 'podman run', 'podman'

    def command(self, code):
        return self.start([PYTHON, '-I', '-c', code])

    def start(self, argv, network='none'):
        """The command that runs something in a fresh container."""
        base = Path(self.folder.name)
        where = ['--root', str(base / 'store'), '--runroot', str(base / 'run'), '--cgroup-manager=cgroupfs']
        where += ['--runtime', 'runc'] if shutil.which('runc') else []
        limits = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024']
        flags = ['--rm', '--network', network, *limits, '--tmpfs', '/tmp', '-v', '/usr:/usr:ro', '--rootfs', str(self.root)]
        return ['podman', *where, 'run', *flags, *argv]


class Docker(Rooted):
    """Its own dockerd, with all its files below our folder."""

    name, needs, kept = 'docker run', 'dockerd', False

    def missing(self):
        return super().missing() or ('' if os.geteuid() == 0 else 'needs root')

    def __enter__(self):
        super().__enter__()
        base = Path(self.folder.name)
        self.client = ['docker', '-H', f'unix://{base}/socket']
        with open(base / 'log', 'wb') as log:
            self.process = subprocess.Popen(
                ['dockerd', '--data-root', base / 'data', '--exec-root', base / 'exec', '-p', base / 'pid',
                 '-H', f'unix://{base}/socket', '--iptables=false', '--bridge=none'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            self._prepare(base)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _prepare(self, base):
        deadline = time.monotonic() + 60
        while subprocess.run([*self.client, 'version'], capture_output=True).returncode:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Trouble('dockerd does not start: ' + (base / 'log').read_text()[-300:])
            time.sleep(0.2)
        tar = subprocess.run(['tar', '-C', self.root, '-c', '.'], check=True, capture_output=True).stdout
        subprocess.run(
            [*self.client, 'import', '-', 'bench'], input=tar, check=True, stdout=subprocess.DEVNULL
        )
        if self.kept:
            keep = ['run', '-d', '--name', 'kept', '--network', 'none', '-v', '/usr:/usr:ro', 'bench']
            subprocess.run(
                [*self.client, *keep, '/usr/bin/sleep', '1d'], check=True, stdout=subprocess.DEVNULL
            )

    def __exit__(self, *exc):
        if self.kept:
            subprocess.run([*self.client, 'rm', '-f', 'kept'], capture_output=True)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        for line in reversed(Path('/proc/self/mounts').read_text().splitlines()):
            place = line.split()[1]
            if place.startswith(self.folder.name + '/'):  # it leaves the host's network namespace there
                subprocess.run(['umount', '-l', place], capture_output=True)
        super().__exit__(*exc)

    def command(self, code):
        return self.start([PYTHON, '-I', '-c', code])

    def start(self, argv, network='none'):
        flags = ['--rm', '--network', network, '--tmpfs', '/tmp', '-v', '/usr:/usr:ro', 'bench']
        return [*self.client, 'run', *flags, *argv]


class DockerExec(Docker):
    name, kept = 'docker exec in one that runs', True

    def command(self, code):
        return [*self.client, 'exec', 'kept', PYTHON, '-I', '-c', code]


class Node(Contender):
    """A Python made for Node, from npm; `package` is imported by `program`, which reads the code from its argument."""

    needs, package, program = 'node', '', ''

    def missing(self):
        folder = NODE_MODULES / 'node_modules' / self.package
        return super().missing() or ('' if folder.is_dir() else f'npm has not installed {self.package}')

    def command(self, code):
        return ['node', '--input-type=module', '-e', self.program, code]

    def once(self, code, expected):
        return run(self.command(code), expected, cwd=NODE_MODULES)


class Pyodide(Node):
    name, package = 'Pyodide on Node', 'pyodide'
    program = """
import { loadPyodide } from 'pyodide';
const python = await loadPyodide();
python.runPython(process.argv[1]);
"""


class Monty(Node):
    name, package = 'Monty on Node', '@pydantic/monty'
    program = """
import { Monty } from '@pydantic/monty';
new Monty(process.argv[1]).run({ printCallback: (stream, text) => { process.stdout.write(text); } });
"""


def all_contenders():
    return [
        Plain(), Bubblewrap(), Firejail(), Nspawn(), Runtime('crun'), Runtime('runc'), Podman(), Docker(), DockerExec(),
        Pyodide(), Monty(),
    ]  # fmt: skip
