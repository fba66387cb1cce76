"""The command line as people use it: the real program, its output and its exit codes."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

import pytest

import gb

GLOVEBOX = str(gb.PROGRAM)


def glovebox(*words, **kw):
    kw.setdefault("stdin", subprocess.DEVNULL)
    if "input" in kw:
        del kw["stdin"]
    return subprocess.run([GLOVEBOX, *words], capture_output=True, text=True, timeout=gb.PATIENCE, **kw)


def run(code, *flags, words=(), **kw):
    return glovebox("run", *flags, "-c", code, *words, **kw)


def children_of(pid):
    """All processes below pid, by /proc."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children") as f:
                    todo += [int(x) for x in f.read().split()]
        except OSError:
            continue
        if one != pid:
            found.append(one)
    return found


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


# ---- run ------------------------------------------------------------------


def test_run_passes_output_and_code_through():
    r = run("import sys; print('out'); print('err', file=sys.stderr); 1 + 1")
    assert (r.returncode, r.stdout, r.stderr) == (0, "out\n", "err\n")


@pytest.mark.parametrize(
    "code, expected",
    [
        ("pass", 0),
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit()", 0),
        ("raise SystemExit(7)", 7),
        ("1 / 0", 1),
        ("import os; os._exit(5)", 5),
        ("def f(:", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 139),
    ],
)
def test_run_exit_code_is_the_codes_own(code, expected):
    assert run(code).returncode == expected


def test_run_exit_says_what_python_says():
    assert run("import sys; sys.exit(3)").stderr == ""
    assert run("import sys; sys.exit('the end')").stderr == "the end\n"
    assert run("import os; os._exit(5)").stderr == ""


def test_run_shows_the_traceback():
    r = run("def f():\n    return 1 / 0\nf()")
    assert r.returncode == 1 and r.stdout == ""
    assert r.stderr.startswith("Traceback (most recent call last):\n")
    assert "return 1 / 0" in r.stderr and r.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_run_says_what_to_do_about_an_error():
    done = run('import no_such_module')
    assert done.returncode == 1 and "No module named 'no_such_module'" in done.stderr
    assert done.stderr.splitlines()[-1].startswith('glovebox run: ') and '--package' in done.stderr.splitlines()[-1]


def test_run_file_and_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.argv[1:], __name__)\n")
    r = glovebox("run", str(script), "--json", "zwei drei", "é\"'\\")
    assert r.stdout == "['--json', 'zwei drei', 'é\"\\'\\\\'] __main__\n"
    r = run("import sys; print(sys.argv)", words=["-x", "y"])
    assert r.stdout == "['-c', '-x', 'y']\n"


def test_run_reads_code_and_input():
    assert glovebox("run", "-", input="print(6 * 7)").stdout == "42\n"
    assert run("print(input() + input())", "--stdin", "-", input="a\nb\n").stdout == "ab\n"
    r = run("input()")
    assert r.returncode == 1 and "EOFError" in r.stderr


