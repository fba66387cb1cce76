"""What the tests drive: a daemon of their own, its API, its command line, and a view of it through /proc."""

import asyncio
import atexit
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from pathlib import Path

import requests
import websockets

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(
    os.environ['GLOVEBOX_BUILD'] + '/glovebox'
    if 'GLOVEBOX_BUILD' in os.environ
    else os.environ.get('GLOVEBOX', ROOT / 'build/glovebox')
).resolve()
PYTHON = '/usr/bin/python3'
NEW_WEBSOCKETS = int(websockets.__version__.split('.')[0]) >= 14  # Debian 13's: other names
PATIENCE = 120  # seconds for what takes milliseconds when the machine has nothing else to do


def wait_until(check, what, timeout=PATIENCE, every=0.02):
    """Calls check() until it returns something true, and returns that."""
    end = time.monotonic() + timeout
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'{what}: not within {timeout} s')
        time.sleep(every)


def clean_env(**extra):
    """Our environment without settings of Glovebox's own, which would reach every daemon."""
    env = {k: v for k, v in os.environ.items() if not k.startswith('GLOVEBOX')}
    env.update({k: str(v) for k, v in extra.items()})
    return env


def cli(*args, input=None, timeout=PATIENCE, env=None, cwd=None):
    """Runs the program to its end; output as text."""
    return subprocess.run(
        [PROGRAM, *map(str, args)],
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        text=True,
        errors='replace',
        timeout=timeout,
        env=env or clean_env(),
        cwd=cwd,
    )


# ---- /proc -----------------------------------------------------------------------------


def _stat(pid):
    """(parent, start time, state) of a process; None when it is gone."""
    try:
        text = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    fields = text.rpartition(')')[2].split()
    return int(fields[1]), int(fields[19]), fields[0]


def processes():
    """{pid: (parent, start time, state)} of all there are."""
    found = {int(name): _stat(name) for name in os.listdir('/proc') if name.isdigit()}
    return {pid: stat for pid, stat in found.items() if stat}


def descendants(pid):
    """{(pid, start time): state} of everything below a process."""
    every = processes()
    below, grown = {pid}, True
    while grown:
        more = {p for p, (parent, _, _) in every.items() if parent in below} - below
        grown = bool(more)
        below |= more
    return {(p, every[p][1]): every[p][2] for p in below - {pid} if p in every}


def still_there(identities):
    """Those of the (pid, start time) pairs that are processes now."""
    return {(pid, start) for pid, start in identities if (s := _stat(pid)) and s[1] == start}


def command_of(pid):
    try:
        return Path(f'/proc/{pid}/comm').read_text().strip()
    except OSError:
        return ''


def namespaces(pids):
    """Inodes of all namespaces the processes are in."""
    found = set()
    for pid in pids:
        for kind in ('mnt', 'pid', 'user', 'net', 'ipc', 'uts'):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f'/proc/{pid}/ns/{kind}'))
    return found


# ---- the daemon ------------------------------------------------------------------------


def as_user(uid):
    """What to put before a command so that an ordinary user runs it."""
    return ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups', '--bounding-set=-all', '--inh-caps=-all']


# Before a command: it ends when the tests do, also when they are killed.
WITH_US = [shutil.which('setpriv'), '--pdeathsig', 'TERM']
FOLDERS = 'glovebox-e2e-'  # of the daemons of a process of tests: its number follows


def remove_left_folders():
    """Those of tests that were killed."""
    for path in Path(tempfile.gettempdir()).glob(FOLDERS + '*-*'):
        owner = path.name[len(FOLDERS) :].partition('-')[0]
        if owner.isdigit() and not os.path.exists(f'/proc/{owner}'):
            shutil.rmtree(path, ignore_errors=True)


class Layouts:
    """What daemons learnt about their modules at their first start: the next one has it from here."""

    folder = Path(tempfile.gettempdir()) / f'{FOLDERS}{os.getpid()}-layout'

    @classmethod
    def give(cls, state):
        if cls.folder.exists():
            shutil.copytree(cls.folder, state / 'layout')

    @classmethod
    def keep(cls, state):
        cls.folder.mkdir(exist_ok=True)
        for learnt in (state / 'layout').glob('*'):
            if learnt.stat().st_size and not (cls.folder / learnt.name).exists():
                shutil.copy(learnt, cls.folder)


