"""CPU time that a fresh one-shot run costs, and how many run in a second; beside python3, bubblewrap and a fork server without a jail."""

import resource
import shutil
import subprocess
import time
from pathlib import Path

from harness import cpu
from harness.daemon import Daemon, build_dir
from harness.peers import PYTHON
from harness.stats import Section

ROUNDS = 10
BATCH = 400  # runs per sample: CPU time is counted in ticks of 10 ms
EPISODES = 60
CODE, EXPECTED = 'print(6*7)', '42'
FORK_SERVER = Path(__file__).resolve().parents[1] / 'programs' / 'fork_server.py'
BWRAP = 'bwrap --unshare-all --die-with-parent --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp'


class Server:
    """A process with an HTTP port: its runs are counted with everything below it."""

    def __init__(self, pid, port, kind='run'):
        self.pid, self.port, self.kind = pid, port, kind

    def sample(self, clients, total):
        """(CPU ms per run, page faults per run, runs per second)."""
        before = cpu.below(self.pid)
        done = subprocess.run(
            [build_dir() / 'bench-load', str(self.port), str(clients), str(total), self.kind, CODE, EXPECTED],
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        spent = cpu.below(self.pid) - before
        count, _, seconds = (float(field) for field in done.stdout.split()[:3])
        return spent.ms / count, spent.faults / count, count / seconds


class Program:
    """A command that is started for each run, one at a time."""

    def __init__(self, command):
        self.command = command

    def sample(self, clients, total):
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(total):
            done = subprocess.run(self.command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
            if EXPECTED.encode() not in done.stdout:
                raise RuntimeError(f'{self.command[0]} answered {done.stdout[:300]!r}')
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ms = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3
        faults = after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt
        return ms / total, faults / total, total / (time.perf_counter() - began)


class ForkServer:
    """A Python process that has imported what the daemon's template has, and forks for each request; no jail at all."""

    def __enter__(self):
        self.process = subprocess.Popen([PYTHON, str(FORK_SERVER)], stdout=subprocess.PIPE, text=True)
        return Server(self.process.pid, int(self.process.stdout.readline()))

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def programs():
    """name → what is started for each run."""
    found = {'python3 -I -S -c': Program([PYTHON, '-I', '-S', '-c', CODE])}
    if shutil.which('bwrap'):
        found['bubblewrap, python3 -I -S -c'] = Program([*BWRAP.split(), PYTHON, '-I', '-S', '-c', CODE])
    return found


class Contender:
    """A row of CPU time, and beside it the page faults and the rate of each sample."""

    def __init__(self, row, source, clients, total):
        self.row, self.source, self.clients, self.total = row, source, clients, total
        self.faults, self.rates = [], []

    def measure(self):
        ms, faults, rate = self.source.sample(self.clients, self.total)
        self.faults.append(faults)
        self.rates.append(rate)
        return ms


def middle(values):
    return sorted(values)[len(values) // 2] if values else 0


def throughput(effort):
    """CPU time of a one-shot run and of an episode, and their rate, from a C client"""
    section = Section(
        'throughput',
        'CPU time of a one-shot run',
        f'`{CODE}`: user and system time of all processes of the server divided by the runs, {BATCH} runs a sample; an episode is a session, ten cells, its end. '
        'The client (bench/programs/load.c) is not counted. Kernel threads, which destroy namespaces, are counted apart, for the whole machine.',
    )
    batch = effort(BATCH, 50)
    with Daemon('--max-sessions', '1000') as daemon, ForkServer() as bare:
        contenders, peer = [], None
        for name, source in programs().items():
            peer = peer or section.row(name, 'ms')
            row = peer if not contenders else section.row(name, 'ms', peer)
            contenders.append(Contender(row, source, 1, max(batch // 8, 20)))
        server = Server(daemon.pid, daemon.port)
        contenders.append(Contender(section.row('a fork server without a jail, 4 clients', 'ms', peer), bare, 4, batch))
        for clients in 4, 64:
            contenders.append(Contender(section.row(f'POST /v1/run, {clients} clients', 'ms', peer), server, clients, batch))
        episodes = Server(daemon.pid, daemon.port, 'episode')
        contenders.append(Contender(section.row('an episode, 4 clients', 'ms', peer), episodes, 4, effort(EPISODES, 20)))
        server.sample(4, 50)
        kernel = []
        for _ in range(effort(ROUNDS)):
            for contender in contenders:
                before = cpu.kernel_threads()
                contender.row.attempt(contender.measure)
                if contender.source is server:
                    kernel.append((cpu.kernel_threads() - before) / batch)
    for contender in contenders:
        section.fact(f'{contender.row.name}: {middle(contender.faults):,.0f} page faults, {middle(contender.rates):,.0f} a second')
    section.fact(f'kernel threads during `POST /v1/run`: {middle(kernel):.2f} ms of CPU per run')
    return section
