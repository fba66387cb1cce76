"""glovebox exec: programs in a session of a server, from the command line."""

import os
import pty
import select
import signal
import subprocess
import time

import gb
import pytest


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '2', '--preload', 'none') as d:
        yield d


@pytest.fixture
def session(daemon):
    with daemon.api() as api:
        yield api.session()


def exec_in(daemon, session, *words, **kwargs):
    return gb.cli('exec', '--url', daemon.url, *words[: words.index('--')], session.id, *words[words.index('--') :], **kwargs)


def test_streams_and_exit_code(daemon, session):
    done = exec_in(daemon, session, '--', 'sh', '-c', 'echo out; echo err >&2; exit 7')
    assert (done.stdout, done.stderr, done.returncode) == ('out\n', 'err\n', 7)
    done = exec_in(daemon, session, '-e', 'A=b c', '--cwd', '/tmp', '--', 'sh', '-c', 'echo "$A"; pwd')
    assert done.stdout == 'b c\n/tmp\n'


def test_input_is_passed_on(daemon, session):
    text = 'x' * 300000 + '\n'
    assert exec_in(daemon, session, '--', 'wc', '-c', input=text).stdout.strip() == str(len(text))
    assert exec_in(daemon, session, '--', 'cat', input='ü\n').stdout == 'ü\n'


def test_bytes_survive(daemon, session):
    done = subprocess.run(
        [gb.PROGRAM, 'exec', '--url', daemon.url, session.id, '--', 'printf', '\\000\\377\\n'],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=gb.clean_env(),
        timeout=60,
    )
    assert done.stdout == b'\0\xff\n'


def test_detached(daemon, session):
    done = exec_in(daemon, session, '-d', '--', 'sleep', '1000')
    number = int(done.stdout)
    answer = session.api.get(f'{session.path}/processes/{number}').json()
    assert answer['state'] == 'running' and answer['argv'] == ['sleep', '1000']


def test_ends_with_the_command(daemon, session):
    running = subprocess.Popen(
        [gb.PROGRAM, 'exec', '--url', daemon.url, session.id, '--', 'sleep', '1000'], stdin=subprocess.PIPE, env=gb.clean_env()
    )
    listed = lambda: session.api.get(f'{session.path}/processes').json()['processes']
    gb.wait_until(lambda: any(p['state'] == 'running' for p in listed()), 'it runs', timeout=30)
    running.send_signal(signal.SIGTERM)
    running.wait(30)
    running.stdin.close()
    gb.wait_until(lambda: not any(p['state'] == 'running' for p in listed()), 'it has ended', timeout=30)


def test_mistakes(daemon, session):
    missing = exec_in(daemon, session, '--', 'nosuch-program')
    assert missing.returncode == 127 and 'could not be started' in missing.stderr
    assert gb.cli('exec', '--url', daemon.url).returncode == 2
    assert 'no session' in gb.cli('exec', '--url', daemon.url, 'nosuch', '--', 'ls').stderr


def test_terminal(daemon, session):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(gb.PROGRAM, ['glovebox', 'exec', '--url', daemon.url, '-t', session.id], gb.clean_env())
    seen = b''

    def read_until(text):
        nonlocal seen
        end = time.monotonic() + 30
        while text not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    seen += os.read(terminal, 65536)
                except OSError:
                    break
        assert text in seen, seen

    read_until(b'$ ')
    os.write(terminal, b'echo in-$((40 + 2)); tty; exit 5\n')
    read_until(b'in-42')
    read_until(b'/dev/pts/')
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 5
