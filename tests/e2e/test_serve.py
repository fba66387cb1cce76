"""The server's own life: settings, first lines, signals, the drain, and that nothing is left."""
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time

import pytest

import gb

GLOVEBOX = str(gb.PROGRAM)
TOKEN = "0123456789abcdef0123"


class Server:
    """A server on a free port, with a template that is warm at once."""

    def __init__(self, folder, *flags, listen="127.0.0.1:0", **env):
        self.log_path = folder / "log"
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(
                [GLOVEBOX, "serve", "--listen", listen, "--state-dir", str(folder / "state"), "--preload", "none", *flags],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"], "HOME": str(folder), **env})
        self.listen = listen
        self.wait_for("Press Ctrl-C to stop the server")
        found = re.search(r"listening on \S+:(\d+)\b", self.log())
        self.port = int(found.group(1)) if found else None

    def log(self):
        return self.log_path.read_text()

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.log():
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.02)

    def call(self, method, path, body=None, **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=gb.PATIENCE)
        if body is not None:
            headers["Content-Type"] = "application/json"
        c.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = c.getresponse()
        text = answer.read()
        c.close()
        return answer.status, json.loads(text) if text else None

    def session(self):
        return self.call("POST", "/v1/sessions", {})[1]["id"]

    def execute_later(self, session, code):
        """Runs a cell from another thread; the returned list holds its answer at the end."""
        answers = []

        def run():
            try:
                answers.append(self.call("POST", f"/v1/sessions/{session}/execute", {"code": code}))
            except OSError as e:
                answers.append(e)

        thread = threading.Thread(target=run)
        thread.start()
        self.wait_busy(session)
        return thread, answers

    def wait_busy(self, session):
        for _ in range(3000):
            if self.call("GET", f"/v1/sessions/{session}")[1]["state"] == "busy":
                return
            time.sleep(0.02)
        raise AssertionError("the cell did not start")

    def below(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return [int(pid) for pid in f.read().split()]

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(gb.PATIENCE)


@pytest.fixture
def server(tmp_path):
    started = []

    def start(*flags, **kw):
        started.append(Server(tmp_path, *flags, **kw))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def alive(pids):
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def test_start_and_end(server):
    s = server("--ready", "2")
    assert re.search(r" info glovebox \S+, process \d+, settings from", s.log())
    assert " info ready after " in s.log()
    assert f"curl -s http://127.0.0.1:{s.port}/v1/run" in s.log()
    status, o = s.call("POST", "/v1/run", {"code": "print(6 * 7)"}, **{"X-Request-Id": "mine-1"})
    assert status == 200 and o["stdout"] == "42\n"
    s.wait_for("info request mine-1 ")  # the line is written after the answer
    assert re.search(r"info request mine-1 127\.0\.0\.1:\d+ POST /v1/run 200 ", s.log())
    session = s.session()
    below = s.below()
    assert below
    assert s.end() == 0
    assert not alive(below), "processes were left"
    assert "SIGTERM: draining" in s.log() and "ended; served for" in s.log()
    assert session and not re.search(r" (warning|error) ", s.log()), s.log()


def test_preload_reports_what_is_unknown(server):
    s = server("--preload", "json,nosuchmodule")
    assert "importing json nosuchmodule" in s.log()
    assert re.search(r" warning not preloaded: nosuchmodule: ", s.log())


def test_settings_reach_sessions(server, tmp_path):
    conf = tmp_path / "my.conf"
    conf.write_text("[cells]\ntimeout = 7\noutput = 2k\n[sessions]\nttl = 50s\nmax-sessions = 2\n")
    s = server("--config", str(conf), "--max-timeout", "9", GLOVEBOX_OUTPUT="3k", GLOVEBOX_MAX_TIMEOUT="8",
               GLOVEBOX_TIMEOUTT="1")
    status, session = s.call("POST", "/v1/sessions", {})
    assert status == 201 and session["limits"]["timeout_s"] == 7 and session["limits"]["output_bytes"] == 3072
    assert session["ttl_s"] == 50
    status, problem = s.call("POST", "/v1/sessions", {"limits": {"timeout_s": 10}})
    assert status == 400 and "9" in problem["detail"]
    assert s.call("POST", "/v1/sessions", {})[0] == 201
    assert s.call("POST", "/v1/sessions", {})[0] in (429, 503)
    assert f"settings from {conf}" in s.log()
    assert "GLOVEBOX_TIMEOUTT: unknown setting, ignored; did you mean GLOVEBOX_TIMEOUT?" in s.log()


@pytest.mark.parametrize(
    "flags, says",
    [
        (["--timeout", "x"], "--timeout: 'x' is not a duration"),
        (["--listen", "0.0.0.0:0"], "--token-file"),
        (["--listen", "nowhere"], "is not an address"),
        (["--config", "/nonexistent"], "/nonexistent"),
        (["--timeot", "3"], "--timeout"),
        (["word"], "'word'"),
    ],
)
def test_wrong_settings(flags, says):
    r = subprocess.run([GLOVEBOX, "serve", *flags], capture_output=True, text=True, timeout=gb.PATIENCE)
    assert r.returncode == 2 and says in r.stderr


def test_address_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        r = subprocess.run([GLOVEBOX, "serve", "--listen", address, "--state-dir", str(tmp_path), "--preload", "none"],
                           capture_output=True, text=True, timeout=gb.PATIENCE)
    assert r.returncode == 1 and address in r.stderr and "--listen" in r.stderr


def test_token(server):
    s = server("--token", TOKEN)
    assert s.call("GET", "/health")[0] == 200
    assert s.call("GET", "/v1/sessions")[0] == 401
    assert s.call("GET", "/v1/sessions", Authorization=f"Bearer {TOKEN}")[0] == 200
    url = f"http://127.0.0.1:{s.port}"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GLOVEBOX_")}
    r = subprocess.run([GLOVEBOX, "ps", "--url", url], capture_output=True, text=True, env=clean)
    assert r.returncode == 1 and "GLOVEBOX_TOKEN" in r.stderr
    r = subprocess.run([GLOVEBOX, "ps", "--url", url, "--quiet"], capture_output=True, text=True,
                       env={**clean, "GLOVEBOX_TOKEN": TOKEN})
    assert r.returncode == 0 and r.stdout == ""


def test_unix_socket(server, tmp_path):
    path = tmp_path / "socket"
    s = server(listen=f"unix:{path}")
    r = subprocess.run([GLOVEBOX, "ps", "--url", f"unix:{path}"], capture_output=True, text=True)
    assert r.returncode == 0 and r.stdout.startswith("ID ")
    assert f"--unix-socket {path}" in s.log()
    assert s.end() == 0


def test_commands_against_a_server(server):
    s = server()
    env = {**os.environ, "GLOVEBOX_URL": f"http://127.0.0.1:{s.port}"}

    def glovebox(*words):
        return subprocess.run([GLOVEBOX, *words], capture_output=True, text=True, env=env, timeout=gb.PATIENCE)

    first = s.call("POST", "/v1/sessions", {"name": "first"})[1]["id"]
    second = s.session()
    s.call("POST", f"/v1/sessions/{first}/execute", {"code": "import sys; print('a'); print('b', file=sys.stderr)"})
    s.call("POST", f"/v1/sessions/{first}/execute", {"code": "print('c')"})
    listed = glovebox("ps").stdout.splitlines()
    assert len(listed) == 3 and listed[1].split()[:4] == [first, "first", "idle", "2"]
    assert [x["id"] for x in json.loads(glovebox("ps", "--json").stdout)] == [first, second]
    logs = glovebox("logs", "first")
    assert (logs.stdout, logs.stderr) == ("a\nc\n", "b\n")
    assert glovebox("logs", "--cell", "2", first).stdout == "c\n"
    follow = subprocess.Popen([GLOVEBOX, "logs", "-f", "first"], stdout=subprocess.PIPE, text=True, env=env)
    assert follow.stdout.readline() == "a\n" and follow.stdout.readline() == "c\n"
    s.call("POST", f"/v1/sessions/{first}/execute", {"code": "print('d')"})
    assert follow.stdout.readline() == "d\n"
    assert glovebox("kill", "first").stdout == first + "\n"
    assert follow.wait(20) == 0  # it ends with its session
    follow.stdout.close()
    assert glovebox("kill", first).returncode == 1
    assert json.loads(glovebox("kill", "--all", "--json").stdout) == {"ended": [second]}
    assert glovebox("ps", "--quiet").stdout == ""


def test_drain_lets_cells_finish(server):
    s = server()
    session = s.session()
    thread, answers = s.execute_later(session, "import time; time.sleep(4); print('whole')")
    s.process.send_signal(signal.SIGTERM)
    s.wait_for("draining, 1 running cells")
    thread.join(gb.PATIENCE)
    assert answers[0][0] == 200 and answers[0][1]["stdout"] == "whole\n"
    assert s.process.wait(gb.PATIENCE) == 0


def test_drain_has_an_end(server):
    s = server("--drain", "0.5")
    session = s.session()
    thread, answers = s.execute_later(session, "print('begun', flush=True)\nimport time; time.sleep(60)")
    below = s.below()
    assert s.end() == 0
    thread.join(gb.PATIENCE)
    # The client still hears what became of its cell.
    assert answers[0][0] == 200 and answers[0][1]["status"] == "killed" and answers[0][1]["stdout"] == "begun\n"
    assert not alive(below)


def test_second_signal_ends_at_once(server):
    s = server("--drain", "60")
    session = s.session()
    thread, answers = s.execute_later(session, "import time; time.sleep(60)")
    s.process.send_signal(signal.SIGINT)
    s.wait_for("SIGINT: draining")
    assert s.end(signal.SIGINT) == 0
    thread.join(gb.PATIENCE)
    assert "SIGINT again" in s.log()


def test_drain_waits_for_detached_cells(server, tmp_path):
    s = server()
    session = s.session()
    c = http.client.HTTPConnection("127.0.0.1", s.port)
    c.request("POST", f"/v1/sessions/{session}/execute", json.dumps({"code": "import time; time.sleep(4)", "detach": True}),
              {"Content-Type": "application/json"})
    s.wait_busy(session)
    c.close()
    start = time.monotonic()
    assert s.end() == 0
    assert time.monotonic() - start > 0.5


def test_killed_server_leaves_nothing(server):
    s = server()
    s.session()
    below = s.below()
    s.process.kill()
    s.process.wait()
    for _ in range(3000):
        if not alive(below):
            break
        time.sleep(0.02)
    assert not alive(below)


def test_raises_its_limit_of_open_files(server):
    s = server()
    limits = open(f"/proc/{s.process.pid}/limits").read()
    soft, hard = re.search(r"Max open files\s+(\S+)\s+(\S+)", limits).groups()
    most = open("/proc/sys/fs/nr_open").read().strip()
    raised = subprocess.run(["prlimit", f"--nofile={most}:{most}", "true"], capture_output=True).returncode == 0
    allowed = most if raised else str(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    assert soft == hard == allowed
