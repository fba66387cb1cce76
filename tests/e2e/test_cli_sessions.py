"""The verbs for sessions of a server: cp, top, open, attach; and Tab in the prompts."""
import os
import pty
import re
import select
import signal
import termios

import pytest

import gb


@pytest.fixture
def glovebox(daemon):
    def run(*words, **kw):
        return gb.cli(*words, env=gb.clean_env(GLOVEBOX_URL=daemon.url, **kw.pop('extra', {})), **kw)

    return run


def content(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob('*') if p.is_file()}


# ---- cp ---------------------------------------------------------------------------------


def test_folders_there_and_back(session, glovebox, tmp_path):
    tree = tmp_path / 'tree'
    (tree / 'sub' / 'empty').mkdir(parents=True)
    (tree / 'sub' / 'é b.txt').write_bytes(b'one')
    (tree / '.hidden').write_bytes(b'')
    (tree / 'big').write_bytes(bytes(range(256)) * 3000)
    (tree / 'link').symlink_to('/etc/passwd')
    out = glovebox('cp', tree, f'{session.id}:')
    assert (out.returncode, out.stdout) == (0, ''), out.stderr
    assert '3 files' in out.stderr and '1 links or devices' in out.stderr
    assert session.value('import os; open("tree/sub/é b.txt").read(), os.path.isdir("tree/sub/empty"), os.path.exists("tree/link")') == "('one', True, False)"

    assert glovebox('cp', f'{session.id}:/workspace/tree', tmp_path / 'new').returncode == 0
    assert content(tmp_path / 'new') == {k: v for k, v in content(tree).items() if k != 'link'}
    assert (tmp_path / 'new/sub/empty').is_dir()
    # a folder that is there: the copy is made in it, or the contents with /.
    assert glovebox('cp', '-q', f'{session.id}:tree/sub', tmp_path / 'new').returncode == 0
    assert glovebox('cp', '-q', f'{session.id}:tree/sub/.', tmp_path / 'new/sub').stderr == ''
    assert (tmp_path / 'new/sub/é b.txt').read_bytes() == b'one' and not (tmp_path / 'new/sub/sub').exists()
    assert glovebox('cp', f'{tree}/.', f'{session.id}:other').returncode == 0
    assert session.value('sorted(os.listdir("other"))') == "['.hidden', 'big', 'sub']"


def test_files_there_and_back(session, glovebox, tmp_path):
    (tmp_path / 'a b#.txt').write_bytes(b'one')
    assert glovebox('cp', tmp_path / 'a b#.txt', f'{session.id}:').returncode == 0
    assert glovebox('cp', tmp_path / 'a b#.txt', f'{session.id}:deep/down.txt').returncode == 0
    assert session.value('open("a b#.txt").read() + open("deep/down.txt").read()') == "'oneone'"
    assert glovebox('cp', f'{session.id}:deep/down.txt', '-').stdout == 'one'
    assert glovebox('cp', '-', f'{session.id}:typed', input='two').returncode == 0
    assert glovebox('cp', f'{session.id}:typed', tmp_path).returncode == 0
    assert (tmp_path / 'typed').read_text() == 'two'
    session.execute('open("empty", "w").close()').ok()
    assert glovebox('cp', f'{session.id}:empty', tmp_path / 'typed').returncode == 0
    assert (tmp_path / 'typed').read_text() == ''


def test_what_cannot_be_copied(session, glovebox, tmp_path):
    kept = tmp_path / 'kept'
    kept.write_text('old')
    for words, said in [
        ((f'{session.id}:none', kept), 'there is no such file'),
        ((f'{session.id}:/etc/passwd', kept), 'not below /workspace'),
        ((f'{session.id}:../x', kept), ''),
        ((tmp_path / 'none', f'{session.id}:'), 'No such file'),
        ((kept, 's_' + 'a' * 26 + ':'), 'no session'),
        ((kept, kept), 'SESSION:PATH'),
        ((f'{session.id}:a', f'{session.id}:b'), 'of this machine'),
        ((kept,), 'a source and a target'),
    ]:
        out = glovebox('cp', *words)
        assert out.returncode in (1, 2) and said in out.stderr, (words, out.stderr)
    assert kept.read_text() == 'old'


