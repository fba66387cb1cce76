"""Files of /proc about the machine: there for every process of a session, with the session's own figures."""

import pytest


def run(session, command):
    return eval(session.value(f'import subprocess\nsubprocess.run({command!r}, shell=True, capture_output=True, text=True, timeout=20).stdout'))


def test_memory_is_the_limit_of_the_session(api):
    small, large = (api.session(limits={'memory_bytes': mb << 20}) for mb in (300, 700))
    code = 'int(open("/proc/meminfo").readline().split()[1])'
    assert [int(s.value(code)) >> 10 for s in (small, large)] == [300, 700]
    assert [line.split()[1] for line in run(small, 'free -m').splitlines()[1:]] == ['300', '0']


def test_used_memory_follows_the_session(session):
    code = 'import time\ntime.sleep(0.05)\n{f.split()[0]: int(f.split()[1]) >> 10 for f in open("/proc/meminfo")}["MemFree:"]'
    before = int(session.value(code))
    session.execute('kept = b"x" * (200 << 20)').ok()
    assert before - int(session.value(code)) > 190


def test_processor_time_is_the_sessions(session):
    code = """
import os, time
def read():
    fields = open('/proc/stat').readline().split()
    return (int(fields[1]) + int(fields[3])) / 100, int(fields[4]) / 100
first = read()
until = time.process_time() + 0.5
while time.process_time() < until:
    pass
second = read()
second[0] - first[0], second[1] - first[1], first[0]
"""
    busy, idle, first = eval(session.value(code))
    assert 0.4 < busy < 1.5 and idle >= 0 and first < 60
    assert session.value('open("/proc/stat").read().count("\\ncpu") == os.cpu_count() == open("/proc/cpuinfo").read().count("processor\\t")') == 'True'


def test_a_file_that_stays_open_is_renewed(session):
    code = """
import time
f = open('/proc/uptime')
first = float(f.read().split()[0])
for _ in range(80):
    time.sleep(0.1)
    f.seek(0)
    now = float(f.read().split()[0])
    if now > first:
        break
now > first
"""
    assert session.value(code) == 'True'


def test_clocks_agree(session):
    code = 'import time; abs(float(open("/proc/uptime").read().split()[0]) - time.clock_gettime(time.CLOCK_BOOTTIME)) < 1'
    assert session.value(code) == 'True'
    assert session.value('import os; len(os.getloadavg())') == '3'


@pytest.mark.parametrize(
    'command, words',
    [
        ('top -b -n 1', ('Tasks:', '%Cpu(s)', 'python3')),
        ('uptime', ('up', 'load average')),
        ('lscpu', ('Architecture:', 'Core(s) per socket:')),
        ('vmstat', ('swpd',)),
        ('ps aux', ('python3', 'sandbox')),
        ('nproc --all', ('',)),
    ],
)
def test_programs_that_read_them(session, command, words):
    said = run(session, command)
    assert said and all(word in said for word in words)


def test_psutil_in_a_child(api):
    session = api.session(limits={'memory_bytes': 300 << 20})
    code = 'import psutil; print(psutil.virtual_memory().total >> 20, psutil.cpu_count(), psutil.cpu_count(False) > 0, psutil.swap_memory().total, psutil.boot_time() > 0)'
    said = run(session, f'python3 -c {code!r}').split()
    assert said == ['300', session.value('__import__("os").cpu_count()'), 'True', '0', 'True']


def test_pools_of_joblib(session):
    code = """
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC
x, y = load_iris(return_X_y=True)
best = GridSearchCV(SVC(), {'C': [0.1, 10]}, n_jobs=2, cv=3).fit(x, y).best_params_
best, cross_val_score(SVC(), x, y, n_jobs=-1).mean() > 0.9
"""
    o = session.execute(code, timeout_s=120).ok()
    assert o.text == "({'C': 10}, True)"


def test_they_are_read_only_and_nothing_else_is_there(session):
    code = """
import errno, os
def tries(function, *args):
    try:
        function(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
[tries(os.open, '/proc/stat', os.O_WRONLY), tries(os.chmod, '/proc/meminfo', 0o666), sorted(n for n in os.listdir('/proc') if not n.isdigit()), os.listdir('/dev/shm'),
 [n for n in ('sys', 'cmdline', 'kcore', 'interrupts', 'net', 'mounts', 'diskstats') if os.path.lexists('/proc/' + n)],
 'microcode' in open('/proc/cpuinfo').read(), 'bugs' in open('/proc/cpuinfo').read()]
"""
    assert eval(session.value(code)) == ['EACCES', 'EROFS', ['self', 'thread-self'], [], [], False, False]


def test_a_fork_has_its_own(api, session):
    session.execute('kept = b"x" * (150 << 20)').ok()
    fork = api.adopt(api.post(f'{session.path}/fork', json={}).json()['sessions'][0])
    free = 'import time\ntime.sleep(0.05)\n{f.split()[0]: int(f.split()[1]) >> 10 for f in open("/proc/meminfo")}["MemFree:"]'
    before = int(fork.value(free))
    fork.execute('more = b"x" * (100 << 20)').ok()
    assert before - int(fork.value(free)) > 90
    assert 'python3' in run(fork, 'top -b -n 1')


def test_many_readers_at_once(session):
    code = """
from concurrent.futures import ThreadPoolExecutor
def read(i):
    return all(open('/proc/' + name).read() for name in ('stat', 'meminfo', 'uptime', 'loadavg') for _ in range(50))
with ThreadPoolExecutor(8) as pool:
    answer = all(pool.map(read, range(8)))
answer
"""
    assert session.value(code) == 'True'
