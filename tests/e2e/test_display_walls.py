"""Screens of two sessions: neither sees, grabs or types into the other's, and what one does to its own stays its own trouble."""

import os

import pytest

import gb
from screens import colours, image

# Answers what a connection without the right cookie gets: "refused", or "let in".
KNOCK = """
import socket
def knock(family, address, cookie=b''):
    s = socket.socket(family)
    s.settimeout(2)
    try:
        s.connect(address)
        name = b'MIT-MAGIC-COOKIE-1' if cookie else b''
        pad = lambda b: b + bytes(-len(b) % 4)
        s.sendall(b'l\\0\\x0b\\0\\0\\0' + len(name).to_bytes(2, 'little') + len(cookie).to_bytes(2, 'little') + b'\\0\\0' + pad(name) + pad(cookie))
        return 'let in' if s.recv(1) == b'\\1' else 'refused'
    except OSError as e:
        return type(e).__name__
    finally:
        s.close()
"""


@pytest.fixture
def pair(api):
    two = api.session(display=True), api.session(display=True)
    for session in two:
        session.execute('pass', capture_screenshot=True).ok()  # its X server runs
    return two


def test_only_the_own_screen_can_be_reached(pair):
    one, two = pair
    one.execute(KNOCK).ok()
    cookie = "open('/tmp/.X11-unix/cookie', 'rb').read()[-16:]"
    assert one.value(f"knock(socket.AF_UNIX, '/tmp/.X11-unix/X0', {cookie})") == "'let in'"
    assert one.value("knock(socket.AF_UNIX, '/tmp/.X11-unix/X0')") == "'refused'"
    foreign = eval(two.value(cookie))
    assert one.value(f"knock(socket.AF_UNIX, '/tmp/.X11-unix/X0', {foreign!r})") == "'refused'"
    tries = "[knock(socket.AF_UNIX, name) for n in range(1, 20) for name in (f'/tmp/.X11-unix/X{n}', f'\\0/tmp/.X11-unix/X{n}', '\\0/tmp/.X11-unix/X0')]"
    assert 'let in' not in one.value(tries)


def test_windows_of_another_session_are_not_there(pair):
    one, two = pair
    window = "import tkinter as tk\nroot = tk.Tk()\nroot.title('secret')\nroot.update()"
    one.execute(window).ok()
    assert two.execute("import tkinter as tk\nroot = tk.Tk()\nroot.update()\nroot.winfo_interps()").ok().text == "('tk',)"
    titles = [w['title'] for w in two.api.get(f'{two.path}/windows').json()['windows']]
    assert titles == ['tk']


def test_giant_pixmaps_and_many_windows_are_ones_own_trouble(pair):
    one, two = pair
    greedy = '''
import subprocess, sys
code = """
import ctypes
X = ctypes.CDLL('libX11.so.6')
X.XOpenDisplay.restype = ctypes.c_void_p
X.XDefaultRootWindow.restype = X.XCreatePixmap.restype = X.XCreateSimpleWindow.restype = ctypes.c_ulong
d = ctypes.c_void_p(X.XOpenDisplay(None))
root = ctypes.c_ulong(X.XDefaultRootWindow(d))
for i in range(5000):
    w = X.XCreateSimpleWindow(d, root, 1, 1, 10, 10, 0, 0, 0)
    X.XMapWindow(d, ctypes.c_ulong(w))
X.XSync(d, 0)
print('windows', flush=True)
for i in range(64):
    X.XCreatePixmap(d, root, 16000, 16000, 24)
X.XSync(d, 0)
print('pixmaps')
"""
done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
print(done.stdout, done.stderr)
'''
    seen = one.execute(greedy, timeout_s=90).ok()
    assert 'windows' in seen.stdout and 'pixmaps' not in seen.stdout, 'a gigabyte of pixels was refused'
    assert 'BadAlloc' in seen.stdout
    for session in pair:
        assert session.execute('pass', capture_screenshot=True).ok().screenshot['data']
    assert colours(image(two.execute('pass', capture_screenshot=True).screenshot)) == {(0, 0, 0): 1024 * 768}


X11 = """
import ctypes, time
X = ctypes.CDLL('libX11.so.6')
X.XOpenDisplay.restype = ctypes.c_void_p
d = ctypes.c_void_p(X.XOpenDisplay(None))
"""


def test_a_server_that_is_grabbed_is_ones_own_trouble(pair):
    one, two = pair
    cell = one.in_background(X11 + "X.XGrabServer(d)\nX.XSync(d, 0)\nprint('grabbed', flush=True)\ntime.sleep(3)\nX.XUngrabServer(d)\nX.XSync(d, 0)", timeout_s=60)
    log = lambda: one.api.get(f'{one.path}/logs', headers={'Accept': 'text/plain'}).text
    gb.wait_until(lambda: 'grabbed' in log(), 'it holds the server')
    assert two.api.get(f'{two.path}/screenshot').status_code == 200
    cell.result().ok()
    assert one.api.get(f'{one.path}/screenshot').status_code == 200


def test_keys_of_another_session_are_not_heard(pair):
    one, two = pair
    listen = X11 + """
keys = ctypes.create_string_buffer(32)
heard, until = False, time.monotonic() + %d
while time.monotonic() < until and not heard:
    X.XQueryKeymap(d, keys)
    heard = any(keys.raw)
print(heard)
"""
    held = {'action': 'hold_key', 'text': 'a', 'duration': 3}
    cell = one.in_background(listen % 3, timeout_s=60)
    assert two.api.post(f'{two.path}/input', json=held).status_code == 200
    assert cell.result().ok().stdout == 'False\n'
    cell = one.in_background(listen % 30, timeout_s=60)
    one.wait_busy()
    assert one.api.post(f'{one.path}/input', json=held).status_code == 200, 'its own it does hear'
    assert cell.result().ok().stdout == 'True\n'


def test_the_server_of_a_screen_is_closed_to_its_session(pair):
    for session in pair:
        jail = os.readlink(f'/proc/{session.get()["pid"]}/ns/pid')
        servers = [p for p in gb.processes() if gb.command_of(p) == 'Xvfb' and gb.namespaces([p]) and os.readlink(f'/proc/{p}/ns/pid') == jail]
        assert len(servers) == 1
        # not dumpable: its descriptors and its memory belong to the machine's root, not to its user
        assert os.stat(f'/proc/{servers[0]}/mem').st_uid == 0
        assert ' 0 ' not in next(line for line in open(f'/proc/{servers[0]}/status') if line.startswith('Uid:')).replace('\t', ' ')
