"""Control groups are used again by later sessions: what an earlier session did in one must not show in a later one."""

from pathlib import Path

import gb
import pytest

HOME = Path('/sys/fs/cgroup/memory')


@pytest.fixture(scope='module')
def api():
    if not HOME.is_dir():
        pytest.skip('counters of control groups version 2 cannot be set back: no group is used again')
    with gb.running_daemon('--preload', 'json', '--ready', '1') as daemon, daemon.api() as api:
        yield api


def group(session):
    """The session's control group, seen from outside."""
    for line in Path(f'/proc/{session.get()["pid"]}/cgroup').read_text().splitlines():
        if ':memory:' in line:
            return line.rpartition(':')[2]
    raise AssertionError('no memory group')


def life(api, *cells, **fields):
    """The group of a session that runs these cells and ends."""
    session = api.session(**fields)
    session.execute('pass').ok()  # its guest is there
    name = group(session)
    for code in cells:
        session.execute(code)
    session.delete()
    return name


def test_a_group_is_used_again(api):
    names = [life(api, 'x = 1') for _ in range(30)]
    assert len(set(names)) < len(names)


@pytest.mark.parametrize(
    'code, limits, leaves_trace',
    [
        ('import os, time\npids = []\nfor _ in range(4):\n  pid = os.fork()\n  if not pid:\n    b = b"x" * (80 << 20); time.sleep(5); os._exit(0)\n  pids.append(pid)\n'
         'for pid in pids: os.waitpid(pid, 0)', {'memory_bytes': 128 << 20}, True),
        ('import os, time\nfor _ in range(40):\n  try:\n    if os.fork() == 0: time.sleep(60)\n  except OSError: pass', {'processes': 8}, True),
        # 2 ms in each tenth of a second: throttled however little CPU time a busy machine gives
        ('import time\nend = time.process_time() + 0.05\nwhile time.process_time() < end: pass', {'cpus': 0.02}, True),
        ('import os\nfor root, _, files in os.walk("/usr/lib/python3"):\n  for f in files:\n    try: open(os.path.join(root, f), "rb").read()\n    except OSError: pass', {}, False),
        ('import os, time\nif os.fork() == 0:\n  if os.fork() == 0:\n    os.setsid(); time.sleep(600)\n  os._exit(0)', {}, False),
    ],
    ids=['memory', 'processes', 'cpu', 'page cache', 'orphan'],
)  # fmt: skip
def test_a_later_session_sees_nothing_of_an_earlier_one(api, code, limits, leaves_trace):
    name = life(api, code, limits=limits)
    for _ in range(8):
        session = api.session()
        first = session.execute('1 + 1').ok()
        assert not leaves_trace or group(session) != name  # its counters cannot be set back
        assert first.usage['cpu_ms'] < 1000 and first.usage['peak_memory_bytes'] < 120 << 20
        used = session.value('[int(l.split()[1]) for l in open("/proc/meminfo") if l.startswith(("MemTotal", "MemFree"))]')
        total, free = eval(used)
        assert total - free < 120 << 10
        # the default limits hold, not those of the earlier session
        session.execute('import subprocess\np = [subprocess.Popen(["sleep", "60"]) for _ in range(12)]').ok()
        session.execute('b = b"x" * (200 << 20)').ok()
        session.delete()
