"""What ordinary programs expect of the machine they run on: programs, processes, an environment, files."""

import pytest


def value_of(session, code):
    """The value of the code's last line."""
    return session.execute(code).ok().text


def test_started_programs_have_the_environment(session):
    code = 'import subprocess; sorted(l.split("=")[0] for l in subprocess.check_output("env", text=True).split()) == sorted(__import__("os").environ)'
    assert value_of(session, code) == 'True'
    assert value_of(session, 'subprocess.check_output("echo $PATH $LANG $HOME", shell=True, text=True)') == (
        "'/usr/local/bin:/usr/bin:/bin C.UTF-8 /workspace\\n'"
    )
    assert value_of(session, 'import locale; locale.setlocale(locale.LC_ALL, "")') == "'C.UTF-8'"


def test_environment_given_with_the_session_reaches_programs(api):
    session = api.session(env={'MODE': 'test'})
    assert value_of(session, 'import subprocess; subprocess.check_output("echo $MODE", shell=True, text=True)') == "'test\\n'"


@pytest.mark.parametrize('method', ['fork', 'spawn', 'forkserver'])
def test_multiprocessing(session, method):
    code = f'import math, multiprocessing\nwith multiprocessing.get_context("{method}").Pool(2) as p:\n    r = p.map(math.sqrt, [1, 4])\nr'
    assert value_of(session, code) == '[1.0, 2.0]'


def test_manager_and_shared_memory(session):
    code = """
import multiprocessing
from multiprocessing import shared_memory
with multiprocessing.Manager() as m:
    d = m.dict(a=1)
    first = dict(d)
block = shared_memory.SharedMemory(create=True, size=4096)
again = shared_memory.SharedMemory(block.name)
block.buf[0] = 7
second = again.buf[0]
again.close(); block.close(); block.unlink()
first, second
"""
    assert value_of(session, code) == "({'a': 1}, 7)"


def test_asyncio_programs_and_servers(session):
    code = """
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)
    out, _ = await p.communicate(b'x' * 200000)
    async def echo(r, w):
        w.write(await r.readline()); w.close()
    server = await asyncio.start_unix_server(echo, '/tmp/echo')
    r, w = await asyncio.open_unix_connection('/tmp/echo')
    w.write(b'hello\\n')
    answer = await r.readline()
    server.close()
    return len(out), answer
await main()
"""
    assert value_of(session, code) == "(200000, b'hello\\n')"


def test_vectors_of_files(session):
    code = """
import os
fd = os.open('/workspace/v', os.O_RDWR | os.O_CREAT)
n = os.pwritev(fd, [b'ab', b'cd'], 1)
parts = [bytearray(2), bytearray(2)]
m = os.preadv(fd, parts, 1)
n, m, parts
"""
    assert value_of(session, code) == "(4, 4, [bytearray(b'ab'), bytearray(b'cd')])"


def test_who_and_where(session):
    code = 'import getpass, grp, os, pathlib, pwd; getpass.getuser(), pwd.getpwuid(os.getuid()).pw_dir, grp.getgrgid(os.getgid()).gr_name, str(pathlib.Path.home())'
    assert value_of(session, code) == "('sandbox', '/workspace', 'sandbox', '/workspace')"
    assert value_of(session, 'open("/proc/self/cgroup").read().count("glovebox")') == '0'


def test_a_virtual_environment(session):
    code = 'import subprocess; subprocess.run("python3 -m venv --without-pip /tmp/v && /tmp/v/bin/python3 -c \'print(5)\'", shell=True, capture_output=True, text=True).stdout'
    assert value_of(session, code) == "'5\\n'"


def test_psutil_takes_the_session_for_the_machine(api):
    session = api.session(limits={'memory_bytes': 300 << 20})
    o = session.execute('import psutil\nm = psutil.virtual_memory()\nm.total, m.available, m.used').ok()
    total, available, used = eval(o.text)
    assert o.stderr == '' and 300 << 20 <= total < 800 << 20 and used + available == total
    session.execute('kept = b"x" * (100 << 20)').ok()
    assert int(session.value('psutil.virtual_memory().used')) > used + (90 << 20)
    assert session.execute('b"x" * (psutil.virtual_memory().available + (80 << 20))').status == 'out_of_memory'
    assert session.value('psutil.swap_memory().total, psutil.cpu_count() > 0, psutil.cpu_count(logical=False) > 0') == '(0, True, True)'
    assert session.value('psutil.cpu_times().idle > 0, 0 <= psutil.cpu_percent(0.01) <= 100, psutil.boot_time() > 0') == '(True, True, True)'
    assert session.value('{p.mountpoint for p in psutil.disk_partitions(all=True)} >= {"/workspace", "/tmp"}') == 'True'
    assert session.value('psutil.Process().memory_info().rss > 0, psutil.pids() == [p.pid for p in psutil.process_iter()]') == '(True, True)'
