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

LIMITS = {
    'memory_bytes': 200_000_000, 'processes': 32, 'disk_bytes': 50_000_000, 'inodes': 2000, 'total_output_bytes': 5_000_000, 'open_files': 256,
}  # fmt: skip
TIME = 2  # seconds, of cells that would never end
PATIENCE = 100  # seconds, of all others: a starved machine must not change how they end
WAIT = 150  # seconds until a client gives up


class Cell:
    """A cell and the one way in which it ends; two where a starved machine decides. After a `last` one the session is not what it was before."""

    def __init__(self, code, *statuses, seconds=PATIENCE, last=False):
        self.code, self.right, self.seconds, self.last = code, set(statuses), seconds, last

    def request(self):
        return {'code': self.code, 'timeout_s': self.seconds}


GOOD = {
    'arithmetic': Cell('sum(i * i for i in range(10_000))', 'ok'),
    'state': Cell('count = globals().get("count", 0) + 1; count', 'ok'),
    'printing': Cell('for i in range(200): print("line", i)', 'ok'),
    'numpy': Cell('import numpy; float(numpy.linalg.norm(numpy.random.rand(200, 200)))', 'ok'),
    'pandas': Cell('import pandas; pandas.DataFrame({"a": range(1000)}).describe()', 'ok'),
    'plot': Cell('import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.show()', 'ok'),
    'files': Cell('open("a.txt", "w").write("x" * 100_000)', 'ok'),
    'subprocess': Cell('import subprocess; subprocess.run(["echo", "hi"], check=True)', 'ok'),
    'threads': Cell('import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()', 'ok'),
    'an error': Cell('def f(): raise ValueError("no")\nf()', 'error'),
    'exit': Cell('import sys; sys.exit(3)', 'error'),
}
HOSTILE = {
    'endless loop': Cell('while True: pass', 'timeout', seconds=TIME),
    'no interrupt': Cell('while True:\n  try:\n    while True: pass\n  except BaseException: pass', 'timeout', seconds=TIME),
    'long C call': Cell('sum(range(10**11))', 'timeout', seconds=TIME),
    'fork bomb': Cell('import os\nwhile True:\n  try: os.fork()\n  except OSError: pass', 'timeout', seconds=TIME, last=True),
    'death': Cell('import os; os._exit(9)', 'killed'),
    'segfault': Cell('import ctypes; ctypes.string_at(0)', 'killed'),
    'kill everyone': Cell('import os, signal; os.kill(-1, signal.SIGKILL)', 'error'),  # refused
    'memory': Cell('def f():\n  held = []\n  while True: held.append(bytearray(5_000_000))\nf()', 'out_of_memory'),
    'kept memory': Cell('held = []\nwhile True: held.append(bytearray(5_000_000))', 'out_of_memory', last=True),
    'disk': Cell('with open("big", "wb") as f:\n  while True: f.write(bytes(1_000_000))', 'error', last=True),
    'many files': Cell('for i in range(10**6): open(f"f{i}", "w").close()', 'error', last=True),
    'output': Cell('while True: print("x" * 10_000)', 'error', 'killed'),  # killed: when it had no time to stop within the grace
    'left running': Cell('import subprocess; subprocess.Popen(["sleep", "1000"])', 'ok'),
    'left thread': Cell('import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()', 'ok'),
    'descriptors': Cell('held = []\ntry:\n  while True: held.append(open("/dev/null"))\nfinally:\n  for f in held: f.close()', 'error'),
    # CPython's matter, by version: a MemoryError, a SystemError without a message, or the end of the C stack.
    'deep recursion': Cell('import sys\nsys.setrecursionlimit(10**7)\ndef f(n): return f(n + 1)\nf(0)', 'out_of_memory', 'error', 'killed', last=True),
    'shared memory': Cell('from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=10**6)', 'ok'),
}  # fmt: skip


class Tally:
    """What was done and what went wrong, by all clients."""

    def __init__(self):
        self.lock = threading.Lock()
        self.cells, self.sessions, self.wrong = 0, 0, []

    def cell(self, name, cell, answer):
        with self.lock:
            self.cells += 1
            if answer['status'] not in cell.right:
                error = answer['error'] or {}
                self.wrong.append(f'{name}: {answer["status"]} after {answer["usage"]["wall_ms"]:.0f} ms: {error.get("message", "")[:200]}')

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
        name, cell = draw.choice(list(kind.items()))
        tally.cell(name, cell, connection.call('POST', f'/v1/sessions/{session}/execute', cell.request()))
        if cell.last:
            break
    if draw.random() < 0.1:
        leave_in_the_middle(daemon, session)
    if draw.random() < 0.1:
        return  # left to the idle timeout
    connection.delete(session)


def client(daemon, seed, until, tally):
    draw = random.Random(seed)
    connection = daemon.connect(WAIT)
    while time.monotonic() < until:
        try:
            if draw.random() < 0.3:
                name, cell = draw.choice(list(GOOD.items()))
                tally.cell(f'run {name}', cell, connection.call('POST', '/v1/run', {**cell.request(), 'limits': LIMITS}))
            else:
                one_session(daemon, connection, draw, tally)
        except (Refused, OSError, ValueError) as e:
            tally.trouble(f'{type(e).__name__}: {e}')
            connection.close()
            connection = daemon.connect(WAIT)
    connection.close()


def _below(pid):
    """All processes below one."""
    found, todo = [], [pid]
    while todo:
        with contextlib.suppress(OSError):
            for task in Path(f'/proc/{todo.pop()}/task').iterdir():
                children = [int(p) for p in (task / 'children').read_text().split()]
                found += children
                todo += children
    return found


def _namespaces(pids):
    """Of the daemon's own processes: others on this machine make some, too."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found.update(os.readlink(link) for link in Path(f'/proc/{pid}/ns').iterdir())
    return len(found)


def _cgroups(pid):
    return sum(f'/glovebox-{pid}' in path for path, _, _ in os.walk('/sys/fs/cgroup'))


def count(daemon):
    """Everything that could leak, as numbers."""
    folder, below = Path(daemon.folder.name), _below(daemon.pid)
    return {
        'processes': len(below),
        'descriptors': len(os.listdir(f'/proc/{daemon.pid}/fd')),
        'mounts': len(Path(f'/proc/{daemon.pid}/mountinfo').read_text().splitlines()),
        'namespaces': _namespaces([daemon.pid, *below]),
        'control groups': _cgroups(daemon.pid),
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
        thread.join(WAIT)
        if thread.is_alive():
            tally.trouble(f'a client did not get its answer within {WAIT} s')


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
