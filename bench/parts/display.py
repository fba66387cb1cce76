"""Pictures of windows: what is lost after the last paint, against Xvfb, half a second and ImageMagick's import."""

import base64
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time

from harness import memory
from harness.client import Refused
from harness.daemon import Daemon
from harness.stats import Section

PYTHON = '/usr/bin/python3'
RUNS = 10
DISPLAYS = 200
LATER = 2  # seconds after which the picture is taken again
SLEEP = 0.5  # what the old way waits for a window to be painted
MB = 1e6

TK = "import tkinter as tk\nroot = tk.Tk()\ntk.Label(root, text='Hello', font=('Helvetica', 40)).pack()\nroot.mainloop()"
PROGRAMS = {
    'tkinter': TK,
    'matplotlib': 'import matplotlib.pyplot as plt\nplt.subplots(2, 2)\nplt.show()',
    'turtle': 'import turtle\nturtle.speed(0)\nturtle.tracer(10)\nfor i in range(36):\n    turtle.forward(200)\n    turtle.left(170)\nturtle.done()',
    'PyQt5': "from PyQt5.QtWidgets import QApplication, QLabel\napp = QApplication([])\nlabel = QLabel('Hello')\nlabel.resize(300, 200)\nlabel.show()\napp.exec_()",
}
# What matplotlib itself takes for that figure, which is part of the time from its window to the picture.
DRAW = (
    "import time, matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as plt; figure = plt.subplots(2, 2)[0]; "
    "began = time.perf_counter(); figure.canvas.draw(); print((time.perf_counter() - began) * 1e3)"
)
FASTER = {'tkinter': 20, 'matplotlib': 4}  # map → PNG, against the old way

# From the first connection of a session to the server's answer.
CONNECT = """
import socket, time
began = time.perf_counter()
s = socket.socket(socket.AF_UNIX)
s.connect('/tmp/.X11-unix/X0')
cookie = open('/tmp/.X11-unix/cookie', 'rb').read()[-16:]
s.sendall(b'l\\0\\x0b\\0\\0\\0\\x12\\0\\x10\\0\\0\\0MIT-MAGIC-COOKIE-1\\0\\0' + cookie)
assert s.recv(1) == b'\\1'
(time.perf_counter() - began) * 1e3
"""


class OldWay:
    """An Xvfb that runs already, and import."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='glovebox-bench-')
        read, write = os.pipe()
        self.server = subprocess.Popen(
            ['Xvfb', '-displayfd', str(write), '-screen', '0', '1024x768x24', '-nolisten', 'tcp'],
            pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(write)
        with os.fdopen(read) as f:
            self.display = ':' + f.readline().strip()
        return self

    def __exit__(self, *exc):
        self.server.kill()
        self.server.wait()
        self.folder.cleanup()

    def shot(self):
        """Milliseconds of one picture."""
        began = time.perf_counter()
        subprocess.run(
            ['import', '-display', self.display, '-window', 'root', f'{self.folder.name}/shot.png'], check=True, capture_output=True
        )
        return (time.perf_counter() - began) * 1e3

    @contextlib.contextmanager
    def showing(self, code):
        """With the program's window on the screen: import has its pixels to compress, as ours has."""
        empty = self.look()
        program = subprocess.Popen([PYTHON, '-c', code], env={**os.environ, 'DISPLAY': self.display, 'MPLBACKEND': 'TkAgg'})
        try:
            until, last = time.monotonic() + 60, empty
            while last == empty or last != self.look():
                if time.monotonic() > until or program.poll() is not None:
                    raise RuntimeError('the program shows nothing on the other display')
                time.sleep(SLEEP)
                last = self.look()
            yield
        finally:
            program.kill()
            program.wait()

    def look(self):
        self.shot()
        with open(f'{self.folder.name}/shot.png', 'rb') as f:
            return pixels(f.read())

    def start(self):
        """Milliseconds until another plain server is there."""
        began = time.perf_counter()
        with OldWay():
            return (time.perf_counter() - began) * 1e3


def pixels(data):
    from PIL import Image

    return Image.open(io.BytesIO(data)).convert('RGB').tobytes()


