"""Good and hostile cells for a long time, by several clients; then a count of what is left."""

import contextlib
import os
import random
import threading
import time
from pathlib import Path

from harness import memory
from harness.client import Refused, request_bytes
from harness.daemon import Daemon

CLIENTS = 6
LOOK_EVERY = 15  # seconds between two looks at the daemon
WARM_SECONDS = 20  # until buffers and pools have their size
SETTLE_SECONDS = 120  # the kernel takes namespaces and control groups apart when it finds time
MEMORY_SLACK = 1.15  # of the daemon: allocators keep some of what they once had

LIMITS = {'memory_bytes': 200_000_000, 'processes': 32, 'disk_bytes': 50_000_000, 'timeout_s': 2}

# name → (code, statuses that are right)
GOOD = {
    'arithmetic': ('sum(i * i for i in range(10_000))', {'ok'}),
    'state': ('count = globals().get("count", 0) + 1; count', {'ok'}),
    'printing': ('for i in range(200): print("line", i)', {'ok'}),
    'numpy': ('import numpy; float(numpy.linalg.norm(numpy.random.rand(200, 200)))', {'ok'}),
    'pandas': ('import pandas; pandas.DataFrame({"a": range(1000)}).describe()', {'ok'}),
    'plot': ('import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.show()', {'ok'}),
    'files': ('open("a.txt", "w").write("x" * 100_000)', {'ok'}),
    'subprocess': ('import subprocess; subprocess.run(["echo", "hi"], check=True)', {'ok'}),
    'threads': ('import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()', {'ok'}),
    'an error': ('def f(): raise ValueError("no")\nf()', {'error'}),
    'exit': ('import sys; sys.exit(3)', {'error', 'ok'}),
}
DEAD = {'killed', 'error', 'out_of_memory', 'timeout', 'ok', 'interrupted'}
HOSTILE = {
    'endless loop': ('while True: pass', {'timeout'}),
    'no interrupt': ('while True:\n  try:\n    while True: pass\n  except BaseException: pass', {'timeout'}),
    'long C call': ('sum(range(10**11))', {'timeout'}),
    'death': ('import os; os._exit(9)', {'killed', 'error'}),
    'segfault': ('import ctypes; ctypes.string_at(0)', {'killed'}),
    'kill everyone': ('import os, signal; os.kill(-1, signal.SIGKILL)', DEAD),
    'fork bomb': ('import os\nwhile True:\n  try: os.fork()\n  except OSError: pass', DEAD),
    'memory': ('held = []\nwhile True: held.append(bytearray(5_000_000))', {'out_of_memory', 'error', 'killed'}),
    'disk': ('with open("big", "wb") as f:\n  while True: f.write(bytes(1_000_000))', {'error', 'out_of_memory'}),
    'many files': ('for i in range(10**6): open(f"f{i}", "w").close()', {'error', 'timeout'}),
    'output': ('while True: print("x" * 10_000)', {'timeout', 'error', 'killed'}),
    'left running': ('import subprocess; subprocess.Popen(["sleep", "1000"])', {'ok'}),
    'left thread': ('import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()', {'ok'}),
    'descriptors': ('held = []\nwhile True: held.append(open("/dev/null"))', {'error'}),
    'deep recursion': ('import sys\nsys.setrecursionlimit(10**7)\ndef f(n): return f(n + 1)\nf(0)', DEAD),
    'shared memory': ('from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=10**6)', {'ok'}),
}  # fmt: skip


class Tally:
    """What was done and what went wrong, by all clients."""

    def __init__(self):
        self.lock = threading.Lock()
        self.cells, self.sessions, self.wrong = 0, 0, []

    def cell(self, name, status, right):
        with self.lock:
            self.cells += 1
            if status not in right:
                self.wrong.append(f'{name}: {status}')

    def session(self):
        with self.lock:
            self.sessions += 1

    def trouble(self, text):
        with self.lock:
            self.wrong.append(text[:300])


def leave_in_the_middle(daemon, session):
    """A client that asks for something long and hangs up."""
    with contextlib.closing(daemon.connect()) as connection:
        connection.send(
            request_bytes('POST', f'/v1/sessions/{session}/execute', {'code': 'import time; time.sleep(60)'})
        )
        time.sleep(0.05)