def test_no_link_of_this_machine_is_followed(session, glovebox, tmp_path):
    """A link in the target may lead anywhere: what the session chose as a name is not written through it."""
    session.execute('import os; os.makedirs("d/out"); open("d/out/x", "w").write("evil"); open("d/f", "w").write("evil")').ok()
    outside, target = tmp_path / 'outside', tmp_path / 'target'
    outside.mkdir()
    target.mkdir()
    (target / 'out').symlink_to(outside)
    (tmp_path / 'file').write_text('good')
    (target / 'f').symlink_to(tmp_path / 'file')
    assert glovebox('cp', f'{session.id}:d/.', target).returncode == 1
    assert list(outside.iterdir()) == [] and (tmp_path / 'file').read_text() == 'good'


# ---- errors -----------------------------------------------------------------------------


def test_remedies_name_verbs_and_no_routes(session, glovebox):
    assert glovebox('checkpoint', session.id, 'one').returncode == 0
    wrong = {
        'glovebox ps': ('kill', 's_' + 'a' * 26),
        'glovebox tree': ('rollback', session.id, 'two'),
        'glovebox volumes create': ('new', '--volume', 'nosuch:/mnt/x'),
        'choose none or loopback': ('new', '--network', 'any'),
        'at least 16M': ('new', '--memory', '1'),
        'nothing may stand behind the port': ('ps', '--url', 'http://127.0.0.1:8000/v1'),
    }
    for said, words in wrong.items():
        seen = glovebox(*words)
        assert seen.returncode != 0 and said in seen.stderr, (words, seen)
        assert '/v1/' not in seen.stderr.replace('8000/v1', '') and 'GET ' not in seen.stderr, seen
    assert glovebox('pause', session.id).returncode == 0
    refused = glovebox('exec', session.id, '--', 'true')
    assert glovebox('resume', session.id).returncode == 0
    assert 'Resume the session with `glovebox resume`.' in refused.stderr


# ---- top, open --------------------------------------------------------------------------


def test_top_prints_a_table_into_a_pipe(api, glovebox):
    first, second = api.session(name='idle one'), api.session(name='busy')
    second.execute('x = bytearray(60 << 20)\nfor i in range(3_000_000): pass').ok()
    out = glovebox('top', '--sort', 'memory')
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    assert lines[0].startswith('2 sessions, ') and lines[2].split() == 'ID NAME STATE CELLS MEMORY CPU% CPU s AGE'.split()
    assert second.id in lines[3] and first.id in lines[4] and '\033' not in out.stdout
    assert re.search(r'busy +idle +1 ', lines[3])


def test_open_prints_the_address_and_starts_the_browser(daemon, session, glovebox, tmp_path):
    assert glovebox('open', '--print').stdout == f'{daemon.url}/\n'
    browser, seen = tmp_path / 'browser', tmp_path / 'seen'
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.part; mv {seen}.part {seen}\n')
    browser.chmod(0o755)
    out = glovebox('open', session.id, extra={'BROWSER': str(browser), 'GLOVEBOX_TOKEN': 'secret'})
    assert out.stdout == f'{daemon.url}/#/s/{session.id}\n', out.stderr
    gb.wait_until(seen.exists, 'the browser was started')
    assert seen.read_text().strip() == out.stdout.strip()  # and the token is not in it
    assert 'asks for the token' in out.stderr
    assert glovebox('open', 'nobody').returncode == 1
    assert 'socket file' in glovebox('open', '--url', 'unix:/tmp/x').stderr


# ---- attach, and Tab --------------------------------------------------------------------