def test_run_refuses_what_is_no_text(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_bytes(b"print('\xff')")
    r = glovebox("run", str(bad))
    assert r.returncode == 2 and "UTF-8" in r.stderr
    bad.write_bytes(b"print(1)\0")
    assert glovebox("run", str(bad)).returncode == 2
    assert glovebox("run", str(tmp_path)).returncode == 2


def test_run_environment_is_its_own():
    r = run("import os; print(os.environ.get('A'), os.environ.get('SECRET'))", "--env", "A=b,c=d",
            env={**os.environ, "SECRET": "x"})
    assert r.stdout == "b,c=d None\n"


def test_run_timeout():
    r = run("while True: pass", "--timeout", "0.5")
    assert r.returncode == 124 and "longer than 0.5 s" in r.stderr
    # Code that will not be interrupted ends too.
    r = run("while True:\n try:\n  while True: pass\n except BaseException: pass", "--timeout", "0.5")
    assert r.returncode == 124


def test_run_memory():
    r = run("x = bytearray(300 << 20)", "--memory", "128M")
    assert r.returncode == 1 and "MemoryError" in r.stderr and "--memory" in r.stderr
    assert run("x = bytearray(300 << 20)").returncode == 0


def test_run_json():
    r = run("print('hi'); {'a': 1}", "--json")
    o = json.loads(r.stdout)
    assert o["status"] == "ok" and o["stdout"] == "hi\n" and o["result"]["application/json"] == {"a": 1}
    r = run("import sys; print('x'); sys.exit(4)", "--json")
    assert r.returncode == 4 and json.loads(r.stdout)["exit_code"] == 4
    r = run("1 / 0", "--json")
    assert r.returncode == 1 and r.stderr == "" and json.loads(r.stdout)["error"]["type"] == "ZeroDivisionError"


def test_run_output_has_no_cap():
    r = run("for i in range(40000): print('x' * 99)")
    assert len(r.stdout) == 4_000_000 and "left out" not in r.stdout


def test_run_output_comes_as_it_is_printed():
    p = subprocess.Popen([GLOVEBOX, "run", "-c", "import time; print('one', flush=True); time.sleep(60)"],
                         stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert select.select([p.stdout], [], [], 60)[0]
        assert p.stdout.readline() == b"one\n"
        assert p.poll() is None
    finally:
        p.terminate()
        assert p.wait(gb.PATIENCE) == 143
        p.stdout.close()


def test_run_ends_when_its_reader_leaves():
    p = subprocess.Popen([GLOVEBOX, "run", "-c", "while True: print('y' * 1000)"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    p.stdout.read(10)
    p.stdout.close()
    assert p.wait(gb.PATIENCE) == 141
    assert p.stderr.read() == b""
    p.stderr.close()


def interrupted(code, *signals):
    """Sends each signal when the code has printed a line for it."""
    p = subprocess.Popen([GLOVEBOX, "run", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         stdin=subprocess.DEVNULL)
    for number in signals:
        p.stdout.readline()
        p.send_signal(number)
    out, err = p.communicate(timeout=gb.PATIENCE)
    return p.returncode, out, err


def test_run_interrupt():
    code, _, err = interrupted("import time; print(1, flush=True); time.sleep(60)", signal.SIGINT)
    assert code == 130 and err.rstrip().endswith("KeyboardInterrupt")
    # Code that deals with it ends as it likes.
    code, out, _ = interrupted("import time, sys\ntry: print(1, flush=True); time.sleep(60)\n"
                               "except KeyboardInterrupt: print('tidy'); sys.exit(9)", signal.SIGINT)
    assert (code, out) == (9, "tidy\n")
    # A second one ends it whatever it does.
    code, _, _ = interrupted("import time\nwhile True:\n try: print(1, flush=True); time.sleep(60)\n"
                             " except KeyboardInterrupt: pass", signal.SIGINT, signal.SIGINT)
    assert code == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_run_leaves_nothing_behind(number):
    p = subprocess.Popen([GLOVEBOX, "run", "-c", "import subprocess, time\nsubprocess.Popen(['sleep', '300'], start_new_session=True)\n"
                          "print(1, flush=True); time.sleep(300)"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    p.stdout.readline()
    below = children_of(p.pid)
    assert len(below) >= 3
    p.send_signal(number)
    p.wait(gb.PATIENCE)
    p.stdout.close()
    assert wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in below))


# ---- shell ----------------------------------------------------------------


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, *words, **env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", NO_COLOR="1", **env)
            os.execv(GLOVEBOX, [GLOVEBOX, *words])
        self.text = ""

    def expect(self, pattern, seconds=60):
        """Waits until the output matches, and returns the output so far; what matched is not looked at again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.text)
            if found:
                self.text = self.text[found.end():]
                return found
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
        raise AssertionError(f"{pattern!r} is not in {self.text!r}")

    def send(self, text):
        os.write(self.fd, text.encode())

    def prompt(self, pattern=r"(>>>|\.\.\.|\$) $"):
        """Waits for a prompt, and for the editor to take the keyboard over, which it does just after."""
        self.expect(pattern)
        assert wait_until(lambda: not termios.tcgetattr(self.fd)[3] & termios.ICANON)

    def line(self, text, pattern=None):
        self.prompt()
        self.send(text + "\r")
        return self.expect(pattern) if pattern else None

    def close(self):
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    t = Terminal("shell", XDG_STATE_HOME=str(tmp_path / "state"))
    yield t
    t.close()


def test_shell_on_a_terminal(shell):
    shell.line("x = 20 + 1")
    shell.line("x * 2", r"\r\n42\r\n")
    shell.line("for i in range(2):")
    shell.line("    print('row', i)")
    shell.line("", r"row 0\r\nrow 1\r\n")
    shell.line("1 / 0", r"ZeroDivisionError: division by zero\r\n")
    shell.line("None")
    shell.line("print('open', end='')", r"open\r\n")
    shell.line("%nonsense", "Unknown command %nonsense")
    shell.line("%reset", "fresh interpreter")
    shell.line("x", "NameError")


def test_shell_of_bash_on_a_terminal(tmp_path):
    t = Terminal("shell", "--bash", XDG_STATE_HOME=str(tmp_path / "state"))
    t.line("%tree", "no checkpoints")
    t.line("x=7; echo $((x * 6))", r"\r\n42\r\n")
    t.line("%help", "A block .do, then")
    t.close()


def test_shell_interrupts(shell):
    shell.line("x = 5")
    shell.line("import time; print('be' + 'gin'); time.sleep(60)", "begin")
    shell.send("\x03")
    shell.expect("KeyboardInterrupt")
    shell.line("x", r"\r\n5\r\n")  # the state is as it was
    shell.prompt()
    shell.send("half a line\x03")
    shell.prompt(r"KeyboardInterrupt\r\n>>> ")
    shell.send("x + 1\r")
    shell.expect(r"\r\n6\r\n")


def test_shell_history_and_end(shell, tmp_path):
    shell.line("7 * 6", r"\r\n42\r\n")
    shell.line("\x1b[A", r"7 \* 6\r\n42\r\n")
    shell.prompt()
    shell.send("\x04")
    assert wait_until(lambda: (tmp_path / "state/glovebox/history").exists())
    assert "6" in (tmp_path / "state/glovebox/history").read_text()
    assert (tmp_path / "state/glovebox/history").stat().st_mode & 0o077 == 0


def test_shell_saves_pictures(shell, tmp_path):
    shell.line("class P:")
    shell.line("    def _repr_png_(self): return b'\\x89PNG'")
    shell.line("")
    shell.line("P()", r"\[image/png, 4 B: saved to glovebox-1.png\]")
    assert (tmp_path / "glovebox-1.png").read_bytes() == b"\x89PNG"


def test_shell_from_a_pipe():
    r = glovebox("shell", input="x = 3\nx\nfor i in range(2):\n  print(i)\n\n1/0\nprint('on')\n%quit\nprint('not')\n")
    assert r.stdout == "3\n0\n1\non\n" and "ZeroDivisionError" in r.stderr and r.returncode == 0


def test_shell_of_bash():
    lines = [
        'cd /tmp; x="a b"', 'pwd; echo "$x"', 'for i in 1 2; do', 'echo "i $i"', 'done', '', 'echo "two', 'lines"', 'cat <<X', 'here',
        'X', '', 'echo \\', 'joined', 'echo k > kept; rm kept', '%undo', 'ls kept 2>&1 | wc -l', 'false', 'nosuchcommand', 'exit', 'echo not',
    ]  # fmt: skip
    r = glovebox('shell', '--bash', input='\n'.join(lines) + '\n')
    assert r.stdout.replace('(restored variables and files)\n', '') == '/tmp\na b\ni 1\ni 2\ntwo\nlines\nhere\njoined\n1\n', r
    assert 'nosuchcommand: command not found' in r.stderr and '(exit status 1)\n' in r.stderr and '(exit status 127)\n' in r.stderr
    assert 'Traceback' not in r.stderr and r.returncode == 0


# ---- doctor ---------------------------------------------------------------


def has_package(name):
    listed = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", name], capture_output=True, text=True)
    return listed.stdout == "install ok installed"


def test_doctor():
    r = glovebox("doctor", "--json")
    report = json.loads(r.stdout)
    checks = {c["name"]: c for c in report["checks"]}
    assert report["ok"] is True and r.returncode == 0
    assert checks["session"]["status"] == "ok" and "Python 3" in checks["session"]["text"]
    fonts = [c for c in report["checks"] if c["name"] == "fonts"]
    missing = [package for package in ("fonts-droid-fallback", "fonts-noto-color-emoji") if not has_package(package)]
    assert [c.get("remedy") for c in fonts] == ([f"apt-get install {package}" for package in missing] or [None])
    r = glovebox("doctor", "--quick")
    assert r.returncode == 0 and "session" not in r.stdout.split()


@pytest.mark.parametrize('code, options, code_words, own', [
    ('x = bytearray(300 << 20)', ['--memory', '128M'], 'memory', '--memory'),
    ('open("/tmp/x", "wb").write(b"x" * 3_000_000)', ['--file-size', '1M'], 'A file may have', '--file-size'),
    ('while True: print("x" * 99)', ['--total-output', '100K'], 'printed more than', '--total-output'),
    ('while True: pass', ['--cpu-time', '0.3'], 'CPU time', '--cpu-time'),
])
def test_errors_are_told_in_the_words_of_the_command_line(code, options, code_words, own):
    r = run(code, *options)
    assert r.returncode != 0 and code_words in r.stderr and own in r.stderr, r.stderr
    for word in ('limits.', 'POST ', 'GET ', '/v1/', '{'):
        assert word not in r.stderr, r.stderr


def test_json_of_a_run_is_told_in_the_words_of_the_command_line():
    r = run('open("/tmp/x", "wb").write(b"x" * 3_000_000)', '--file-size', '1M', '--json')
    assert '--file-size' in r.stdout and 'limits.file_bytes' not in r.stdout, r.stdout