def one_session(daemon, connection, draw, tally):
    session = connection.create(limits=LIMITS)['id']
    tally.session()
    for _ in range(draw.randrange(1, 8)):
        kind = HOSTILE if draw.random() < 0.35 else GOOD
        name = draw.choice(list(kind))
        code, right = kind[name]
        answer = connection.call('POST', f'/v1/sessions/{session}/execute', {'code': code})
        # In a session that a hostile cell filled up, what should work may fail; its own trouble.
        tally.cell(name, answer['status'], right | DEAD if kind is GOOD or 'ok' in right else right)
    if draw.random() < 0.1:
        leave_in_the_middle(daemon, session)
    if draw.random() < 0.1:
        return  # left to the idle timeout
    connection.delete(session)


def client(daemon, seed, until, tally):
    draw = random.Random(seed)
    connection = daemon.connect()
    while time.monotonic() < until:
        try:
            if draw.random() < 0.3:
                name = draw.choice(list(GOOD))
                answer = connection.call('POST', '/v1/run', {'code': GOOD[name][0], 'limits': LIMITS})
                tally.cell(f'run {name}', answer['status'], GOOD[name][1])
            else:
                one_session(daemon, connection, draw, tally)
        except (Refused, OSError, ValueError) as e:
            tally.trouble(f'{type(e).__name__}: {e}')
            connection.close()
            connection = daemon.connect()
    connection.close()


def _namespaces():
    found = set()
    for path in Path('/proc').glob('[0-9]*/ns/*'):
        with contextlib.suppress(OSError):
            found.add(os.readlink(path))
    return len(found)


def _cgroups():
    return sum('glovebox' in path for path, _, _ in os.walk('/sys/fs/cgroup'))


def _below(pid):
    """All processes below one."""
    found, todo = [], [pid]
    while todo:
        with contextlib.suppress(OSError):
            for task in Path(f'/proc/{todo.pop()}/task').iterdir():
                children = [int(p) for p in (task / 'children').read_text().split()]
                found += children
                todo += children
    return len(found)


def count(daemon):
    """Everything that could leak, as numbers."""
    folder = Path(daemon.folder.name)
    return {
        'processes': _below(daemon.pid),
        'descriptors': len(os.listdir(f'/proc/{daemon.pid}/fd')),
        'mounts': len(Path('/proc/self/mountinfo').read_text().splitlines()),
        'namespaces': _namespaces(),
        'control groups': _cgroups(),
        'files': sum(1 for p in folder.rglob('*') if p.is_file()),
        'daemon MB': memory.rss(daemon.pid) / 1e6,
    }


def look(daemon, until, say, tally):
    """Tells from time to time how it goes; the memory seen last is the one under load."""
    while time.monotonic() < until:
        time.sleep(max(min(LOOK_EVERY, until - time.monotonic()), 0.1))
        now = count(daemon)
        text = ', '.join(f'{name} {value:.0f}' for name, value in now.items())
        say(f'{tally.cells:,} cells in {tally.sessions:,} sessions; {text}')
        if daemon.process.poll() is not None:
            raise SystemExit(f'the daemon ended with {daemon.process.returncode}')


def leaks(before, after):
    """Names of what grew."""
    slack = {'daemon MB': before['daemon MB'] * (MEMORY_SLACK - 1) + 2}
    return [name for name in before if after[name] > before[name] + slack.get(name, 0)]


def settle(daemon, before):
    """Counts until nothing is above where it began, or the patience ends."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while leaks(before, after := count(daemon)) and time.monotonic() < deadline:
        time.sleep(1)
    return after


def load(daemon, seconds, say, tally):
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=client, args=(daemon, seed, until, tally), daemon=True) for seed in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    look(daemon, until, say, tally)
    for thread in threads:
        thread.join(120)
        if thread.is_alive():
            tally.trouble('a client did not get its answer within two minutes')


def soak(seconds, say):
    """Runs it. The exit code: 0 when every cell ended as it should and nothing is left."""
    with Daemon('--idle-timeout', '5', '--max-sessions', '200') as daemon:
        load(daemon, WARM_SECONDS, lambda text: None, Tally())
        time.sleep(15)
        before, tally = count(daemon), Tally()
        say(f'{seconds / 60:g} minutes, {CLIENTS} clients; seeds 0 to {CLIENTS - 1}')
        load(daemon, seconds, say, tally)
        after = settle(daemon, before)
    say('')
    say('| | before | after |\n|---|---:|---:|')
    for name in before:
        say(f'| {name} | {before[name]:.0f} | {after[name]:.0f} |')
    lost = leaks(before, after)
    say(f'\n{tally.cells:,} cells in {tally.sessions:,} sessions, {len(tally.wrong)} ended otherwise than they should')
    for text in tally.wrong[:10]:
        say(f'- {text}')
    say('leaked: ' + ', '.join(lost) if lost else 'nothing leaked')
    return 1 if lost or tally.wrong else 0