class Screen:
    def __init__(self, *words, **env):
        self.text = ''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM='xterm', NO_COLOR='1', **env)
            os.execv(gb.PROGRAM, ['glovebox', *words])

    def expect(self, pattern):
        def found():
            while select.select([self.fd], [], [], 0)[0]:
                try:
                    piece = os.read(self.fd, 65536)
                except OSError:
                    break
                if not piece:
                    break
                self.text += piece.decode(errors='replace')
            return re.search(pattern, self.text)

        gb.wait_until(found, f'{pattern!r} on the screen')
        found = re.search(pattern, self.text)
        self.text = self.text[found.end():]
        return found

    def prompt(self, pattern='>>> $'):
        """Waits for a prompt, and for the editor to take the keyboard over, which it does just after."""
        self.expect(pattern)
        gb.wait_until(lambda: not termios.tcgetattr(self.fd)[3] & termios.ICANON, 'the editor reads keys')

    def send(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


@pytest.fixture
def screens(tmp_path):
    made = []

    def start(*words, **env):
        made.append(Screen(*words, XDG_STATE_HOME=str(tmp_path), **env))
        return made[-1]

    yield start
    for s in made:
        try:
            os.kill(s.pid, signal.SIGKILL)
            os.waitpid(s.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def test_attach_runs_cells_of_a_pipe(session, glovebox):
    session.execute('x = 40; print("before"); x').ok()
    out = glovebox('attach', session.id, input='for i in range(2):\n    print(i)\n\nx + 2\n1 / 0\n')
    assert out.returncode == 0, out.stderr
    assert out.stdout == '>>> x = 40; print("before"); x\nbefore\n40\n>>> for i in range(2):\n...     print(i)\n0\n1\n>>> x + 2\n42\n>>> 1 / 0\n'
    assert out.stderr.count('ZeroDivisionError') == 1


def test_attach_shows_what_others_run_and_passes_interrupts_on(daemon, session, screens):
    session.execute('x = 41').ok()
    screen = screens('attach', session.id, GLOVEBOX_URL=daemon.url)
    screen.expect('>>> x = 41')
    screen.prompt()
    session.execute('print("from elsewhere")').ok()
    screen.expect(r'>>> print\("from elsewhere"\)\s+from elsewhere')
    screen.send('x + 1\r')
    screen.expect(r'\n42\r\n')
    screen.prompt()
    screen.send('import time; time.sleep(1e6)\r')
    session.wait_busy()
    screen.send('\x03')
    screen.expect('KeyboardInterrupt')
    session.wait_idle()
    screen.prompt()
    screen.send('x.bit_le\t()\r')
    screen.expect(r'\n6\r\n')
    screen.prompt()
    screen.send('\x04')
    assert screen.end() == 0
    assert session.value('x') == '41'  # it stays


def test_attach_ends_with_the_session(daemon, session, screens):
    screen = screens('attach', '--watch', session.id, GLOVEBOX_URL=daemon.url)
    session.execute('print("seen")').ok()  # shown as an earlier cell, or when it happens
    screen.expect('seen')
    session.delete()
    screen.expect('the session has ended')
    assert screen.end() == 0


def test_tab_completes_in_the_shell(screens):
    screen = screens('shell')
    screen.prompt()
    screen.send('number_of_things = 5\r')
    screen.prompt()
    screen.send('number_of\t + 1\r')
    screen.expect(r'\n6\r\n')
    screen.prompt()
    screen.send('number_of_things.bit_\t')  # two names
    screen.expect(r'bit_count +bit_length')
    screen.send('l\t()\r')
    screen.expect(r'\n3\r\n')
    screen.prompt()
    screen.send('if True:\r')
    screen.prompt(r'\.\.\. $')
    screen.send('\tprint(number_of_th\t)\r')  # behind blanks a tab is a tab
    screen.prompt(r'\.\.\. $')
    screen.send('\r')
    screen.expect(r'\n5\r\n')
    screen.prompt()
    screen.send('\x04')
    assert screen.end() == 0