def picture(connection, code, later):
    """(the observation's screenshot, whether a picture LATER seconds after shows the same)"""
    session = connection.create(display=True)['id']
    try:
        body = {'code': code, 'capture_screenshot': True, 'on_block': 'leave' if later else 'close', 'timeout_s': 60}
        answer = connection.call('POST', f'/v1/sessions/{session}/execute', body)
        shot = answer['screenshot']
        if not shot or not shot['data']:
            raise Refused(f'{answer["status"]} {answer["error"]} {shot}')
        if not later:
            return shot, None
        time.sleep(LATER)
        again = connection.ask(f'GET /v1/sessions/{session}/screenshot HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.encode())[1]
        return shot, pixels(base64.b64decode(shot['data'])) == pixels(again)
    finally:
        connection.delete(session)


@contextlib.contextmanager
def busy_loops(n):
    loops = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(n)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def programs(section, connection, runs, old):
    for name, code in PROGRAMS.items():
        with old.showing(code):
            program(section, connection, runs, name, old.shot)


def program(section, connection, runs, name, old_shot):
    code = PROGRAMS[name]
    old = section.row(f'{name}: half a second and import, after its window is mapped', 'ms')
    whole = section.row(f'{name}: window mapped → PNG', 'ms', old)
    lost = section.row(f'{name}: of it after the last paint', 'ms', old)
    drawing = section.row('matplotlib: drawing the figure, in plain python3', 'ms', old) if name == 'matplotlib' else None
    for _ in range(runs):
        old.attempt(lambda: SLEEP * 1e3 + old_shot())
        if drawing is not None:
            drawing.attempt(draw_plainly)
        shot = whole.attempt(lambda code=code: keep(picture(connection, code, False)[0], 'after_ms', lost))
        if shot is None:
            break
    section.target(f'{name}: lost after the last paint, median', lost.samples and lost.median, 20, 'ms')
    if name in FASTER and whole.samples and old.samples:
        section.target(f'{name}: faster than the old way', old.median / whole.median, FASTER[name], '×', at_least=True)


def draw_plainly():
    return float(subprocess.run([PYTHON, '-c', DRAW], check=True, capture_output=True, text=True).stdout)


def keep(shot, field, lost):
    lost.add(shot['since_paint_ms'])
    return shot[field]


def same_later(section, connection, runs):
    for load in (0, 4):
        with busy_loops(load):
            for name, code in PROGRAMS.items():
                outcomes = [picture(connection, code, True)[1] for _ in range(runs)]
                section.fact(f'{name}, {load} busy loops: {sum(outcomes)} of {runs} pictures equal one taken {LATER} s later')


def latencies(section, daemon, connection, old, runs):
    imports = section.row("ImageMagick's import, 1024x768", 'ms')
    gets = section.row('GET …/screenshot, capture and PNG of 1024x768 and HTTP', 'ms', imports)
    starts = section.row('a plain Xvfb, started', 'ms')
    ready = section.row('a session\'s first connection → the X server answers', 'ms', starts)
    session = connection.create(display=True)['id']
    request = f'GET /v1/sessions/{session}/screenshot HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.encode()
    connection.ask(request)
    for _ in range(runs):
        imports.attempt(old.shot)
        began = time.perf_counter()
        connection.ask(request)
        gets.add((time.perf_counter() - began) * 1e3)
        starts.attempt(old.start)
        other = connection.create(display=True)['id']
        connection.cell(other, 'pass')
        ready.add(float(connection.cell(other, CONNECT)['result']['text/plain']))
        connection.delete(other)
    connection.delete(session)
    section.target('capture and PNG, with HTTP', gets.median, 5, 'ms')
    section.target('a display ready', ready.median, 10, 'ms')


def many(section, daemon, connection, n):
    servers = section.row('PSS of an X server that shows a tkinter window', 'MB')
    screens = section.row('PSS of a screen process', 'MB')
    free = memory.available()
    sessions = []
    for _ in range(n):
        session = connection.create(display=True)['id']
        connection.cell(session, "import tkinter as tk\nroot = tk.Tk()\ntk.Label(root, text='x', font=('Helvetica', 40)).pack()\nroot.update()")
        sessions.append(session)
    shown = sum(len(connection.call('GET', f'/v1/sessions/{s}/windows')['windows']) == 1 for s in sessions)
    for pid, name in daemon.children().items():
        if name == 'Xvfb':
            servers.add(memory.pss(pid) / MB)
        elif name == 'glovebox-screen':
            screens.add(memory.pss(pid) / MB)
    section.fact(f'{shown} of {n} sessions show their window at once; MemAvailable fell by {(free - memory.available()) / n / MB:.1f} MB each, Python included')
    for session in sessions:
        connection.delete(session)


def display(effort):
    """windows: from the last paint to a picture in hand, beside Xvfb + sleep + import; memory of many displays"""
    section = Section('display', 'Pictures of windows', f'For comparison: a running Xvfb with the same window, a wait of {SLEEP} s, ImageMagick.')
    for tool in ('Xvfb', 'import'):
        if not shutil.which(tool):
            section.trouble = f'{tool} is not installed (scripts/install-deps --bench)'
            return section
    with OldWay() as old, Daemon('--displays', 'ready', '--max-sessions', '1000') as daemon, contextlib.closing(daemon.connect()) as connection:
        picture(connection, TK, False)  # the first one starts what all share
        latencies(section, daemon, connection, old, effort(RUNS))
        programs(section, connection, effort(RUNS), old)
        same_later(section, connection, max(effort(RUNS) // 4, 2))
        many(section, daemon, connection, effort(DISPLAYS))
    return section
