"""A fleet for tests: daemons in network namespaces of their own, and stock HAProxy before them."""

import contextlib
import os
import random
import shutil
import socket
import subprocess

import gb

PATH = '/usr/sbin:/usr/bin:/sbin:/bin'
PORT = 8000


def run(*words, check=True):
    return subprocess.run([str(w) for w in words], check=check, capture_output=True, text=True, env=gb.clean_env(PATH=PATH), timeout=gb.PATIENCE)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def configuration(*args):
    done = gb.cli('fleet', 'haproxy', *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Router:
    """HAProxy with a configuration that `glovebox fleet haproxy` printed; `args` are those of the verb."""

    def __init__(self, folder, *args, before=(), host='127.0.0.1', port=None):
        self.program = shutil.which('haproxy', path=PATH)
        assert self.program, 'haproxy is not installed: scripts/install-deps --test'
        self.port = port or free_port()
        self.url = f'http://{host}:{self.port}'
        self.config = folder / f'haproxy-{self.port}.cfg'
        self.config.write_text(configuration('--listen', f'{host}:{self.port}', *args))
        checked = run(self.program, '-c', '-f', self.config, check=False)
        assert checked.returncode == 0, checked.stderr
        self.log_path = folder / f'haproxy-{self.port}.log'
        self.before = before
        self.start()

    def start(self, *more):
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(
                [*map(str, self.before), *gb.WITH_US, self.program, '-db', '-f', str(self.config), *more],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=gb.clean_env(PATH=PATH),
            )  # fmt: skip
        gb.wait_until(self._listens, 'the router listens')

    def _listens(self):
        assert self.process.poll() is None, self.log_path.read_text()
        with contextlib.suppress(OSError), socket.create_connection((self.url.split('/')[2].split(':')[0], self.port), timeout=gb.PATIENCE):
            return True

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(gb.PATIENCE)

    def api(self, **kwargs):
        return gb.Api(self.url, **kwargs)


class Node:
    """One daemon in its namespace; it can be killed and started again under its name and its state."""

    def __init__(self, fleet, name, number, *args):
        self.fleet, self.name, self.args = fleet, name, args
        self.namespace = f'{fleet.tag}{name}'
        self.address = f'{fleet.net}.{10 + number}'
        self.veth = f'{fleet.tag}v{number}'
        run('ip', 'netns', 'add', self.namespace)
        run('ip', 'link', 'add', self.veth, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', self.namespace)
        run('ip', 'link', 'set', self.veth, 'master', fleet.bridge, 'up')
        for words in (('addr', 'add', f'{self.address}/24', 'dev', 'eth0'), ('link', 'set', 'eth0', 'up'), ('link', 'set', 'lo', 'up')):
            run('nsenter', f'--net=/run/netns/{self.namespace}', 'ip', *words)
        self.start()

    def start(self):
        self.daemon = gb.Daemon(
            '--preload', 'none', '--packages', 'off', '--ready', '1', '--node', self.name, '--allow-host', '*', '--allow-anonymous',
            '--agent-listen', f'{self.address}:{PORT + 1}', '--state-dir', self.fleet.folder / f'state-{self.name}', *self.args,
            listen=f'{self.address}:{PORT}', before=['nsenter', f'--net=/run/netns/{self.namespace}'], wait=False,
        )  # fmt: skip
        self.daemon.url = f'http://{self.address}:{PORT}'

    @property
    def letters(self):
        with self.daemon.api() as api:
            return api.get('/v1/node').json()['node']

    def link(self, state):
        run('ip', 'link', 'set', self.veth, state)

    def ready(self):
        with contextlib.suppress(OSError), self.daemon.api() as api:
            return api.get('/readyz').status_code == 200

    def remove(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.daemon.process.poll() is None:
                self.daemon.terminate()
        self.daemon.kill()
        self.daemon.remove()
        run('ip', 'netns', 'del', self.namespace, check=False)


class Fleet:
    """`args` by name of the node; `router` is the first router, at an address of the bridge."""

    def __init__(self, folder, args):
        self.folder = folder
        self.tag = f'gb{os.getpid() % 100000}'
        self.bridge = f'{self.tag}br'
        self.nodes = {}
        self.router = None
        self._add_bridge()
        try:
            for number, (name, words) in enumerate(args.items()):
                self.nodes[name] = Node(self, name, number, *words)
            self.router = Router(folder, *self.words())
            for node in self.nodes.values():
                gb.wait_until(node.ready, f'node {node.name} is ready')
            gb.wait_until(lambda: self.open_nodes() == set(self.nodes), 'the router sees all nodes')
        except BaseException:
            self.remove()
            raise

    def _add_bridge(self):
        used = run('ip', '-4', 'addr').stdout
        nets = [f'10.{a}.{b}' for a in range(201, 250) for b in range(256)]
        self.net = random.choice([net for net in nets if net + '.' not in used])
        run('ip', 'link', 'add', self.bridge, 'type', 'bridge')
        run('ip', 'addr', 'add', f'{self.net}.1/24', 'dev', self.bridge)
        run('ip', 'link', 'set', self.bridge, 'up')

    def words(self):
        return [f'{n.name}={n.address}:{PORT}' for n in self.nodes.values()]

    def open_nodes(self):
        """Names of the nodes on which new sessions are made, seen from outside."""
        seen = set()
        with self.router.api() as api:
            for _ in range(4 * len(self.nodes)):
                answer = api.post('/v1/sessions', json={})
                if answer.status_code == 201:
                    id = answer.json()['id']
                    seen.add(self.name_of(id))
                    api.delete(f'/v1/sessions/{id}')
        return seen

    def name_of(self, id):
        return next(name for name in self.nodes if self.letters(name) == id.removeprefix('s_')[:4])

    def letters(self, name):
        if not hasattr(self, '_letters'):
            self._letters = {n: node.letters for n, node in self.nodes.items()}
        return self._letters[name]

    def crashed(self):
        return [n.name for n in self.nodes.values() if n.daemon.process.poll() in gb.CRASHES]

    def remove(self):
        if self.router:
            self.router.stop()
        for node in self.nodes.values():
            node.remove()
        run('ip', 'link', 'del', self.bridge, check=False)