atexit.register(shutil.rmtree, Layouts.folder, ignore_errors=True)


started = weakref.WeakSet()  # the processes of all daemons
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE, -signal.SIGTRAP}


def crashed_daemons():
    return [process.pid for process in started if process.poll() in CRASHES]


class Daemon:
    """
    `glovebox serve` on a free port, with a state directory of its own. With GLOVEBOX_TEST_ROUTER=haproxy the tests reach
    it through HAProxy, as the only node of a fleet (docs/fleet.md lists the tests that cannot pass then).
    """

    def __init__(self, *args, env=None, wait=True, listen='127.0.0.1:0', token=None, before=(), user=None, learnt=True):
        self.dir = Path(tempfile.mkdtemp(prefix=f'{FOLDERS}{os.getpid()}-'))
        self.log_path = self.dir / 'log'
        self.token = token
        self.ready = int(args[args.index('--ready') + 1]) if '--ready' in args else 4
        self.router = None
        routed = os.environ.get('GLOVEBOX_TEST_ROUTER') == 'haproxy' and listen == '127.0.0.1:0'
        if routed and '--node' not in args:
            args = (*args, '--node', 'only')
        program = PROGRAM
        if user is not None:
            program, before = self._give_to(user), (*before, *as_user(user))
        elif learnt:
            Layouts.give(self.dir / 'state')
        argv = [*before, *WITH_US, program, 'serve', '--listen', listen, '--state-dir', self.dir / 'state', *args]
        with open(self.log_path, 'wb') as log:
            self.process = subprocess.Popen(
                [str(a) for a in argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_env(**(env or {})),
                start_new_session=True,
            )
        started.add(self.process)
        self.pid = self.process.pid
        self.ended = False
        try:
            where = wait_until(self._address, 'the daemon listens')
            self.port = None if where.startswith('unix:') else int(where.rpartition(':')[2])
            self.url = f'http://127.0.0.1:{self.port}'
            if routed:
                self._route(str(args[args.index('--node') + 1]))
            if wait:
                self.wait_ready()
        except BaseException:
            self.kill()
            raise

    def _route(self, node):
        from fleet import Router

        self.router = Router(self.dir, '--no-agent', f'{node}=127.0.0.1:{self.port}')
        self.port, self.url = self.router.port, self.router.url

    def _give_to(self, user):
        """A copy of the program where this user can start it, wherever it was built."""
        self.dir.chmod(0o755)
        for name in ('glovebox', 'glovebox-guest.so', 'glovebox-xserver.so'):
            shutil.copy(Path(PROGRAM).parent / name, self.dir / name)
        (self.dir / 'state').mkdir()
        os.chown(self.dir / 'state', user, user)
        return self.dir / 'glovebox'

    def _address(self):
        if self.process.poll() is not None:
            raise AssertionError(f'the daemon ended with {self.process.returncode}:\n{self.log()}')
        found = re.search(r'listening on ([^\s;]+)', self.log())
        return found and found[1]

    def log(self):
        return self.log_path.read_text(errors='replace')

    def api(self, **kwargs):
        return Api(self.url, token=self.token, **kwargs)

    def wait_ready(self):
        with self.api() as api:
            wait_until(lambda: api.get('/readyz').status_code == 200, 'the daemon is ready')
        Layouts.keep(self.dir / 'state')

    def settled_fds(self):
        """Open descriptors when as many guests wait as were asked for, so that nothing under way looks like a leak."""
        with self.api() as api:
            seen = []

            def still():
                seen.append((api.metric('glovebox_guests_ready'), self.fds()))
                return seen[-1][0] == self.ready and len(seen) >= 15 and len(set(seen[-15:])) == 1

            wait_until(still, f'{self.ready} guests are ready and nothing is under way')
            return self.fds()

    def children(self, command):
        """Pids of direct children by the name they gave themselves."""
        return [p for p, (parent, _, _) in processes().items() if parent == self.pid and command_of(p) == command]

    def fds(self):
        return len(os.listdir(f'/proc/{self.pid}/fd'))

    def rss(self):
        text = Path(f'/proc/{self.pid}/status').read_text()
        return int(re.search(r'VmRSS:\s+(\d+) kB', text)[1]) * 1024

    def peak_rss(self):
        text = Path(f'/proc/{self.pid}/status').read_text()
        return int(re.search(r'VmHWM:\s+(\d+) kB', text)[1]) * 1024

    def terminate(self, timeout=PATIENCE):
        """SIGTERM, and the exit code it leads to."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout)
        if self.router:
            self.router.stop()
        self.ended = True
        return code

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        if self.router:
            self.router.stop()
        self.ended = True

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


@contextlib.contextmanager
def running_daemon(*args, **kwargs):
    """A daemon for a block. At its end it must stop by itself when asked, leaving no process behind."""
    daemon = Daemon(*args, **kwargs)
    failed = True
    try:
        yield daemon
        failed = False
    finally:
        if not daemon.ended:
            family = descendants(daemon.pid)
            try:
                code = daemon.terminate()
            except subprocess.TimeoutExpired:
                daemon.kill()
                code = 'none within the time'
            if not failed:
                assert code == 0, f'exit code {code}:\n{daemon.log()}'
                assert not still_there(family), 'processes of the daemon are left'
        if failed:
            print(f'---- log of the daemon ----\n{daemon.log()[-8000:]}')
        daemon.remove()


# ---- the API ---------------------------------------------------------------------------


class Api:
    """A keep-alive connection; get(), post() and so on answer `requests` responses whatever the status."""

    def __init__(self, url, token=None):
        self.url = url
        self.http = requests.Session()
        self.http.trust_env = False
        if token:
            self.http.headers['Authorization'] = f'Bearer {token}'
        self.made = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for session in self.made:
            with contextlib.suppress(requests.RequestException):
                session.delete()
        self.http.close()

    def request(self, method, path, timeout=PATIENCE, **kwargs):
        return self.http.request(method, self.url + path, timeout=timeout, **kwargs)

    def get(self, path, **kwargs):
        return self.request('GET', path, **kwargs)

    def post(self, path, **kwargs):
        return self.request('POST', path, **kwargs)

    def put(self, path, **kwargs):
        return self.request('PUT', path, **kwargs)

    def delete(self, path, **kwargs):
        return self.request('DELETE', path, **kwargs)

    def session(self, **fields):
        answer = self.post('/v1/sessions', json=fields)
        assert answer.status_code == 201, answer.text
        return self.adopt(answer.json())

    def adopt(self, info):
        """A session that was made in another way, as by a fork: it ends with the others."""
        session = Session(self, info)
        self.made.append(session)
        return session

    def end_sessions(self):
        """All that the server has, whoever made them."""
        for info in self.get('/v1/sessions?limit=1000').json()['sessions']:
            self.delete(f'/v1/sessions/{info["id"]}')

    def run(self, code, **fields):
        answer = self.post('/v1/run', json={'code': code, **fields})
        assert answer.status_code == 200, answer.text
        return Observation(answer.json())

    def metrics(self):
        """{name with labels: value}"""
        text = self.get('/metrics').text
        lines = (line.rpartition(' ') for line in text.splitlines() if line and line[0] != '#')
        return {name: float(value) for name, _, value in lines}

    def metric(self, name):
        return self.metrics()[name]


class Observation(dict):
    """An observation with its fields as attributes."""

    __getattr__ = dict.__getitem__

    @property
    def text(self):
        """The last value as text, or None."""
        return self['result'] and self['result'].get('text/plain')

    def ok(self):
        assert self['status'] == 'ok', f'{self["status"]}: {self["error"]}\n{self["stderr"]}'
        return self


class Session:
    def __init__(self, api, info):
        self.api, self.info, self.id = api, info, info['id']
        self.path = f'/v1/sessions/{self.id}'

    def post_code(self, code, **fields):
        """The response to an execute."""
        kwargs = {k: fields.pop(k) for k in ('timeout', 'headers', 'stream') if k in fields}
        return self.api.post(f'{self.path}/execute', json={'code': code, **fields}, **kwargs)

    def execute(self, code, **fields):
        answer = self.post_code(code, **fields)
        assert answer.status_code == 200, answer.text
        return Observation(answer.json())

    def value(self, expression):
        """What a cell's last expression shows; it must succeed."""
        return self.execute(expression).ok().text

    def in_background(self, code, **fields):
        """Starts a cell on a connection of its own; call result() for its observation."""
        return Background(self, code, fields)

    def events(self, code, **fields):
        """Yields (event, data) of a cell as they come."""
        answer = self.post_code(code, headers={'Accept': 'text/event-stream'}, stream=True, **fields)
        assert answer.status_code == 200, answer.text
        assert answer.headers['Content-Type'].startswith('text/event-stream')
        with answer:
            yield from sse_events(answer)

    def socket(self):
        return Socket(f'{self.api.url}{self.path}/ws'.replace('http:', 'ws:'))

    def get(self):
        return self.api.get(self.path).json()

    def interrupt(self):
        answer = self.api.post(f'{self.path}/interrupt')
        assert answer.status_code == 200, answer.text
        return answer.json()['interrupted']

    def reset(self):
        answer = self.api.post(f'{self.path}/reset')
        assert answer.status_code == 200, answer.text

    def delete(self):
        return self.api.delete(self.path)

    def put_file(self, path, data, **kwargs):
        return self.api.put(f'{self.path}/files/{path}', data=data, **kwargs)

    def get_file(self, path, **kwargs):
        return self.api.get(f'{self.path}/files/{path}', **kwargs)

    def delete_file(self, path):
        return self.api.delete(f'{self.path}/files/{path}')

    def files(self, **query):
        answer = self.api.get(f'{self.path}/files', params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()['files']

    def logs(self, **query):
        answer = self.api.get(f'{self.path}/logs', params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def hold(self, code='None', **fields):
        """Starts a cell that runs on until release(), and waits for it to run."""
        cell = self.in_background(HOLD + code, **fields)
        self.wait_busy()
        return cell

    def release(self):
        assert self.put_file('.go', b'').status_code == 201

    def wait_busy(self):
        wait_until(lambda: self.get()['state'] == 'busy', 'a cell runs')

    def wait_idle(self):
        wait_until(lambda: self.get()['state'] == 'idle', 'no cell runs')


# In front of a cell: it runs until Session.release(), however long the machine takes until then.
HOLD = """import os as _os, time as _time
while not _os.path.exists('/workspace/.go'): _time.sleep(0.01)
_os.unlink('/workspace/.go')
"""


SOCKET_REFUSED = websockets.InvalidStatus if NEW_WEBSOCKETS else websockets.InvalidStatusCode


def refused_with(error):
    return error.response.status_code if NEW_WEBSOCKETS else error.status_code


class Socket:
    """A WebSocket client without async: each call runs the loop as long as it needs it."""

    def __init__(self, url, headers=None, **kwargs):
        self.loop = asyncio.new_event_loop()
        self.n = 0
        if headers:
            kwargs['additional_headers' if NEW_WEBSOCKETS else 'extra_headers'] = headers
        try:
            self.ws = self._wait(self._connect(url, kwargs))
        except BaseException:
            self.loop.close()
            raise

    async def _connect(self, url, kwargs):
        return await websockets.connect(url, max_size=None, ping_interval=None, close_timeout=5, **kwargs)

    def _wait(self, what):
        async def bounded():
            return await asyncio.wait_for(what, PATIENCE)

        return self.loop.run_until_complete(bounded())

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if not self.loop.is_closed():
            self._wait(self.ws.close())
            self.loop.close()

    def send_text(self, text):
        self._wait(self.ws.send(text))

    def send(self, type, **fields):
        """Sends a message; returns its id."""
        self.n += 1
        fields.setdefault('id', f'm{self.n}')
        self.send_text(json.dumps({'type': type, **fields}))
        return fields['id']

    def receive(self):
        return json.loads(self._wait(self.ws.recv()))

    def until_done(self, id):
        """All messages about one id up to the one that ends it; messages about others must not come between."""
        messages = []
        while not messages or messages[-1]['type'] not in ('done', 'error'):
            messages.append(self.receive())
            assert messages[-1]['id'] == id
        return messages

    def execute(self, code, **fields):
        return self.until_done(self.send('execute', code=code, **fields))


class Background:
    """A cell somebody else waits for."""

    def __init__(self, session, code, fields):
        self.answer = self.error = None
        self.thread = threading.Thread(target=self._run, args=(session, code, fields), daemon=True)
        self.thread.start()

    def _run(self, session, code, fields):
        try:
            with Api(session.api.url) as api:
                api.http.headers.update(session.api.http.headers)
                self.answer = Session(api, session.info).post_code(code, **fields)
        except BaseException as e:
            self.error = e

    def response(self, timeout=PATIENCE):
        self.thread.join(timeout)
        assert not self.thread.is_alive(), 'the cell did not end'
        if self.error:
            raise self.error
        return self.answer

    def result(self, timeout=PATIENCE):
        answer = self.response(timeout)
        assert answer.status_code == 200, answer.text
        return Observation(answer.json())


def sse_events(answer):
    """Yields (event, data) as they arrive."""
    pending = b''
    for piece in answer.iter_content(None):  # as the pieces come
        *blocks, pending = (pending + piece).split(b'\n\n')
        for block in blocks:
            event, data = None, []
            for line in block.decode().split('\n'):
                name, _, value = line.partition(':')
                value = value[1:] if value.startswith(' ') else value
                if name == 'event':
                    event = value
                elif name == 'data':
                    data.append(value)
            if data:
                yield event, json.loads('\n'.join(data))
    assert not pending, 'the stream ends with a whole event'


def assert_problem(answer, status, code, *words):
    """A problem+json answer, complete and with these words in what it says."""
    assert answer.status_code == status, f'{answer.status_code} {answer.text}'
    assert answer.headers['Content-Type'] == 'application/problem+json'
    problem = answer.json()
    assert problem['status'] == status
    assert problem['code'] == code, problem
    assert problem['title'] and problem['detail'] and 'remediation' in problem
    for word in words:
        assert word in problem['detail'] + ' ' + problem['remediation'], problem
    return problem


# ---- bytes on the wire -----------------------------------------------------------------


class Wire:
    """A bare connection, for what no well-behaved client sends."""

    def __init__(self, daemon):
        self.socket = socket.create_connection(('127.0.0.1', daemon.port), timeout=PATIENCE)
        self.buffer = b''

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)
        return self

    def _more(self):
        piece = self.socket.recv(65536)
        self.buffer += piece
        return piece

    def answer(self):
        """(status, headers with lower-case names, body) of the next answer."""
        while b'\r\n\r\n' not in self.buffer:
            if not self._more():
                raise EOFError(f'closed after {self.buffer!r}')
        head, _, self.buffer = self.buffer.partition(b'\r\n\r\n')
        lines = head.decode('latin-1').split('\r\n')
        status = int(lines[0].split()[1])
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(':')
            headers[name.lower()] = value.strip()
        return status, headers, self._body(status, headers)

    def _body(self, status, headers):
        if status < 200 or status in (204, 304):
            return b''
        if headers.get('transfer-encoding') == 'chunked':
            body = b''
            while True:
                size = int(self._line(), 16)
                piece = self._exactly(size)
                self._exactly(2)
                if not size:
                    return body
                body += piece
        return self._exactly(int(headers.get('content-length', 0)))

    def _line(self):
        while b'\r\n' not in self.buffer:
            if not self._more():
                raise EOFError
        line, _, self.buffer = self.buffer.partition(b'\r\n')
        return line

    def _exactly(self, n):
        while len(self.buffer) < n:
            if not self._more():
                raise EOFError(f'closed {n - len(self.buffer)} bytes early')
        piece, self.buffer = self.buffer[:n], self.buffer[n:]
        return piece

    def is_closed(self):
        """True when the other side closes, having said nothing more."""
        try:
            return self._more() == b'' and not self.buffer
        except ConnectionResetError:
            return True
